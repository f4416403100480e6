"""The research graph: its edges, the final report, and the recovery of an interrupted one.

The report is written from the ledger and checked against it; unsupported sentences are removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from rag.checking.citations import Check, check_with
from rag.checking.statements import remove_spans
from rag.errors import ModelError
from rag.graphs.common import (
    CALLS_RESERVED,
    MAX_CHARACTERS,
    Result,
    Running,
    add_steps,
    check_quotes,
    end_without_answer,
    question_of,
    require_quoter,
    rules_notice,
    unless_ended,
    write_or_quote,
)
from rag.graphs.research import nodes
from rag.graphs.research.state import ResearchState, StepInput, may_search_web, researchers, step_passages
from rag.reasoning.hops import interleave, select_fitting
from rag.reasoning.research import Part
from rag.retrieval.context import BUDGET, CAVEAT_THRESHOLD, REFUSAL_THRESHOLD, is_touching
from rag.retrieval.retriever import LEDGER_LEG
from rag.runs.run import Run, end_update, passage_of, record, step_note
from rag.types import Notice, Passage

_SOUND: Final = frozenset({"research_complete", "research_plan_done"})
_SOUND_BY_RULES: Final = _SOUND | {"research_budget_searches"}
"""Rules nearly always find another name to follow, so running out of searches says nothing about the report."""
_HEADINGS = 20  # maximum number of headings offered to a step to search under
_TRAIL_KEYS = ("aspects", "plan", "decisions", "gain", "stop", "struck", "notes")
_RECURSION_LIMIT = 40  # seven rounds take three steps each


@cache
def graph_of(saver: Any) -> Any:
    """Build enter → plan → (approve) → dispatch → (consent → dispatch) → parallel steps → review → dispatch …, then
    write → verify; `saver` stores its checkpoints."""
    builder = StateGraph(ResearchState, context_schema=Run)
    add_steps(builder, nodes.enter, nodes.plan, nodes.approve, nodes.dispatch, nodes.consent, nodes.step, nodes.review)
    add_steps(builder, write, verify)
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", unless_ended("plan"), ["plan", END])
    builder.add_conditional_edges("plan", _after_plan, ["approve", "dispatch"])
    builder.add_conditional_edges("approve", _after_approve, ["plan", "dispatch"])
    builder.add_conditional_edges("dispatch", _after_dispatch, ["consent", "step", "write"])
    builder.add_edge("consent", "dispatch")
    builder.add_edge("step", "review")
    builder.add_conditional_edges("review", _after_review, ["dispatch", "write"])
    builder.add_conditional_edges("write", unless_ended("verify"), ["verify", END])
    builder.add_edge("verify", END)
    return builder.compile(checkpointer=saver).with_config(recursion_limit=_RECURSION_LIMIT)


def _after_plan(state: ResearchState, runtime: Running) -> Literal["approve", "dispatch"]:
    """Wait if the user wants to approve the plan, or the question is ambiguous."""
    run = runtime.context
    waits = run.options.approve or (state["unclear"] and run.thread)
    return "approve" if waits else "dispatch"


def _after_approve(state: ResearchState) -> Literal["plan", "dispatch"]:
    return "plan" if state["unclear"] and state["clarified"] else "dispatch"


def _after_dispatch(state: ResearchState, runtime: Running) -> list[Send] | Literal["consent", "write"]:
    """Send each step a share of the remaining calls, so that it can't use up those of other steps or the report."""
    if state["web"] == "asking" and not state["stop"]:
        return "consent"
    running = [step for step in state["plan"] if step["status"] == "running"]
    if not running or state["stop"]:
        return "write"
    run = runtime.context
    spare = max(0, run.budget.remaining - CALLS_RESERVED - 1)
    paths = (entry["passage"]["section"] for entry in state["ledger"].values())
    headings = list(dict.fromkeys(path[-1] for path in paths if path))[:_HEADINGS]
    return [
        Send(
            "step",
            StepInput(
                question=question_of(state),
                step=step,
                aspects=state["aspects"],
                past=[past_step["summary"] for past_step in state["past"] if past_step["summary"]],
                calls=min(2 * nodes.CALLS_PER_STEP, spare // len(running)),
                web=may_search_web(state, run),
                headings=headings,
            ),
        )
        for step in running
    ]


def _after_review(state: ResearchState) -> Literal["dispatch", "write"]:
    return "write" if state["stop"] else "dispatch"


def _passages_of_steps(state: ResearchState, run: Run) -> list[Passage]:
    """Return the passages for the report: those of the steps, interleaved, up to a number of characters.

    A model gets as many per search as for an ordinary answer, if its context allows. Without a model, only web passages
    are quoted if the library probably lacks the answer.
    """
    searches = [passages for step in state["plan"] if (passages := step_passages(state, step["id"]))]
    web_searches = [passages for passages in searches if passages[0].fetched_at]
    if web_searches and run.chat is None and run.cache.answerable() < REFUSAL_THRESHOLD:
        searches = web_searches
    limit = MAX_CHARACTERS
    if run.chat is not None:
        limit = min(max(limit, BUDGET * len(searches)), 2 * run.options.context_tokens)
    return select_fitting(interleave(searches), limit)


async def write(state: ResearchState, runtime: Running) -> Result:
    """Write the report from the findings so far, whatever ended the search."""
    run = runtime.context
    passages = await asyncio.to_thread(_passages_of_steps, state, run)
    update: dict[str, Any] = {"passages": [asdict(passage) for passage in passages]}
    runtime.stream_writer(update)
    likely = run.cache.answerable()
    if not passages:
        return end_without_answer(update, await asyncio.to_thread(run.cache.nothing_found), passages=0)
    has_web = any(one["source"] == "web" or LEDGER_LEG in one["passage"]["ranks"] for one in state["ledger"].values())
    if likely < REFUSAL_THRESHOLD and not (state["met"] or has_web):
        return end_without_answer(update, Notice("not_in_pages"), answerable=likely)
    parts = _parts(state, passages)
    model, rules = researchers(run)
    by_model = model.report(question_of(state), parts, passages) if model else None
    text, problem = await write_or_quote(by_model, rules.report(question_of(state), parts, passages), runtime)
    if problem:
        update["notes"] = [record(problem)]
    if not text.strip():
        return end_without_answer(update, Notice("not_in_pages"), answerable=likely)
    return {**update, "text": text}, step_note("written", passages=len(passages), answerable=likely)


def _parts(state: ResearchState, passages: Sequence[Passage]) -> list[Part]:
    """Return a part for each step with passages, or one for the whole question if there are fewer than two."""
    numbered = [
        (step, tuple(dict.fromkeys(n for p in step_passages(state, step["id"]) if (n := _number(p, passages)))))
        for step in state["plan"]
        if step["status"] == "done"
    ]
    parts = [
        Part(step["sub_question"], numbers, step.get("query", "") if step.get("by_rules") else "")
        for step, numbers in numbered
        if numbers
    ]
    return parts if len(parts) > 1 else [Part(question_of(state), tuple(range(1, len(passages) + 1)))]


def _number(passage: Passage, passages: Sequence[Passage]) -> int:
    """Return the 1-based index of the passage that this one is or was merged into; 0 if there is none."""
    return next((n for n, one in enumerate(passages, 1) if is_touching(passage, one)), 0)


async def verify(state: ResearchState, runtime: Running) -> Result:
    """Check every sentence against the ledger; repair unsupported ones once, and remove the rest."""
    run, question = runtime.context, question_of(state)
    passages = [passage_of(data) for data in state["passages"]]
    check = await _check(state["text"], passages, question, run)
    if check.unsupported_spans() and run.chat is not None and run.budget.remaining:
        check = await _repair(check, passages, question, run)
    struck = [check.text[start:stop] for start, stop in check.unsupported_spans()]
    if struck:
        check = await _check(remove_spans(check.text, check.unsupported_spans()), passages, question, run, ask=False)
    result = check.result()
    update: dict[str, Any] = {
        **result.plain(),
        "struck": [" ".join(one.split()) for one in struck],
        **_end_state(state, result.text, bool(result.citations), struck, passages, run),
    }
    if result.text:
        update["messages"] = [AIMessage(result.text)]
    return update, step_note("verified", statements=len(result.statements), struck=len(struck))


async def _check(text: str, passages: Sequence[Passage], question: str, run: Run, *, ask: bool = True) -> Check:
    verifiers = run.verifiers if ask and run.chat is not None else ()
    return await check_with(text, passages, verifiers, question, run.options.context_tokens)


async def _repair(check: Check, passages: Sequence[Passage], question: str, run: Run) -> Check:
    """Have the model repair the doubtful sentences, and check the text again; return `check` if that fails."""
    model, _ = researchers(run)
    if model is None:
        return check
    doubtful = check.unsupported_spans()
    try:
        sentences = await model.repair(question, [check.text[a:b] for a, b in doubtful], passages)
    except ModelError:
        return check
    text = check.text
    for (start, stop), sentence in sorted(zip(doubtful, sentences, strict=True), reverse=True):
        text = text[:start] + (sentence or text[start:stop]) + text[stop:]
    return await _check(text, passages, question, run, ask=run.budget.remaining > 0)


def _end_state(
    state: ResearchState,
    text: str,
    has_citations: bool,
    struck: Sequence[str],
    passages: Sequence[Passage],
    run: Run,
) -> dict[str, Any]:
    """Return the outcome, with a notice unless it is "answered"."""
    stop = state["stop"] or record(Notice("research_plan_done"))
    if not text:
        return end_update("not_in_pages", Notice("not_in_pages"))
    names = require_quoter(run).find_missing_names(question_of(state), passages) if run.chat is None else []
    if not has_citations:
        notice = Notice("no_citations")
    elif stop["code"] not in (_SOUND if run.chat is not None else _SOUND_BY_RULES):
        notice = Notice(stop["code"], stop["params"])
    elif names:
        notice = Notice("not_named", {"names": " · ".join(names)})
    elif struck:
        notice = Notice("research_struck", {"count": len(struck)})
    elif run.cache.answerable() < CAVEAT_THRESHOLD and not all(passage.fetched_at for passage in passages):
        notice = Notice("in_doubt")
    elif run.chat is not None and (fallback := rules_notice(state["notes"])):
        notice = fallback
    else:
        return {"outcome": "answered"}
    return end_update("caveat", notice)


def _gaps(state: ResearchState) -> list[dict[str, Any]]:
    """Return the unanswered sub-questions, each with a notice that says why.

    Follow-up searches by rules are excluded unless they failed, since nobody asked them.
    """
    has_asked = any(one["by"] == "model" and one["action"] == "revise" for one in state.get("decisions", []))
    missing = []
    for step in state.get("plan", []):
        if "failure" in step:
            missing.append({"sub_question": step["sub_question"], **step["failure"]})
        elif step["status"] != "done" and (has_asked or step["by"] != "revision"):
            code = {"empty": "research_gap_empty", "skipped": "research_gap_skipped"}.get(step["status"])
            missing.append({"sub_question": step["sub_question"], **record(Notice(code or "research_gap_open"))})
    return missing


async def rescue(run: Run) -> dict[str, Any]:
    """Return a report of quotes from the findings of an interrupted run; {} if it found nothing."""
    state: Any = run.state
    if not state.get("ledger"):
        return {}
    passages = await asyncio.to_thread(_passages_of_steps, state, run)
    _, rules = researchers(run)
    quotes = rules.report(question_of(state), _parts(state, passages), passages)
    return await check_quotes(quotes, passages)


def trail(run: Run) -> dict[str, Any]:
    """Return the data stored with the answer: the final plan, and the ledger without the passages' texts.

    Passages from the web, which are stored nowhere else, keep their text.
    """
    state: Any = run.state
    ledger = [
        {
            **{key: entry["passage"][key] for key in ("id", "url", "url_hash", "title", "start", "end")},
            "distilled": entry["distilled"],
            "steps": sorted(entry["ranks"], key=lambda step: entry["ranks"][step]),
            "source": entry["source"],
            "fetched_at": entry["fetched_at"],
            **({"passage": entry["passage"]} if entry["source"] == "web" else {}),
        }
        for entry in state.get("ledger", {}).values()
    ]
    fields = {key: state[key] for key in _TRAIL_KEYS if state.get(key)}
    return {**fields, "ledger": ledger, "gaps": _gaps(state)}
