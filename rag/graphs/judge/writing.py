"""The answer of a tree: written level by level from the passages that answer the question, and checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from langchain_core.messages import AIMessage
from langgraph.config import get_config

from rag.checking.citations import Check, CheckedText, check_with
from rag.checking.statements import declines
from rag.graphs.common import Result, question_of, rules_notice, write_or_quote
from rag.graphs.judge.nodes import Running
from rag.graphs.judge.state import TreeContext, TreeState
from rag.graphs.judge.tree import find_answers
from rag.reasoning.hops import interleave, select_fitting
from rag.retrieval.answerable import DOUBT, REFUSE
from rag.retrieval.context import is_touching
from rag.runs.serialization import end_update, passage_of, step_note
from rag.types import Notice, Passage

_LIMIT_CODES: Final = frozenset(
    {"judge_budget_calls", "judge_budget_tokens", "judge_budget_seconds", "judge_stopped_by_person"}
)


def passages_of_tree(state: TreeState, context: TreeContext) -> list[Passage]:
    """Return the passages for the answer: first those that a model judged to answer the question, step by step; then
    those of the levels, in turns, within a number of characters."""
    ledger = {key: passage_of(data) for key, data in state["ledger"].items()}
    steps = find_answers(state["nodes"]).get("n1", []) if context.model else []
    path = [ledger[one["passage"]] for _, one in steps if one["passage"] in ledger]
    searches = [[ledger[key] for key in node["found"]] for node in state["nodes"] if node.get("found")]
    limits = context.limits
    limit = limits.characters if context.model is None else min(limits.characters, 2 * context.options.context_tokens)
    return select_fitting(interleave([path, *searches], keep=len(path)) if path else interleave(searches), limit)


async def write(state: TreeState, runtime: Running) -> Result:
    """Write from the results so far, whatever ended the search."""
    context = runtime.context
    passages = await asyncio.to_thread(passages_of_tree, state, context)
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
    is_off_topic = not any(judged) if context.model else likely < REFUSE and 2 not in judged
    if is_off_topic:
        return {**update, **end_update("not_in_pages", Notice("not_in_pages"))}, step_note(
            "not_in_pages", answerable=likely
        )
    by_model = context.reasoner.answer(question_of(state), passages) if context.model else None
    text, problem = await write_or_quote(by_model, stream_quotes(state, passages, context), runtime)
    verifiers = () if problem else context.verifiers
    check = (await check_with(text, passages, verifiers, question_of(state), context.options.context_tokens)).result()
    end = _end_state(state, check, passages, context, problem)
    update |= end | check.plain()
    if check.text:
        update["messages"] = [AIMessage(check.text)]
    return update, step_note(str(end["outcome"]), passages=len(passages), citations=len(check.citations))


def _scores(state: TreeState) -> list[int]:
    return [judgement["score"] for node in state["nodes"] for judgement in node.get("judgements", ())]


def stream_quotes(state: TreeState, passages: Sequence[Passage], context: TreeContext) -> AsyncIterator[str]:
    """Return quotes for the question, and for its gaps if answers to them were found further down."""
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
    """Return the outcome, and why it is not simply "answered"."""
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
    elif context.model is None and context.answerable() < DOUBT:
        notice = Notice("in_doubt")
    else:
        notice = rules_notice(state["notes"])
    return end_update("caveat", notice) if notice else {"outcome": "answered"}


async def quote_tree(state: TreeState, context: TreeContext) -> dict[str, Any]:
    """Return an answer of quotes from the results of an interrupted run."""
    passages = await asyncio.to_thread(passages_of_tree, state, context)
    text = "".join([piece async for piece in stream_quotes(state, passages, context)])
    result = (await asyncio.to_thread(Check, text, passages)).result()
    records = [asdict(passage) for passage in passages]
    return {**result.plain(), "passages": records, "outcome": "caveat" if result.text else "failed"}
