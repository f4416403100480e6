"""“Why these passages”: the search, its legs, and the outcome for every candidate.

The table of candidates becomes a card a row on a narrow screen; every score stands with its column's name in it, in
italics, which only the cards show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from rag.locales import say, sentences
from rag.retrieval.explain import Row, Standing, legs_of, rows_of
from rag.text import is_chinese
from rag.types import Answer, Citation, Notice, Passage, Retrieval
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import duration, strategy_name
from rag.ui.kit.strings import Language, label

_OPENING = 110  # characters, half as many in Chinese
_BAR = 10
_HEADING = re.compile(r"(?m)^[ \t]{0,3}#{1,6}[ \t].*$")
_BULLET = re.compile(r"(?m)^[ \t]*[-*+][ \t]+")
_NOT_WORDS = re.compile(r"[#|*`>_~]+|-{3,}")


@dataclass(frozen=True, slots=True)
class Marks:
    """An answer's grades and citation marks of passages, by id."""

    relevant: Mapping[str, bool] = field(default_factory=dict)
    cited: Mapping[str, Sequence[int]] = field(default_factory=dict)


def marks_of(answer: Answer, rows: Sequence[Row]) -> Marks:
    """The grades of `answer` and which of `rows` it quotes."""
    grades = [one for step in answer.steps if step.node == "grade" for one in step.detail.get("grades") or ()]
    cited = {row.passage.id: [c.n for c in answer.citations if _holds(row.passage, c)] for row in rows}
    return Marks({one["id"]: bool(one["relevant"]) for one in grades}, cited)


def _holds(passage: Passage, citation: Citation) -> bool:
    return passage.url_hash == citation.url_hash and passage.start <= citation.start < passage.end


def candidates_markdown(
    rows: Sequence[Row], legs: Sequence[str], marks: Marks, language: Language, *, best: float = 0.0
) -> str:
    """A Markdown table of `rows`; `legs` are its columns, the last the one that decided.

    Scores of that one show as a bar, too, `best` as a full one.
    """
    head = [label("candidate_place", language), label("candidate_passage", language)]
    head += [leg_name(leg, language) for leg in legs]
    lines = [_line(head), "|" + " --- |" * len(head)]
    for row in rows:
        cells = [f":green-badge[{row.place}]" if row.place else ":gray[–]", _about(row, marks, language)]
        cells += [_cell(leg, row.standings.get(leg), best if leg == legs[-1] else 0.0, language) for leg in legs]
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _about(row: Row, marks: Marks, language: Language) -> str:
    """The passage's name, how it begins, and what became of it."""
    parts = [f"**{escape_line(passage_name(row.passage))}**", escape_line(opening(row.passage.text))]
    if row.passage.library:
        parts.append(f":gray-badge[{escape_line(row.passage.library)}]")
    if cited := marks.cited.get(row.passage.id):
        numbers = " ".join(f"[{n}]" for n in cited)
        parts.append(f":green-badge[{label('candidate_cited', language, marks=escape_line(numbers))}]")
    if (relevant := marks.relevant.get(row.passage.id)) is not None:
        color, key = ("green", "relevant") if relevant else ("orange", "irrelevant")
        parts.append(f":{color}-badge[{label(f'candidate_{key}', language)}]")
    if row.became.code != "candidate_kept":
        parts.append(f":gray[{escape_line(say(row.became, language))}]")
    return " ".join(parts)


def _cell(leg: str, standing: Standing | None, best: float, language: Language) -> str:
    name = f"*{leg_name(leg, language)}*"
    if standing is None:
        return f"{name} :gray[–]"
    parts = [name, f"**{standing.rank}**", f":gray[{score(standing.score)}]"]
    if standing.query > 1:
        parts.append(f":gray[{label('candidate_query', language, number=standing.query)}]")
    if best > 0.0:
        parts.append(_bar(standing.score / best))
    return " ".join(parts)


def _bar(share: float) -> str:
    return f":primary[{'━' * min(_BAR, max(1, round(_BAR * share)))}]"


def best_score(rows: Sequence[Row], legs: Sequence[str]) -> float:
    """The best score in the last leg, 0 where there is none."""
    return max((row.standings[legs[-1]].score for row in rows if legs and legs[-1] in row.standings), default=0.0)


def leg_name(leg: str, language: Language) -> str:
    """A leg's name for the reader; one without shows its own."""
    key = f"leg_{leg}"
    return label(key, language) if key in sentences("en") else escape_line(leg)


def score(value: float) -> str:
    """Two decimals, one from 10 on: as much of a score as can be compared at a glance."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def passage_name(passage: Passage) -> str:
    """The page's title and the heading that the passage stands under."""
    title = passage.title or passage.url
    heading = passage.section[-1] if passage.section else ""
    return f"{title} › {heading}" if heading and heading != title else title


def opening(text: str) -> str:
    """The first words of a passage in one line, without its headings and the signs of its markup."""
    below = _HEADING.sub("", text) if _HEADING.sub("", text).strip() else text
    plain = " ".join(_NOT_WORDS.sub(" ", _BULLET.sub("• ", below)).split())
    if is_chinese(plain):
        return plain if len(plain) <= _OPENING // 2 else f"{plain[: _OPENING // 2]}…"
    words = plain[:_OPENING].rpartition(" ")[0] or plain[:_OPENING]
    return plain if len(plain) <= _OPENING else f"{words}…"


def split_rows(rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[str]]:
    """The rows in the context, the others, and the legs that are the columns of both."""
    kept = [row for row in rows if row.place is not None]
    return kept, [row for row in rows if row.place is None], legs_of(rows)


_LONGEST_NOTE = 400
_LONGEST_TAB = 28


def draw_searches(answer: Answer, language: Language, *, key: str, recall: Callable[[], Sequence[Retrieval]]) -> None:
    """The searches of `answer`; a stored answer has none: `recall` reads them."""
    searches = answer.searches or recall()
    st.caption(likely(answer.answerable, language))
    if len(searches) == 1:
        _draw_search(searches[0], answer, language, key=f"{key}-1")
        return
    names = [f"{number} · {_short(found.question)}" for number, found in enumerate(searches, 1)]
    for number, (tab, found) in enumerate(zip(st.tabs(names) if names else (), searches, strict=True), 1):
        with tab:
            _draw_search(found, answer, language, key=f"{key}-{number}")


def draw_explanation_found(found: Retrieval, language: Language, *, key: str) -> None:
    """The same for a search that nobody answered from."""
    st.caption(likely(found.answerable, language))
    _draw_search(found, None, language, key=key)


def likely(answerable: float, language: Language) -> str:
    """Return the probability of an answer, in words."""
    return label("why_likely", language, percent=round(100 * min(1.0, max(0.0, answerable))))


def _short(question: str) -> str:
    return escape_line(shorten(" ".join(question.split()), _LONGEST_TAB))


def _draw_search(found: Retrieval, answer: Answer | None, language: Language, *, key: str) -> None:
    rows = rows_of(found)
    marks = marks_of(answer, rows) if answer else Marks()
    with st.container(key=f"candidates-{key}"):
        st.markdown("  \n".join(facts(found, language)))
        if not rows:
            st.markdown(label("why_nothing", language))
            return
        kept, others, legs = split_rows(rows)
        best = best_score(rows, legs)
        if kept:
            legend = label("why_legend", language)
            st.markdown(f"**{label('why_kept', language)}** :gray[{len(kept)} · {legend}]")
            st.markdown(candidates_markdown(kept, legs, marks, language, best=best))
        if others:
            told = f"{label('why_left_out', language)} · {len(others)}"
            with st.expander(told, type="compact", key=f"left-out-{key}"):
                st.markdown(candidates_markdown(others, legs, marks, language, best=best))


def facts(found: Retrieval, language: Language) -> list[str]:
    """Lines of Markdown: what was asked, how, by which legs, what the strategy noted, and how long it took."""
    kept = sum(one.place is not None for one in found.candidates)
    counts = label("why_counts", language, kept=kept, count=len(found.candidates))
    times = [f"{_stage_name(stage, language)} {duration(ms, language)}" for stage, ms in found.ms.items()]
    lines = [
        _fact("why_asked", f"“{escape_line(found.question)}”", language),
        _fact("why_strategy", strategy_name(found.strategy, language, reranks=_reranked(found)), language),
        _fact("why_legs", f"{_legs(found, language)} :gray[· {counts}]", language),
        *note_lines(found.notes, language),
    ]
    return [*lines, _fact("why_time", " · ".join(times), language)] if times else lines


def _reranked(found: Retrieval) -> bool:
    return found.strategy != "rerank" or found.notes.get("reranker", {}).get("code") == "rerank_with"


def _fact(key: str, told: str, language: Language) -> str:
    name = label(key, language) if key in sentences("en") else escape_line(key.removeprefix("why_").replace("_", " "))
    return f":gray[{name}] {told}"


def _legs(found: Retrieval, language: Language) -> str:
    names = " + ".join(leg_name(leg, language) for leg in found.legs) or "–"
    silent = "dense" not in found.legs and found.legs and found.strategy != "keyword" and "meaning" not in found.notes
    return label("why_not_read", language, legs=names) if silent else names


def _stage_name(stage: str, language: Language) -> str:
    key = f"stage_ms_{stage}"
    return label(key, language) if key in sentences("en") else escape_line(stage)


def note_lines(notes: Mapping[str, Any], language: Language) -> list[str]:
    """Return a strategy's notes, one line each, without empty ones."""
    told = {name: _told(value, language) for name, value in notes.items() if name != "queries" or len(value) > 1}
    return [_fact(f"why_{name}", text, language) for name, text in told.items() if text]


def _told(value: object, language: Language) -> str:
    """Plain data as escaped text; {"code", "params"} as its sentence."""
    if isinstance(value, Mapping):
        if "code" in value:
            return _said(str(value["code"]), value.get("params") or {}, language)
        parts = ((str(name), _told(one, language)) for name, one in value.items())
        return " · ".join(f"{escape_line(name)}: {text}" for name, text in parts if text)
    if isinstance(value, list | tuple | set | frozenset):
        return " · ".join(text for one in value if (text := _told(one, language)))
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else escape_line(shorten(str(value), _LONGEST_NOTE))


def _said(code: str, params: Mapping[str, Any], language: Language) -> str:
    return escape_line(say(Notice(code, params), language) if code in sentences("en") else code)
