"""A question in one language over pages in another, where the embedding model reads one of them only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag.errors import ModelError
from rag.retrieval.strategies.base import Engine, Found, SearchRequest, Strategy, fell_back
from rag.store.values import Hit
from rag.text import question_language

WEAK = 0.5
"""Below this share of its terms, weighted by IDF, in any of the first passages, a search found little."""
_FIRST = 5
_SAMPLES = {"en": "The river rises in the mountains and reaches the sea.", "zh": "这条河发源于山中，最后流入大海。"}


@dataclass(frozen=True, slots=True)
class AcrossLanguages:
    """Any strategy; when it finds little and the pages are in a language of their own, one translated query is added.

    Asks a model at most once, and not at all when the embedding model reads both languages, when nothing
    writes translations, or when no page is in another language.
    """

    inner: Strategy

    @property
    def name(self) -> str:
        return self.inner.name

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        found = self.inner.find(request, engine)
        if engine.expander is None or not engine.expander.writes:
            return found
        share = coverage(request.question, found.hits, engine)
        if share >= WEAK or not (language := _readers_language(request, engine)):
            return found
        try:
            query = engine.expander.translation(request.question, language)
        except ModelError as error:
            return replace(found, notes={**found.notes, **fell_back(engine.expander, error)})
        return _with_translation(query, language, share, found, request, engine) if query else found


def _readers_language(request: SearchRequest, engine: Engine) -> str:
    """The language to translate into: that of most pages in another than the question's, where that is needed."""
    asked = question_language(request.question)
    counts = {language: _chunks(language, request, engine) for language in _SAMPLES if language != asked}
    target = max(counts, key=lambda language: counts[language])
    bridged = engine.model.can_read(request.question) and engine.model.can_read(_SAMPLES[target])
    return target if counts[target] and not bridged else ""


def _chunks(language: str, request: SearchRequest, engine: Engine) -> int:
    if request.filters.languages and language not in request.filters.languages:
        return 0
    return engine.library.chunk_count(replace(request.filters, languages=(language,)))


def coverage(question: str, hits: Sequence[Hit], engine: Engine) -> float:
    """The largest share of the question's terms, weighted by IDF, in one of the first passages; 0 to 1."""
    weights = engine.library.idf(sorted(engine.sparse.encode_query(question).indices))
    total = sum(weights.values())
    held = [frozenset(engine.sparse.encode_query(_text(hit)).indices) for hit in hits[:_FIRST]]
    shares = [sum(weight for term, weight in weights.items() if term in terms) for terms in held]
    return max(shares, default=0.0) / total if total else 0.0


def _text(hit: Hit) -> str:
    return "\n".join((hit.passage.title, *hit.passage.section, hit.passage.text))


def _with_translation(
    query: str, language: str, share: float, found: Found, request: SearchRequest, engine: Engine
) -> Found:
    """Both searches' hits; each search weighs by how much of its own question it covered."""
    hits, legs = engine.hits(request, text=query)
    both = merged([(found.hits, share), (hits, coverage(query, hits, engine))])
    params = {"query": query, "language": language}
    notes: dict[str, Any] = {**found.notes, "translation": {"code": f"translated_{language}", "params": params}}
    voted = tuple(dict.fromkeys((*found.legs, *legs)))
    return Found(both[: max(request.fetch_k, request.k)], voted, notes, found.diversify, asked=(query,))


def merged(searches: Sequence[tuple[Sequence[Hit], float]]) -> list[Hit]:
    """Hits of several searches by score, the best of each counting its weight; one that was found twice counts once."""
    best: dict[str, Hit] = {}
    for hits, weight in searches:
        top = max((hit.passage.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            score = max(weight, 0.01) * hit.passage.score / top
            known = best.get(hit.passage.id)
            if known is None or known.passage.score < score:
                best[hit.passage.id] = replace(hit, passage=replace(hit.passage, score=score))
    return sorted(best.values(), key=lambda hit: (-hit.passage.score, hit.passage.id))
