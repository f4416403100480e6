"""A plan during its run, the user's changes to it, and the sections below its report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import streamlit as st

from rag.locales import Language, label
from rag.store.sql.conversation_table import Change
from rag.types import Answer, Wait
from rag.ui.chat.diagrams import plan_diagram, scrollable_diagram
from rag.ui.kit.actions import attempt
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.markdown import escape_line, shorten, web_link
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import close_popover, draw_button, format_time
from rag.ui.kit.runs import draw_end, draw_run_controls, draw_usage, note_text, request_change
from rag.ui.kit.session import person_id, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_ICONS = {
    "open": ":gray[:material/schedule:]",
    "running": ":primary[:material/progress_activity:]",
    "done": ":green[:material/check:]",
    "empty": ":gray[:material/search_off:]",
    "skipped": ":gray[:material/skip_next:]",
    "failed": ":red[:material/error:]",
}
_LONGEST = 400
_PLANNED_STOPS = ("research_complete", "research_plan_done")


def draw_live_plan(app: App, turn: TurnView, live: LiveRun, language: Language) -> None:
    """Draw the steps, the budget, and the controls for changes."""
    if live.requests:
        draw_wait(app, turn, live.requests[0], language)
        return
    with st.container(key=f"plan-{turn.id}", gap="small"):
        draw_usage(live, language)
        for step in live.plan:
            _draw_step(step, language, key=f"{turn.id}-{step['id']}")
            if step["status"] == "open":
                _draw_changes(app, turn, step, language)
        if not live.text:
            with st.form(f"add-step-{turn.id}", border=False, clear_on_submit=True), st.container(horizontal=True):
                text = label("research_add", language)
                options: Any = {"max_chars": _LONGEST, "placeholder": text, "label_visibility": "collapsed"}
                st.text_input(text, key=f"new-step-{turn.id}", **options)
                icon = ":material/add:"
                st.form_submit_button(text, icon=icon, key=f"add-{turn.id}", on_click=_add, args=(app, turn))
            draw_run_controls(app, turn, live, language)


def _draw_step(step: Mapping[str, Any], language: Language, *, key: str) -> None:
    """Draw a step and, below it, its reason or findings, its search, and its passages."""
    status = str(step["status"])
    lines = []
    if step.get("failure"):
        lines.append(note_text(step["failure"], language))
    elif step.get("summary") or step.get("justification"):
        lines.append(escape_line(shorten(str(step.get("summary") or step["justification"]), 200)))
    if step.get("query") and step["query"] != step["sub_question"]:
        lines.append(label("detail_query", language, query=escape_line(step["query"])))
    if step.get("leg"):
        reason = f" ({escape_line(step['reason'])})" if step.get("reason") else ""
        lines.append(label(f"research_leg_{step['leg']}", language) + reason)
    pages = {passage["url"]: shorten(passage["title"] or passage["url"], 40) for passage in step.get("kept", ())}
    if pages:
        lines.append(" · ".join(web_link(title, url) for url, title in pages.items()))
    with st.container(key=f"planned-{key}", gap=None):
        by = f" :gray-badge[{label('research_by_' + step['by'], language)}]" if step["by"] != "plan" else ""
        state = f" :gray[{label(f'research_status_{status}', language)}]" if status not in ("done", "open") else ""
        st.markdown(f"{_ICONS[status]} {escape_line(step['sub_question'])}{by}{state}")
        if text := "  \n".join(lines):
            st.caption(text)


def _draw_changes(app: App, turn: TurnView, step: Mapping[str, Any], language: Language) -> None:
    """Draw the controls to skip or edit a step that has not started."""
    key = f"{turn.id}-{step['id']}"
    with st.container(horizontal=True, key=f"change-{key}", gap="small"):
        text, skip = label("research_skip", language), Change("step_skip", {"id": step["id"]})
        draw_button(text, "", f"skip-{key}", request_change, app, turn, skip, type="tertiary")
        popover = st.popover(label("research_edit", language), type="tertiary", key=f"edit-{key}", on_change="rerun")
        with popover, st.form(f"edit-form-{key}", border=False):
            text = label("research_step_text", language)
            st.text_input(text, value=step["sub_question"], key=f"edit-text-{key}", max_chars=_LONGEST)
            args = (app, turn, step["id"])
            st.form_submit_button(label("research_save", language), key=f"save-{key}", on_click=_edit, args=args)


def _edit(app: App, turn: TurnView, step_id: str) -> None:
    text = str(st.session_state[f"edit-text-{turn.id}-{step_id}"])
    close_popover(f"edit-{turn.id}-{step_id}")
    request_change(app, turn, Change("step_edit", {"id": step_id, "sub_question": text}))


def _add(app: App, turn: TurnView) -> None:
    if text := str(st.session_state.get(f"new-step-{turn.id}") or "").strip():
        request_change(app, turn, Change("step_add", {"id": f"p{uuid4().hex[:6]}", "sub_question": text}))


def draw_wait(app: App, turn: TurnView, wait: Wait, language: Language) -> None:
    """Draw what a run waits for: permission to send its first web queries, or changes to its plan."""
    if "web" not in wait.asks:
        _draw_approval(app, turn, wait, language)
        return
    service = app.imports.web_search.name if app.imports.web_search else ""
    with st.container(border=True, key=f"leave-{turn.id}"):
        lead = label("research_leave_lead", language, service=service)
        queries = "\n".join(f"- {escape_line(query)}" for query in wait.asks["web"])
        st.markdown(f":material/public: {lead}\n\n{queries}")
        with st.container(horizontal=True, gap="small"):
            for choice in ("question", "conversation", "no"):
                text = label(f"research_leave_{choice}", language)
                kind = "primary" if choice == "question" else "secondary"
                reply = partial(_reply, app, turn, wait, {"web": choice})
                draw_button(text, "", f"leave-{choice}-{turn.id}", attempt, reply, type=kind)


def _draw_approval(app: App, turn: TurnView, wait: Wait, language: Language) -> None:
    """Draw the plan as a form: steps can be edited, skipped or added before it starts."""
    changes: list[dict[str, Any]] = []
    meant = ""
    with st.form(f"approve-{turn.id}"):
        st.markdown(label("research_approve_lead", language))
        if unclear := wait.asks.get("unclear"):
            st.info(escape_line(unclear), icon=":material/help:")
            meant = st.text_input(label("research_meant", language), key=f"plan-meant-{turn.id}", max_chars=_LONGEST)
        for step in wait.asks["plan"]:
            question, key = step["sub_question"], f"{turn.id}-{step['id']}"
            name = label("research_step_text", language)
            text = st.text_input(name, value=question, key=f"plan-text-{key}", max_chars=_LONGEST).strip()
            keep = st.checkbox(label("research_keep", language), value=True, key=f"plan-keep-{key}")
            if not keep or not text:
                changes.append({"kind": "step_skip", "data": {"id": step["id"]}})
            elif text != question:
                changes.append({"kind": "step_edit", "data": {"id": step["id"], "sub_question": text}})
        addition = st.text_input(label("research_new_step", language), key=f"plan-new-{turn.id}", max_chars=_LONGEST)
        if addition.strip():
            changes.append(
                {"kind": "step_add", "data": {"id": f"p{uuid4().hex[:6]}", "sub_question": addition.strip()}}
            )
        begin = st.form_submit_button(label("research_begin", language), type="primary", key=f"begin-{turn.id}")
    if begin and attempt(lambda: _reply(app, turn, wait, {"changes": changes, "meant": meant})):
        st.rerun()


def _reply(app: App, turn: TurnView, wait: Wait, reply: Mapping[str, Any]) -> None:
    """Resume a waiting run with the user's reply. Raises RagError."""
    app.reply(turn.id, {wait.id: dict(reply)}, owner=session().owner, chat=session().chat)
    session().live_runs.pop(turn.id, None)


def draw_resume(app: App, turn: TurnView, language: Language) -> None:
    """Draw the button that resumes a run whose process ended before its report."""
    resume = partial(app.resume_turn, turn.id, owner=session().owner, chat=session().chat)
    draw_button(label("research_go_on", language), "resume", f"go-on-{turn.id}", attempt, resume, type="primary")


def draw_findings(app: App, library: str, answer: Answer, language: Language, *, key: str) -> None:
    """Draw the gaps and removed sentences of a report, and a button that adds its web pages to the library."""
    trail = answer.trail
    if "tree" in trail:
        return
    if gaps := trail.get("gaps"):
        lines = [f"- {escape_line(gap['sub_question'])} :gray[{note_text(gap, language)}]" for gap in gaps]
        st.markdown(f"**{label('research_gaps', language)}**\n\n" + "\n".join(lines))
    if removed := trail.get("struck"):
        lines = [f"- ~~{escape_line(sentence)}~~" for sentence in removed]
        st.markdown(f"**{label('research_struck_head', language)}**\n\n" + "\n".join(lines))
    passages = {passage["url_hash"]: passage for passage in trail.get("ledger", ()) if passage["source"] == "web"}
    existing = app.library(library).stored_pages(list(passages)) if passages else {}
    urls = [passage["url"] for url_hash, passage in passages.items() if url_hash not in existing]
    for url in urls:
        date = format_time(next(passage["fetched_at"] for passage in passages.values() if passage["url"] == url))
        st.caption(f":material/public: {web_link(url, url)} · {label('research_from_web', language, date=date)}")
    text = label("research_add_web", language, count=len(urls))
    if urls and draw_button(text, "library_add", f"add-web-{key}"):
        go("add", job=app.imports.add_urls(urls, library=library, owner=person_id()))


def plan_summary(answer: Answer, language: Language) -> str:
    """Return the numbers of steps and passages of a plan; empty without a plan."""
    trail = answer.trail
    counts = {"steps": len(trail.get("plan", ())), "passages": len(trail.get("ledger", ()))}
    return label("research_way", language, **counts) if trail and "tree" not in trail else ""


def draw_plan(answer: Answer, language: Language, *, key: str) -> None:
    trail = answer.trail
    steps = trail.get("plan", ())
    with st.container(key=f"plan-{key}", gap="small"):
        if steps:
            st.html(
                scrollable_diagram(plan_diagram(answer.question, steps, language), label("research_picture", language))
            )
        for step in steps:
            _draw_step(step, language, key=f"{key}-{step['id']}")
        for reason in dict.fromkeys(decision["justification"] for decision in trail.get("decisions", ())):
            if reason:
                st.caption(f":material/alt_route: {escape_line(reason)}")
        stop = trail.get("stop", {})
        draw_end(stop if stop.get("code") in _PLANNED_STOPS else None, trail.get("notes", ()), language)
