"""The strategies that ask one or both legs once."""

from __future__ import annotations

from dataclasses import dataclass

from rag.retrieval.strategies.base import BOTH, Engine, Found, SearchRequest


@dataclass(frozen=True, slots=True)
class LegSearch:
    """Asks `legs` for the question and fuses what they found; MMR may choose among that.

    By their scores, or `by_rank`.
    """

    name: str
    legs: frozenset[str] = BOTH
    by_rank: bool = False
    diversify: bool = False

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        fuse = request.tuning.by_rank if self.by_rank else request.tuning.weighted
        hits, legs = engine.hits(request, legs=self.legs, fuse=fuse)
        return Found(hits, legs, diversify=self.diversify)
