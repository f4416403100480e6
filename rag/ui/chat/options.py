"""Answer options: strategy, model parameters, the way to combine passages, memory, and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, label_count
from rag.reasoning.composing import COMPOSE
from rag.reasoning.questions import DEFAULT_WINDOW, MEMORIES
from rag.ui.chat.filters import draw_strategy
from rag.ui.kit.actions import draw_failure
from rag.ui.kit.session import Choices, browser_key, chat_in_use, load_chat_model, save_chat_model, session

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
OPTIONS, _REQUESTED_MODEL, _PROBLEM, _SERVED = "options", "requested-model", "option-problem", "model-served"


def draw_options(app: App, language: Language) -> None:
    """Draw the button that opens the choices, and the number of changed ones."""
    choices = st.popover(
        label("options", language),  # constant: a new label would close it
        icon=":material/tune:",
        key=OPTIONS,
        on_change="rerun",
    )
    # The height is fixed, since the popover is placed before its content is drawn.
    with choices, st.container(key="option-choices", height=_height(app), border=False):
        st.caption(label("options_lead", language))
        if choices.open:
            draw_strategy(app, language)
            chat = chat_in_use(app)
            if chat is not None:
                _draw_model(chat, app, language)
                _draw_sampling(language)
                _draw_compose(language)
            _draw_memory(language)
            if session().mode == "research":
                _draw_research(language)
            if session().mode == "judge":
                _draw_judge(language, with_model=chat is not None)
            _draw_limits(app, language, with_model=chat is not None)
    if count := len(session().choices.options()):
        st.caption(label_count("options_chosen_one", "options_chosen", count, language), width="content")


def _height(app: App) -> int:
    height = 560 if chat_in_use(app) else 360
    return height + {"research": 60, "judge": 120}.get(session().mode, 0)


def _draw_model(chat: ChatOptions, app: App, language: Language) -> None:
    if app.chats.own_allowed:
        draw_model_name("fast_model", chat.fast_model, label("chat_fast_hint", language), app, language)
        draw_problem(language)
    temperature = app.settings.llm_temperature if chat.temperature is None else chat.temperature
    st.session_state["option-temperature"] = float(temperature)
    st.slider(
        label("option_temperature", language),
        0.0,
        2.0,
        step=0.1,
        key="option-temperature",
        on_change=_store_chat,
        args=("temperature", app),
    )


def _draw_sampling(language: Language) -> None:
    """Draw the model's other parameters under their API names; empty ones use the service's defaults."""
    with st.expander(label("option_sampling", language), icon=":material/tune:", type="compact"):
        st.caption(label("option_sampling_hint", language))
        columns = st.columns(2)
        for place, (name, bounds) in enumerate(_SAMPLING.items()):
            with columns[place % 2]:
                _draw_number(name, bounds, label("option_standard", language), language)
        st.session_state["option-stop"] = "\n".join(session().choices.stop)
        st.text_area(label("option_stop", language), key="option-stop", height=68, on_change=_store_stops)


def _store_stops() -> None:
    lines = str(st.session_state["option-stop"] or "").splitlines()
    stops = tuple(dict.fromkeys(line for line in lines if line.strip()))[:_MAX_STOPS]
    session().choices = replace(session().choices, stop=stops)


def draw_model_name(name: str, value: str, hint: str, app: App, language: Language) -> None:
    """Draw a field for a model's name, which is tested before it is used."""
    key = f"option-{name}"
    st.session_state[key] = value
    st.text_input(label(f"option_{name}", language), key=key, placeholder=hint, on_change=_store_chat, args=(name, app))


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
    cached: Any = st.session_state.get(_SERVED)
    if cached is None or cached[0] != chat.service:
        try:
            with st.spinner(label("model_listing", language)):
                cached = (chat.service, app.chats.list_models(chat))
        except RagError:
            return []
        st.session_state[_SERVED] = cached
    return list(cached[1])


def _draw_compose(language: Language) -> None:
    st.session_state["option-compose"] = session().choices.compose
    st.selectbox(
        label("option_compose", language),
        COMPOSE,
        key="option-compose",
        format_func=lambda name: label(f"compose_{name}", language),
        on_change=_store,
        args=("compose",),
    )
    st.caption(label(f"compose_{session().choices.compose}_hint", language))


def _draw_memory(language: Language) -> None:
    """Draw the choice of conversation memory, and the size of a window."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    st.session_state["option-memory"] = session().choices.memory
    with left:
        st.selectbox(
            label("option_memory", language),
            MEMORIES,
            key="option-memory",
            format_func=lambda name: label(f"memory_{name}", language),
            on_change=_store,
            args=("memory",),
        )
    if session().choices.memory == "window":
        with right:
            _draw_number("window", (1, 50, 1), str(DEFAULT_WINDOW), language)


def _draw_research(language: Language) -> None:
    """Draw the toggle for approving a plan before it starts."""
    st.session_state["option-approve"] = session().choices.approve
    st.toggle(label("option_approve", language), key="option-approve", on_change=_store, args=("approve",))


def _draw_judge(language: Language, *, with_model: bool) -> None:
    st.session_state["option-tree_order"] = session().choices.tree_order
    st.selectbox(
        label("option_tree_order", language),
        ("breadth", "best"),
        key="option-tree_order",
        format_func=lambda name: label(f"tree_order_{name}", language),
        on_change=_store,
        args=("tree_order",),
    )
    if with_model:
        st.session_state["option-judge_each"] = session().choices.judge_each
        st.toggle(label("option_judge_each", language), key="option-judge_each", on_change=_store, args=("judge_each",))


def _draw_limits(app: App, language: Language, *, with_model: bool) -> None:
    names = [name for name in _LIMITS if with_model or name not in _NEED_MODEL]
    for column, name in zip(st.columns(len(names)), names, strict=True):
        with column:
            standard = getattr(app.settings, f"answer_max_{name}")
            hint = label("option_standard", language) if standard is None else f"{standard:g}"
            _draw_number(name, _LIMITS[name], hint, language)


def _draw_number(name: str, bounds: tuple[float, float, float], standard: str, language: Language) -> None:
    """Draw a number field; if it is empty, `standard` applies."""
    lowest, highest, step = bounds
    st.session_state[f"option-{name}"] = getattr(session().choices, name)
    st.number_input(
        label(f"option_{name}", language),
        min_value=lowest,
        max_value=highest,
        value=None,
        step=step,
        key=f"option-{name}",
        placeholder=standard,
        on_change=_store,
        args=(name,),
    )


def _store(name: str) -> None:
    value = st.session_state[f"option-{name}"]
    session().choices = replace(session().choices, **{name: getattr(Choices(), name) if value is None else value})
