"""Why these passages: what was asked of the library, who voted, and what became of every candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from rag.messages import MESSAGES, say
from rag.retrieval.explain import rows_of
from rag.types import Answer, Notice, Retrieval
from rag.ui.candidates import Marks, best_score, candidates_markdown, leg_name, marks_of, split_rows
from rag.ui.escape import escape_line, shorten
from rag.ui.parts import duration
from rag.ui.strategies import strategy_hint, strategy_name
from rag.ui.strings import LABELS, Language, label

_LONGEST_NOTE = 400
_LONGEST_TAB = 28


def draw_why(
    answer: Answer, language: Language, *, key: str, recall: Callable[[], Sequence[Retrieval]] | None = None
) -> None:
    """A closed expander over the searches of `answer`; its content is drawn only while it is open.

    A stored answer has none: `recall` reads them then.
    """
    if not answer.searches and recall is None:
        return
    panel = st.expander(
        label("why_title", language),
        key=f"why-{key}",
        icon=":material/manage_search:",
        type="compact",
        on_change="rerun",
    )
    if not panel.open:
        return
    searches = answer.searches or (recall() if recall else ())
    with panel:
        st.caption(likely(answer.answerable, language))
        if len(searches) == 1:
            _draw_search(searches[0], answer, language, key=f"{key}-1")
            return
        names = [f"{number} · {_short(found.question)}" for number, found in enumerate(searches, 1)]
        for number, (tab, found) in enumerate(zip(st.tabs(names), searches, strict=True), 1):
            with tab:
                _draw_search(found, answer, language, key=f"{key}-{number}")


def draw_why_found(found: Retrieval, language: Language, *, key: str) -> None:
    """The same for a search that nobody answered from."""
    st.caption(likely(found.answerable, language))
    _draw_search(found, None, language, key=key)


def likely(answerable: float, language: Language) -> str:
    """How likely the pages hold the answer, in words."""
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
        for title, part in (("why_kept", kept), ("why_left_out", others)):
            if part:
                st.markdown(f"**{label(title, language)}** :gray[{len(part)}]")
                st.markdown(candidates_markdown(part, legs, marks, language, best=best_score(rows, legs)))
        st.caption(label("why_legend", language))


def facts(found: Retrieval, language: Language) -> list[str]:
    """Lines of Markdown: what was asked, how, by which legs, what the strategy noted, and how long it took."""
    hint = strategy_hint(found.strategy, language)
    strategy = f"{strategy_name(found.strategy, language)}{f' :gray[· {hint}]' if hint else ''}"
    kept = sum(one.place is not None for one in found.candidates)
    counts = label("why_counts", language, kept=kept, count=len(found.candidates))
    times = [f"{_stage_name(stage, language)} {duration(ms, language)}" for stage, ms in found.ms.items()]
    lines = [
        _fact("why_asked", f"“{escape_line(found.question)}”", language),
        _fact("why_strategy", strategy, language),
        _fact("why_legs", f"{_legs(found, language)} :gray[· {counts}]", language),
        *note_lines(found.notes, language),
    ]
    return [*lines, _fact("why_time", " · ".join(times), language)] if times else lines


def _fact(key: str, told: str, language: Language) -> str:
    name = label(key, language) if key in LABELS else escape_line(key.removeprefix("why_").replace("_", " "))
    return f":gray[{name}] {told}"


def _legs(found: Retrieval, language: Language) -> str:
    names = " + ".join(leg_name(leg, language) for leg in found.legs) or "–"
    silent = "dense" not in found.legs and found.legs and found.strategy != "keyword"
    return label("why_not_read", language, legs=names) if silent else names


def _stage_name(stage: str, language: Language) -> str:
    key = f"stage_ms_{stage}"
    return label(key, language) if key in LABELS else escape_line(stage)


def note_lines(notes: Mapping[str, Any], language: Language) -> list[str]:
    """What a strategy noted, one line each; a note that says nothing is passed over."""
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
    return escape_line(say(Notice(code, params), language) if code in MESSAGES else code)
