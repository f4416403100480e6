"""The nodes of the research graph, and when research ends. Each returns a state update, and its decision for the trace.

If a model fails in a node, rules take over and add a note.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from langgraph.types import Overwrite, interrupt

from rag.errors import RagError
from rag.graphs.common import (
    CALLS_RESERVED,
    MAX_PARALLEL,
    RECALL,
    Result,
    Running,
    check_question,
    deadline,
    limit_reached,
    model_or_rules,
    question_of,
    searches_left,
    start_turn,
    time_left,
    usage,
    usage_fields,
)
from rag.graphs.research.state import (
    END_STATUSES,
    MAX_SEARCHES,
    LedgerEntry,
    PastStep,
    ResearchState,
    StepBy,
    StepInput,
    StepRecord,
    apply_changes,
    blank_state,
    may_search_web,
    open_step,
    researchers,
    step_passages,
    web_search,
)
from rag.locales import say
from rag.reasoning.questions import MAX_STANDALONE
from rag.reasoning.research import Aspect, NextAction, Progress, Query, Reading, SubQuestion, Task, Tool
from rag.retrieval.context import CAVEAT_THRESHOLD
from rag.retrieval.retriever import LEDGER_LEG
from rag.runs.run import NoticeRecord, Run, record, step_note
from rag.store.sql.conversation_table import Change
from rag.store.values import now
from rag.text import question_language, unique_terms
from rag.tracing import span
from rag.types import Notice, Passage

CALLS_PER_STEP: Final = 2
_MAX_ROUNDS: Final = 7
_MAX_REVISIONS: Final = 2
_MAX_READ: Final = 3  # passages that a step reads
_KNOWN_SHARE: Final = 0.8
"""Minimum share of known passages among the first `_TOP` of a search that found nothing new."""
_TOP: Final = 5
_STAGNANT_ROUNDS: Final = 2
"""Number of rounds without gain after which research ends."""


async def enter(state: ResearchState, runtime: Running) -> Result:
    """Start a question; only the conversation survives from the earlier state."""
    update = blank_state(state["question"].strip())
    return check_question(update) or await start_turn(update, state, runtime, CALLS_RESERVED)


async def plan(state: ResearchState, runtime: Running) -> Result:
    """List the aspects of a complete answer, and the first steps.

    Rules can't tell what a library lacks, so they also search the web for the question if that is allowed.
    """
    run, question = runtime.context, question_of(state)
    model, rules = researchers(run)
    titles = await asyncio.to_thread(run.cache.retriever.titles) if model else ()  # rules use the titles of passages
    with run.budget.reserve(CALLS_RESERVED):
        draft, notes = await model_or_rules(time_left(run), model, rules, lambda one: one.plan(question, titles))
    if not draft.steps:
        draft = await rules.plan(question, titles)
    searches_web = model is None and may_search_web(state, run)
    web_steps: list[SubQuestion] = []
    if searches_web and await asyncio.to_thread(run.cache.retriever.find_cached, question) is None:
        web_steps = [_web_question(state, "research_web_too")]
    steps = _number_steps([*draft.steps, *web_steps], (), "plan")
    aspects = [asdict(one) for one in draft.aspects]
    _stream_plan(runtime, steps)
    unclear = "" if state["clarified"] else draft.unclear
    update = {"aspects": aspects, "plan": Overwrite(steps), "notes": notes, "unclear": unclear}
    return update, step_note("planned", steps=[step["sub_question"] for step in steps])


async def approve(state: ResearchState, runtime: Running) -> Result:
    """Wait for the user to approve or change the plan, or to clarify the question, which leads to a new plan."""
    reply = interrupt({"plan": state["plan"], "question": question_of(state), "unclear": state["unclear"]})
    if state["unclear"] and (meaning := " ".join(str(reply.get("meant", "")).split())[:MAX_STANDALONE]):
        standalone = f"{question_of(state)} ({meaning})"
        runtime.stream_writer({"standalone": standalone})
        return {"clarified": meaning, "standalone": standalone}, step_note("clarified", question=standalone)
    changes = [Change(str(change["kind"]), change.get("data", {})) for change in reply.get("changes", ())]
    steps = apply_changes(state["plan"], changes)
    _stream_plan(runtime, steps)
    return {"plan": Overwrite(steps)}, step_note("approved")


async def dispatch(state: ResearchState, runtime: Running) -> Result:
    """Apply the user's changes, and select the steps to start."""
    run = runtime.context
    changes = await asyncio.to_thread(run.changes)
    steps = apply_changes(state["plan"], changes)
    steps = await asyncio.to_thread(_move_answered, steps, run)
    if state["web"] == "no":  # skip the web steps, or turn them into library steps if the plan has no others
        all_web = all(step["tool"] == "web" for step in steps)
        refused: StepRecord = {"status": "skipped", "failure": record(Notice("research_web_refused"))}
        change: StepRecord = {"tool": "library"} if all_web else refused
        steps = [{**one, **change} if (one["tool"], one["status"]) == ("web", "open") else one for one in steps]
    is_stopped = any(change.kind == "finish" for change in changes)
    stop = "stopped_by_person" if is_stopped else _end_reason(state, run)
    finished_ids = {step["id"] for step in steps if step["status"] in END_STATUSES}
    ready = [one for one in steps if one["status"] in ("open", "running") and set(one["needs"]) <= finished_ids]
    ready = [] if stop else ready[: min(MAX_PARALLEL, searches_left(run, state["searches"], MAX_SEARCHES))]
    is_undecided = web_search(run) is not None and run.options.web == "ask" and state["web"] in ("", "asking")
    if is_undecided and any(step["tool"] == "web" for step in ready):
        return {"plan": Overwrite(steps), "web": "asking"}, step_note("asked_leave")
    ready_ids = {step["id"] for step in ready}
    round_ = state["round"] + bool(ready)
    running: StepRecord = {"status": "running", "round": round_}
    updated: list[StepRecord] = [{**step, **running} if step["id"] in ready_ids else step for step in steps]
    update: dict[str, Any] = {"plan": Overwrite(updated), "round": round_}
    if stop:
        update["stop"] = record(Notice(f"research_{stop}"))
    _stream_plan(runtime, updated)
    return update, step_note("dispatched", steps=[step["sub_question"] for step in ready])


def _move_answered(steps: Sequence[StepRecord], run: Run) -> list[StepRecord]:
    """Turn web steps that an earlier report's passages answer into library steps."""
    find, moved = run.cache.retriever.find_cached, StepRecord(tool="library")
    waiting = [step["id"] for step in _open_steps(steps) if step["tool"] == "web"]
    return [{**one, **moved} if one["id"] in waiting and find(one["sub_question"]) else one for one in steps]


async def consent(state: ResearchState, _: Running) -> Result:
    """Wait for the user to decide whether the question may be sent to the web; pages never are."""
    questions = [step["sub_question"] for step in _open_steps(state["plan"]) if step["tool"] == "web"]
    reply = interrupt({"web": questions, "question": question_of(state)})
    allowed = "yes" if reply.get("web") in ("question", "conversation") else "no"
    return {"web": allowed}, step_note("left" if allowed == "yes" else "stayed")


async def step(state: StepInput, runtime: Running) -> Result:
    """Write a query, search, and read the results. A failure is recorded, and doesn't affect other steps."""
    run, current = runtime.context, state["step"]
    try:
        with run.budget.share(state["calls"]):
            update, detail = await _search_and_read(state, run)
    except RagError as error:
        failure: StepRecord = {"id": current["id"], "status": "failed", "failure": record(error.notice)}
        update = {"plan": [failure], "past": [PastStep(step=current["id"], summary="", met=[])], "searches": 1}
        detail = step_note("step_failed", sub_question=current["sub_question"], reason=error.code)
    _stream_plan(runtime, update["plan"])
    return update, detail


async def _search_and_read(state: StepInput, run: Run) -> Result:
    current = state["step"]
    sub_question = SubQuestion(
        current["sub_question"],
        keywords=tuple(current["keywords"]),
        section=current["section"],
        query=current.get("query", ""),
    )
    headings = tuple(filter(None, dict.fromkeys([current["section"], *state["headings"]])))
    task = Task(state["question"], sub_question, _aspects_of(state["aspects"]), tuple(state["past"]), headings)
    model, rules = researchers(run)
    query, notes = await model_or_rules(time_left(run), model, rules, lambda one: one.write_query(task))
    passages, source, web_notes = await _find(current["tool"], query, run, on_web=state["web"])
    selected = passages[:_MAX_READ]
    from_ledger = bool(passages) and LEDGER_LEG in passages[0].ranks
    reading, reading_notes = Reading(), list[NoticeRecord]()
    if selected:
        reading, reading_notes = await model_or_rules(
            time_left(run), model, rules, lambda one: one.read(task, selected)
        )
    finished: StepRecord = {
        "id": current["id"],
        "status": "done" if selected else "empty",
        "query": query.text,
        "leg": "ledger" if from_ledger else query.method,
        "reason": "" if from_ledger else query.reason,
        "summary": reading.summary,
        "kept": [{"url_hash": one.url_hash, "url": one.url, "title": one.title} for one in selected],
        "by_rules": model is None or bool(notes or reading_notes),
    }
    update = {
        "plan": [finished],
        "ledger": _ledger_entries(current["id"], passages, reading, source),
        "past": [PastStep(step=current["id"], summary=reading.summary, met=list(reading.met))],
        "met": list(reading.met),
        "searches": 0 if from_ledger else 1,
        "notes": [*notes, *web_notes, *reading_notes],
    }
    detail = {key: finished[key] for key in ("query", "leg", "reason", "summary")}
    decision = f"step_{finished['status']}"
    return update, step_note(decision, sub_question=sub_question.text, passages=len(passages), **detail)


async def _find(tool: Tool, query: Query, run: Run, *, on_web: bool) -> tuple[list[Passage], Tool, list[NoticeRecord]]:
    """Return the passages, their source, and a note if the library was searched instead of the web."""
    notes = [record(Notice("research_web_unset"))]
    search_web = web_search(run)
    if tool == "web" and on_web and search_web is not None:
        try:
            with span("web", "tool", query=query.text):
                results = await asyncio.to_thread(search_web, query.text)
            return list(results)[:RECALL], "web", []
        except RagError as error:
            notes = [record(error.notice)]
    passages = await asyncio.to_thread(_search, query, run)
    return passages, "library", notes if tool == "web" else []


def _search(query: Query, run: Run) -> list[Passage]:
    """Search under the query's heading, or everywhere if that finds nothing; with its leg or the run's strategy."""
    with span("retrieve", "tool", query=query.text) as search_span:
        options: dict[str, Any] = {"k": RECALL}
        options |= {"strategy": query.method} if query.method in ("keyword", "dense") else {}
        passages = list(run.cache.search(query.text, sections=[query.section], **options)) if query.section else []
        passages = passages or list(run.cache.search(query.text, **options))
        search_span.attributes.update(passages=len(passages), **options)
    return passages[:RECALL]


def _ledger_entries(
    step_id: str, passages: Sequence[Passage], reading: Reading, source: Tool
) -> dict[str, LedgerEntry]:
    sentences: dict[int, list[str]] = {}
    for place, sentence in reading.sentences:
        sentences.setdefault(place, []).append(sentence)
    return {
        passage.id: {
            "passage": asdict(passage),
            "ranks": {step_id: place},
            "distilled": sentences.get(place, []),
            "source": "web" if passage.fetched_at else source,
            "fetched_at": passage.fetched_at or (now() if source == "web" else ""),
        }
        for place, passage in enumerate(passages)
    }


async def review(state: ResearchState, runtime: Running) -> Result:
    """Review the results of a round, and decide how to continue."""
    run = runtime.context
    earlier, latest = state["past"][: state["reviewed"]], state["past"][state["reviewed"] :]
    gain = len(_covered_aspects(latest) - _covered_aspects(earlier))
    gains = [*state["gain"], gain]
    update: dict[str, Any] = {"gain": gains, "reviewed": len(state["past"]), "spent": usage(run)}
    is_done = _is_done(state, run)
    stop = "" if is_done else _end_reason(state, run) or stagnation(state, gains, [one["step"] for one in latest], run)
    if stop:
        return {**update, "stop": record(Notice(f"research_{stop}"))}, step_note("stopped", reason=stop, gain=gain)
    choice, by, notes = await _decide(state, run)
    decision = {"action": choice.action, "justification": choice.justification, "by": by}
    update |= {"decisions": [*state["decisions"], decision], "notes": notes}
    asked = {unique_terms(step[key]) for step in state["plan"] for key in ("sub_question", "query") if step.get(key)}
    new = [step for step in choice.steps if choice.action == "revise" and unique_terms(step.text) not in asked]
    # Rules nearly always find another name to follow, so they first search the web for what the library lacks.
    if (run.chat is None or not new) and not _open_steps(state["plan"]) and _should_search_web(state, run):
        new = [_web_question(state, "research_to_web")]
    if new:
        update |= {"plan": _number_steps(new, state["plan"], "revision"), "revisions": state["revisions"] + 1}
        _stream_plan(runtime, update["plan"])
    elif (choice.action == "finish" or not _open_steps(state["plan"])) and not await _has_new_steps(state, run):
        code = "complete" if _is_covered(state, run) else "plan_done"
        update["stop"] = record(Notice(f"research_{code}"))
    return update, step_note(f"chose_{choice.action}", justification=choice.justification, gain=gain)


def _is_done(state: ResearchState, run: Run) -> bool:
    """Return whether no step is open, and all aspects are covered or an earlier report's passages answer all steps."""
    relevant = [step for step in state["plan"] if step["status"] != "skipped"]
    from_ledger = all(step.get("leg") == "ledger" for step in relevant)
    return not _open_steps(state["plan"]) and (_is_covered(state, run) or from_ledger)


def _is_covered(state: ResearchState, run: Run) -> bool:
    """Return whether a model finds all aspects covered; rules may always find another name to follow."""
    return run.chat is not None and len(state["met"]) == len(state["aspects"])


async def _has_new_steps(state: ResearchState, run: Run) -> bool:
    """Return whether the user has added steps that the next dispatch will include."""
    changes = await asyncio.to_thread(run.changes)
    existing = {step["id"] for step in state["plan"]}
    return any(step["id"] not in existing for step in _open_steps(apply_changes(state["plan"], changes)))


def _web_question(state: ResearchState, why: str) -> SubQuestion:
    question = question_of(state)
    return SubQuestion(question, say(Notice(why), question_language(question)), "web")


def _should_search_web(state: ResearchState, run: Run) -> bool:
    """Return whether to search the web, once and if allowed, because the library seems to lack the answer."""
    searched = any(step["tool"] == "web" for step in state["plan"])
    refused = run.options.web == "ask" and state["web"] == "no"
    return web_search(run) is not None and not (searched or refused) and run.cache.answerable() < CAVEAT_THRESHOLD


async def _decide(state: ResearchState, run: Run) -> tuple[NextAction, str, list[NoticeRecord]]:
    model, rules = researchers(run)
    web_steps = [step for step in state["plan"] if step["tool"] == "web" and step["status"] == "done"]
    is_web_searched = any(step["by"] == "revision" for step in web_steps) or (
        web_steps and run.cache.answerable() < CAVEAT_THRESHOLD
    )
    if _is_done(state, run) or (model is None and is_web_searched):  # rules then follow no more names
        return NextAction("finish"), "rules", []
    finished = [step for step in state["plan"] if step["status"] in ("done", "empty")]
    progress = Progress(
        question_of(state),
        tuple(step.get("query") or step["sub_question"] for step in finished),
        tuple(tuple(step_passages(state, step["id"])) for step in finished),
        tuple(step["summary"] for step in finished if step.get("summary")),
        tuple(aspect for aspect in _aspects_of(state["aspects"]) if aspect.id not in set(state["met"])),
        tuple(step["sub_question"] for step in _open_steps(state["plan"])),
    )
    revisions = max(0, _MAX_REVISIONS - state["revisions"]) if model else _MAX_ROUNDS
    with run.budget.reserve(CALLS_RESERVED):
        choice, notes = await model_or_rules(
            time_left(run), model, rules, lambda one: one.decide(progress, revisions=revisions)
        )
    return choice, "rules" if model is None or notes else "model", notes


def _open_steps(steps: Sequence[StepRecord]) -> list[StepRecord]:
    return [step for step in steps if step["status"] == "open"]


def _number_steps(steps: Sequence[SubQuestion], before: Sequence[StepRecord], by: StepBy) -> list[StepRecord]:
    """Return the steps as records, with ids that continue those of `before`."""
    ids = [f"s{number}" for number, _ in enumerate(steps, len(before) + 1)]
    return [open_step(own, step, [ids[n - 1] for n in step.needs], by) for own, step in zip(ids, steps, strict=True)]


def _aspects_of(records: Sequence[Mapping[str, Any]]) -> tuple[Aspect, ...]:
    return tuple(Aspect(one["id"], one["text"]) for one in records)


def _stream_plan(runtime: Running, steps: Sequence[StepRecord]) -> None:
    """Stream the steps and the run's usage, for display."""
    run = runtime.context
    runtime.stream_writer({"plan": {"steps": list(steps), **usage_fields(run, deadline(run))}})


def _end_reason(state: ResearchState, run: Run) -> str:
    """Return why no more steps may start, or ""."""
    limit = limit_reached(run, searches_left(run, state["searches"], MAX_SEARCHES))
    return limit or ("budget_rounds" if state["round"] >= _MAX_ROUNDS else "")


def stagnation(state: ResearchState, gains: Sequence[int], round_: Sequence[str], run: Run) -> str:
    """Return "stagnant" after two rounds without newly covered aspects, or one that found only known passages; else "".

    Doesn't apply to rules: they follow names that no aspect mentions, and end when there are no new ones.
    """
    if run.chat is None:
        return ""
    without_gain = len(gains) >= _STAGNANT_ROUNDS and not any(gains[-_STAGNANT_ROUNDS:])
    nothing_new = bool(round_) and all(_found_before(state, step, round_) for step in round_)
    return "stagnant" if without_gain or nothing_new else ""


def _found_before(state: ResearchState, step_id: str, round_: Sequence[str]) -> bool:
    first = [entry for entry in state["ledger"].values() if entry["ranks"].get(step_id, _TOP) < _TOP]
    repeated = [entry for entry in first if entry["ranks"].keys() - set(round_)]
    return bool(first) and len(repeated) >= _KNOWN_SHARE * len(first)


def _covered_aspects(past: Sequence[PastStep]) -> set[str]:
    return {aspect for past_step in past for aspect in past_step["met"]}
