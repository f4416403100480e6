"""Small parts drawn on several pages: page heads, empty states, times, names of languages and of strategies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from urllib.parse import unquote

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rag.locales import sentences
from rag.retrieval.strategies import STRATEGIES
from rag.text import inert
from rag.ui.kit.escape import JOINER, escape_line, is_web_url
from rag.ui.kit.strings import Language, counted, label
from rag.web.url_key import split_url

_NUMBER: Final = re.compile(r"[+-]?\d[\d.,]*+%?")


def page_head(title: str, lead: str) -> None:
    """A page's title and the one sentence under it; both are labels, not outside text."""
    with st.container(key="page-head", gap="xsmall"):
        st.markdown(f"# {title}", anchors=False)
        with st.container(key="page-lead"):
            st.markdown(lead)


def empty_state(title: str, lead: str) -> DeltaGenerator:
    """The middle of an empty page, whose content suggests the next step."""
    middle = st.container(key="empty", horizontal_alignment="center")
    middle.markdown(f"# {title}", anchors=False)
    middle.markdown(lead)
    return middle


def draw_cards(found: Sequence[tuple[str, str]], language: Language) -> None:
    """Draw cards of name and escaped value, two in a row if there is room."""
    for at in range(0, len(found), 2):
        for column, (what, value) in zip(st.columns(2), found[at : at + 2], strict=False):
            with column, st.container(border=True, key=f"use-{what}", height="stretch"):
                st.caption(label(f"use_{what}", language))
                st.markdown(f"**{value}**")


def close(key: str) -> None:
    """Close the popover `key`, which has `on_change`; for callbacks, since these run before it is drawn."""
    st.session_state[key] = False


def duration(ms: float, language: Language) -> str:
    """`85 ms` below a second, `1.4 s` above."""
    short = round(ms) < 1000
    return label("milliseconds" if short else "seconds", language, count=f"{ms:.0f}" if short else f"{ms / 1000:.1f}")


def moment(iso: str) -> str:
    """An ISO 8601 time as `2024-03-05 14:30` in the reader's time zone, or empty when there is none."""
    return local(datetime.fromisoformat(iso)).strftime("%Y-%m-%d %H:%M") if iso else ""


def local(time: datetime) -> datetime:
    """The same moment in the reader's time zone, where the browser told it."""
    offset = st.context.timezone_offset
    return time if offset is None else time.astimezone(timezone(timedelta(minutes=-offset)))


def language_name(tag: str, language: Language) -> str:
    """`en` as "English" or “英文”; a tag without a name stays as it is."""
    if tag in ("en", "zh"):
        return label(f"language_{tag}", language)
    return tag or label("language_unknown", language)


def chunk_count(count: int, language: Language) -> str:
    return counted("chunks_one", "chunks_many", count, language)


def page_count(count: int, language: Language) -> str:
    return counted("in_use_page", "in_use_pages", count, language)


def data_table(rows: Sequence[Mapping[str, Any]], **how: Any) -> Any:
    """`st.dataframe`, whose button writes a file of its cells: none of them begins as a formula does.

    A word joiner before such a text shows nothing, and a spreadsheet takes what follows for text. Numbers stay.
    """
    safe = [{name: _inert(value) for name, value in row.items()} for row in rows]
    return st.dataframe(safe, **how)


def _inert(value: Any) -> Any:
    is_formula = isinstance(value, str) and inert(value) != value and not _NUMBER.fullmatch(value)
    return f"{JOINER}{value}" if is_formula else value


def short_source(source: str) -> str:
    """A URL without its scheme and percent-encoding, a file by its name: what a reader recognises."""
    if source.startswith("file://"):
        return unquote(split_url(source).path).rpartition("/")[2]
    parts = split_url(source)
    if not is_web_url(source) or not parts.netloc:
        return source
    return unquote(f"{parts.netloc}{parts.path}".rstrip("/") + (f"?{parts.query}" if parts.query else ""))


def site_of(url: str) -> str:
    """The host of a web address; any other source by its short name."""
    return (split_url(url).netloc if is_web_url(url) else "") or short_source(url)


def strategy_names(standard: str) -> list[str]:
    """The strategies there are, `standard` first."""
    return sorted(STRATEGIES, key=lambda name: name != standard)


def strategy_name(name: str, language: Language, *, reranks: bool = True) -> str:
    """Return the strategy's name; that of `rerank` says so where no reranker runs."""
    key = f"strategy_{name}" if reranks or name != "rerank" else "strategy_rerank_off"
    return label(key, language) if key in sentences("en") else escape_line(name)


def metric_name(name: str, language: Language) -> str:
    """`token_f1` as "Token F1"; a metric without a name shows its own."""
    key = f"metric_{name.replace('@', '_').lower()}"
    return label(key, language) if key in sentences("en") else name


def strategy_hint(name: str, language: Language, reranker: str = "") -> str:
    """Return a short description of the strategy, or nothing."""
    key = f"strategy_{name}_hint" if reranker or name != "rerank" else "strategy_rerank_off_hint"
    model = {"model": escape_line(reranker)} if name == "rerank" and reranker else {}
    return label(key, language, **model).rstrip(".。") if key in sentences("en") else ""
