"""HyDE: the dense leg searches for a hypothetical answer (Gao et al., ACL 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.retrieval.strategies.base import Engine, Found, SearchRequest, fallback_note


@dataclass(frozen=True, slots=True)
class Hyde:
    """A search for the mean of the question's vector and a hypothetical passage's, and the question's keywords.

    Without a passage it is a plain search.
    """

    name: str = "hyde"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        hits, legs = engine.hits(request)
        if engine.expander is None:
            return Found(hits, legs, diversify=True)
        try:
            passage = engine.expander.passage(request.question, [hit.passage for hit in hits])
        except ModelError as error:
            return Found(hits, legs, fallback_note(engine.expander, error), diversify=True)
        notes = {"expander": engine.expander.name, "passage": passage}
        if not passage or not engine.model.can_read(passage):
            return Found(hits, legs, notes, diversify=True)
        try:
            hits, legs = engine.hits(request, vector=_mean_vector(request.question, passage, engine))
        except ModelError as error:
            engine.problem = error
        return Found(hits, legs, notes, diversify=True)


def _mean_vector(question: str, passage: str, engine: Engine) -> NDArray[np.float32]:
    """Return the normalised mean of both vectors, (d,), or the passage's if the model cannot read the question."""
    vector = engine.model.encode_passages([passage])[0]
    if engine.model.can_read(question):
        vector = vector + engine.model.encode_query(question)
    unit: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return unit
