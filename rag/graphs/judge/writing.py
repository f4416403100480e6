"""The answer of a tree: written from what answers the question, level by level, and checked like any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from langchain_core.messages import AIMessage
from langgraph.config import get_config

from rag.checking.citations import Check, Checked, check_with
from rag.checking.statements import declines
from rag.graphs.common import Result, question_of, rules_notice, write_or_quote
from rag.graphs.judge.nodes import Running
from rag.graphs.judge.state import TreeContext, TreeState
from rag.graphs.judge.tree import answers
from rag.reasoning.hops import fitting, in_turns
from rag.retrieval.answerable import DOUBT, REFUSE
from rag.retrieval.context import touch
from rag.runs.serialization import ending, passage_of, step_note
from rag.types import Notice, Passage

_CUT: Final = frozenset(
    {"judge_budget_calls", "judge_budget_tokens", "judge_budget_seconds", "judge_stopped_by_person"}
)


def passages_of_tree(state: TreeState, context: TreeContext) -> list[Passage]:
    """What the answer is written from: by a model's verdict, what answers the question comes first, step by step; then
    what the levels found, in turns, within so many characters."""
    ledger = {key: passage_of(kept) for key, kept in state["ledger"].items()}
    steps = answers(state["nodes"]).get("n1", []) if context.model else []
    way = [ledger[one["passage"]] for _, one in steps if one["passage"] in ledger]
    searches = [[ledger[key] for key in node["found"]] for node in state["nodes"] if node.get("found")]
    limits = context.limits
    room = limits.characters if context.model is None else min(limits.characters, 2 * context.options.context_tokens)
    return fitting(in_turns([way, *searches], keep=len(way)) if way else in_turns(searches), room)


async def write(state: TreeState, runtime: Running) -> Result:
    """Write from what there is, whatever ended the search."""
    context = runtime.context
    passages = await asyncio.to_thread(passages_of_tree, state, context)
    update: dict[str, Any] = {"passages": [asdict(one) for one in passages]}
    runtime.stream_writer(update)
    before = get_config()["configurable"].get("checkpoint_map") or {}
    update["checkpoint"] = before.get("", "")  # it holds the tree as it is now
    likely, root = context.answerable(), state["nodes"][0]
    if not passages and root["status"] == "failed":
        return {**update, "outcome": "failed", "notice": root["failure"]}, step_note("failed")
    if not passages:
        return {**update, **ending("not_in_pages", Notice("nothing_found"))}, step_note("nothing_found", passages=0)
    judged = _scores(state)
    beside = not any(judged) if context.model else likely < REFUSE and 2 not in judged
    if beside:
        return {**update, **ending("not_in_pages", Notice("not_in_pages"))}, step_note(
            "not_in_pages", answerable=likely
        )
    by_model = context.reasoner.answer(question_of(state), passages) if context.model else None
    text, problem = await write_or_quote(by_model, quotes(state, passages, context), runtime)
    verifiers = () if problem else context.verifiers
    check = (await check_with(text, passages, verifiers, question_of(state), context.options.context_tokens)).result()
    how = _end(state, check, passages, context, problem)
    update |= how | check.plain()
    if check.text:
        update["messages"] = [AIMessage(check.text)]
    return update, step_note(str(how["outcome"]), passages=len(passages), citations=len(check.citations))


def _scores(state: TreeState) -> list[int]:
    return [one["score"] for node in state["nodes"] for one in node.get("judgements", ())]


def quotes(state: TreeState, passages: Sequence[Passage], context: TreeContext) -> AsyncIterator[str]:
    """Quotes for the question, and for what completes it where that was found below."""
    nodes = {node["id"]: node for node in state["nodes"]}
    ledger = {key: passage_of(kept) for key, kept in state["ledger"].items()}
    parts: dict[str, list[int]] = {}
    for at, one in answers(state["nodes"]).get("n1", []):
        kept = ledger.get(one["passage"])
        number = next((n for n, passage in enumerate(passages, 1) if kept and touch(passage, kept)), 0)
        if number:
            parts.setdefault(nodes[at]["question"], []).append(number)
    everything = list(range(1, len(passages) + 1))
    return context.rules.answer(list(parts.items()) or [(question_of(state), everything)], passages)


def _end(
    state: TreeState, check: Checked, passages: Sequence[Passage], context: TreeContext, problem: Notice | None
) -> dict[str, Any]:
    """How the question ended, and why it did not end simply well."""
    text, stop = check.text, state["stop"]
    if not text.strip() or (not check.citations and declines(text)):
        return ending("not_in_pages", Notice("not_in_pages"))
    names = context.rules.unnamed(question_of(state), passages) if context.model is None else []
    notice: Notice | None = None
    if problem:
        notice = problem
    elif not check.citations:
        notice = Notice("no_citations")
    elif names:
        notice = Notice("not_named", {"names": " · ".join(names)})
    elif stop and stop["code"] in _CUT:
        return {"outcome": "caveat", "notice": stop}
    elif "n1" not in answers(state["nodes"]) and (context.model is not None or not any(_scores(state))):
        notice = Notice("judge_incomplete")
    elif context.model is None and context.answerable() < DOUBT:
        notice = Notice("in_doubt")
    else:
        notice = rules_notice(state["notes"])
    return ending("caveat", notice) if notice else {"outcome": "answered"}


async def quote_tree(state: TreeState, context: TreeContext) -> dict[str, Any]:
    """Quotes from what the levels of a run had found that broke off."""
    passages = await asyncio.to_thread(passages_of_tree, state, context)
    text = "".join([piece async for piece in quotes(state, passages, context)])
    result = (await asyncio.to_thread(Check, text, passages)).result()
    kept = [asdict(one) for one in passages]
    return {**result.plain(), "passages": kept, "outcome": "caveat" if result.text else "failed"}
