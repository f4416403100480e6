"""The strategies that ask one or both legs once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rag.retrieval.fusion import weighted
from rag.retrieval.strategies.base import BOTH, Engine, Found, SearchRequest
from rag.store.search import Fusion


@dataclass(frozen=True, slots=True)
class LegSearch:
    """Asks `legs` for the question and fuses what they found; MMR may choose among that.

    Without a `fuse` it is `weighted`, with the request's weight.
    """

    name: str
    legs: frozenset[str] = BOTH
    fuse: Fusion | None = None
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        fuse = self.fuse or partial(weighted, dense_weight=request.dense_weight)
        hits, legs = engine.hits(request, legs=self.legs, fuse=fuse)
        return Found(hits, legs, diversify=self.diversify)
