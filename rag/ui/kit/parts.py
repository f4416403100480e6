"""Small parts shared by several pages: page heads, empty states, tables, SVG, times and display names."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from urllib.parse import unquote

import streamlit as st

from rag.locales import Language, label, label_count, label_or
from rag.text import escape_formula, lazy_regex
from rag.ui.kit.markdown import JOINER, escape_line, is_web_url
from rag.ui.kit.navigation import go
from rag.web.urls import split_url

_NUMBER: Final = lazy_regex(r"[+-]?\d[\d.,]*+%?")
_UNWANTED = lazy_regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_STYLE = (
    "<style>svg{color:#57606a}.mark{color:#1f6f5c}.better{color:#1a7f37}.worse{color:#cf222e}"
    "@media(prefers-color-scheme:dark){svg{color:#c4c7c5}.mark{color:#5fc3a6}.better{color:#7fd3bb}"
    ".worse{color:#ee9c92}.boxes{filter:invert(.9) hue-rotate(180deg)}}</style>"
)


def draw_page_head(title: str, lead: str) -> None:
    """Draw a page's title and lead; both must be labels, since they are not escaped."""
    with st.container(key="page-head", gap="xsmall"):
        st.markdown(f"# {title}", anchors=False)
        with st.container(key="page-lead"):
            st.markdown(lead)


def draw_empty_state(lead: str, language: Language) -> None:
    """Draw the title, the lead and the next step of a page on an empty library."""
    with st.container(key="empty", horizontal_alignment="center"):
        st.markdown(f"# {label('empty_title', language)}", anchors=False)
        st.markdown(lead)
        if draw_button(label("empty_add", language), "add", "empty-add", type="primary"):
            go("add")


def draw_field(
    draw: Callable[..., Any],
    key: str,
    value: object,
    text: str,
    store: Callable[..., None],
    /,
    *args: Any,
    **options: Any,
) -> None:
    """Draw a Streamlit field by `draw`, with `value`, which Streamlit drops while the field is not drawn.

    A change calls `store` with `args`. Only a changed value is set, since setting it sends it to the browser, where it
    would replace what is being typed.
    """
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    draw(text, key=key, on_change=store, args=args, **options)


def draw_button(
    text: str, icon: str, key: str, act: Callable[..., Any] | None = None, /, *args: Any, **options: Any
) -> bool:
    """Draw a Streamlit button with a Material icon, or with none if `icon` is empty; return whether it was clicked.

    A click calls `act` with `args` before anything is drawn, and ignores what it returns.
    """
    return st.button(text, icon=f":material/{icon}:" if icon else None, key=key, on_click=act, args=args, **options)


def draw_switch(text: str, options: Sequence[Any], prefix: str, key: str, language: Language, /, **others: Any) -> Any:
    """Draw a segmented control with one selected value and return that; labels are those of `prefix` and the value."""
    return st.segmented_control(
        text,
        options,
        required=True,
        format_func=lambda option: label(f"{prefix}{option}", language),
        key=key,
        label_visibility="collapsed",
        **others,
    )


def close_popover(key: str) -> None:
    """Close the popover `key`, which must have `on_change`. Call it before the popover is drawn, as in a callback."""
    st.session_state[key] = False


def duration(ms: float, language: Language) -> str:
    """Return `85 ms` below a second, `1.4 s` above."""
    short = round(ms) < 1000
    return label("milliseconds" if short else "seconds", language, count=f"{ms:.0f}" if short else f"{ms / 1000:.1f}")


def format_time(iso: str) -> str:
    """Return an ISO 8601 time as `2024-03-05 14:30` in the browser's time zone; empty stays empty."""
    return to_local(datetime.fromisoformat(iso)).strftime("%Y-%m-%d %H:%M") if iso else ""


def to_local(time: datetime) -> datetime:
    """Return `time` in the browser's time zone; unchanged if that is unknown."""
    offset = st.context.timezone_offset
    return time if offset is None else time.astimezone(timezone(timedelta(minutes=-offset)))


def chunk_count(count: int, language: Language) -> str:
    return label_count("chunks_one", "chunks_many", count, language)


def page_count(count: int, language: Language) -> str:
    return label_count("in_use_page", "in_use_pages", count, language)


def draw_table(rows: Sequence[Mapping[str, Any]], **options: Any) -> Any:
    """Draw `st.dataframe` so that no cell of its CSV download starts a formula.

    An invisible word joiner before such text makes a spreadsheet treat it as text. Numbers stay unchanged.
    """
    safe = [{name: _defuse(value) for name, value in row.items()} for row in rows]
    return st.dataframe(safe, **options)


def _defuse(value: Any) -> Any:
    is_formula = isinstance(value, str) and escape_formula(value) != value and not _NUMBER.fullmatch(value)
    return f"{JOINER}{value}" if is_formula else value


def short_source(source: str) -> str:
    """Return a readable name: a URL without scheme and percent-encoding, or a file's name."""
    if source.startswith("file://"):
        return unquote(split_url(source).path).rpartition("/")[2]
    parts = split_url(source)
    if not is_web_url(source) or not parts.netloc:
        return source
    return unquote(f"{parts.netloc}{parts.path}".rstrip("/") + (f"?{parts.query}" if parts.query else ""))


def site_of(url: str) -> str:
    """Return the host of a web URL, or the short name of any other source."""
    return (split_url(url).netloc if is_web_url(url) else "") or short_source(url)


def strategy_name(name: str, language: Language, *, reranks: bool = True) -> str:
    """Return the strategy's display name; that of `rerank` says if no reranker runs."""
    key = f"strategy_{name}" if reranks or name != "rerank" else "strategy_rerank_off"
    return label_or(escape_line(name), key, language)


def metric_name(name: str, language: Language) -> str:
    """Return `token_f1` as "Token F1"; a metric without a label keeps its own name."""
    return label_or(name, f"metric_{name.replace('@', '_').lower()}", language)


def escape_html(text: str) -> str:
    """Return `text` as HTML that shows it literally, without control characters and bidi marks."""
    return html.escape(_UNWANTED.sub("", text))


def svg(width: int, height: int, title: str, content: str) -> str:
    """Return a complete SVG that adapts to dark mode: `currentColor` changes, and class `boxes` is inverted."""
    name = escape_html(title)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{name}"'
        f' xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13">{_STYLE}{content}</svg>'
    )
