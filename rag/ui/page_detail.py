"""One page of a library: its text as extracted, its chunks, and the way to remove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Page, Passage
from rag.ui.escape import escape_line, web_link
from rag.ui.parts import chunk_count, moment, short_source
from rag.ui.passages import passage_markdown
from rag.ui.session import session
from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_HEIGHT = 520


def draw_page(app: App, library: str, listed: Page, language: Language) -> None:
    """The detail of `listed`, a row of the listing; its text is fetched here."""
    page = app.library(library).page(listed.url_hash)
    if page is None:
        return
    with st.container(border=True, key="page-detail"):
        st.markdown(f"### {escape_line(page.title or page.url)}", anchors=False)
        st.markdown(web_link(short_source(page.url), page.url))
        st.caption(_meta(page, language))
        text, chunks = st.tabs([label("page_text", language), label("page_chunks", language)])
        with text, st.container(height=_HEIGHT, border=False, key=f"page-text-{page.url_hash}"):
            st.markdown(passage_markdown(page.text) or label("page_no_text", language))
        with chunks, st.container(height=_HEIGHT, border=False, key=f"page-text-chunks-{page.url_hash}"):
            for number, chunk in enumerate(app.library(library).chunks(page.url_hash), start=1):
                _draw_chunk(chunk, number, language)
        if st.button(label("page_remove", language), icon=":material/delete:", key="page-remove"):
            _confirm_remove(app, library, page, language)


def _meta(page: Page, language: Language) -> str:
    told = label(
        "page_meta",
        language,
        characters=f"{page.characters or len(page.text):,}",
        chunks=chunk_count(page.chunks, language),
        added=moment(page.added_at),
    )
    if page.updated_at and page.updated_at != page.added_at:
        told += f" · {label('page_updated', language, updated=moment(page.updated_at))}"
    return told


def _draw_chunk(chunk: Passage, number: int, language: Language) -> None:
    with st.container(border=True):
        path = " › ".join(escape_line(part) for part in chunk.section)
        span = label("page_chunk_span", language, start=chunk.start, end=chunk.end)
        head = f"**{label('page_chunk', language, number=number)}** :gray[{span}]"
        st.markdown(f"{head}  \n:gray[{path}]" if path else head)
        st.markdown(passage_markdown(chunk.text))


def _confirm_remove(app: App, library: str, page: Page, language: Language) -> None:
    @st.dialog(label("page_remove_title", language))
    def ask() -> None:
        st.markdown(f"**{escape_line(page.title or page.url)}**")
        st.markdown(label("page_remove_sentence", language))
        if st.button(label("library_remove_go", language), type="primary", key="page-remove-go"):
            app.library(library).remove([page.url_hash])
            session().notes.append(label("page_removed", language))
            st.rerun()

    ask()
