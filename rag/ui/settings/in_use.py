"""What is in use: one card for each part, with how to change it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import streamlit as st

from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import chunk_count, page_count
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_PACKAGES = (
    "streamlit",
    "qdrant-client",
    "qdrant-edge-py",
    "langgraph",
    "langchain-core",
    "FlagEmbedding",
    "torch",
)


def draw_in_use(app: App, library: str, language: Language) -> None:
    """Cards in two columns, one on a narrow screen."""
    left, right = st.columns(2)
    settings = app.settings
    with left:
        server = escape_line(settings.qdrant_url)
        database = (
            label("use_database_server", language, url=server) if server else label("use_database_embedded", language)
        )
        _card("database", "database", database, "" if server else "use_database_change", language)
        _card("chat", "chat", _chat(app, language), "use_chat_change", language)
    with right:
        builtin = settings.embedding_model == "builtin"
        model = label("use_embedding_builtin", language) if builtin else escape_line(settings.embedding_model)
        _card("embedding", "embedding", model, "use_embedding_change" if builtin else "", language)
        _card("folder", "folder", escape_line(str(settings.rag_data_dir)), "use_folder_change", language)
    _library_card(app, library, language)
    with st.expander(label("use_versions", language), icon=":material/info:", type="compact"):
        st.markdown("  \n".join(f"{name} :gray[{_version(name)}]" for name in _PACKAGES))


def _card(key: str, what: str, value: str, change: str, language: Language) -> None:
    with st.container(border=True, key=f"use-{key}"):
        st.caption(label(f"use_{what}", language))
        st.markdown(f"**{value}**")
        if change:
            st.caption(label(change, language))


def _chat(app: App, language: Language) -> str:
    chat = session().chat
    if chat is not None:
        return label("use_chat_session", language, model=escape_line(chat.model))
    return escape_line(app.settings.llm_model) or label("use_chat_none", language)


def _library_card(app: App, library: str, language: Language) -> None:
    opened = app.library(library)
    counts = label(
        "use_library_counts",
        language,
        pages=page_count(opened.page_count(), language),
        chunks=chunk_count(opened.chunk_count(), language),
    )
    with st.container(border=True, key="use-library"):
        st.caption(label("use_library", language))
        st.markdown(f"**{escape_line(app.libraries.title(library))}** · {counts}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "–"
