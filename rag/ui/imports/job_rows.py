"""The rows of an import, what needs a person first: each with its outcome, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import streamlit as st

from rag.messages import say
from rag.types import Decision, IngestResult, IngestStatus, Notice, Stage
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line, is_web_url, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import short_source
from rag.ui.kit.passages import passage_markdown
from rag.ui.kit.strings import Language, label

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


if TYPE_CHECKING:
    from rag.app import App, JobItem, JobView

ORDER = ("failed", "held", "gone", "duplicate", "", "updated", "added", "unchanged", "skipped")
"""The outcomes in the order in which they are shown; "" is none yet."""
PAGE = 12
_STAGES: tuple[Stage, ...] = get_args(Stage)
_CHIPS: dict[IngestStatus, tuple[str, str]] = {
    "added": ("green", "check"),
    "updated": ("green", "sync"),
    "unchanged": ("gray", "equal"),
    "duplicate": ("blue", "content_copy"),
    "held": ("orange", "front_hand"),
    "gone": ("orange", "link_off"),
    "skipped": ("gray", "skip_next"),
    "failed": ("red", "error"),
}
_LONGEST_NAME = 90


def draw_rows(app: App, job: JobView, language: Language) -> None:
    """A page of the rows; however many there are, no more are asked for."""
    if not job.total:
        return
    wanted = _draw_filter(job, language) if job.total > 1 else ""
    shown = ORDER if wanted == "all" or not wanted else ("" if wanted == "open" else wanted,)
    count = sum(job.counts.get(status, 0) for status in shown)
    page = _draw_pages(job.id, wanted, count)
    with st.container(key="job-rows", border=False):
        for status, offset, limit in slices(job.counts, shown, PAGE * (page - 1), PAGE):
            for item in app.imports.jobs.items(job.id, offset, limit, [status]):
                _draw_row(app, job, item, language)


def slices(
    counts: Mapping[str, int], statuses: Sequence[str], offset: int, limit: int
) -> Iterator[tuple[str, int, int]]:
    """Where the rows `offset` to `offset + limit` lie when the statuses follow one another: (status, offset, limit)."""
    for status in statuses:
        count = counts.get(status, 0)
        taken = min(limit, count - offset)
        if taken > 0:
            yield status, offset, taken
            limit -= taken
        offset = max(0, offset - count)
        if limit <= 0:
            return


def _draw_filter(job: JobView, language: Language) -> str:
    names = {"all": job.total} | {status or "open": job.counts.get(status, 0) for status in ORDER}
    options = [name for name, count in names.items() if count]
    if len(options) <= 2:
        return "all"
    chosen = st.pills(
        label("job_filter", language),
        options,
        default="all",
        format_func=lambda name: f"{_filter_name(name, language)} {names.get(name, 0):,}",
        key=f"job-filter-{job.id}",
        label_visibility="collapsed",
    )
    return chosen or "all"


def _filter_name(name: str, language: Language) -> str:
    return label(f"filter_{name}" if name in ("all", "open") else f"status_{name}", language)


def _draw_pages(job_id: str, wanted: str, count: int) -> int:
    pages = -(-count // PAGE)
    if pages <= 1:
        return 1
    with st.container(key="job-pages"):
        return min(pages, st.pagination(pages, key=f"job-page-{job_id}-{wanted}"))


def _draw_row(app: App, job: JobView, item: JobItem, language: Language) -> None:
    with st.container(key=f"job-row-{item.position}", gap="xsmall"):
        st.markdown(row_markdown(item, job.state in ("done", "cancelled"), language))
        if item.result:
            draw_choices(app, job, item, item.result, language)


def row_markdown(item: JobItem, ended: bool, language: Language) -> str:
    """One source: its chip or its stage, its name, and the sentence about what became of it."""
    name = escape_line(shorten(short_source(item.source), _LONGEST_NAME))
    if item.result is None:
        return f"{_stage(item.stage, ended, language)} {name}"
    color, icon = _CHIPS[item.result.status]
    chip = f":{color}-badge[:material/{icon}: {label(f'status_{item.result.status}', language)}]"
    return f"{chip} {name}  \n:small[:gray[{_sentence(item.result, language)}]]"


def _stage(stage: Stage, ended: bool, language: Language) -> str:
    if ended:
        return f":gray-badge[{label('job_not_started', language)}]"
    place = _STAGES.index(stage)
    dots = f":primary[{'●' * place}]" if place else ""
    rest = len(_STAGES) - 1 - place
    return f"{dots}{f':gray[{chr(0x25CB) * rest}]' if rest else ''} :gray[{label(f'stage_{stage}', language)}]"


def _sentence(result: IngestResult, language: Language) -> str:
    return escape_line(say(Notice(result.reason, result.params), language))
