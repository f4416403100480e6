"""Answer options: strategy, model parameters, the way to combine passages, memory, and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, label_count
from rag.reasoning.composing import COMPOSE
from rag.reasoning.questions import DEFAULT_WINDOW, MEMORIES
from rag.runs.run import RunOptions, TreeOrder
from rag.ui.chat.filters import draw_strategy
from rag.ui.kit.actions import draw_failure
from rag.ui.kit.parts import draw_field
from rag.ui.kit.session import (
    browser_key,
    cached,
    chat_in_use,
    chosen_options,
    load_chat_model,
    save_chat_model,
    session,
)

if TYPE_CHECKING:
    from rag.app import App, ChatOptions

_LIMITS = {"calls": (1, 100, 1), "tokens": (100, 10_000_000, 500), "seconds": (1, 600, 5)}
_SAMPLING: Final = {
    "max_tokens": (1, 100_000, 100),
    "top_p": (0.01, 1.0, 0.05),
    "presence_penalty": (-2.0, 2.0, 0.1),
    "frequency_penalty": (-2.0, 2.0, 0.1),
    "seed": (0, 2**31 - 1, 1),
}
_MAX_STOPS: Final = 4  # the limit of OpenAI's protocol
_NEED_MODEL = ("calls", "tokens")
OPTIONS, _REQUESTED_MODEL, _PROBLEM = "options", "requested-model", "option-problem"


def draw_options(app: App, language: Language) -> None:
    """Draw the button that opens the choices, and the number of changed ones."""
    choices = st.popover(
        label("options", language),  # constant: a new label would close it
        icon=":material/tune:",
        key=OPTIONS,
        on_change="rerun",
    )
    height = (560 if chat_in_use(app) else 360) + {"research": 60, "judge": 120}.get(session().mode, 0)
    # The height is fixed, since the popover is placed before its content is drawn.
    with choices, st.container(key="option-choices", height=height, border=False):
        st.caption(label("options_lead", language))
        if choices.open:
            draw_strategy(app, language)
            chat = chat_in_use(app)
            if chat is not None:
                _draw_model(chat, app, language)
                _draw_sampling(language)
                _draw_select("compose", COMPOSE, "compose_", language)
                st.caption(label(f"compose_{session().choices.compose}_hint", language))
            _draw_memory(language)
            if session().mode == "research":
                _draw_field(st.toggle, "approve", language)
            if session().mode == "judge":
                _draw_select("tree_order", get_args(TreeOrder), "tree_order_", language)
                if chat is not None:
                    _draw_field(st.toggle, "judge_each", language)
            _draw_limits(app, language, with_model=chat is not None)
    if count := len(chosen_options(session().choices)):
        st.caption(label_count("options_chosen_one", "options_chosen", count, language), width="content")


def _draw_model(chat: ChatOptions, app: App, language: Language) -> None:
    if app.chats.own_allowed:
        draw_model_name("fast_model", chat.fast_model, label("chat_fast_hint", language), app, language)
        draw_problem(language)
    temperature = float(app.settings.llm_temperature if chat.temperature is None else chat.temperature)
    text, bounds = label("option_temperature", language), {"min_value": 0.0, "max_value": 2.0, "step": 0.1}
    draw_field(st.slider, "option-temperature", temperature, text, _store_chat, "temperature", app, **bounds)


def _draw_sampling(language: Language) -> None:
    """Draw the model's other parameters under their API names; empty ones use the service's defaults."""
    with st.expander(label("option_sampling", language), icon=":material/tune:", type="compact"):
        st.caption(label("option_sampling_hint", language))
        columns = st.columns(2)
        for place, (name, bounds) in enumerate(_SAMPLING.items()):
            with columns[place % 2]:
                _draw_number(name, bounds, label("option_standard", language), language)
        stops, text = "\n".join(session().choices.stop), label("option_stop", language)
        draw_field(st.text_area, "option-stop", stops, text, _store_stops, height=68)


def _store_stops() -> None:
    lines = str(st.session_state["option-stop"] or "").splitlines()
    stops = tuple(dict.fromkeys(line for line in lines if line.strip()))[:_MAX_STOPS]
    session().choices = replace(session().choices, stop=stops)


def draw_model_name(name: str, value: str, hint: str, app: App, language: Language) -> None:
    """Draw a field for a model's name, which is tested before it is used."""
    text = label(f"option_{name}", language)
    draw_field(st.text_input, f"option-{name}", value, text, _store_chat, name, app, placeholder=hint)


def forget_problem() -> None:
    """Clear the message of `draw_problem`."""
    st.session_state.pop(_PROBLEM, None)


def draw_problem(language: Language) -> None:
    """Draw the reason why the last model was rejected."""
    if problem := st.session_state.get(_PROBLEM):
        draw_failure(problem, language)


def _store_chat(name: str, app: App) -> None:
    """Store the choice for this browser, a model only after a test; an empty model name is ignored."""
    value: Any = st.session_state[f"option-{name}"]
    value = value.strip() if isinstance(value, str) else value
    if name == "model" and not value:
        return
    chat = chat_in_use(app)
    if chat is None:
        return
    options = replace(chat, **{name: value})
    options = options if options.service == chat.service else replace(options, api_key="", holder=None)
    if name == "temperature":
        save_chat_model(app, options)
    else:
        st.session_state[_REQUESTED_MODEL] = options


def request_model(chat: ChatOptions) -> None:
    """In a callback, request a model for `try_model`."""
    st.session_state[_REQUESTED_MODEL] = chat


def try_model(app: App, language: Language) -> bool:
    """Test a requested model with a short call. If it answers, use it and return True; else store the reason."""
    requested = st.session_state.pop(_REQUESTED_MODEL, None)
    if requested is None:
        return False
    forget_problem()
    try:
        with st.spinner(label("chat_testing", language)):
            app.chats.connect(requested, browser_key(), session().owner)
    except RagError as error:
        st.session_state[_PROBLEM] = error.notice
        return False
    load_chat_model(app)
    return True


def list_models(app: App, chat: ChatOptions, language: Language) -> list[str]:
    """Return the models of the service, requested once per tab; empty if it has no list."""

    def ask() -> list[str]:
        with st.spinner(label("model_listing", language)):
            return app.chats.list_models(chat)

    try:
        return cached("model-served", chat.service, ask)
    except RagError:
        return []


def _draw_memory(language: Language) -> None:
    """Draw the choice of conversation memory, and the size of a window."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        _draw_select("memory", MEMORIES, "memory_", language)
    if session().choices.memory == "window":
        with right:
            _draw_number("window", (1, 50, 1), str(DEFAULT_WINDOW), language)


def _draw_select(name: str, values: Sequence[str], prefix: str, language: Language) -> None:
    """Draw the choice of an option; `prefix` is that of the values' labels."""
    _draw_field(
        st.selectbox, name, language, options=values, format_func=lambda value: label(f"{prefix}{value}", language)
    )


def _draw_field(draw: Callable[..., Any], name: str, language: Language, **options: Any) -> None:
    value = getattr(session().choices, name)
    draw_field(draw, f"option-{name}", value, label(f"option_{name}", language), _store, name, **options)


def _draw_limits(app: App, language: Language, *, with_model: bool) -> None:
    names = [name for name in _LIMITS if with_model or name not in _NEED_MODEL]
    for column, name in zip(st.columns(len(names)), names, strict=True):
        with column:
            standard = getattr(app.settings, f"answer_max_{name}")
            hint = label("option_standard", language) if standard is None else f"{standard:g}"
            _draw_number(name, _LIMITS[name], hint, language)


def _draw_number(name: str, bounds: tuple[float, float, float], standard: str, language: Language) -> None:
    """Draw a number field; if it is empty, `standard` applies."""
    limits: dict[str, Any] = dict(zip(("min_value", "max_value", "step"), bounds, strict=True))
    _draw_field(st.number_input, name, language, value=None, placeholder=standard, **limits)


def _store(name: str) -> None:
    value = st.session_state[f"option-{name}"]
    session().choices = replace(session().choices, **{name: getattr(RunOptions(), name) if value is None else value})
