"""The steps of research. Each returns what changes in the state, and what it decided, for the trace.

What a model fails to do, the rules do for that once; the notes tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, TypeVar

from langgraph.runtime import Runtime
from langgraph.types import Overwrite, interrupt

from rag.errors import ModelError, RagError
from rag.graphs.research.changes import apply_changes, finish_is_wished
from rag.graphs.research.state import (
    ENDED,
    AspectRecord,
    Entry,
    PastStep,
    ResearchContext,
    ResearchState,
    StepInput,
    StepRecord,
    asked,
    found_by,
    fresh,
)
from rag.messages import say
from rag.reasoning.history import MAX_STANDALONE
from rag.reasoning.messages import exchanges_of, said
from rag.reasoning.questions import question_problem
from rag.reasoning.research import Aspect, Choice, Progress, Query, Reading, SubQuestion, Task, Tool
from rag.retrieval.answerable import DOUBT
from rag.store.conversation_table import Change
from rag.store.records import now
from rag.text import question_language, terms
from rag.tracing import span
from rag.types import Notice, Passage

log = logging.getLogger(__name__)

Result = tuple[dict[str, Any], dict[str, Any]]
Said = TypeVar("Said")
Runs = Runtime[ResearchContext]

CALLS_A_STEP: Final = 2
CALLS_KEPT: Final = 2
"""For writing, and for one repair."""
_KNOWN: Final = 0.8
"""A search whose first five passages are known to this share brought nothing new."""
_STAGNANT: Final = 2
"""Rounds without gain after which the search ends."""
_FIRST: Final = 5


async def enter(state: ResearchState, runtime: Runs) -> Result:
    """Begin a question: nothing of the one before it stays but the conversation."""
    question = state["question"].strip()
    update = fresh(question)
    if problem := question_problem(question):
        return {**update, "outcome": "failed", "notice": plain(problem)}, decided("refused", reason=problem.code)
    given = " ".join(runtime.context.options.standalone.split())
    standalone = given or await _completed(state, question, runtime.context)
    if standalone and standalone != question:
        runtime.stream_writer({"standalone": standalone})
        update["standalone"] = standalone
    update["messages"] = [said(question, standalone)]
    return update, decided("begin")


async def _completed(state: ResearchState, question: str, context: ResearchContext) -> str:
    history = exchanges_of(state.get("messages", []))
    if context.condenser is None or not history:
        return ""
    try:
        with context.budget.keeping(CALLS_KEPT):
            standalone = await context.condenser.condense(question, history, state.get("summary", ""))
    except ModelError as error:
        log.info("a follow-up is not completed (%s)", error.code)
        return ""
    return " ".join(standalone.split())[:MAX_STANDALONE]


async def plan(state: ResearchState, runtime: Runs) -> Result:
    """Say what a full answer has to tell, and the first steps to it."""
    context, question = runtime.context, asked(state)
    titles = await asyncio.to_thread(context.titles)
    model, rules = context.model, context.rules
    by_model = partial(model.plan, question, titles) if model else None
    with context.budget.keeping(CALLS_KEPT):
        made, notes = await either(context, by_model, partial(rules.plan, question, titles))
    if not made.steps:
        made = await rules.plan(question, titles)
    steps = numbered(made.steps, (), "plan")
    aspects = [asdict(one) for one in made.aspects]
    tell(runtime, steps)
    update = {"aspects": aspects, "plan": steps, "notes": notes, "unclear": made.unclear}
    return update, decided("planned", steps=[one["sub_question"] for one in steps])


async def approve(state: ResearchState, runtime: Runs) -> Result:
    """Wait for the person, who may change the plan, or answer what is unclear about the question."""
    reply = interrupt({"plan": state["plan"], "question": asked(state), "unclear": state["unclear"]})
    said = [Change(str(one["kind"]), one.get("data", {})) for one in reply.get("changes", ())]
    steps = apply_changes(state["plan"], said)
    tell(runtime, steps)
    return {"plan": Overwrite(steps)}, decided("approved")


async def dispatch(state: ResearchState, runtime: Runs) -> Result:
    """Take in what the person changed, and choose the steps that begin now."""
    context = runtime.context
    changes = await asyncio.to_thread(context.changes)
    steps = apply_changes(state["plan"], changes)
    stop = "stopped_by_person" if finish_is_wished(changes) else limit_reached(state, context)
    ready = [] if stop else _ready(steps)[: min(context.limits.at_once, _searches_left(state, context))]
    chosen = {step["id"] for step in ready}
    round_ = state["round"] + bool(ready)
    begun = [_begun(step, round_) if step["id"] in chosen else step for step in steps]
    update: dict[str, Any] = {"plan": Overwrite(begun), "round": round_}
    if stop:
        update["stop"] = plain(Notice(f"research_{stop}"))
    tell(runtime, begun)
    return update, decided("dispatched", steps=[step["sub_question"] for step in ready])


def _begun(step: StepRecord, round_: int) -> StepRecord:
    return {**step, "status": "running", "round": round_}


def limit_reached(state: ResearchState, context: ResearchContext) -> str:
    """Why no further step may begin; empty while one may."""
    limits, budget = context.limits, context.budget
    if context.model is not None and budget.left <= CALLS_KEPT and budget.limit > CALLS_KEPT:
        spent_tokens = budget.used + CALLS_KEPT < budget.limit
        return "budget_tokens" if spent_tokens else "budget_calls"
    if context.seconds() >= deadline(context):
        return "budget_seconds"
    if not _searches_left(state, context):
        return "budget_searches"
    if state["round"] >= limits.rounds:
        return "budget_rounds"
    return ""


def deadline(context: ResearchContext) -> float:
    """Seconds of the run after which it only writes; three quarters of the time that a person allowed."""
    allowed = context.options.seconds
    return min(context.limits.seconds, 0.75 * allowed) if allowed else context.limits.seconds


def _searches_left(state: ResearchState, context: ResearchContext) -> int:
    limits = context.limits
    most = limits.searches if context.model is not None else limits.searches_by_rules
    return max(0, (context.options.searches or most) - state["searches"])


def _ready(steps: Sequence[StepRecord]) -> list[StepRecord]:
    ended = {step["id"] for step in steps if step["status"] in ENDED}
    return [step for step in steps if step["status"] in ("open", "running") and set(step["needs"]) <= ended]


async def step(state: StepInput, runtime: Runs) -> Result:
    """Word a search, make it, read what it brings. What fails is told, and costs the other steps nothing."""
    context, record = runtime.context, state["step"]
    try:
        with context.budget.share(state["calls"]):
            update, detail = await _searched(state, context)
    except RagError as error:
        failed: StepRecord = {"id": record["id"], "status": "failed", "failure": plain(error.notice)}
        update = {"plan": [failed], "past": [_past(record, "", [], ())], "searches": 1}
        detail = decided("step_failed", sub_question=record["sub_question"], reason=error.code)
    tell(runtime, update["plan"])
    return update, detail


async def _searched(state: StepInput, context: ResearchContext) -> Result:
    record, limits = state["step"], context.limits
    task, model, rules = _task(state), context.model, context.rules
    by_model = partial(model.word, task) if model else None
    query, notes = await either(context, by_model, partial(rules.word, task))
    passages, source, missed = await _found(record["tool"], query, context)
    kept = passages[: limits.keep]
    reading, more = Reading(), list[dict[str, Any]]()
    if kept:
        reads = partial(model.read, task, kept) if model else None
        reading, more = await either(context, reads, partial(rules.read, task, kept))
    summary = reading.summary
    done: StepRecord = {
        "id": record["id"],
        "status": "done" if kept else "empty",
        "query": query.text,
        "leg": query.leg,
        "reason": query.reason,
        "summary": summary,
        "kept": [{"url_hash": one.url_hash, "url": one.url, "title": one.title} for one in kept],
        "by_rules": model is None or bool(notes or more),
    }
    update = {
        "plan": [done],
        "ledger": _entries(record["id"], passages, reading, source),
        "past": [_past(record, summary, [one.id for one in kept], reading.met)],
        "met": list(reading.met),
        "searches": 1,
        "notes": [*notes, *missed, *more],
    }
    told = {key: done[key] for key in ("query", "leg", "reason", "summary")}
    asked_for = record["sub_question"]
    return update, decided(f"step_{done['status']}", sub_question=asked_for, passages=len(passages), **told)


async def _found(tool: Tool, query: Query, context: ResearchContext) -> tuple[list[Passage], Tool, list[Any]]:
    """The passages, where they are from, and a note where the web was meant and the library had to do."""
    missed = [plain(Notice("research_web_unset"))]
    if tool == "web" and context.web is not None:
        try:
            with span("web", "tool", query=query.text):
                found = await asyncio.to_thread(context.web, query.text)
            return list(found)[: context.limits.recall], "web", []
        except RagError as error:
            missed = [plain(error.notice)]
    passages = await asyncio.to_thread(_search, query, context)
    return passages, "library", missed if tool == "web" else []


def _search(query: Query, context: ResearchContext) -> list[Passage]:
    """With the person's strategy, or the legs that were chosen for this step."""
    with span("retrieve", "tool", query=query.text) as done:
        how: dict[str, Any] = {"k": context.limits.recall}
        how |= {"strategy": query.leg} if query.leg in ("keyword", "dense") else {}
        found = list(context.search(query.text, sections=[query.section], **how)) if query.section else []
        found = found or list(context.search(query.text, **how))
        done.attributes.update(passages=len(found), **how)
    return found[: context.limits.recall]


def _task(state: StepInput) -> Task:
    record = state["step"]
    step = SubQuestion(record["sub_question"], keywords=tuple(record["keywords"]), section=record["section"])
    headings = (record["section"],) if record["section"] else ()
    return Task(state["question"], step, aspects_of(state["aspects"]), tuple(state["past"]), headings)


def _entries(step_id: str, passages: Sequence[Passage], reading: Reading, source: Tool) -> dict[str, Entry]:
    told: dict[int, list[str]] = {}
    for place, sentence in reading.sentences:
        told.setdefault(place, []).append(sentence)
    return {
        one.id: {
            "passage": asdict(one),
            "ranks": {step_id: place},
            "distilled": told.get(place, []),
            "source": source,
            "fetched_at": now() if source == "web" else "",
        }
        for place, one in enumerate(passages)
    }


def _past(record: StepRecord, summary: str, kept: Sequence[str], met: Sequence[str]) -> dict[str, Any]:
    return {"step": record["id"], "summary": summary, "kept": list(kept), "met": list(met)}


async def review(state: ResearchState, runtime: Runs) -> Result:
    """Look at what a round brought, and decide how to go on."""
    context = runtime.context
    before, round_ = state["past"][: state["reviewed"]], state["past"][state["reviewed"] :]
    gain = len(_met(round_) - _met(before))
    gains = [*state["gain"], gain]
    update: dict[str, Any] = {"gain": gains, "reviewed": len(state["past"]), "spent": _spent(context)}
    stop = limit_reached(state, context) or _stagnation(state, gains, [one["step"] for one in round_], context)
    if stop:
        return {**update, "stop": plain(Notice(f"research_{stop}"))}, decided("stopped", reason=stop, gain=gain)
    choice, by, notes = await _choice(state, context)
    record = {"action": choice.action, "justification": choice.justification, "by": by}
    update |= {"decisions": [*state["decisions"], record], "notes": notes}
    new = _unasked(choice.steps, state) if choice.action == "revise" else []
    if not new and not _open(state["plan"]) and _leaves_library(state, context):
        new = [SubQuestion(asked(state), say(Notice("research_to_web"), question_language(asked(state))), "web")]
    if new:
        update |= {"plan": numbered(new, state["plan"], "revision"), "revisions": state["revisions"] + 1}
        tell(runtime, update["plan"])
    elif choice.action == "finish" or not _open(state["plan"]):
        code = "complete" if len(state["met"]) == len(state["aspects"]) else "plan_done"
        update["stop"] = plain(Notice(f"research_{code}"))
    return update, decided(f"chose_{choice.action}", justification=choice.justification, gain=gain)


def _leaves_library(state: ResearchState, context: ResearchContext) -> bool:
    """Whether the web is asked because the library does not seem to hold the answer: once, where that is allowed."""
    asked_web = any(step["tool"] == "web" for step in state["plan"])
    return context.web is not None and not asked_web and context.answerable() < DOUBT


def _met(past: Sequence[PastStep]) -> set[str]:
    return {aspect for one in past for aspect in one["met"]}


def _stagnation(state: ResearchState, gains: Sequence[int], round_: Sequence[str], context: ResearchContext) -> str:
    """Two rounds that met no new aspect, or a round whose searches found what was known.

    By rules a name leads on to the next although no aspect tells of it: the planner knows when none is new.
    """
    if context.model is None:
        return ""
    without_gain = len(gains) >= _STAGNANT and not any(gains[-_STAGNANT:])
    known = bool(round_) and len(gains) > 1 and all(_known_before(state, step, round_) for step in round_)
    return "stagnant" if without_gain or known else ""


def _known_before(state: ResearchState, step_id: str, round_: Sequence[str]) -> bool:
    first = [entry for entry in state["ledger"].values() if entry["ranks"].get(step_id, _FIRST) < _FIRST]
    known = [entry for entry in first if entry["ranks"].keys() - set(round_)]
    return bool(first) and len(known) >= _KNOWN * len(first)


async def _choice(state: ResearchState, context: ResearchContext) -> tuple[Choice, str, list[dict[str, Any]]]:
    progress = _progress(state)
    left = max(0, context.limits.revisions - state["revisions"])
    model, rules = context.model, context.rules
    if model is not None and not progress.open_steps and not progress.open_aspects:
        return Choice("finish"), "rules", []
    by_rules = context.limits.rounds if model is None else left
    by_model = partial(model.decide, progress, revisions=left) if model else None
    with context.budget.keeping(CALLS_KEPT):
        choice, notes = await either(context, by_model, partial(rules.decide, progress, revisions=by_rules))
    return choice, "rules" if model is None or notes else "model", notes


def _progress(state: ResearchState) -> Progress:
    begun = [step for step in state["plan"] if step["status"] in ("done", "empty")]
    met = set(state["met"])
    return Progress(
        asked(state),
        tuple(step.get("query") or step["sub_question"] for step in begun),
        tuple(tuple(found_by(state, step["id"])) for step in begun),
        tuple(step["summary"] for step in begun if step.get("summary")),
        tuple(aspect for aspect in aspects_of(state["aspects"]) if aspect.id not in met),
        tuple(step["sub_question"] for step in _open(state["plan"])),
    )


def _open(steps: Sequence[StepRecord]) -> list[StepRecord]:
    return [step for step in steps if step["status"] == "open"]


def _unasked(steps: Sequence[SubQuestion], state: ResearchState) -> list[SubQuestion]:
    """Those that were not asked before, whatever the order of their words."""
    known = {normal(step[key]) for step in state["plan"] for key in ("sub_question", "query") if step.get(key)}
    return [step for step in steps if normal(step.text) not in known]


def normal(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(terms(text))))


def _spent(context: ResearchContext) -> dict[str, float]:
    return asdict(context.budget.spent(context.seconds()))


def numbered(steps: Sequence[SubQuestion], before: Sequence[StepRecord], by: Any) -> list[StepRecord]:
    """The steps as records, with ids that follow on those before them."""
    first = len(before) + 1
    ids = [f"s{first + place}" for place in range(len(steps))]
    return [
        {
            "id": ids[place],
            "sub_question": step.text,
            "justification": step.justification,
            "tool": step.tool,
            "keywords": list(step.keywords),
            "section": step.section,
            "needs": [ids[n - 1] for n in step.needs],
            "status": "open",
            "by": by,
        }
        for place, step in enumerate(steps)
    ]


def aspects_of(records: Sequence[AspectRecord]) -> tuple[Aspect, ...]:
    return tuple(Aspect(one["id"], one["text"], one["kind"]) for one in records)


async def either(
    context: ResearchContext, model: Callable[[], Awaitable[Said]] | None, rules: Callable[[], Awaitable[Said]]
) -> tuple[Said, list[dict[str, Any]]]:
    """What the model says, or the rules where there is none, it fails, or the time is up: then with a note of why."""
    if model is None:
        return await rules(), []
    try:
        async with asyncio.timeout(max(0.0, deadline(context) - context.seconds())):
            return await model(), []
    except (ModelError, TimeoutError) as error:
        notice = error.notice if isinstance(error, ModelError) else Notice("research_model_slow")
        log.info("rules take a step of the model (%s)", notice.code)
        return await rules(), [plain(notice)]


def tell(runtime: Runs, steps: Sequence[StepRecord]) -> None:
    """Steps as they are now, and what the run has used, for whoever watches."""
    budget, context = runtime.context.budget, runtime.context
    used = {"calls": budget.used, "tokens": budget.meter.tokens, "seconds": round(context.seconds(), 1)}
    most = {"calls": budget.limit, "tokens": budget.tokens or 0, "seconds": deadline(context)}
    runtime.stream_writer({"plan": {"steps": list(steps), "used": used, "most": most}})


def plain(notice: Notice) -> dict[str, Any]:
    return {"code": notice.code, "params": dict(notice.params)}


def decided(decision: str, **detail: Any) -> dict[str, Any]:
    return {"decision": decision, **detail}
