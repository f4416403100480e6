"""The steps of the loop, and its one tool. Each step returns what changes in the state, and what it decided.

What was written is checked by the best verifier that is there; where it does not answer, by rules.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.runtime import Runtime, get_runtime

from rag.checking.citations import Checked, check_with
from rag.errors import ModelError, RagError
from rag.graphs.answer.state import (
    LoopContext,
    LoopState,
    PassageRef,
    conversation,
    fresh,
    leftovers,
    reference,
)
from rag.graphs.answer.writing import (
    SHORTENED,
    caveat,
    doubt_notice,
    end_state,
    failure_state,
    missing_state,
    quote,
    write,
)
from rag.graphs.common import complete_followup, question_of, summarise
from rag.models.usage import BUDGET_CODES
from rag.reasoning.history import RETRIEVE, call_for, exchanges_of, questions_before, said
from rag.reasoning.questions import is_about_conversation, is_third_language, question_problem
from rag.retrieval.answerable import ANSWERED, IMPROBABLE, REFUSE, combine_odds
from rag.retrieval.ledger import LEG
from rag.runs.serialization import notice_of, record, step_note
from rag.text import mended
from rag.tracing import span
from rag.types import Citation, Notice, Passage

log = logging.getLogger(__name__)

Result = tuple[LoopState, dict[str, Any]]

MAX_PASSAGES = 10
UNGRADED = "ungraded"
SLOW = "model_slow"
_UNUSABLE = "chat_unusable"
MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 400

_DESCRIPTION = (
    "Search the person's saved web pages and return the passages that fit best. "
    "query: the key terms, names and numbers of what is wanted, complete in itself."
)
_QUERY = re.compile(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")')
_LOOKS_LIKE_A_CALL = re.compile(rf'<tool_call>|"name"\s*:\s*"{RETRIEVE}"|\b{RETRIEVE}\s*\(')


async def enter(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Begin a question: nothing of the one before it stays but the conversation."""
    question = state["question"].strip()
    update = fresh(question, state["run_mode"])
    if problem := question_problem(question):
        return {**update, **failure_state(problem)}, step_note("refused", reason=problem.code)
    given = " ".join(runtime.context.options.standalone.split())
    update["messages"] = [*leftovers(state.get("messages", [])), said(question, given)]
    if given:
        runtime.stream_writer({"standalone": given})
        return {**update, "standalone": given}, step_note("corrected", question=given)
    return update, step_note("begin")


async def condense(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Make room in the conversation where it is too long, and complete the question where a model can.

    Without one it stays as it is, and is searched for with the questions before it.
    """
    context, question, said_so_far = runtime.context, state["question"], state["messages"][:-1]
    budget, memory = context.budget, context.options.remembers
    summary, dropped = await summarise(
        said_so_far, state.get("summary", ""), context.condenser, budget, memory, budget.end
    )
    update = LoopState(summary=summary, messages=dropped)
    if is_about_conversation(question) or state["standalone"]:
        return update, step_note("stands_alone")
    history = exchanges_of(said_so_far[len(dropped) :])
    standalone = await complete_followup(
        question, history, summary, context.condenser, budget, memory=memory, reserve=budget.end
    )
    if not standalone:
        told = history or exchanges_of(said_so_far)  # words can be searched for where a summary says less of them
        before = questions_before(told[memory.begins(told) :])
        return {**update, "before": before}, step_note("followed", before=before)
    update["messages"] = [*dropped, said(question, standalone, state["messages"][-1].id)]
    runtime.stream_writer({"standalone": standalone})
    decision = "stands_alone" if standalone == question else "condensed"
    return {**update, "standalone": standalone}, step_note(decision, question=standalone)


async def agent(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Call the search, or answer from what was said. A model chooses only where the question is about the conversation,
    or in a language that the query is better translated from."""
    if query := state["query"]:
        return {"messages": [call_for([query])], "query": ""}, step_note("search_rewritten", queries=[query])
    if query := state["standalone"]:
        return {"messages": [call_for([query])]}, step_note("search_condensed", queries=[query])
    question = state["question"]
    if not (is_about_conversation(question) or is_third_language(question)):
        return {"messages": [call_for([question])]}, step_note("search", queries=[question])
    try:
        wish, decision = await _decide(state, runtime.context)
    except ModelError as error:
        broken = LoopState(broken=record(error.notice), messages=[call_for([question])])
        return broken, step_note("failed", reason=error.code, queries=[question])
    if wish.queries:
        return {"messages": [call_for(wish.queries)]}, step_note(decision, queries=list(wish.queries))
    runtime.stream_writer({"token": wish.text})
    reply: list[AnyMessage] = [AIMessage(wish.text)]
    return {"messages": reply, "text": wish.text, "outcome": "conversation"}, step_note(decision)


async def _decide(state: LoopState, context: LoopContext) -> tuple[AgentDecision, str]:
    """Ask, ask again if the call made no sense, and search for the question itself if it still makes none."""
    question, history = state["question"], conversation(state, context.options.remembers)
    plain = AgentDecision((question,))
    tools = [retrieve_tool()]
    try:
        with context.budget.keeping_end():
            wish = read_decision(await context.reasoner.decide(question, history, tools))
            if wish.problem and context.budget.left:
                complaint = [HumanMessage(question), AIMessage(_complaint(wish.problem))]
                wish = read_decision(await context.reasoner.decide(question, [*history, *complaint], tools))
    except ModelError as error:
        if error.code not in BUDGET_CODES:
            raise
        return plain, "search_call_limit"
    if wish.queries:
        return wish, "search"
    if wish.problem:
        return plain, "search_malformed_call"
    if wish.text and is_about_conversation(question):
        return wish, "answered_without_searching"
    return plain, "search_not_small_talk"


def _complaint(problem: str) -> str:
    return f"(My call could not be used: {problem}. I call retrieve again, with one string named query.)"


async def retrieve(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Run the calls of the last message; the state keeps where each passage stood, not its text."""
    calls = [call for m in state["messages"][-1:] if isinstance(m, AIMessage) for call in m.tool_calls]
    queries = [str(call["args"]["query"]) for call in calls]
    try:
        with runtime.context.budget.keeping_end():  # some strategies have a model write what they search with
            ran = await tool_node().ainvoke({"messages": state["messages"][-1:], "before": state["before"]})
    except RagError as error:
        return failure_state(error.notice), step_note("failed", reason=error.code, queries=queries)
    replies: list[ToolMessage] = ran["messages"]
    passages = _interleave([reply.artifact or [] for reply in replies])[:MAX_PASSAGES]
    known = {ref["id"] for ref in state["found"]}
    refs = [reference(passage) for passage in passages]
    new = [ref for ref in refs if ref["id"] not in known]
    update: LoopState = {
        "messages": [reply.model_copy(update={"artifact": None}) for reply in replies],
        "passages": refs,
        "found": [*state["found"], *new],
        "tried": [*state["tried"], *(query for query in queries if query not in state["tried"])],
    }
    where = "found_in_ledger" if passages and all(LEG in one.ranks for one in passages) else "found"
    return update, step_note(where, queries=queries, passages=len(refs), new=len(new))


def _interleave(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Merge rankings by rank: all the first, then all the second; a passage keeps its best place."""
    depth = max(map(len, lists), default=0)
    ranked = [found[rank] for rank in range(depth) for found in lists if rank < len(found)]
    return list({passage.id: passage for passage in reversed(ranked)}.values())[::-1]


async def grade(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Keep the passages that bear on the question; those that an earlier search brought were judged then.

    A model whose verdicts cannot be read has judged nothing: all are kept, as in a fast run.
    """
    context = runtime.context
    if context.sure() and context.reasoner.kind == "chat" and not state["graded"]:
        return {"relevant": len(state["passages"])}, step_note("sure", of=len(state["passages"]))
    passages = await _read([ref for ref in state["passages"] if ref["id"] not in state["graded"]], context)
    try:
        with context.budget.keeping_end():
            verdicts = await context.reasoner.grade(question_of(state), passages) if passages else []
        decision = "graded"
    except ModelError as error:
        if error.code in BUDGET_CODES:
            verdicts, decision = [False] * len(passages), error.code
        elif error.code in (_UNUSABLE, "chat_timeout", SLOW):
            verdicts, decision = [True] * len(passages), UNGRADED
        else:
            return {"broken": record(error.notice)}, step_note("failed", reason=error.code)
    kept = {p.id for p, relevant in zip(passages, verdicts, strict=False) if relevant}
    grades = [{"id": p.id, "relevant": p.id in kept} for p in passages]
    update: LoopState = {"relevant": len(kept), "graded": [*state["graded"], *(p.id for p in passages)]}
    if kept:
        update["passages"] = [ref for ref in state["passages"] if ref["id"] in kept]
    if decision == UNGRADED:
        return update, step_note(UNGRADED, of=len(passages))
    return update, step_note(decision, relevant=len(kept), of=len(passages), grades=grades)


async def rewrite(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Put the question in other words, knowing what was tried; the same words again end the search."""
    context, attempt = runtime.context, state["loop_step"] + 1
    passages = await _read(state["passages"], context)
    update: LoopState = {"loop_step": attempt}
    try:
        with context.budget.keeping_end():
            query = await context.reasoner.rewrite(question_of(state), state["tried"], passages)
    except ModelError as error:
        if error.code not in BUDGET_CODES and error.code != _UNUSABLE:
            detail = step_note("failed", reason=error.code, attempt=attempt)
            return {**update, "broken": record(error.notice)}, detail
        query = ""
    query = " ".join(query.split())[:400]
    if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
        return {**update, "exhausted": True}, step_note("nothing_left_to_try", attempt=attempt)
    return {**update, "query": query}, step_note("rewritten", query=query, attempt=attempt)


async def generate(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Write the answer from the passages, or the best of all searches where no grading let any through."""
    unsure = state["run_mode"] == "deep" and not state["relevant"]
    refs = _best(state["found"]) if unsure else state["passages"]
    context, question = runtime.context, question_of(state)
    passages = await _read(refs, context)
    update: LoopState = {"passages": [reference(passage) for passage in passages]}
    runtime.stream_writer({"passages": update["passages"]})
    if not passages:
        return {**update, **missing_state(state, Notice("nothing_found"))}, step_note("nothing_found", passages=0)
    likely, unjudged = context.answerable(), _ungraded(state)
    broken = notice_of(state["broken"])
    if likely < REFUSE and broken:
        return {**update, **failure_state(broken)}, step_note("failed", reason=broken.code)
    own_word = context.reasoner.kind == "chat" and state["run_mode"] == "fast"  # it says what is not there
    read = await _read_quotes(state, passages, context)
    nowhere = likely < REFUSE and not own_word and (unjudged or not state["relevant"])
    if nowhere or combine_odds(read, likely) < IMPROBABLE:
        return {**update, **missing_state(state, Notice("not_in_pages"))}, step_note("not_in_pages", answerable=likely)
    pieces: list[str] = []
    way, error, quoted = await write(state, passages, runtime, pieces)
    checked = await verify("".join(pieces), passages, question, context, ask=error is None and not quoted)
    whole = error is None or error.code == SHORTENED
    if whole and not quoted and context.reasoner.kind == "chat":
        quoted = doubt_notice(checked, passages, likely)
        if quoted and await quote(state, passages, runtime, pieces):
            way, checked = "quoted", await verify("".join(pieces), passages, question, context, ask=False)
        else:
            quoted = None
    text, citations = checked.text, checked.citations
    update |= caveat(quoted) if quoted and text else end_state(state, text, citations, error, unsure, likely)
    if unjudged and update["outcome"] == "answered":
        update |= caveat(Notice(UNGRADED))
    if update["outcome"] == "answered" and read < ANSWERED:
        update |= caveat(Notice("closest"))
    if update["outcome"] == "answered" and (names := await _missing_names(state, passages, citations, context)):
        update |= caveat(Notice("not_named", {"names": " · ".join(names)}))
    update |= cast(LoopState, checked.plain())
    if text:
        update["messages"] = [AIMessage(text)]
    update["composed"] = way
    detail = step_note(
        str(update["outcome"]), passages=len(passages), citations=len(citations), answerable=likely, way=way
    )
    return update, detail | ({"reason": error.code} if error else {})


async def _read_quotes(state: LoopState, passages: Sequence[Passage], context: LoopContext) -> float:
    """Return how likely the sentences that were read answer, where quotes are the answer; else 1."""
    if context.quoter is None or context.reasoner.kind == "chat":
        return 1.0
    return await asyncio.to_thread(context.quoter.answers, question_of(state), passages)


async def _missing_names(
    state: LoopState, passages: Sequence[Passage], citations: Sequence[Citation], context: LoopContext
) -> list[str]:
    """What the question names and no passage holds that was quoted from, where quotes are the answer."""
    if context.quoter is None or context.reasoner.kind == "chat":
        return []
    cited = [(citation.url_hash, citation.start) for citation in citations]
    quoted = [one for one in passages if any(url == one.url_hash and one.start <= at < one.end for url, at in cited)]
    return await asyncio.to_thread(context.quoter.unnamed, question_of(state), quoted)


def _ungraded(state: LoopState) -> bool:
    gradings = [step["detail"].get("decision") for step in state["steps"] if step["node"] == "grade"]
    return gradings[-1:] == [UNGRADED]


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


async def verify(
    text: str, passages: Sequence[Passage], question: str, context: LoopContext, *, ask: bool = True
) -> Checked:
    """Check the statements of `text`. Without `ask`, and where no verifier answers, the verdicts of rules stand.

    A fast answer is one call of the chat model: it does not check.
    """
    verifiers = [one for one in context.verifiers if ask and not (context.fast and one.checks_by == "model")]
    return (await check_with(text, passages, verifiers, question, context.options.context_tokens)).result()


async def _retrieve(query: str, before: Annotated[list[str], InjectedState("before")]) -> tuple[str, list[Passage]]:
    context = get_runtime(LoopContext).context
    with span(RETRIEVE, "tool", query=query) as done:
        passages = list(await asyncio.to_thread(context.search, query, before))
        done.attributes["passages"] = len(passages)
    lines = [f"[{place}] {passage.title or passage.url}" for place, passage in enumerate(passages, 1)]
    return "\n".join(lines) or "Nothing was found.", passages


@cache
def retrieve_tool() -> BaseTool:
    """Make the search tool: its content is a list of titles for the conversation, its artifact passages."""
    return StructuredTool.from_function(
        coroutine=_retrieve, name=RETRIEVE, description=_DESCRIPTION, response_format="content_and_artifact"
    )


@cache
def tool_node() -> ToolNode:
    """Make what runs the tool's calls; what the search raises comes through."""
    return ToolNode([retrieve_tool()])


@dataclass(frozen=True, slots=True)
class AgentDecision:
    """What a model wants: to search for `queries`, or to say `text`; `problem` if its call made no sense."""

    queries: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""


def read_decision(message: AIMessage) -> AgentDecision:
    """Read the model's decision. A call whose query can be told is no problem, whatever else is wrong."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    text = message.text.strip()
    if not calls and not _LOOKS_LIKE_A_CALL.search(text):
        return AgentDecision(text=text)
    queries = [query for call in calls if (query := _query_of(call.get("args")))]
    if not calls and (query := _query_in(text)):
        queries = [query]
    if queries:
        return AgentDecision(tuple(dict.fromkeys(queries))[:MAX_QUERIES])
    name = calls[0].get("name") if calls else RETRIEVE
    if name != RETRIEVE:
        return AgentDecision(problem="there is no tool of that name")
    return AgentDecision(problem="its arguments were not a JSON object with a string named query")


def _query_of(arguments: object) -> str:
    if isinstance(arguments, dict):
        query = arguments.get("query")
        return _clean(query) if isinstance(query, str) else ""
    return _query_in(arguments) if isinstance(arguments, str) else ""


def _query_in(raw: str) -> str:
    """Return the query of a call that is not valid JSON as a whole, if its string at least is complete."""
    match = _QUERY.search(raw)
    if not match:
        return ""
    try:
        return _clean(str(json.loads(match[1], strict=False)))
    except json.JSONDecodeError:
        return ""


def _clean(query: str) -> str:
    return mended(query).strip()[:MAX_QUERY_CHARACTERS]
