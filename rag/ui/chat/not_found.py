"""Answers not in the pages: closest passages, searches, and next steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import streamlit as st

from rag.types import Answer, Passage
from rag.ui.chat.filters import chips_of, titles_of
from rag.ui.chat.search_explanation import note_lines
from rag.ui.kit.choices import Scope
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.sources import draw_passage
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

Wish = Literal["deep", "unfiltered", ""]

_NEAREST = 3
_LONGEST_QUERY = 120


def draw_not_found(
    app: App, library: str, key: str, scope: Scope, answer: Answer, language: Language, *, offer: bool
) -> Wish:
    """Draw the closest passages and the searches for an `answer` within `scope`.

    With `offer`, draw buttons and return the choice.
    """
    nearest = [] if answer.citations else nearest_passages(answer)
    if nearest:
        st.markdown(f"## {label('nearest', language)}", anchors=False)
        for place, passage in enumerate(nearest, start=1):
            draw_passage(app, library, passage, answer.question, language, key=f"{key}-p{place}")
    with st.container(key=f"missing-{key}"):
        if text := _describe_searches(app, library, scope, answer, language):
            st.markdown(text)
        return _draw_offers(key, scope, answer, language) if offer else ""


def nearest_passages(answer: Answer) -> list[Passage]:
    """Return the answer's passages or, without these, the first candidates of each search."""
    passages = answer.passages or [hit.passage for search in answer.searches for hit in search.candidates[:_NEAREST]]
    return list({passage.id: passage for passage in passages}.values())[:_NEAREST]


def queries_of(answer: Answer) -> list[str]:
    """Return the distinct queries of the searches or, without these, of the steps."""
    queries = [search.question for search in answer.searches]
    queries = queries or [str(query) for step in answer.steps for query in step.detail.get("queries") or ()]
    return list(dict.fromkeys(queries))


def _describe_searches(app: App, library: str, scope: Scope, answer: Answer, language: Language) -> str:
    queries = [f"“{escape_line(shorten(query, _LONGEST_QUERY))}”" for query in queries_of(answer)]
    lines = [f":gray[{label('missing_searched', language)}] {' · '.join(queries)}"] if queries else []
    if scope.filter_count:
        chips = chips_of(scope.filters_only(), titles_of(app, library, scope), language)
        text = " · ".join(escape_line(chip.text) for chip in chips)
        lines.append(f":gray[{label('missing_scope', language)}] {text}")
    notes = [note_lines({"scope": search.notes.get("scope")}, language) for search in answer.searches]
    lines += list(dict.fromkeys(line for note in notes for line in note))
    return "  \n".join(lines)


def _draw_offers(key: str, scope: Scope, answer: Answer, language: Language) -> Wish:
    wish: Wish = ""
    with st.container(horizontal=True, key=f"next-{key}", gap="small"):
        if scope.filter_count and _draw_button("unfilter", "filter_list_off", key, language):
            wish = "unfiltered"
        if answer.mode == "fast" and _draw_button("deep", "manage_search", key, language):
            wish = "deep"
        if _draw_button("add", "add", key, language):
            go("add")
        if _draw_button("see", "search", key, language):
            go("search", find=answer.standalone or answer.question)
    return wish


def _draw_button(name: str, icon: str, key: str, language: Language) -> bool:
    return st.button(label(f"missing_{name}", language), icon=f":material/{icon}:", key=f"next-{name}-{key}")
