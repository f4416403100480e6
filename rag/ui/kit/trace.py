"""The steps of a run: what each did, what it decided, how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from rag.locales import say, sentences
from rag.models.sampling import SAMPLING
from rag.types import Answer, Notice, Step
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.live import LiveRun
from rag.ui.kit.parts import duration
from rag.ui.kit.strings import Language, counted, label

# They set the state up or put it away, and decide nothing that a reader would want to know.
_UNSEEN = frozenset({"enter", "close"})


def steps_head(answer: Answer, language: Language) -> str:
    """Return the number of steps and the total time; empty without steps."""
    count = sum(step.node not in _UNSEEN for step in answer.steps)
    time = duration(answer.seconds * 1000, language)
    return counted("trace_one", "trace_many", count, language, time=time) if count else ""


def draw_steps(answer: Answer, settings: Mapping[str, Any], language: Language, *, key: str) -> None:
    """The steps, and what the chat model was given; `settings` are those of the turn."""
    with st.container(key=f"steps-{key}"):
        st.markdown("\n\n".join(step_lines(answer.steps, language)))
        if answer.usage.prompts:
            st.caption(label("trace_prompts", language, names=" ".join(f"`{name}`" for name in answer.usage.prompts)))
        if answer.usage.calls and (told := parameters(settings)):
            st.caption(label("trace_parameters", language, parameters=escape_line(told)))


def parameters(settings: Mapping[str, Any]) -> str:
    """`qwen-plus · temperature 0.7 · seed 3`: the model and its parameters that were chosen."""
    chosen = [f"{name} {settings[name]}" for name in ("temperature", *SAMPLING) if name in settings]
    return " · ".join([str(settings["model"]), *chosen] if settings.get("model") else chosen)


def live_lines(live: LiveRun, language: Language) -> str:
    """Return the steps so far and the one in progress, as Markdown."""
    now = [doing_line(live, language)] if live.current or not live.steps else []
    return "\n\n".join([*step_lines(live.steps, language), *now])


def doing_line(live: LiveRun, language: Language) -> str:
    """Return a line about the current step."""
    name = step_name(live.current, language) if live.current else label("trace_starting", language)
    return f":primary[:material/progress_activity:] {name}…"


def step_lines(steps: Sequence[Step], language: Language) -> list[str]:
    """A paragraph of Markdown for each step that is shown; all go into one element, for they are drawn at each look."""
    lines = []
    for step in steps:
        if step.node not in _UNSEEN:
            told = describe(step, language)
            name = f":green[:material/check:] {step_name(step.node, language)}"
            lines.append(f"{name} :gray[{told}]" if told else name)
            lines[-1] += f" :gray[{_cost(step, language)}]"  # style.css puts what comes last at the right
    return lines


def _cost(step: Step, language: Language) -> str:
    """Its time, and the tokens that it took."""
    tokens = int(step.detail.get("tokens") or 0)
    key = "usage_tokens_about" if step.detail.get("tokens_estimated") else "usage_tokens"
    told = [label(key, language, count=f"{tokens:,}")] if tokens else []
    return " · ".join([*told, duration(step.ms, language)])


def step_name(node: str, language: Language) -> str:
    """A node's name for the reader; a node without one shows its own."""
    key = f"node_{node}"
    return label(key, language) if key in sentences("en") else escape_line(node)


def describe(step: Step, language: Language) -> str:
    """Return a step's decision in a few escaped words; empty if there is nothing to show."""
    detail: Mapping[str, Any] = step.detail
    parts: list[str] = []
    queries = [str(query) for query in detail.get("queries") or [detail.get("query", "")] if query]
    if step.node in ("condense", "enter") and detail.get("decision") in ("condensed", "corrected"):
        queries = [str(detail.get("question", ""))]
    if queries and step.node in ("retrieve", "rewrite", "condense"):
        shown = " · ".join(shorten(" ".join(query.split()), 80) for query in queries)
        parts.append(label("detail_query", language, query=escape_line(shown)))
    if step.node == "retrieve" and "passages" in detail:
        parts.append(counted("detail_found_one", "detail_found", int(detail["passages"]), language))
    if "relevant" in detail and "of" in detail:
        parts.append(label("detail_relevant", language, kept=detail["relevant"], count=detail["of"]))
    elif step.node != "rewrite" and (sentence := _decision(str(detail.get("decision", "")), language)):
        parts.append(sentence)
    return " · ".join(parts)


def _decision(decision: str, language: Language) -> str:
    """The sentence for what a step decided, or empty where there is none."""
    code = f"step_{decision}"
    return escape_line(say(Notice(code), language).rstrip(".。")) if code in sentences("en") else ""
