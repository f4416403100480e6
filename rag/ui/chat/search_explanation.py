"""The explanation of a search (“Why these passages”): its legs, and the outcome for every candidate.

On a narrow screen each table row becomes a card; its scores then show their column's name, in italics, which is hidden
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from rag.locales import Language, label, label_or, say, sentences
from rag.retrieval.explain import CandidateRow, LegRank, legs_of, rows_of
from rag.text import is_chinese, lazy_regex
from rag.types import Answer, Notice, Passage, Retrieval
from rag.ui.kit.markdown import escape_line, markdown_table, shorten
from rag.ui.kit.parts import duration, strategy_name

_OPENING = 110  # characters, half as many in Chinese
_BAR = 10
_HEADING = lazy_regex(r"(?m)^[ \t]{0,3}#{1,6}[ \t].*$")
_BULLET = lazy_regex(r"(?m)^[ \t]*[-*+][ \t]+")
_NOT_WORDS = lazy_regex(r"[#|*`>_~]+|-{3,}")
_LONGEST_NOTE = 400
_LONGEST_TAB = 28


@dataclass(frozen=True, slots=True)
class Marks:
    """An answer's grades of passages and its citation numbers, by passage id."""

    relevant: Mapping[str, bool] = field(default_factory=dict)
    cited: Mapping[str, Sequence[int]] = field(default_factory=dict)


def marks_of(answer: Answer, rows: Sequence[CandidateRow]) -> Marks:
    """Return the grades of `answer` and its citations of `rows`."""
    grades = [grade for step in answer.steps if step.node == "grade" for grade in step.detail.get("grades") or ()]
    cited = {
        passage.id: [
            citation.n
            for citation in answer.citations
            if passage.url_hash == citation.url_hash and passage.start <= citation.start < passage.end
        ]
        for passage in (row.passage for row in rows)
    }
    return Marks({grade["id"]: bool(grade["relevant"]) for grade in grades}, cited)


def candidates_markdown(
    rows: Sequence[CandidateRow], legs: Sequence[str], marks: Marks, language: Language, *, best: float = 0.0
) -> str:
    """Return `rows` as a Markdown table with `legs` as columns; the last leg decided the order.

    Its scores also show as bars, with `best` as the full length.
    """
    head = [label("candidate_place", language), label("candidate_passage", language)]
    table = [[*head, *(leg_name(leg, language) for leg in legs)]]
    for row in rows:
        cells = [f":green-badge[{row.place}]" if row.place else ":gray[–]", _describe(row, marks, language)]
        cells += [_cell(leg, row.leg_ranks.get(leg), best if leg == legs[-1] else 0.0, language) for leg in legs]
        table.append(cells)
    return markdown_table(table)


def _describe(row: CandidateRow, marks: Marks, language: Language) -> str:
    """Return the passage's name, its opening, and its outcome."""
    parts = [f"**{escape_line(passage_name(row.passage))}**", escape_line(opening(row.passage.text))]
    if row.passage.library:
        parts.append(f":gray-badge[{escape_line(row.passage.library)}]")
    if cited := marks.cited.get(row.passage.id):
        numbers = " ".join(f"[{n}]" for n in cited)
        parts.append(f":green-badge[{label('candidate_cited', language, marks=escape_line(numbers))}]")
    if (relevant := marks.relevant.get(row.passage.id)) is not None:
        color, key = ("green", "relevant") if relevant else ("orange", "irrelevant")
        parts.append(f":{color}-badge[{label(f'candidate_{key}', language)}]")
    if row.outcome.code != "candidate_kept":
        parts.append(f":gray[{escape_line(say(row.outcome, language))}]")
    return " ".join(parts)


def _cell(leg: str, leg_rank: LegRank | None, best: float, language: Language) -> str:
    name = f"*{leg_name(leg, language)}*"
    if leg_rank is None:
        return f"{name} :gray[–]"
    parts = [name, f"**{leg_rank.rank}**", f":gray[{format_score(leg_rank.score)}]"]
    if leg_rank.query > 1:
        parts.append(f":gray[{label('candidate_query', language, number=leg_rank.query)}]")
    if best > 0.0:
        length = min(_BAR, max(1, round(_BAR * leg_rank.score / best)))
        parts.append(f":primary[{'━' * length}]")
    return " ".join(parts)


def best_score(rows: Sequence[CandidateRow], legs: Sequence[str]) -> float:
    """Return the best score in the last leg, or 0."""
    return max((row.leg_ranks[legs[-1]].score for row in rows if legs and legs[-1] in row.leg_ranks), default=0.0)


def leg_name(leg: str, language: Language) -> str:
    """Return a leg's label; without one, its own name."""
    return label_or(escape_line(leg), f"leg_{leg}", language)


def format_score(value: float) -> str:
    """Return a score with two decimals, or with one from 10 on."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def passage_name(passage: Passage) -> str:
    """Return the page's title and the heading above the passage."""
    title = passage.title or passage.url
    heading = passage.section[-1] if passage.section else ""
    return f"{title} › {heading}" if heading and heading != title else title


def opening(text: str) -> str:
    """Return the first words of a passage on one line, without headings and markup."""
    below = _HEADING.sub("", text) if _HEADING.sub("", text).strip() else text
    plain = " ".join(_NOT_WORDS.sub(" ", _BULLET.sub("• ", below)).split())
    if is_chinese(plain):
        return plain if len(plain) <= _OPENING // 2 else f"{plain[: _OPENING // 2]}…"
    words = plain[:_OPENING].rpartition(" ")[0] or plain[:_OPENING]
    return plain if len(plain) <= _OPENING else f"{words}…"


def split_rows(rows: Sequence[CandidateRow]) -> tuple[list[CandidateRow], list[CandidateRow], list[str]]:
    """Return the rows in the context, the other rows, and the legs that are columns of both."""
    selected = [row for row in rows if row.place is not None]
    return selected, [row for row in rows if row.place is None], legs_of(rows)


def draw_searches(answer: Answer, language: Language, *, key: str, recall: Callable[[], Sequence[Retrieval]]) -> None:
    """Draw the searches of `answer`; `recall` reads those of a stored answer."""
    searches = answer.searches or recall()
    st.caption(likelihood(answer.answerable, language))
    if len(searches) == 1:
        _draw_search(searches[0], answer, language, key=f"{key}-1")
        return
    questions = [escape_line(shorten(" ".join(result.question.split()), _LONGEST_TAB)) for result in searches]
    names = [f"{number} · {question}" for number, question in enumerate(questions, 1)]
    for number, (tab, result) in enumerate(zip(st.tabs(names) if names else (), searches, strict=True), 1):
        with tab:
            _draw_search(result, answer, language, key=f"{key}-{number}")


def draw_explanation(result: Retrieval, language: Language, *, key: str) -> None:
    """Draw a search without an answer."""
    st.caption(likelihood(result.answerable, language))
    _draw_search(result, None, language, key=key)


def likelihood(answerable: float, language: Language) -> str:
    """Return the probability of an answer, in words."""
    return label("why_likely", language, percent=round(100 * min(1.0, max(0.0, answerable))))


def _draw_search(result: Retrieval, answer: Answer | None, language: Language, *, key: str) -> None:
    rows = rows_of(result)
    marks = marks_of(answer, rows) if answer else Marks()
    with st.container(key=f"candidates-{key}"):
        st.markdown("  \n".join(fact_lines(result, language)))
        if not rows:
            st.markdown(label("why_nothing", language))
            return
        selected, others, legs = split_rows(rows)
        best = best_score(rows, legs)
        if selected:
            legend = label("why_legend", language)
            st.markdown(f"**{label('why_kept', language)}** :gray[{len(selected)} · {legend}]")
            st.markdown(candidates_markdown(selected, legs, marks, language, best=best))
        if others:
            title = f"{label('why_left_out', language)} · {len(others)}"
            with st.expander(title, type="compact", key=f"left-out-{key}"):
                st.markdown(candidates_markdown(others, legs, marks, language, best=best))


def fact_lines(result: Retrieval, language: Language) -> list[str]:
    """Return lines of Markdown: question, strategy, legs, the strategy's notes, and times."""
    selected = sum(candidate.place is not None for candidate in result.candidates)
    counts = label("why_counts", language, kept=selected, count=len(result.candidates))
    times = [
        f"{label_or(escape_line(stage), f'stage_ms_{stage}', language)} {duration(ms, language)}"
        for stage, ms in result.ms.items()
    ]
    reranks = result.notes.get("reranker", {}).get("code") == "rerank_with"
    legs = " + ".join(leg_name(leg, language) for leg in result.legs) or "–"
    if result.legs and "dense" not in result.legs and result.strategy != "keyword" and "meaning" not in result.notes:
        legs = label("why_not_read", language, legs=legs)
    lines = [
        _fact("why_asked", f"“{escape_line(result.question)}”", language),
        _fact("why_strategy", strategy_name(result.strategy, language, reranks=reranks), language),
        _fact("why_legs", f"{legs} :gray[· {counts}]", language),
        *note_lines(result.notes, language),
    ]
    return [*lines, _fact("why_time", " · ".join(times), language)] if times else lines


def _fact(key: str, value: str, language: Language) -> str:
    name = label_or(escape_line(key.removeprefix("why_").replace("_", " ")), key, language)
    return f":gray[{name}] {value}"


def note_lines(notes: Mapping[str, Any], language: Language) -> list[str]:
    """Return a strategy's notes, one line each, without empty ones."""
    texts = {name: _as_text(value, language) for name, value in notes.items() if name != "queries" or len(value) > 1}
    return [_fact(f"why_{name}", text, language) for name, text in texts.items() if text]


def _as_text(value: object, language: Language) -> str:
    """Return plain data as escaped text, and {"code", "params"} as its sentence."""
    if isinstance(value, Mapping):
        if "code" in value:
            code = str(value["code"])
            notice = Notice(code, value.get("params") or {})
            return escape_line(say(notice, language) if code in sentences("en") else code)
        parts = ((str(name), _as_text(item, language)) for name, item in value.items())
        return " · ".join(f"{escape_line(name)}: {text}" for name, text in parts if text)
    if isinstance(value, list | tuple | set | frozenset):
        return " · ".join(text for item in value if (text := _as_text(item, language)))
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else escape_line(shorten(str(value), _LONGEST_NOTE))
