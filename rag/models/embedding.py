"""Embedding models: the protocol that the other rooms know, and how one is loaded by name."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag.models.encoder import FlagEncoder
from rag.models.families import family_of
from rag.models.flag import load_flag_model
from rag.models.hub import find_model

log = logging.getLogger(__name__)


class EmbeddingModel(Protocol):
    """Text to vectors. Safe to share between threads.

    `name` identifies the model for a library: vectors of two names must never meet.
    """

    name: str
    dimension: int

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One L2-normalised vector a text, (n, dimension)."""
        ...

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """The query's L2-normalised vector, (dimension,), with the model's query instruction."""
        ...

    def can_read(self, text: str) -> bool:
        """Whether the model was made for this text; if not, it must take no part in ranking it."""
        ...

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Cheap static vectors for chunking only, (n, m); m may differ by call.

        Those of several sentences add up to that of the text that they make.
        """
        ...


def load_embedding_model(name: str, *, exact: bool = False) -> EmbeddingModel:
    """Load `builtin`, a model of the hub by name, or a local folder, through FlagEmbedding.

    `exact` stays with float32 whatever the processor has.

    Takes seconds (torch is imported here) and, for a model of the hub that is not cached, as long as
    the download. Raises ModelError when the model is unknown, incomplete, or the hub out of reach.
    """
    began = time.perf_counter()
    found = find_model(name)
    family = family_of(found.origin, found.folder)
    device = best_device()
    flag = load_flag_model(name, found.folder, family.pooling, device)
    model = FlagEncoder(flag, family, name=found.name, device=device, exact=exact)
    log.info(
        "Embedding model %s: %d dimensions, %s pooling, %s pass in %s on %s, loaded in %.1f s",
        model.name,
        model.dimension,
        family.pooling,
        model.choice.kind,
        model.precision,
        device,
        time.perf_counter() - began,
    )
    return model


def best_device() -> str:
    """Where models run here, as torch names it."""
    import torch

    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"
