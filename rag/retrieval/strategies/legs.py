"""The strategies that ask one or both legs once."""

from __future__ import annotations

from dataclasses import dataclass

from rag.retrieval.fusion import weighted
from rag.retrieval.strategies.base import BOTH, Engine, Found, SearchRequest
from rag.store.search import Fusion


@dataclass(frozen=True, slots=True)
class LegSearch:
    """Asks `legs` for the question and fuses what they found; MMR may choose among that."""

    name: str
    legs: frozenset[str] = BOTH
    fuse: Fusion = weighted
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        hits, legs = engine.hits(request, legs=self.legs, fuse=self.fuse)
        return Found(hits, legs, diversify=self.diversify)
