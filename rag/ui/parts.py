"""Small parts drawn on several pages: page heads, empty states, times, names of languages."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import unquote

import streamlit as st

from rag.ui.escape import is_web_url
from rag.ui.strings import Language, counted, label
from rag.web.url_key import split_url


def page_head(title: str, lead: str) -> None:
    """A page's title and the one sentence under it; both are labels, not outside text."""
    with st.container(key="page-head", gap="xsmall"):
        st.markdown(f"# {title}", anchors=False)
        with st.container(key="page-lead"):
            st.markdown(lead)


def close(key: str) -> None:
    """Close the popover `key`, which has `on_change`; for callbacks, since these run before it is drawn."""
    st.session_state[key] = False


def duration(ms: float, language: Language) -> str:
    """`85 ms` below a second, `1.4 s` above."""
    short = round(ms) < 1000
    return label("milliseconds" if short else "seconds", language, count=f"{ms:.0f}" if short else f"{ms / 1000:.1f}")


def moment(iso: str) -> str:
    """An ISO 8601 time as `2024-03-05 14:30` in the reader's time zone, or empty when there is none."""
    if not iso:
        return ""
    time = datetime.fromisoformat(iso)
    offset = st.context.timezone_offset
    if offset is not None:
        from datetime import timedelta, timezone

        time = time.astimezone(timezone(timedelta(minutes=-offset)))
    return time.strftime("%Y-%m-%d %H:%M")


def language_name(tag: str, language: Language) -> str:
    """`en` as "English" or “英文”; a tag without a name stays as it is."""
    if tag in ("en", "zh"):
        return label(f"language_{tag}", language)
    return tag or label("language_unknown", language)


def chunk_count(count: int, language: Language) -> str:
    return counted("chunks_one", "chunks_many", count, language)


def page_count(count: int, language: Language) -> str:
    return counted("in_use_page", "in_use_pages", count, language)


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
