"""Explanations of a search: its candidates as rows for a screen or terminal, each with its outcome."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.locales import say, sentences
from rag.types import Candidate, Notice, Passage, Retrieval

FUSED = "fused"
_FIRST_LEGS = ("dense", "sparse")
_LAST_LEGS = (FUSED, "rerank")
_WIDTH = 160


@dataclass(frozen=True, slots=True)
class LegRank:
    """A candidate's rank (from 1) and score in one leg; `query` is the number of the query, from 1."""

    rank: int
    score: float
    query: int = 1


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A candidate: its `place` in the context or None, its rank by leg, and the outcome as a message.

    `similarity` (0 to 1) is to the most similar passage that MMR picked before it.
    """

    passage: Passage
    place: int | None
    leg_ranks: Mapping[str, LegRank]
    outcome: Notice
    similarity: float = 0.0


def rows_of(result: Retrieval) -> list[CandidateRow]:
    """Return a row for each candidate: those in the context by place, then the others by score."""
    places = _places(result.candidates)
    merged = Counter(candidate.into for candidate in result.candidates if candidate.fate == "merged" and candidate.into)
    selected = sum(candidate.place is not None or candidate.fate is not None for candidate in result.candidates)
    scores = sorted((candidate.passage.score for candidate in result.candidates), reverse=True)
    cutoff = scores[selected - 1] if selected else float("inf")  # score alone would have selected from here on
    rows = [
        CandidateRow(
            candidate.passage,
            candidate.place,
            read_leg_ranks(candidate.passage),
            _outcome(candidate, places, merged[candidate.passage.id], candidate.passage.score >= cutoff),
            round(candidate.similarity, 4),
        )
        for candidate in result.candidates
    ]
    return sorted(rows, key=lambda row: (row.place is None, row.place or 0, -row.passage.score))


def legs_of(rows: Sequence[CandidateRow]) -> list[str]:
    """Return the legs to show: those with results, then the fusion, then the reranker.

    With a single leg and no reranker, the fusion only repeats the leg and is omitted.
    """
    legs_found = {leg for row in rows for leg in row.leg_ranks}
    others = sorted(legs_found.difference(_FIRST_LEGS, _LAST_LEGS))
    legs = [leg for leg in (*_FIRST_LEGS, *others, *_LAST_LEGS) if leg in legs_found]
    return [leg for leg in legs if leg != FUSED] if len(legs) == 2 else legs


def read_leg_ranks(passage: Passage) -> dict[str, LegRank]:
    """Return a passage's rank by leg, the best one if a leg had several queries (`dense`, `dense.2`, …)."""
    best: dict[str, LegRank] = {}
    for name, rank in passage.ranks.items():
        leg, _, query = name.partition(".")
        leg_rank = LegRank(rank, passage.scores.get(name, 0.0), int(query) if query.isdecimal() else 1)
        if leg not in best or leg_rank.rank < best[leg].rank:
            best[leg] = leg_rank
    return best


def _places(candidates: Sequence[Candidate]) -> dict[str, int]:
    """Return each candidate's place in the context: its own, or that of the passage it was merged into."""
    into = {candidate.passage.id: candidate.into for candidate in candidates}
    own = {candidate.passage.id: candidate.place for candidate in candidates if candidate.place is not None}
    places: dict[str, int] = {}
    for candidate in candidates:
        at: str | None = candidate.passage.id
        for _ in candidates:  # a chain cannot be longer, unless it is a cycle
            if at is None or at in own:
                break
            at = into.get(at)
        if at in own:
            places[candidate.passage.id] = own[at]
    return places


def _outcome(candidate: Candidate, places: Mapping[str, int], merged: int, high: bool) -> Notice:
    if candidate.place is not None:
        return Notice("candidate_kept_with", {"count": merged}) if merged else Notice("candidate_kept")
    if candidate.fate is not None:
        place = places.get(candidate.passage.id)
        if place is None:  # the passage it was merged into has none either
            return Notice("candidate_says_less")
        return Notice(f"candidate_{candidate.fate}", {"place": place})
    if candidate.repeats is None:
        return Notice("candidate_below")
    place = places.get(candidate.repeats)
    alike = {"percent": round(100 * candidate.similarity), "place": place}
    if high:
        return Notice("candidate_repeats" if place else "candidate_repeats_other", alike)
    return Notice("candidate_below_near" if place and alike["percent"] else "candidate_below", alike)


def explanation(result: Retrieval) -> dict[str, Any]:
    """Return a search as plain data: its settings and times, and `record_of` each candidate."""
    return {
        "strategy": result.strategy,
        "legs": list(result.legs),
        "ms": dict(result.ms),
        "notes": dict(result.notes),
        "candidates": [record_of(row) for row in rows_of(result)],
    }


def explain_candidates(result: Retrieval) -> str:
    """Describe a search in English for a terminal: its settings and times, and a paragraph for each candidate."""
    times = ", ".join(f"{stage} {ms:.0f} ms" for stage, ms in result.ms.items())
    head = f"  {result.strategy} · {' + '.join(result.legs)} · answerable {result.answerable:.2f} · {times}"
    notes = [f"  {name}: {_note(note)}" for name, note in result.notes.items()]
    return "\n".join([f"? {result.question}", head, *notes, *(_paragraph(row) for row in rows_of(result))])


def _paragraph(row: CandidateRow) -> str:
    passage = row.passage
    ranks = "  ".join(f"{leg} {rank} ({passage.scores.get(leg, 0.0):.3f})" for leg, rank in passage.ranks.items())
    title = " › ".join(filter(None, (passage.title, *passage.section[-1:])))
    flat = " ".join(passage.text.split())
    text = flat if len(flat) <= _WIDTH else f"{flat[:_WIDTH]}…"
    return f"{row.place or '-':>3}  {title}  {passage.url}\n     {ranks}\n     {say(row.outcome, 'en')}\n     {text}"


def _note(note: object) -> str:
    if isinstance(note, Mapping) and note.get("code") in sentences("en"):
        return say(Notice(str(note["code"]), note.get("params") or {}), "en")
    return note if isinstance(note, str) else json.dumps(note, ensure_ascii=False, default=str)


def record_of(row: CandidateRow) -> dict[str, Any]:
    """Return a row as data; `fate` is the code of its outcome, `other` the place of the passage that it mentions."""
    passage = row.passage
    return {
        "place": row.place,
        "url": passage.url,
        "title": passage.title,
        "section": list(passage.section),
        "text": passage.text,
        "start": passage.start,
        "end": passage.end,
        "score": round(passage.score, 6),
        "ranks": dict(passage.ranks),
        "scores": {leg: round(score, 6) for leg, score in passage.scores.items()},
        "fate": row.outcome.code.removeprefix("candidate_"),
        "other": row.outcome.params.get("place"),
        "similarity": row.similarity,
    }
