"""The steps of a run: actions, decisions and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from rag.locales import Language, label, label_count, say, sentences
from rag.models.servers import SAMPLING
from rag.types import Answer, Notice, Step
from rag.ui.kit.live import LiveRun
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.parts import duration

# Nodes that set up or store the state, without a decision that a reader would want to know.
_HIDDEN = frozenset({"enter", "close"})


def steps_head(answer: Answer, language: Language) -> str:
    """Return the number of steps and the total time; empty without steps."""
    count = sum(step.node not in _HIDDEN for step in answer.steps)
    time = duration(answer.seconds * 1000, language)
    return label_count("trace_one", "trace_many", count, language, time=time) if count else ""


def draw_steps(answer: Answer, settings: Mapping[str, Any], language: Language, *, key: str) -> None:
    """Draw the steps, and the prompts and parameters of the chat model; `settings` are those of the turn."""
    with st.container(key=f"steps-{key}"):
        st.markdown("\n\n".join(step_lines(answer.steps, language)))
        if answer.usage.prompts:
            st.caption(label("trace_prompts", language, names=" ".join(f"`{name}`" for name in answer.usage.prompts)))
        if answer.usage.calls and (text := parameters(settings)):
            st.caption(label("trace_parameters", language, parameters=escape_line(text)))


def parameters(settings: Mapping[str, Any]) -> str:
    """Return `qwen-plus · temperature 0.7 · seed 3`: the model and the parameters that were chosen."""
    parts = [f"{name} {settings[name]}" for name in ("temperature", *SAMPLING) if name in settings]
    return " · ".join([str(settings["model"]), *parts] if settings.get("model") else parts)


def live_lines(live: LiveRun, language: Language) -> str:
    """Return the steps so far and the one in progress, as Markdown."""
    now = [current_line(live, language)] if live.current or not live.steps else []
    return "\n\n".join([*step_lines(live.steps, language), *now])


def current_line(live: LiveRun, language: Language) -> str:
    """Return a line about the current step."""
    name = step_name(live.current, language) if live.current else label("trace_starting", language)
    return f":primary[:material/progress_activity:] {name}…"


def step_lines(steps: Sequence[Step], language: Language) -> list[str]:
    """Return a paragraph of Markdown for each visible step; all go into one element, which is drawn at each poll."""
    lines = []
    for step in steps:
        if step.node not in _HIDDEN:
            text = describe(step, language)
            name = f":green[:material/check:] {step_name(step.node, language)}"
            lines.append(f"{name} :gray[{text}]" if text else name)
            lines[-1] += f" :gray[{_cost(step, language)}]"  # style.css aligns the last element to the right
    return lines


def _cost(step: Step, language: Language) -> str:
    tokens = int(step.detail.get("tokens") or 0)
    key = "usage_tokens_about" if step.detail.get("tokens_estimated") else "usage_tokens"
    parts = [label(key, language, count=f"{tokens:,}")] if tokens else []
    return " · ".join([*parts, duration(step.ms, language)])


def step_name(node: str, language: Language) -> str:
    """Return a node's label; without one, its own name."""
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
        text = " · ".join(shorten(" ".join(query.split()), 80) for query in queries)
        parts.append(label("detail_query", language, query=escape_line(text)))
    if step.node == "retrieve" and "passages" in detail:
        parts.append(label_count("detail_found_one", "detail_found", int(detail["passages"]), language))
    if "relevant" in detail and "of" in detail:
        parts.append(label("detail_relevant", language, kept=detail["relevant"], count=detail["of"]))
    elif step.node != "rewrite" and (sentence := _decision(str(detail.get("decision", "")), language)):
        parts.append(sentence)
    return " · ".join(parts)


def _decision(decision: str, language: Language) -> str:
    """Return the sentence for a step's decision; empty if there is none."""
    code = f"step_{decision}"
    return escape_line(say(Notice(code), language).rstrip(".。")) if code in sentences("en") else ""
