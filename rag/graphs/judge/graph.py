"""The judge graph: its steps and those of a level, and the recovery of an interrupted one.

Each step returns a state update, and its decision for the trace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from functools import cache, partial
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, Send

from rag.checking.citations import CheckedText, check_with
from rag.checking.statements import declines
from rag.errors import ModelError, RagError
from rag.graphs.common import (
    CALLS_RESERVED,
    MAX_CHARACTERS,
    MAX_PARALLEL,
    RECALL,
    STEP_SECONDS,
    Result,
    Running,
    add_steps,
    check_question,
    check_quotes,
    end_without_answer,
    limit_reached,
    model_or_rules,
    question_of,
    require_quoter,
    rules_notice,
    searches_left,
    start_turn,
    time_left,
    trace_step,
    unless_ended,
    usage,
    usage_fields,
    write_or_quote,
)
from rag.graphs.judge.tree import (
    MAX_NODES,
    JudgeInput,
    LevelOutput,
    LevelState,
    NodeRecord,
    Status,
    TreeState,
    blank_state,
    branch,
    find_answers,
    grow,
    next_levels,
    rows_of,
)
from rag.reasoning.hops import interleave, select_fitting
from rag.reasoning.judge import MAX_JUDGED, ChatJudge, RuleJudge
from rag.retrieval.context import CAVEAT_THRESHOLD, REFUSAL_THRESHOLD, is_touching
from rag.runs.run import Run, end_update, passage_of, record, step_note
from rag.text import unique_terms
from rag.tracing import span
from rag.types import Notice, Passage

_MIN_EQUIVALENT_COSINE: Final = 0.97
"""Minimum cosine similarity of equivalent questions. At 0.92, one in forty MuSiQue questions matched one of its own
sub-questions, as "when" and "where" about the same thing do; from 0.97, none did."""

_CALLS_PER_JUDGEMENT: Final = 2
"""A reply in the wrong format is retried once."""
_NAMESPACE_SEPARATOR: Final = "|"

_LIMIT_CODES: Final = frozenset(
    {"judge_budget_calls", "judge_budget_tokens", "judge_budget_seconds", "judge_stopped_by_person"}
)
_RECURSION_LIMIT = 40  # twelve nodes, one after another, take two steps each


async def enter(state: TreeState, runtime: Running) -> Result:
    """Start a question with only the conversation of the earlier state, or continue an earlier tree."""
    earlier = state.get("begun") or {}
    update = blank_state(state["question"].strip(), earlier)
    if end := check_question(update):
        return end
    update, detail = await start_turn(update, {} if earlier else state, runtime, CALLS_RESERVED)
    root, *others = update["nodes"].value
    return {
        **update,
        "nodes": Overwrite([{**root, "question": root["question"] or question_of(update)}, *others]),
    }, detail


async def pick(state: TreeState, runtime: Running) -> Result:
    """Turn the gaps of passages into questions, and select the levels to start; none if the question is answered."""
    run = runtime.context
    changes = await asyncio.to_thread(run.changes)
    nodes: Sequence[NodeRecord] = state["nodes"]
    stop = limit_reached(run, _searches_left(state, run))
    if run.chat is not None and "n1" in find_answers(nodes):  # verdicts by rules are too uncertain to end the search
        stop = "complete"
    elif any(one.kind == "finish" for one in changes):
        stop = "stopped_by_person"
    if not stop:
        nodes = await asyncio.to_thread(grow, nodes, partial(_find_equivalent, run))
    slots = min(MAX_PARALLEL, _searches_left(state, run))
    if run.chat is not None:
        slots = min(slots, max(1, (run.budget.remaining - CALLS_RESERVED) // _calls_per_level(run)))
    levels = [] if stop else next_levels(nodes, run.options.tree_order, slots)
    level_ids = {node["id"] for node in levels}
    status: Status = "open" if levels else "cut"
    nodes = [
        {**node, "status": "running" if node["id"] in level_ids else status} if node["status"] == "open" else node
        for node in nodes
    ]
    update: dict[str, Any] = {"nodes": Overwrite(nodes), "spent": usage(run)}
    if not levels:
        code = stop or ("complete" if "n1" in find_answers(nodes) else "all_asked")
        update["stop"] = record(Notice(f"judge_{code}"))
    rows = list(rows_of("", nodes, state["ledger"]))
    runtime.stream_writer({"tree": {"rows": rows, **usage_fields(run, STEP_SECONDS)}})
    reason = {"reason": stop} if stop else {}
    return update, step_note("picked", steps=[node["question"] for node in levels], **reason)


def _calls_per_level(run: Run) -> int:
    return MAX_JUDGED if run.options.judge_each else 1


def _find_equivalent(run: Run, question: str, others: Sequence[str]) -> int:
    """Return the index of the question with the same words or nearly the same meaning; -1 for none."""
    words = unique_terms(question)
    for place, other in enumerate(others):
        if unique_terms(other) == words:
            return place
    if not others:
        return -1
    vector = run.cache.retriever.vector
    try:
        own = vector(question)
        cosines = [float(own @ vector(other)) for other in others]
    except ModelError:  # the embedding service is unavailable
        return -1
    best = max(range(len(cosines)), key=cosines.__getitem__)
    return best if cosines[best] >= _MIN_EQUIVALENT_COSINE else -1


def _searches_left(state: TreeState, run: Run) -> int:
    nodes_left = max(0, MAX_NODES - state["searches"])
    return min(searches_left(run, state["searches"], MAX_NODES), nodes_left)


async def search(state: LevelState, runtime: Running) -> Result:
    """Search for the question. A failure is recorded, and doesn't affect other branches."""
    run, node, began = runtime.context, state["node"], time.perf_counter()
    try:
        results = await asyncio.to_thread(_find, node["question"], run)
    except RagError as error:
        failure: NodeRecord = {**node, "status": "failed", "failure": record(error.notice)}
        return {"node": failure, "searches": 1, "passages": []}, step_note("step_failed", reason=error.code)
    records = {result.id: asdict(result) for result in results}
    update = {
        "node": {**node, "found": list(records)},
        "ledger": records,
        "searches": 1,
        "passages": list(records.values())[:MAX_JUDGED],
        "ms": 1000 * (time.perf_counter() - began),
    }
    return update, step_note("found", queries=[node["question"]], passages=len(records))


def _find(question: str, run: Run) -> Sequence[Passage]:
    with span("retrieve", "tool", query=question):
        return list(run.cache.search(question, k=RECALL))[:RECALL]


async def judge(state: JudgeInput, runtime: Running) -> Result:
    """Judge the passages; rules do without a model or if it fails."""
    run, began = runtime.context, time.perf_counter()
    question, whole = state["node"]["question"], state["whole"]
    passages = [passage_of(data) for data in state["passages"]]
    model, rules = ChatJudge(run.chat) if run.chat else None, RuleJudge(require_quoter(run))
    before = run.budget.used
    with run.budget.share(state["allowed"]):
        judgements, notes = await model_or_rules(
            time_left(run), model, rules, lambda judge: judge.judge(question, whole, passages)
        )
    by = "rules" if model is None or notes else "model"
    judged = zip(judgements, passages, strict=True)
    verdicts = [{**asdict(judgement), "passage": passage.id, "by": by} for judgement, passage in judged]
    ms = 1000 * (time.perf_counter() - began)
    update = {"verdicts": verdicts, "notes": notes, "ms": ms, "calls": min(1, run.budget.used - before)}
    scores = [verdict["score"] for verdict in verdicts]
    return update, step_note("judged", query=question, scores=scores, by=by)


async def close(state: LevelState, _: Running) -> Result:
    """Return the finished level, with its verdicts in passage order and the namespace of its checkpoint."""
    node = state["node"]
    places = {key: place for place, key in enumerate(node.get("found", ()))}
    finished: NodeRecord = {
        **node,
        "judgements": sorted(state.get("verdicts", []), key=lambda one: places[one["passage"]]),
        "status": "failed" if node["status"] == "failed" else "done",
        "checkpoint": str(get_config()["configurable"].get("checkpoint_ns", "")).rpartition(_NAMESPACE_SEPARATOR)[0],
        "calls": state.get("calls", 0),
        "ms": round(state.get("ms", 0.0), 1),
    }
    return {"nodes": [finished]}, step_note("closed", query=node["question"])


def _passages_of_tree(state: TreeState, run: Run) -> list[Passage]:
    """Return the passages for the answer: those on the path to it, if a model judged, then those of the levels,
    interleaved, up to a number of characters."""
    ledger = {key: passage_of(data) for key, data in state["ledger"].items()}
    steps = find_answers(state["nodes"]).get("n1", []) if run.chat else []
    path = [ledger[one["passage"]] for _, one in steps if one["passage"] in ledger]
    searches = [[ledger[key] for key in node["found"]] for node in state["nodes"] if node.get("found")]
    limit = MAX_CHARACTERS if run.chat is None else min(MAX_CHARACTERS, 2 * run.options.context_tokens)
    return select_fitting(interleave([path, *searches], keep=len(path)) if path else interleave(searches), limit)


async def write(state: TreeState, runtime: Running) -> Result:
    """Write the answer from the results so far, whatever ended the search."""
    run = runtime.context
    passages = await asyncio.to_thread(_passages_of_tree, state, run)
    update: dict[str, Any] = {"passages": [asdict(passage) for passage in passages]}
    runtime.stream_writer(update)
    before = get_config()["configurable"].get("checkpoint_map") or {}
    update["checkpoint"] = before.get("", "")  # with the tree in its current state
    likely, root = run.cache.answerable(), state["nodes"][0]
    if not passages and root["status"] == "failed":
        return {**update, "outcome": "failed", "notice": root["failure"]}, step_note("failed")
    if not passages:
        return end_without_answer(update, await asyncio.to_thread(run.cache.nothing_found), passages=0)
    judged = _scores(state)
    is_off_topic = not any(judged) if run.chat else likely < REFUSAL_THRESHOLD and 2 not in judged
    if is_off_topic:
        return end_without_answer(update, Notice("not_in_pages"), answerable=likely)
    by_model = run.reasoner.answer(question_of(state), passages) if run.chat else None
    text, problem = await write_or_quote(by_model, _stream_quotes(state, passages, run), runtime)
    verifiers = () if problem else run.verifiers
    check = (await check_with(text, passages, verifiers, question_of(state), run.options.context_tokens)).result()
    end = _end_state(state, check, passages, run, problem)
    update |= end | check.plain()
    if check.text:
        update["messages"] = [AIMessage(check.text)]
    return update, step_note(str(end["outcome"]), passages=len(passages), citations=len(check.citations))


def _scores(state: TreeState) -> list[int]:
    return [judgement["score"] for node in state["nodes"] for judgement in node.get("judgements", ())]


def _stream_quotes(state: TreeState, passages: Sequence[Passage], run: Run) -> AsyncIterator[str]:
    """Return a stream of quotes: for each question on the path to the answer, or for the whole one without a path."""
    nodes = {node["id"]: node for node in state["nodes"]}
    ledger = {key: passage_of(cited) for key, cited in state["ledger"].items()}
    parts: dict[str, list[int]] = {}
    for at, one in find_answers(state["nodes"]).get("n1", []):
        cited = ledger.get(one["passage"])
        number = next((n for n, passage in enumerate(passages, 1) if cited and is_touching(passage, cited)), 0)
        if number:
            parts.setdefault(nodes[at]["question"], []).append(number)
    all_numbers = list(range(1, len(passages) + 1))
    return RuleJudge(require_quoter(run)).answer(list(parts.items()) or [(question_of(state), all_numbers)], passages)


def _end_state(
    state: TreeState, check: CheckedText, passages: Sequence[Passage], run: Run, problem: Notice | None
) -> dict[str, Any]:
    """Return the outcome, with a notice unless it is "answered"."""
    text, stop = check.text, state["stop"]
    if not text.strip() or (not check.citations and declines(text)):
        return end_update("not_in_pages", Notice("not_in_pages"))
    names = require_quoter(run).find_missing_names(question_of(state), passages) if run.chat is None else []
    notice: Notice | None = None
    if problem:
        notice = problem
    elif not check.citations:
        notice = Notice("no_citations")
    elif names:
        notice = Notice("not_named", {"names": " · ".join(names)})
    elif stop and stop["code"] in _LIMIT_CODES:
        return {"outcome": "caveat", "notice": stop}
    elif "n1" not in find_answers(state["nodes"]) and (run.chat is not None or not any(_scores(state))):
        notice = Notice("judge_incomplete")
    elif run.chat is None and run.cache.answerable() < CAVEAT_THRESHOLD:
        notice = Notice("in_doubt")
    else:
        notice = rules_notice(state["notes"])
    return end_update("caveat", notice) if notice else {"outcome": "answered"}


@cache
def graph_of(saver: Any) -> Any:
    """Build enter → pick → parallel levels → pick …, then write. A level is a subgraph; `saver` stores checkpoints."""
    builder = StateGraph(TreeState, context_schema=Run)
    add_steps(builder, enter, pick, write)
    builder.add_node("level", _build_level())
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", unless_ended("pick"), ["pick", END])
    builder.add_conditional_edges("pick", _after_pick, ["level", "write"])
    builder.add_edge("level", "pick")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver).with_config(recursion_limit=_RECURSION_LIMIT)


def _build_level() -> Any:
    """Build search → judge, all passages at once or each in its own request → close. It is a node of the tree."""
    builder = StateGraph(LevelState, context_schema=Run, output_schema=LevelOutput)
    add_steps(builder, search, close)
    builder.add_node("judge", trace_step(judge), input_schema=JudgeInput)
    builder.add_edge(START, "search")
    builder.add_conditional_edges("search", _after_search, ["judge", "close"])
    builder.add_edge("judge", "close")
    builder.add_edge("close", END)
    return builder.compile()


def _after_pick(state: TreeState, runtime: Running) -> list[Send] | Literal["write"]:
    """Send each level a share of the remaining calls, so that it can't use up those of other levels or the answer."""
    running = [node for node in state["nodes"] if node["status"] == "running"]
    if not running or state["stop"]:
        return "write"
    run = runtime.context
    share = max(0, run.budget.remaining - CALLS_RESERVED) // len(running)
    limit = _CALLS_PER_JUDGEMENT * _calls_per_level(run)
    return [Send("level", LevelState(node=one, whole=question_of(state), allowed=min(limit, share))) for one in running]


def _after_search(state: LevelState, runtime: Running) -> list[Send] | Literal["close"]:
    passages = state["passages"]
    one_by_one = runtime.context.options.judge_each and runtime.context.chat is not None
    parts = [[passage] for passage in passages] if one_by_one else [passages] if passages else []
    share = state["allowed"] // max(1, len(parts))
    return [
        Send("judge", JudgeInput(node=state["node"], whole=state["whole"], allowed=share, passages=part))
        for part in parts
    ] or "close"


async def extra_input(run: Run, graph: Any) -> dict[str, Any]:
    """Return the earlier tree with the user's changes, and its ledger, as `begun`; empty without one.

    Raises RagError("tree_unknown") if it is no longer stored.
    """
    change = run.question.options.branch
    if not change:
        return {"begun": {}}
    config = {"thread_id": run.thread, "checkpoint_id": change["checkpoint"]}
    snapshot = await graph.aget_state({"configurable": config}) if run.thread and change["checkpoint"] else None
    if snapshot is None or not snapshot.values.get("nodes"):
        raise RagError("tree_unknown")
    return {"begun": {"nodes": branch(snapshot.values["nodes"], change), "ledger": snapshot.values["ledger"]}}


async def rescue(run: Run) -> dict[str, Any]:
    """Return quotes from the results of an interrupted run's levels; {} if they found nothing."""
    state: Any = run.state
    if not state.get("ledger"):
        return {}
    passages = await asyncio.to_thread(_passages_of_tree, state, run)
    return await check_quotes(_stream_quotes(state, passages, run), passages)


def trail(run: Run) -> dict[str, Any]:
    """Return the data stored with the answer: the tree as rows, why it ended, and the id of its checkpoint."""
    state = run.state
    rows = list(rows_of(run.id, state.get("nodes", ()), state.get("ledger", {})))
    fields = {key: state[key] for key in ("stop", "notes", "checkpoint") if state.get(key)}
    branch = run.question.options.branch
    return {"tree": rows, **fields, **({"branch": dict(branch)} if branch else {})}
