"""Runs on the screen: their steps, usage, controls and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.locales import Language, label, label_count, label_or, say, sentences
from rag.models.servers import SAMPLING
from rag.store.sql.conversation_table import Change
from rag.types import Answer, Notice, Step, Usage
from rag.ui.kit.actions import attempt
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.parts import draw_button, duration
from rag.ui.kit.session import session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

# Nodes that only set up or store state, without a decision worth showing.
_HIDDEN = frozenset({"enter", "close"})


def steps_summary(answer: Answer, language: Language) -> str:
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
        parameters = [f"{name} {settings[name]}" for name in ("temperature", *SAMPLING) if name in settings]
        if settings.get("model"):
            parameters.insert(0, str(settings["model"]))
        if answer.usage.calls and parameters:  # e.g. `qwen-plus · temperature 0.7 · seed 3`
            st.caption(label("trace_parameters", language, parameters=escape_line(" · ".join(parameters))))


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
            text = describe_step(step, language)
            name = f":green[:material/check:] {step_name(step.node, language)}"
            costs = [duration(step.ms, language)]
            if tokens := int(step.detail.get("tokens") or 0):
                costs.insert(0, _token_count(tokens, bool(step.detail.get("tokens_estimated")), language))
            # style.css aligns the last element to the right.
            lines.append(f"{name} :gray[{text}]" if text else name)
            lines[-1] += f" :gray[{' · '.join(costs)}]"
    return lines


def _token_count(tokens: int, estimated: bool, language: Language) -> str:
    return label("usage_tokens_about" if estimated else "usage_tokens", language, count=f"{tokens:,}")


def step_name(node: str, language: Language) -> str:
    """Return a node's label; without one, its own name."""
    return label_or(escape_line(node), f"node_{node}", language)


def describe_step(step: Step, language: Language) -> str:
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
    elif step.node != "rewrite" and (decision := label_or("", f"step_{detail.get('decision', '')}", language)):
        parts.append(escape_line(decision.rstrip(".。")))
    return " · ".join(parts)


def draw_usage(live: LiveRun, language: Language) -> None:
    for column, unit in zip(st.columns(3), ("seconds", "calls", "tokens"), strict=True):
        used, limit = live.usage.get(unit, 0), live.limits.get(unit, 0)
        if limit and (used or unit == "seconds"):  # without a chat model, there are no calls and tokens
            text = f"{label(f'research_used_{unit}', language)} {used:,.0f} / {limit:,.0f}"
            column.progress(min(1.0, used / limit), text=f":small[{text}]")


def draw_run_controls(app: App, turn: TurnView, live: LiveRun, language: Language) -> None:
    with st.container(horizontal=True, key=f"controls-{turn.id}"):
        text, finish = label("research_finish", language), Change("finish")
        draw_button(text, "flag", f"finish-{turn.id}", request_change, app, turn, finish)
        if live.limits:
            text, more = label("research_more", language), Change("budget", live.limits)
            draw_button(text, "more_time", f"more-{turn.id}", request_change, app, turn, more)


def draw_end(stop: Mapping[str, Any] | None, notes: Iterable[Mapping[str, Any]], language: Language) -> None:
    """Draw why a run stopped, if it is worth saying, and what rules did in place of the model."""
    if stop:
        st.caption(f":material/flag: {note_text(stop, language)}")
    if texts := dict.fromkeys(note_text(note, language) for note in notes):
        st.caption(f":material/rule: {label('research_notes', language)}: {' · '.join(texts)}")


def request_change(app: App, turn: TurnView, request: Change) -> None:
    """In a callback, change a run in progress; an error becomes a notice."""
    attempt(lambda: app.conversations.change(turn.id, request, session().owner))


def usage_parts(usage: Usage, language: Language) -> list[str]:
    """Return `3 calls`, `1,240 tokens`, and the price if there is one; empty if no model was called."""
    if not usage.calls:
        return []
    parts = [
        label_count("usage_call", "usage_calls", usage.calls, language),
        _token_count(usage.tokens_in + usage.tokens_out, usage.estimated, language),
    ]
    return parts if usage.money is None else [*parts, label("usage_money", language, money=_format_price(usage.money))]


def _format_price(money: float) -> str:
    """Return an amount with two decimals, or with two significant digits if it is below 1."""
    if money >= 1 or money <= 0:
        return f"{money:.2f}"
    text = f"{money:.2g}"
    return text if "e" not in text else "< 0.0001"


def note_text(note: Mapping[str, Any], language: Language) -> str:
    """Return the sentence of a note, escaped; empty if its code has none."""
    has_text = note["code"] in sentences("en")
    return escape_line(say(Notice(note["code"], note.get("params", {})), language)) if has_text else ""
