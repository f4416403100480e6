"""The steps of the loop. Each returns what changes in the state, and what it decided, for the trace."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from rag.agent.citations import cite
from rag.agent.loop.state import (
    LoopContext,
    LoopState,
    PassageRef,
    fresh,
    record,
    reference,
)
from rag.agent.questions import is_small_talk, is_third_language, question_problem
from rag.agent.reasoner import RESET
from rag.agent.tools import Wish, call_for, read_wish, retrieve_tool, tool_node
from rag.errors import ModelError, RagError
from rag.retrieval.answerable import DOUBT, REFUSE
from rag.types import Citation, Notice, Passage

Result = tuple[LoopState, dict[str, Any]]
Emit = Callable[[dict[str, Any]], None]

MAX_PASSAGES = 10
MAX_HISTORY = 12  # messages of the conversation that a decision sees,
MAX_TURN = 2_000  # and how much of each, in characters
CALL_LIMIT: Final = "call_limit"
_SHORTENED: Final = "answer_too_long"  # the model's own limit: what it wrote is whole up to there

_DECLINES = re.compile(
    r"\b(?:do|does|did) not (?:contain|mention|hold|say|provide|include|cover|answer|specify|give)"
    r"|\b(?:don't|doesn't) (?:contain|mention|hold|say|provide|include|cover|answer|specify|give)"
    r"|\bno (?:information|answer|mention)\b|\b(?:cannot|can't|could not|unable to) (?:find|answer|be found)"
    r"|(?:没有|未|并未)(?:提到|提及|包含|涉及|说明|找到|给出|提供|相关)|无法(?:回答|找到|确定|得知)|找不到|不包含|不涉及",
    re.IGNORECASE,
)


async def enter(state: LoopState, _: Runtime[LoopContext]) -> Result:
    """Begin a question: nothing of the one before it stays but the conversation."""
    question = state["question"].strip()
    update = fresh(question, state["run_mode"])
    if problem := question_problem(question):
        return {**update, **_failed(problem)}, _decision("refused", reason=problem.code)
    return {**update, "messages": [HumanMessage(question)]}, _decision("begin")


async def agent(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Decide what to search for, or answer small talk directly. A rewrite has decided already."""
    if query := state["query"]:
        return {"messages": [call_for([query])], "query": ""}, _decision("search_rewritten", queries=[query])
    question = state["question"]
    try:
        wish, decision = await _decide(state, runtime.context)
    except ModelError as error:
        detail = _decision("failed", reason=error.code, queries=[question])
        return {**_failed(error.notice), "messages": [call_for([question])]}, detail
    if wish.queries:
        return {"messages": [call_for(wish.queries)]}, _decision(decision, queries=list(wish.queries))
    runtime.stream_writer({"token": wish.text})
    reply: list[AnyMessage] = [AIMessage(wish.text)]
    return {"messages": reply, "text": wish.text, "outcome": "answered"}, _decision(decision)


async def _decide(state: LoopState, context: LoopContext) -> tuple[Wish, str]:
    """Ask, ask again if the call made no sense, and search for the question itself if it still makes none."""
    question, history = state["question"], _conversation(state["messages"][:-1])
    plain = Wish((question,))
    tools = [retrieve_tool()]
    try:
        with context.budget.keeping(1):
            wish = read_wish(await context.reasoner.decide(question, history, tools))
            if wish.problem and context.budget.left:
                complaint = [HumanMessage(question), AIMessage(_complaint(wish.problem))]
                wish = read_wish(await context.reasoner.decide(question, [*history, *complaint], tools))
    except ModelError as error:
        if error.code != CALL_LIMIT:
            raise
        return plain, "search_call_limit"
    if wish.queries:
        return wish, "search"
    if wish.problem:
        return plain, "search_malformed_call"
    if wish.text and is_small_talk(question):
        return wish, "answered_without_searching"
    return plain, "search_not_small_talk"


def _complaint(problem: str) -> str:
    return f"(My call could not be used: {problem}. I call retrieve again, with one string named query.)"


def _conversation(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What was said of late, each turn within bounds, without calls of tools and what they returned."""
    said: list[AnyMessage] = [m for m in messages if isinstance(m, HumanMessage | AIMessage) and m.text]
    return [m.model_copy(update={"content": m.text[:MAX_TURN]}) for m in said[-MAX_HISTORY:]]


async def retrieve(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Run the calls of the last message; the state keeps where each passage stood, not its text."""
    calls = [call for m in state["messages"][-1:] if isinstance(m, AIMessage) for call in m.tool_calls]
    queries = [str(call["args"]["query"]) for call in calls]
    try:
        with runtime.context.budget.keeping(1):  # some strategies have a model write what they search with
            ran = await tool_node().ainvoke({"messages": state["messages"][-1:]})
    except RagError as error:
        failed = _failed(error.notice) if state["outcome"] is None else LoopState()
        return failed, _decision("failed", reason=error.code, queries=queries)
    replies: list[ToolMessage] = ran["messages"]
    passages = _interleaved([reply.artifact or [] for reply in replies])[:MAX_PASSAGES]
    known = {ref["id"] for ref in state["found"]}
    refs = [reference(passage) for passage in passages]
    new = [ref for ref in refs if ref["id"] not in known]
    update: LoopState = {
        "messages": [reply.model_copy(update={"artifact": None}) for reply in replies],
        "passages": refs,
        "found": [*state["found"], *new],
        "tried": [*state["tried"], *(query for query in queries if query not in state["tried"])],
    }
    return update, _decision("found", queries=queries, passages=len(refs), new=len(new))


def _interleaved(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Merge rankings by rank: all the first, then all the second; a passage keeps its best place."""
    depth = max(map(len, lists), default=0)
    ranked = [found[rank] for rank in range(depth) for found in lists if rank < len(found)]
    return list({passage.id: passage for passage in reversed(ranked)}.values())[::-1]


async def grade(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Keep the passages that bear on the question; those that an earlier search brought were judged then."""
    context = runtime.context
    passages = await _read([ref for ref in state["passages"] if ref["id"] not in state["graded"]], context)
    decision = "graded"
    try:
        with context.budget.keeping(1):
            verdicts = await context.reasoner.grade(state["question"], passages) if passages else []
    except ModelError as error:
        if error.code != CALL_LIMIT:
            return _failed(error.notice), _decision("failed", reason=error.code)
        verdicts, decision = [False] * len(passages), CALL_LIMIT
    kept = {p.id for p, relevant in zip(passages, verdicts, strict=False) if relevant}
    grades = [{"id": p.id, "relevant": p.id in kept} for p in passages]
    update: LoopState = {"relevant": len(kept), "graded": [*state["graded"], *(p.id for p in passages)]}
    if kept:
        update["passages"] = [ref for ref in state["passages"] if ref["id"] in kept]
    return update, _decision(decision, relevant=len(kept), of=len(passages), grades=grades)


async def rewrite(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Put the question in other words, knowing what was tried; the same words again end the search."""
    context, attempt = runtime.context, state["loop_step"] + 1
    passages = await _read(state["passages"], context)
    update: LoopState = {"loop_step": attempt}
    try:
        with context.budget.keeping(1):
            query = await context.reasoner.rewrite(state["question"], state["tried"], passages)
    except ModelError as error:
        if error.code != CALL_LIMIT:
            detail = _decision("failed", reason=error.code, attempt=attempt)
            return {**update, **_failed(error.notice)}, detail
        query = ""
    query = " ".join(query.split())[:400]
    if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
        return {**update, "exhausted": True}, _decision("nothing_left_to_try", attempt=attempt)
    return {**update, "query": query}, _decision("rewritten", query=query, attempt=attempt)


async def generate(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Write the answer from the passages, or the best of all searches where no grading let any through."""
    unsure = state["run_mode"] == "deep" and not state["relevant"]
    refs = _best(state["found"]) if unsure else state["passages"]
    passages = await _read(refs, runtime.context)
    update: LoopState = {"passages": [reference(passage) for passage in passages]}
    runtime.stream_writer({"passages": update["passages"]})
    if not passages:
        return {**update, **_missing(state, Notice("nothing_found"))}, _decision("nothing_found", passages=0)
    likely = runtime.context.answerable()
    if likely < REFUSE and not state["relevant"]:
        return {**update, **_missing(state, Notice("not_in_pages"))}, _decision("not_in_pages", answerable=likely)
    pieces: list[str] = []
    error: ModelError | None = None
    try:
        await _write(state["question"], passages, runtime, pieces)
    except ModelError as caught:
        error = caught
    text, citations = await asyncio.to_thread(cite, "".join(pieces), passages)
    update |= _judged(state, text, citations, error, unsure, likely)
    update["text"], update["citations"] = text, [asdict(citation) for citation in citations]
    if text:
        update["messages"] = [AIMessage(text)]
    detail = _decision(str(update["outcome"]), passages=len(passages), citations=len(citations), answerable=likely)
    return update, detail | ({"reason": error.code} if error else {})


async def _write(question: str, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str]) -> None:
    """Collect the answer in `pieces` as it comes, so that what was written survives a failure."""
    async for piece in runtime.context.reasoner.answer(question, passages):
        if piece == RESET:
            pieces.clear()
            runtime.stream_writer({"reset": True})
        elif piece:
            pieces.append(piece)
            runtime.stream_writer({"token": piece})


def _judged(
    state: LoopState,
    text: str,
    citations: Sequence[Citation],
    error: ModelError | None,
    unsure: bool,
    likely: float,
) -> LoopState:
    """Say how the question ended, and why it did not end simply well."""
    if error and not (error.code == _SHORTENED and text):
        return _failed(error.notice)
    if not text.strip() or (not citations and _DECLINES.search(text)):
        return _missing(state, Notice("not_in_pages"))
    if error:
        return _caveat(error.notice)
    if not citations:
        return _caveat(Notice("no_citations"))
    if unsure:
        return _caveat(Notice("best_found", {"searches": len(state["tried"])}))
    if likely < DOUBT:
        return _caveat(Notice("in_doubt"))
    other = Notice("question_language") if is_third_language(state["question"]) else None
    return {"outcome": "answered", "notice": record(other) if other else None}


def _missing(state: LoopState, notice: Notice) -> LoopState:
    if is_third_language(state["question"]):
        notice = Notice("not_in_pages_language")
    return {"outcome": "not_in_pages", "notice": record(notice)}


def _caveat(notice: Notice) -> LoopState:
    return {"outcome": "caveat", "notice": record(notice)}


def _failed(notice: Notice) -> LoopState:
    return {"outcome": "failed", "notice": record(notice)}


def _decision(decision: str, **detail: Any) -> dict[str, Any]:
    return {"decision": decision, **detail}


def _best(found: Sequence[PassageRef]) -> list[PassageRef]:
    return sorted(found, key=lambda ref: -ref["score"])[:MAX_PASSAGES]


async def _read(refs: Sequence[PassageRef], context: LoopContext) -> list[Passage]:
    return await asyncio.to_thread(read_passages, refs, context.passages_of)


def read_passages(
    refs: Sequence[PassageRef], passages_of: Callable[[Sequence[str]], Sequence[Passage]]
) -> list[Passage]:
    """Read the passages of `refs` again, in their order and with their ranks, without those removed since."""
    by_id = {passage.id: passage for passage in passages_of([ref["id"] for ref in refs])} if refs else {}
    return [
        replace(by_id[ref["id"]], score=ref["score"], ranks=ref["ranks"], scores=ref["scores"])
        for ref in refs
        if ref["id"] in by_id
    ]
