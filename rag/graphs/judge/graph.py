"""The judge graph: its steps and those of a level, the context of a run, and the recovery of an interrupted one.

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
from langgraph.runtime import Runtime
from langgraph.types import Overwrite, Send

from rag.checking.citations import CheckedText, check_with
from rag.checking.statements import declines
from rag.errors import ModelError, RagError
from rag.graphs.common import (
    CALLS_RESERVED,
    Result,
    check_question,
    check_quotes,
    check_text_so_far,
    limit_reached,
    model_or_rules,
    prepare_graph,
    question_of,
    require_quoter,
    rules_notice,
    searches_left,
    start_turn,
    time_left,
    trace_step,
    usage,
    usage_fields,
    write_or_quote,
)
from rag.graphs.judge.tree import (
    JudgeInput,
    JudgementRecord,
    LevelOutput,
    LevelState,
    NodeRecord,
    Status,
    TreeContext,
    TreeState,
    blank_state,
    branch,
    find_answers,
    grow,
    next_levels,
    rows_of,
)
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.hops import interleave, select_fitting
from rag.reasoning.judge import ChatJudge, Judgement, RuleJudge
from rag.retrieval.context import CAVEAT_THRESHOLD, REFUSAL_THRESHOLD, is_touching
from rag.runs.run import PreparedGraph, Run, end_update, passage_of, record, step_note
from rag.store.sql.conversation_table import Change
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

Running = Runtime[TreeContext]


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
    context = runtime.context
    changes = await asyncio.to_thread(context.changes)
    stop = _stop_reason(state, context, changes)
    nodes: Sequence[NodeRecord] = state["nodes"]
    if not stop:
        nodes = await asyncio.to_thread(grow, nodes, context.limits, partial(_find_equivalent, context))
    levels = [] if stop else next_levels(nodes, context.options.tree_order, _free_slots(state, context))
    level_ids = {node["id"] for node in levels}
    status: Status = "open" if levels else "cut"
    nodes = [
        {**node, "status": "running" if node["id"] in level_ids else status} if node["status"] == "open" else node
        for node in nodes
    ]
    update: dict[str, Any] = {"nodes": Overwrite(nodes), "spent": usage(context)}
    if not levels:
        code = stop or ("complete" if "n1" in find_answers(nodes) else "all_asked")
        update["stop"] = record(Notice(f"judge_{code}"))
    _stream_tree(runtime, nodes, state)
    return update, step_note(
        "picked", steps=[node["question"] for node in levels], **({"reason": stop} if stop else {})
    )


def _stop_reason(state: TreeState, context: TreeContext, changes: Sequence[Change]) -> str:
    """Return why no more levels may start, or "". Verdicts by rules are too uncertain to end the search."""
    if context.model is not None and "n1" in find_answers(state["nodes"]):
        return "complete"
    if any(one.kind == "finish" for one in changes):
        return "stopped_by_person"
    return limit_reached(context, _searches_left(state, context))


def _free_slots(state: TreeState, context: TreeContext) -> int:
    """Return how many levels may start in parallel with the remaining searches and calls."""
    limit = min(context.limits.max_parallel, _searches_left(state, context))
    if context.model is None:
        return limit
    return min(limit, max(1, (context.budget.remaining - CALLS_RESERVED) // _calls_per_level(context)))


def _calls_per_level(context: TreeContext) -> int:
    return context.limits.judged if context.options.judge_each else 1


def _find_equivalent(context: TreeContext, question: str, others: Sequence[str]) -> int:
    """Return the index of the question with the same words or nearly the same meaning; -1 for none."""
    words = unique_terms(question)
    for place, other in enumerate(others):
        if unique_terms(other) == words:
            return place
    if context.vector is None or not others:
        return -1
    try:
        own = context.vector(question)
        cosines = [float(own @ context.vector(other)) for other in others]
    except ModelError:  # the embedding service is unavailable
        return -1
    best = max(range(len(cosines)), key=cosines.__getitem__)
    return best if cosines[best] >= _MIN_EQUIVALENT_COSINE else -1


def _stream_tree(runtime: Running, nodes: Sequence[NodeRecord], state: TreeState) -> None:
    """Stream the tree and the run's usage, for display."""
    rows = list(rows_of("", nodes, state["ledger"]))
    context = runtime.context
    runtime.stream_writer({"tree": {"rows": rows, **usage_fields(context, context.limits.seconds)}})


def _searches_left(state: TreeState, context: TreeContext) -> int:
    nodes_left = max(0, context.limits.nodes - state["searches"])
    return min(searches_left(context, state["searches"], context.limits.nodes), nodes_left)


async def search(state: LevelState, runtime: Running) -> Result:
    """Search for the question. A failure is recorded, and doesn't affect other branches."""
    context, node, began = runtime.context, state["node"], time.perf_counter()
    try:
        results = await asyncio.to_thread(_find, node["question"], context)
    except RagError as error:
        failure: NodeRecord = {**node, "status": "failed", "failure": record(error.notice)}
        return {"node": failure, "searches": 1, "passages": []}, step_note("step_failed", reason=error.code)
    records = {result.id: asdict(result) for result in results}
    update = {
        "node": {**node, "found": list(records)},
        "ledger": records,
        "searches": 1,
        "passages": list(records.values())[: context.limits.judged],
        "ms": 1000 * (time.perf_counter() - began),
    }
    return update, step_note("found", queries=[node["question"]], passages=len(records))


def _find(question: str, context: TreeContext) -> Sequence[Passage]:
    limit = context.limits.recall
    with span("retrieve", "tool", query=question):
        return list(context.search(question, k=limit))[:limit]


async def judge(state: JudgeInput, runtime: Running) -> Result:
    """Judge the passages; rules do without a model or if it fails."""
    context, began = runtime.context, time.perf_counter()
    question, whole = state["node"]["question"], state["whole"]
    passages = [passage_of(data) for data in state["passages"]]
    model = partial(context.model.judge, question, whole, passages) if context.model else None
    before = context.budget.used
    with context.budget.share(state["allowed"]):
        judgements, notes = await model_or_rules(
            time_left(context), model, partial(context.rules.judge, question, whole, passages)
        )
    by: Literal["model", "rules"] = "rules" if model is None or notes else "model"
    verdicts = [_record(judgement, passage, by) for judgement, passage in zip(judgements, passages, strict=True)]
    ms = 1000 * (time.perf_counter() - began)
    update = {"verdicts": verdicts, "notes": notes, "ms": ms, "calls": min(1, context.budget.used - before)}
    scores = [verdict["score"] for verdict in verdicts]
    return update, step_note("judged", query=question, scores=scores, by=by)


def _record(judgement: Judgement, passage: Passage, by: Literal["model", "rules"]) -> JudgementRecord:
    return {**asdict(judgement), "passage": passage.id, "by": by}  # type: ignore[typeddict-item]


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


def _passages_of_tree(state: TreeState, context: TreeContext) -> list[Passage]:
    """Return the passages for the answer: those on the path to it, if a model judged, then those of the levels,
    interleaved, up to a number of characters."""
    ledger = {key: passage_of(data) for key, data in state["ledger"].items()}
    steps = find_answers(state["nodes"]).get("n1", []) if context.model else []
    path = [ledger[one["passage"]] for _, one in steps if one["passage"] in ledger]
    searches = [[ledger[key] for key in node["found"]] for node in state["nodes"] if node.get("found")]
    limits = context.limits
    limit = limits.characters if context.model is None else min(limits.characters, 2 * context.options.context_tokens)
    return select_fitting(interleave([path, *searches], keep=len(path)) if path else interleave(searches), limit)


async def write(state: TreeState, runtime: Running) -> Result:
    """Write the answer from the results so far, whatever ended the search."""
    context = runtime.context
    passages = await asyncio.to_thread(_passages_of_tree, state, context)
    update: dict[str, Any] = {"passages": [asdict(passage) for passage in passages]}
    runtime.stream_writer(update)
    before = get_config()["configurable"].get("checkpoint_map") or {}
    update["checkpoint"] = before.get("", "")  # with the tree in its current state
    likely, root = context.answerable(), state["nodes"][0]
    if not passages and root["status"] == "failed":
        return {**update, "outcome": "failed", "notice": root["failure"]}, step_note("failed")
    if not passages:
        return {**update, **end_update("not_in_pages", Notice("nothing_found"))}, step_note("nothing_found", passages=0)
    judged = _scores(state)
    is_off_topic = not any(judged) if context.model else likely < REFUSAL_THRESHOLD and 2 not in judged
    if is_off_topic:
        return {**update, **end_update("not_in_pages", Notice("not_in_pages"))}, step_note(
            "not_in_pages", answerable=likely
        )
    by_model = context.reasoner.answer(question_of(state), passages) if context.model else None
    text, problem = await write_or_quote(by_model, _stream_quotes(state, passages, context), runtime)
    verifiers = () if problem else context.verifiers
    check = (await check_with(text, passages, verifiers, question_of(state), context.options.context_tokens)).result()
    end = _end_state(state, check, passages, context, problem)
    update |= end | check.plain()
    if check.text:
        update["messages"] = [AIMessage(check.text)]
    return update, step_note(str(end["outcome"]), passages=len(passages), citations=len(check.citations))


def _scores(state: TreeState) -> list[int]:
    return [judgement["score"] for node in state["nodes"] for judgement in node.get("judgements", ())]


def _stream_quotes(state: TreeState, passages: Sequence[Passage], context: TreeContext) -> AsyncIterator[str]:
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
    return context.rules.answer(list(parts.items()) or [(question_of(state), all_numbers)], passages)


def _end_state(
    state: TreeState, check: CheckedText, passages: Sequence[Passage], context: TreeContext, problem: Notice | None
) -> dict[str, Any]:
    """Return the outcome, with a notice unless it is "answered"."""
    text, stop = check.text, state["stop"]
    if not text.strip() or (not check.citations and declines(text)):
        return end_update("not_in_pages", Notice("not_in_pages"))
    names = context.rules.quoter.find_missing_names(question_of(state), passages) if context.model is None else []
    notice: Notice | None = None
    if problem:
        notice = problem
    elif not check.citations:
        notice = Notice("no_citations")
    elif names:
        notice = Notice("not_named", {"names": " · ".join(names)})
    elif stop and stop["code"] in _LIMIT_CODES:
        return {"outcome": "caveat", "notice": stop}
    elif "n1" not in find_answers(state["nodes"]) and (context.model is not None or not any(_scores(state))):
        notice = Notice("judge_incomplete")
    elif context.model is None and context.answerable() < CAVEAT_THRESHOLD:
        notice = Notice("in_doubt")
    else:
        notice = rules_notice(state["notes"])
    return end_update("caveat", notice) if notice else {"outcome": "answered"}


async def _quote_tree(state: TreeState, context: TreeContext) -> dict[str, Any]:
    """Return an answer of quotes from the results of an interrupted run."""
    passages = await asyncio.to_thread(_passages_of_tree, state, context)
    return await check_quotes(_stream_quotes(state, passages, context), passages)


@cache
def graph_of(saver: Any) -> Any:
    """Build enter → pick → parallel levels → pick …, then write. A level is a subgraph; `saver` stores checkpoints."""
    builder = StateGraph(TreeState, context_schema=TreeContext)
    builder.add_node("enter", trace_step("enter", enter))
    builder.add_node("pick", trace_step("pick", pick))
    builder.add_node("level", _build_level())
    builder.add_node("write", trace_step("write", write))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["pick", END])
    builder.add_conditional_edges("pick", _after_pick, ["level", "write"])
    builder.add_edge("level", "pick")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver).with_config(recursion_limit=_RECURSION_LIMIT)


def _build_level() -> Any:
    """Build search → judge, all passages at once or each in its own request → close. It is a node of the tree."""
    builder = StateGraph(LevelState, context_schema=TreeContext, output_schema=LevelOutput)
    builder.add_node("search", trace_step("search", search))
    builder.add_node("judge", trace_step("judge", judge), input_schema=JudgeInput)
    builder.add_node("close", trace_step("close", close))
    builder.add_edge(START, "search")
    builder.add_conditional_edges("search", _after_search, ["judge", "close"])
    builder.add_edge("judge", "close")
    builder.add_edge("close", END)
    return builder.compile()


def _after_enter(state: TreeState) -> Literal["pick", "__end__"]:
    return "__end__" if state["outcome"] else "pick"


def _after_pick(state: TreeState, runtime: Running) -> list[Send] | Literal["write"]:
    """Send each level a share of the remaining calls, so that it can't use up those of other levels or the answer."""
    running = [node for node in state["nodes"] if node["status"] == "running"]
    if not running or state["stop"]:
        return "write"
    context = runtime.context
    share = max(0, context.budget.remaining - CALLS_RESERVED) // len(running)
    limit = _CALLS_PER_JUDGEMENT * _calls_per_level(context)
    return [Send("level", LevelState(node=one, whole=question_of(state), allowed=min(limit, share))) for one in running]


def _after_search(state: LevelState, runtime: Running) -> list[Send] | Literal["close"]:
    passages = state["passages"]
    one_by_one = runtime.context.options.judge_each and runtime.context.model is not None
    parts = [[passage] for passage in passages] if one_by_one else [passages] if passages else []
    share = state["allowed"] // max(1, len(parts))
    return [
        Send("judge", JudgeInput(node=state["node"], whole=state["whole"], allowed=share, passages=part))
        for part in parts
    ] or "close"


async def prepare(run: Run) -> PreparedGraph:
    """Return the graph with its input. Raises RagError("tree_unknown") if the earlier tree is no longer stored."""
    return await prepare_graph(run, graph_of, _context, partial(_earlier_tree, run))


async def _earlier_tree(run: Run, graph: Any) -> dict[str, Any]:
    """Return the earlier tree with the user's changes, and its ledger, as `begun`; empty without one."""
    change = run.question.options.branch
    if not change:
        return {"begun": {}}
    config = {"thread_id": run.thread, "checkpoint_id": change["checkpoint"]}
    snapshot = await graph.aget_state({"configurable": config}) if run.thread and change["checkpoint"] else None
    if snapshot is None or not snapshot.values.get("nodes"):
        raise RagError("tree_unknown")
    return {"begun": {"nodes": branch(snapshot.values["nodes"], change), "ledger": snapshot.values["ledger"]}}


def _context(run: Run) -> TreeContext:
    cache, reasoner = run.cache, run.reasoner
    return TreeContext(
        search=cache.search,
        rules=RuleJudge(require_quoter(run)),
        budget=run.budget,
        seconds=run.seconds,
        changes=run.changes,
        reasoner=reasoner,
        model=ChatJudge(reasoner) if isinstance(reasoner, ChatReasoner) else None,
        vector=cache.retriever.vector,
        answerable=cache.answerable,
        condenser=run.condenser,
        verifiers=run.verifiers,
        options=run.question.options,
    )


async def rescue(run: Run) -> dict[str, Any]:
    """Return the last state of an interrupted run, with its text so far, or quotes from the results of its levels."""
    state: Any = run.state
    if result := await check_text_so_far(run):
        return {**state, **result}
    return {**state, **await _quote_tree(state, _context(run))} if state.get("ledger") else run.state


def trail(run: Run) -> dict[str, Any]:
    """Return the data stored with the answer: the tree as rows, why it ended, and the id of its checkpoint."""
    state = run.state
    rows = list(rows_of(run.id, state.get("nodes", ()), state.get("ledger", {})))
    fields = {key: state[key] for key in ("stop", "notes", "checkpoint") if state.get(key)}
    branch = run.question.options.branch
    return {"tree": rows, **fields, **({"branch": dict(branch)} if branch else {})}
