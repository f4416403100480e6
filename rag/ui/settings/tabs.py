"""Tabs of Settings: the components in use with the reranker, the prompts of chat models, and the notes in memory."""

from __future__ import annotations

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import streamlit as st

from rag.conversations.memory import MAX_NOTE_LENGTH, Note
from rag.locales import Language, label
from rag.models.model_files import BUILTIN, MINILM, builtin_model
from rag.prompts.texts import MAX_CHARACTERS, PromptText
from rag.types import Notice
from rag.ui.kit.actions import attempt, attempt_here
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.parts import chunk_count, draw_button, page_count, site_of
from rag.ui.kit.session import person_id, session

if TYPE_CHECKING:
    from rag.app import App

_PACKAGES = ("streamlit", "qdrant-client", "qdrant-edge-py", "langgraph", "langchain-core", "FlagEmbedding", "torch")


def draw_in_use(app: App, library: str, language: Language) -> None:
    """Draw a card for each component in use and, below, how to change them."""
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
    for at in range(0, len(cards), 2):  # two in a row or, on a narrow screen, one
        for column, (name, value, _) in zip(st.columns(2), cards[at : at + 2], strict=False):
            with column, st.container(border=True, key=f"use-{name}", height="stretch"):
                st.caption(label(f"use_{name}", language))
                st.markdown(f"**{value}**")
    pages, chunks = app.library(library).page_count(), app.library(library).chunk_count()
    counts = {"pages": page_count(pages, language), "chunks": chunk_count(chunks, language)}
    with st.container(border=True, key="use-library"):
        st.caption(label("use_library", language))
        title = escape_line(app.libraries.title(library))
        st.markdown(f"**{title}** · {label('use_library_counts', language, **counts)}")
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


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "–"


def draw_reranker(app: App, library: str, language: Language) -> None:
    """Draw the reranker's last comparison, and buttons to compare it and turn it on or off; nothing without one."""
    reranking = app.models.reranking
    if reranking.configured is None:
        return
    st.markdown(f"## {label('settings_reranker', language)}", anchors=False)
    on, model = reranking.current is not None, escape_line(reranking.configured.name)
    st.markdown(label(f"reranker_{'on' if on else 'off'}", language, model=model))
    if comparison := reranking.comparison:
        by, low, high = comparison["difference"]
        figures = {
            "before": f"{comparison['before']:.3f}",
            "after": f"{comparison['after']:.3f}",
            "difference": f"{by:+.3f} ({low:+.3f} – {high:+.3f})",
            "verdict": label(f"verdict_{comparison['verdict']}", language),
        }
        st.markdown(label("reranker_compared", language, count=comparison["questions"], **figures))
    with st.container(horizontal=True):
        compare = draw_button(label("reranker_compare", language), "compare_arrows", "rerank-compare")
        switch = reranking.is_remote and st.button(
            label(f"reranker_turn_{'off' if on else 'on'}", language),
            key="rerank-switch",
            disabled=not (on or comparison),
        )
    st.caption(label("reranker_compare_hint", language))
    with st.spinner(label("reranker_comparing", language)) if compare else st.container():
        done = compare and attempt_here(lambda: app.compare_reranker(library), language)
    if done or (switch and attempt_here(lambda: reranking.switch(not on), language)):
        st.rerun()


def draw_prompts(app: App, language: Language) -> None:
    """Draw one prompt at a time, with its placeholders, for administrators."""
    st.markdown(f"## {label('settings_prompts', language)}", anchors=False)
    st.markdown(label("settings_prompts_lead", language))
    names = sorted(app.chats.prompts.names(), key=lambda name: not name.endswith(f".{language}"))
    texts = {name: app.chats.prompts.text(name) for name in names}
    name = st.selectbox(
        label("prompt_choose", language),
        names,
        format_func=lambda one: _prompt_name(texts[one], language),
        key="prompt-name",
    )
    _draw_text(app, texts[name], language)


def _prompt_name(text: PromptText, language: Language) -> str:
    job, _, tag = text.name.partition(".")
    parts = [label(f"prompt_{job}", language), label(f"language_{tag}", language)]
    return " · ".join([*parts, label("prompt_own", language)] if text.is_custom else parts)


def _draw_text(app: App, text: PromptText, language: Language) -> None:
    with st.form(f"prompt-form-{text.version}", border=False):
        new_text = st.text_area(
            label("prompt_text", language),
            text.text,
            height=320,
            key=f"prompt-text-{text.version}",
            max_chars=MAX_CHARACTERS,
        )
        errors = st.container(gap=None)
        fields = " ".join(f"`{{{field}}}`" for field in sorted(text.fields)) or "–"
        st.caption(label("prompt_needs", language, fields=fields))
        with st.container(horizontal=True):
            save = st.form_submit_button(label("prompt_save", language), type="primary", key="prompt-save")
            reset = text.is_custom and st.form_submit_button(label("prompt_back", language), key="prompt-back")
    with st.expander(label("details", language), icon=":material/info:", type="compact"):
        st.caption(label("prompt_version", language, version=text.version))
    prompts = app.chats.prompts
    with errors:
        if save and attempt_here(lambda: prompts.replace(text.name, new_text or ""), language):
            session().notices.append(Notice("prompt_saved"))
        elif reset and attempt_here(lambda: prompts.restore(text.name), language):
            session().notices.append(Notice("prompt_restored"))
        else:
            return
    st.rerun()


def draw_memory(app: App, language: Language) -> None:
    """Draw the user's notes, each with a field and buttons to save or delete it."""
    st.markdown(f"## {label('settings_remembered', language)}", anchors=False)
    st.markdown(label("settings_remembered_lead", language))
    notes = app.memory.notes(person_id())
    if not notes:
        st.caption(label("remembered_none", language))
        return
    if not session().owner:
        st.caption(label("remembered_browser", language))
    if not session().chat and not app.settings.has_chat_model:
        st.caption(label("remembered_no_model", language))
    for number, note in enumerate(notes, 1):
        key, name = f"note-{note.id}", label("remembered_note", language, number=number)
        with st.container(horizontal=True, vertical_alignment="bottom", key=f"row-{key}", gap="small"):
            st.text_input(name, note.text, key=key, max_chars=MAX_NOTE_LENGTH)
            save, forget = label("remembered_save", language), label("remembered_forget", language)
            st.button(save, key=f"save-{key}", on_click=_save_note, args=(app, note))
            act = partial(app.memory.forget, person_id(), note.id)
            draw_button(forget, "", f"forget-{key}", attempt, act, type="tertiary")


def _save_note(app: App, note: Note) -> None:
    text, permanent = str(st.session_state[f"note-{note.id}"] or ""), bool(session().owner)
    attempt(lambda: app.memory.change(person_id(), note.id, text, permanent=permanent))
