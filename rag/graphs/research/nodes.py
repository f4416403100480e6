"""The steps of research. Each returns what changes in the state, and what it decided, for the trace.

What a model fails to do, the rules do for that once; the notes tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import Overwrite, interrupt

from rag.dates import now
from rag.errors import RagError
from rag.graphs.common import Result, model_or_rules, question_of, refusal, start_turn, usage_fields
from rag.graphs.research.limits import (
    CALLS_KEPT,
    deadline,
    limit_reached,
    met_in,
    searches_left,
    stagnation,
    time_left,
)
from rag.graphs.research.plan_edits import apply_changes, finish_is_wished
from rag.graphs.research.state import (
    ENDED,
    AspectRecord,
    Entry,
    PastStep,
    ResearchContext,
    ResearchState,
    StepInput,
    StepRecord,
    found_by,
    fresh,
    may_leave,
)
from rag.locales import say
from rag.reasoning.history import MAX_STANDALONE
from rag.reasoning.research import Aspect, Choice, Progress, Query, Reading, SubQuestion, Task, Tool
from rag.retrieval.answerable import DOUBT
from rag.retrieval.ledger import LEG
from rag.runs.serialization import NoticeRecord, record, step_note
from rag.store.sql.conversation_table import Change
from rag.text import normal, question_language
from rag.tracing import span
from rag.types import Notice, Passage

log = logging.getLogger(__name__)

Running = Runtime[ResearchContext]


async def enter(state: ResearchState, runtime: Running) -> Result:
    """Begin a question: nothing of the one before it stays but the conversation."""
    update = fresh(state["question"].strip())
    return refusal(update) or await start_turn(update, state, runtime, CALLS_KEPT)


async def plan(state: ResearchState, runtime: Running) -> Result:
    """Say what a full answer has to tell, and the first steps to it.

    Rules cannot tell what a library lacks: by them, the web is asked what is asked, too, where it may be.
    """
    context, question = runtime.context, question_of(state)
    model, rules = context.model, context.rules
    titles = await asyncio.to_thread(context.titles) if model else ()  # the rules read those of what is found
    by_model = partial(model.plan, question, titles) if model else None
    with context.budget.keeping(CALLS_KEPT):
        made, notes = await model_or_rules(time_left(context), by_model, partial(rules.plan, question, titles))
    if not made.steps:
        made = await rules.plan(question, titles)
    leaves = model is None and may_leave(state, context)
    held = await asyncio.to_thread(context.holds, question) if leaves else True
    beyond = [] if held else [_to_web(state, "research_web_too")]
    steps = number_steps([*made.steps, *beyond], (), "plan")
    aspects = [asdict(one) for one in made.aspects]
    tell(runtime, steps)
    unclear = "" if state["clarified"] else made.unclear
    update = {"aspects": aspects, "plan": Overwrite(steps), "notes": notes, "unclear": unclear}
    return update, step_note("planned", steps=[one["sub_question"] for one in steps])


async def approve(state: ResearchState, runtime: Running) -> Result:
    """Wait for the person, who may change the plan, or say what is meant: then it is made anew, with that."""
    reply = interrupt({"plan": state["plan"], "question": question_of(state), "unclear": state["unclear"]})
    if state["unclear"] and (meant := " ".join(str(reply.get("meant", "")).split())[:MAX_STANDALONE]):
        standalone = f"{question_of(state)} ({meant})"
        runtime.stream_writer({"standalone": standalone})
        return {"clarified": meant, "standalone": standalone}, step_note("clarified", question=standalone)
    said = [Change(str(one["kind"]), one.get("data", {})) for one in reply.get("changes", ())]
    steps = apply_changes(state["plan"], said)
    tell(runtime, steps)
    return {"plan": Overwrite(steps)}, step_note("approved")


async def dispatch(state: ResearchState, runtime: Running) -> Result:
    """Take in what the person changed, and choose the steps that begin now."""
    context = runtime.context
    changes = await asyncio.to_thread(context.changes)
    steps = apply_changes(state["plan"], changes)
    steps = await asyncio.to_thread(_in_hand, steps, context)
    steps = _within_library(steps) if state["web"] == "no" else steps
    stop = "stopped_by_person" if finish_is_wished(changes) else limit_reached(state, context)
    ready = [] if stop else _ready(steps)[: min(context.limits.at_once, searches_left(state, context))]
    if _asks_leave(ready, state, context):
        return {"plan": Overwrite(steps), "web": "asking"}, step_note("asked_leave")
    chosen = {step["id"] for step in ready}
    round_ = state["round"] + bool(ready)
    begun = [_begun(step, round_) if step["id"] in chosen else step for step in steps]
    update: dict[str, Any] = {"plan": Overwrite(begun), "round": round_}
    if stop:
        update["stop"] = record(Notice(f"research_{stop}"))
    tell(runtime, begun)
    return update, step_note("dispatched", steps=[step["sub_question"] for step in ready])


def _in_hand(steps: Sequence[StepRecord], context: ResearchContext) -> list[StepRecord]:
    """The plan with no step on the web that what an earlier report was written from answers."""
    held = {one["id"] for one in _open(steps) if one["tool"] == "web" and context.holds(one["sub_question"])}
    return [{**one, "tool": "library"} if one["id"] in held else one for one in steps]


def _asks_leave(ready: Sequence[StepRecord], state: ResearchState, context: ResearchContext) -> bool:
    """Whether one of them would be the first to leave the machine, and the person has not been asked."""
    unasked = context.web is not None and context.options.web == "ask" and state["web"] in ("", "asking")
    return unasked and any(step["tool"] == "web" for step in ready)


async def consent(state: ResearchState, _: Running) -> Result:
    """Wait for the person, who says whether the question may go to the web; no library's page ever does."""
    beyond = [step["sub_question"] for step in _open(state["plan"]) if step["tool"] == "web"]
    reply = interrupt({"web": beyond, "question": question_of(state)})
    leave = "yes" if reply.get("web") in ("question", "conversation") else "no"
    return {"web": leave}, step_note("left" if leave == "yes" else "stayed")


def _within_library(steps: Sequence[StepRecord]) -> list[StepRecord]:
    """The plan without what is left to do on the web; in the library where nothing else would be left."""
    alone = all(step["tool"] == "web" for step in steps)
    refused: StepRecord = {"status": "skipped", "failure": record(Notice("research_web_refused"))}
    instead: StepRecord = {"tool": "library"} if alone else refused
    return [{**one, **instead} if one["tool"] == "web" and one["status"] == "open" else one for one in steps]


def _begun(step: StepRecord, round_: int) -> StepRecord:
    return {**step, "status": "running", "round": round_}


def _ready(steps: Sequence[StepRecord]) -> list[StepRecord]:
    ended = {step["id"] for step in steps if step["status"] in ENDED}
    return [step for step in steps if step["status"] in ("open", "running") and set(step["needs"]) <= ended]


async def step(state: StepInput, runtime: Running) -> Result:
    """Word a search, make it, read what it brings. What fails is told, and costs the other steps nothing."""
    context, own = runtime.context, state["step"]
    try:
        with context.budget.share(state["calls"]):
            update, detail = await _search_both(state, context)
    except RagError as error:
        failed: StepRecord = {"id": own["id"], "status": "failed", "failure": record(error.notice)}
        update = {"plan": [failed], "past": [_past(own, "", ())], "searches": 1}
        detail = step_note("step_failed", sub_question=own["sub_question"], reason=error.code)
    tell(runtime, update["plan"])
    return update, detail


async def _search_both(state: StepInput, context: ResearchContext) -> Result:
    own, limits = state["step"], context.limits
    task, model, rules = _task(state), context.model, context.rules
    by_model = partial(model.word, task) if model else None
    query, notes = await model_or_rules(time_left(context), by_model, partial(rules.word, task))
    passages, source, missed = await _found(own["tool"], query, context, beyond=state["web"])
    kept = passages[: limits.keep]
    in_hand = bool(passages) and LEG in passages[0].ranks
    reading, more = Reading(), list[NoticeRecord]()
    if kept:
        reads = partial(model.read, task, kept) if model else None
        reading, more = await model_or_rules(time_left(context), reads, partial(rules.read, task, kept))
    done: StepRecord = {
        "id": own["id"],
        "status": "done" if kept else "empty",
        "query": query.text,
        "leg": "ledger" if in_hand else query.leg,
        "reason": "" if in_hand else query.reason,
        "summary": reading.summary,
        "kept": [{"url_hash": one.url_hash, "url": one.url, "title": one.title} for one in kept],
        "by_rules": model is None or bool(notes or more),
    }
    update = {
        "plan": [done],
        "ledger": _entries(own["id"], passages, reading, source),
        "past": [_past(own, reading.summary, reading.met)],
        "met": list(reading.met),
        "searches": 0 if in_hand else 1,
        "notes": [*notes, *missed, *more],
    }
    told = {key: done[key] for key in ("query", "leg", "reason", "summary")}
    asked_for = own["sub_question"]
    return update, step_note(f"step_{done['status']}", sub_question=asked_for, passages=len(passages), **told)


async def _found(
    tool: Tool, query: Query, context: ResearchContext, *, beyond: bool
) -> tuple[list[Passage], Tool, list[NoticeRecord]]:
    """The passages, where they are from, and a note where the web was meant and the library had to do."""
    missed = [record(Notice("research_web_unset"))]
    if tool == "web" and beyond and context.web is not None:
        try:
            with span("web", "tool", query=query.text):
                found = await asyncio.to_thread(context.web, query.text)
            return list(found)[: context.limits.recall], "web", []
        except RagError as error:
            missed = [record(error.notice)]
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
    own = state["step"]
    step = SubQuestion(own["sub_question"], keywords=tuple(own["keywords"]), section=own["section"])
    headings = tuple(filter(None, dict.fromkeys([own["section"], *state["headings"]])))
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
            "source": "web" if one.fetched_at else source,
            "fetched_at": one.fetched_at or (now() if source == "web" else ""),
        }
        for place, one in enumerate(passages)
    }


def _past(own: StepRecord, summary: str, met: Sequence[str]) -> PastStep:
    return {"step": own["id"], "summary": summary, "met": list(met)}


async def review(state: ResearchState, runtime: Running) -> Result:
    """Look at what a round brought, and decide how to go on."""
    context = runtime.context
    before, round_ = state["past"][: state["reviewed"]], state["past"][state["reviewed"] :]
    gain = len(met_in(round_) - met_in(before))
    gains = [*state["gain"], gain]
    update: dict[str, Any] = {"gain": gains, "reviewed": len(state["past"]), "spent": _spent(context)}
    is_done = _is_done(state, context)
    stop = "" if is_done else limit_reached(state, context) or stagnation(state, gains, _ids(round_), context)
    if stop:
        return {**update, "stop": record(Notice(f"research_{stop}"))}, step_note("stopped", reason=stop, gain=gain)
    choice, by, notes = await _choice(state, context)
    made = {"action": choice.action, "justification": choice.justification, "by": by}
    update |= {"decisions": [*state["decisions"], made], "notes": notes}
    new = _unasked(choice.steps, state) if choice.action == "revise" else []
    # By rules there is nearly always another name to follow: what the library lacks is looked for before that.
    if (context.model is None or not new) and not _open(state["plan"]) and _leaves_library(state, context):
        new = [_to_web(state, "research_to_web")]
    if new:
        update |= {"plan": number_steps(new, state["plan"], "revision"), "revisions": state["revisions"] + 1}
        tell(runtime, update["plan"])
    elif (choice.action == "finish" or not _open(state["plan"])) and not await _is_added(state, context):
        code = "complete" if len(state["met"]) == len(state["aspects"]) else "plan_done"
        update["stop"] = record(Notice(f"research_{code}"))
    return update, step_note(f"chose_{choice.action}", justification=choice.justification, gain=gain)


def _is_done(state: ResearchState, context: ResearchContext) -> bool:
    """Whether all that a model planned is done and met; by rules there may always be another name to follow.

    What an earlier report was written from, and answers all of it, ends the search in either case.
    """
    done = [step for step in state["plan"] if step["status"] != "skipped"]
    in_hand = all(step.get("leg") == "ledger" for step in done)
    met = context.model is not None and len(state["met"]) == len(state["aspects"])
    return not _open(state["plan"]) and (met or in_hand)


async def _is_added(state: ResearchState, context: ResearchContext) -> bool:
    """Whether a person has added steps meanwhile, which the next dispatch takes in."""
    changes = await asyncio.to_thread(context.changes)
    known = {step["id"] for step in state["plan"]}
    return any(step["id"] not in known for step in _open(apply_changes(state["plan"], changes)))


def _ids(past: Sequence[PastStep]) -> list[str]:
    return [one["step"] for one in past]


def _to_web(state: ResearchState, why: str) -> SubQuestion:
    question = question_of(state)
    return SubQuestion(question, say(Notice(why), question_language(question)), "web")


def _leaves_library(state: ResearchState, context: ResearchContext) -> bool:
    """Whether the web is asked because the library does not seem to hold the answer: once, where that is allowed."""
    asked_web = any(step["tool"] == "web" for step in state["plan"])
    refused = context.options.web == "ask" and state["web"] == "no"
    return context.web is not None and not (asked_web or refused) and context.answerable() < DOUBT


async def _choice(state: ResearchState, context: ResearchContext) -> tuple[Choice, str, list[NoticeRecord]]:
    progress = _progress(state)
    left = max(0, context.limits.revisions - state["revisions"])
    model, rules = context.model, context.rules
    if _is_done(state, context) or (model is None and _has_left(state, context)):
        return Choice("finish"), "rules", []
    by_rules = context.limits.rounds if model is None else left
    by_model = partial(model.decide, progress, revisions=left) if model else None
    with context.budget.keeping(CALLS_KEPT):
        choice, notes = await model_or_rules(
            time_left(context), by_model, partial(rules.decide, progress, revisions=by_rules)
        )
    return choice, "rules" if model is None or notes else "model", notes


def _has_left(state: ResearchState, context: ResearchContext) -> bool:
    """Whether the web was asked for what the library lacks: then names in the library lead nowhere."""
    beyond = [step for step in state["plan"] if step["tool"] == "web" and step["status"] == "done"]
    return any(step["by"] == "revision" for step in beyond) or bool(beyond and context.answerable() < DOUBT)


def _progress(state: ResearchState) -> Progress:
    begun = [step for step in state["plan"] if step["status"] in ("done", "empty")]
    met = set(state["met"])
    return Progress(
        question_of(state),
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


def _spent(context: ResearchContext) -> dict[str, float]:
    return asdict(context.budget.spent(context.seconds()))


def number_steps(steps: Sequence[SubQuestion], before: Sequence[StepRecord], by: Any) -> list[StepRecord]:
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


def tell(runtime: Running, steps: Sequence[StepRecord]) -> None:
    """Steps as they are now, and what the run has used, for whoever watches."""
    context = runtime.context
    runtime.stream_writer({"plan": {"steps": list(steps), **usage_fields(context, deadline(context))}})
