"""What a person can do about a page that was held back, repeats another, or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import streamlit as st

from rag.types import Decision, IngestResult
from rag.ui.doing import attempt
from rag.ui.escape import is_web_url
from rag.ui.navigation import go
from rag.ui.passages import passage_markdown
from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App, JobItem, JobView

_ICONS: dict[Decision, str] = {
    "retry": "replay",
    "add_anyway": "check",
    "keep_both": "content_copy",
    "refresh": "sync",
    "skip": "do_not_disturb_on",
}
_SHORT, _SHORT_LINES = 400, 6
_ORDER: tuple[Decision, ...] = ("retry", "add_anyway", "refresh", "keep_both", "skip")


def choices_of(item: JobItem, result: IngestResult) -> list[Decision]:
    """What is offered, in order: the choices of the result, and another try where that can help."""
    offered = set(result.choices)
    if result.status == "failed" and is_web_url(item.url):
        offered.add("retry")
    return [decision for decision in _ORDER if decision in offered]


def draw_choices(app: App, job: JobView, item: JobItem, result: IngestResult, language: Language) -> None:
    """The preview of what was extracted, and a button for each choice."""
    if result.preview:
        preview = st.expander(label("decide_preview", language), icon=":material/preview:", type="compact")
        with (
            preview,
            st.container(key=f"page-text-preview-{item.position}", height=_height(result.preview), border=False),
        ):
            st.markdown(passage_markdown(result.preview))
    choices, other = choices_of(item, result), str(result.params.get("url_hash", ""))
    if not choices and not (result.status == "duplicate" and other):
        return
    with st.container(horizontal=True, gap="small", key=f"job-choices-{item.position}"):
        for decision in choices:
            text = label(f"decide_{decision}", language)
            icon = f":material/{_ICONS[decision]}:"
            if st.button(text, icon=icon, key=f"decide-{decision}-{item.position}"):
                attempt(lambda decision=decision: app.imports.jobs.decide(job.id, item.position, decision), language)  # type: ignore[misc]
                st.rerun()
        if result.status == "duplicate" and other:
            text = label("decide_open", language)
            if st.button(text, icon=":material/menu_book:", type="tertiary", key=f"decide-open-{item.position}"):
                go("library", page=other)


def _height(text: str) -> int | Literal["content"]:
    """A short preview takes the room it needs, a long one is scrolled."""
    return 260 if len(text) > _SHORT or text.count("\n") > _SHORT_LINES else "content"
