"""The components in use: a card for each, with how to change it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import streamlit as st

from rag.models.model_files import BUILTIN, MINILM, builtin_model
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import chunk_count, draw_cards, page_count, site_of
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
    """Draw cards in two columns, one on a narrow screen."""
    settings = app.settings
    server, builtin = escape_line(settings.qdrant_url), settings.embedding_model == BUILTIN
    database = label("use_database_server" if server else "use_database_embedded", language, url=server)
    shipped = label("use_embedding_builtin", language, name=builtin_model())
    model = shipped if builtin else escape_line(settings.embedding_model)
    if settings.embedding_base_url:
        model += f" · {escape_line(site_of(settings.embedding_base_url).rpartition('@')[2])}"
    cards = [
        ("database", database, "" if server else "use_database_change"),
        ("embedding", model, "use_embedding_change" if builtin_model() == MINILM and builtin else ""),
        ("chat", _chat(app, language), "use_chat_change"),
        ("folder", escape_line(str(settings.rag_data_dir)), "use_folder_change"),
        ("prices", _prices(app, language), "use_prices_change"),
        ("limits", _limits(app, language), "use_limits_change"),
    ]
    draw_cards([(name, value) for name, value, _ in cards], language)
    _draw_library_card(app, library, language)
    with st.expander(label("details", language), icon=":material/info:", type="compact"):
        for name, _, change in cards:
            if change:
                st.markdown(f"{label(f'use_{name}', language)} :gray[{label(change, language)}]")
        st.markdown("  \n".join(f"{name} :gray[{_version(name)}]" for name in _PACKAGES))


def _chat(app: App, language: Language) -> str:
    chat = session().chat
    if chat is not None:
        return label("use_chat_session", language, model=escape_line(chat.model))
    return escape_line(app.settings.llm_model) or label("use_chat_none", language)


def _prices(app: App, language: Language) -> str:
    price_in, price_out = app.settings.llm_price_in, app.settings.llm_price_out
    if price_in is None and price_out is None:
        return label("use_prices_none", language)
    return label("use_prices_set", language, tokens_in=f"{price_in or 0:g}", tokens_out=f"{price_out or 0:g}")


def _limits(app: App, language: Language) -> str:
    limits = {name: getattr(app.settings, f"answer_max_{name}") for name in ("calls", "tokens", "seconds")}
    parts = [label(f"use_limit_{name}", language, count=f"{value:,g}") for name, value in limits.items() if value]
    return " · ".join(parts) or label("use_limits_none", language)


def _draw_library_card(app: App, library: str, language: Language) -> None:
    store = app.library(library)
    counts = label(
        "use_library_counts",
        language,
        pages=page_count(store.page_count(), language),
        chunks=chunk_count(store.chunk_count(), language),
    )
    with st.container(border=True, key="use-library"):
        st.caption(label("use_library", language))
        st.markdown(f"**{escape_line(app.libraries.title(library))}** · {counts}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "–"
