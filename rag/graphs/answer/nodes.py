"""The steps of the answer loop, and its only tool. Each step returns a state update, and its decision for the trace.

The best available verifier checks answers; rules do if it fails.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.runtime import Runtime, get_runtime

from rag.checking.citations import CheckedText, check_with
from rag.errors import ModelError, RagError
from rag.graphs.answer.state import (
    LoopContext,
    LoopState,
    PassageRef,
    blank_state,
    earlier_messages,
    reference,
    removals,
)
from rag.graphs.answer.writing import (
    SHORTENED,
    caveat_state,
    doubt_notice,
    end_state,
    failure_state,
    missing_state,
    quote,
    write,
)
from rag.graphs.common import complete, question_of, summarise
from rag.models.usage import BUDGET_CODES
from rag.patterns import lazy_regex
from rag.reasoning.history import RETRIEVE, exchanges_of, human_message, make_call, questions_before
from rag.reasoning.questions import is_about_conversation, is_third_language, question_problem
from rag.retrieval.answerable import IMPROBABLE, MIN_ANSWERED, REFUSE, combine_odds
from rag.retrieval.ledger import LEG
from rag.runs.serialization import notice_of, record, step_note
from rag.text import join_surrogates
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
_QUERY = lazy_regex(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")')
_LOOKS_LIKE_A_CALL = lazy_regex(rf'<tool_call>|"name"\s*:\s*"{RETRIEVE}"|\b{RETRIEVE}\s*\(')


async def enter(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Start a question; of the earlier state only the conversation stays."""
    question = state["question"].strip()
    update = blank_state(question, state["run_mode"])
    if problem := question_problem(question):
        return {**update, **failure_state(problem)}, step_note("refused", reason=problem.code)
    correction = " ".join(runtime.context.options.standalone.split())
    update["messages"] = [*removals(state.get("messages", [])), human_message(question, correction)]
    if correction:
        runtime.stream_writer({"standalone": correction})
        return {**update, "standalone": correction}, step_note("corrected", question=correction)
    return update, step_note("begin")


async def condense(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Shorten the conversation if it is too long, and have a model complete the question if there is one.

    Without one the question is unchanged, and is searched for with those before it.
    """
    context, question, earlier = runtime.context, state["question"], state["messages"][:-1]
    budget, memory = context.budget, context.options.memory_scope
    summary, removed = await summarise(earlier, state.get("summary", ""), context.condenser, budget, memory, budget.end)
    update = LoopState(summary=summary, messages=removed)
    if is_about_conversation(question) or state["standalone"]:
        return update, step_note("stands_alone")
    history = exchanges_of(earlier[len(removed) :])
    standalone = await complete(question, history, summary, context.condenser, budget, memory=memory, spare=budget.end)
    if not standalone:
        exchanges = history or exchanges_of(earlier)  # their words are a better search than a summary
        before = questions_before(exchanges[memory.begins(exchanges) :])
        return {**update, "before": before}, step_note("followed", before=before)
    update["messages"] = [*removed, human_message(question, standalone, state["messages"][-1].id)]
    runtime.stream_writer({"standalone": standalone})
    decision = "stands_alone" if standalone == question else "condensed"
    return {**update, "standalone": standalone}, step_note(decision, question=standalone)


async def agent(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Call the search, or answer from the conversation. A model decides only if the question is about the conversation,
    or in a language from which the query is better translated."""
    if query := state["query"]:
        return {"messages": [make_call([query])], "query": ""}, step_note("search_rewritten", queries=[query])
    if query := state["standalone"]:
        return {"messages": [make_call([query])]}, step_note("search_condensed", queries=[query])
    question = state["question"]
    if not (is_about_conversation(question) or is_third_language(question)):
        return {"messages": [make_call([question])]}, step_note("search", queries=[question])
    try:
        choice, decision = await _choose(state, runtime.context)
    except ModelError as error:
        failure = LoopState(broken=record(error.notice), messages=[make_call([question])])
        return failure, step_note("failed", reason=error.code, queries=[question])
    if choice.queries:
        return {"messages": [make_call(choice.queries)]}, step_note(decision, queries=list(choice.queries))
    runtime.stream_writer({"token": choice.text})
    reply: list[AnyMessage] = [AIMessage(choice.text)]
    return {"messages": reply, "text": choice.text, "outcome": "conversation"}, step_note(decision)


async def _choose(state: LoopState, context: LoopContext) -> tuple[AgentDecision, str]:
    """Ask the model, ask again if its call is invalid, and search for the question itself if it still is."""
    question, history = state["question"], earlier_messages(state, context.options.memory_scope)
    fallback = AgentDecision((question,))
    tools = [retrieve_tool()]
    try:
        with context.budget.reserve_end():
            choice = read_decision(await context.reasoner.decide(question, history, tools))
            if choice.problem and context.budget.remaining:
                complaint = [HumanMessage(question), AIMessage(_complaint(choice.problem))]
                choice = read_decision(await context.reasoner.decide(question, [*history, *complaint], tools))
    except ModelError as error:
        if error.code not in BUDGET_CODES:
            raise
        return fallback, "search_call_limit"
    if choice.queries:
        return choice, "search"
    if choice.problem:
        return fallback, "search_malformed_call"
    if choice.text and is_about_conversation(question):
        return choice, "answered_without_searching"
    return fallback, "search_not_small_talk"


def _complaint(problem: str) -> str:
    return f"(My call could not be used: {problem}. I call retrieve again, with one string named query.)"


async def retrieve(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Run the calls of the last message; the state stores each passage's ranks, not its text."""
    calls = [call for m in state["messages"][-1:] if isinstance(m, AIMessage) for call in m.tool_calls]
    queries = [str(call["args"]["query"]) for call in calls]
    try:
        with runtime.context.budget.reserve_end():  # some strategies have a model write their queries
            output = await tool_node().ainvoke({"messages": state["messages"][-1:], "before": state["before"]})
    except RagError as error:
        return failure_state(error.notice), step_note("failed", reason=error.code, queries=queries)
    replies: list[ToolMessage] = output["messages"]
    passages = _interleave([reply.artifact or [] for reply in replies])[:MAX_PASSAGES]
    existing = {ref["id"] for ref in state["found"]}
    refs = [reference(passage) for passage in passages]
    new = [ref for ref in refs if ref["id"] not in existing]
    update: LoopState = {
        "messages": [reply.model_copy(update={"artifact": None}) for reply in replies],
        "passages": refs,
        "found": [*state["found"], *new],
        "tried": [*state["tried"], *(query for query in queries if query not in state["tried"])],
    }
    decision = "found_in_ledger" if passages and all(LEG in passage.ranks for passage in passages) else "found"
    return update, step_note(decision, queries=queries, passages=len(refs), new=len(new))


def _interleave(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Merge rankings by rank: all first results, then all second ones; a passage gets its best rank."""
    depth = max(map(len, lists), default=0)
    ranked = [results[rank] for rank in range(depth) for results in lists if rank < len(results)]
    return list({passage.id: passage for passage in reversed(ranked)}.values())[::-1]


async def grade(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Select the relevant passages among those that were not graded before.

    If the model's verdicts can't be read, all are selected, as in a fast run.
    """
    context = runtime.context
    if context.sure() and context.reasoner.kind == "chat" and not state["graded"]:
        return {"relevant": len(state["passages"])}, step_note("sure", of=len(state["passages"]))
    passages = await _read([ref for ref in state["passages"] if ref["id"] not in state["graded"]], context)
    try:
        with context.budget.reserve_end():
            verdicts = await context.reasoner.grade(question_of(state), passages) if passages else []
        decision = "graded"
    except ModelError as error:
        if error.code in BUDGET_CODES:
            verdicts, decision = [False] * len(passages), error.code
        elif error.code in (_UNUSABLE, "chat_timeout", SLOW):
            verdicts, decision = [True] * len(passages), UNGRADED
        else:
            return {"broken": record(error.notice)}, step_note("failed", reason=error.code)
    relevant_ids = {p.id for p, relevant in zip(passages, verdicts, strict=False) if relevant}
    grades = [{"id": p.id, "relevant": p.id in relevant_ids} for p in passages]
    update: LoopState = {"relevant": len(relevant_ids), "graded": [*state["graded"], *(p.id for p in passages)]}
    if relevant_ids:
        update["passages"] = [ref for ref in state["passages"] if ref["id"] in relevant_ids]
    if decision == UNGRADED:
        return update, step_note(UNGRADED, of=len(passages))
    return update, step_note(decision, relevant=len(relevant_ids), of=len(passages), grades=grades)


async def rewrite(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Rewrite the query, given the earlier ones; the search ends when one repeats."""
    context, attempt = runtime.context, state["loop_step"] + 1
    passages = await _read(state["passages"], context)
    update: LoopState = {"loop_step": attempt}
    try:
        with context.budget.reserve_end():
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
    """Write the answer from the passages, or from the best of all searches if grading passed none."""
    is_unsure = state["run_mode"] == "deep" and not state["relevant"]
    refs = _select_best(state["found"]) if is_unsure else state["passages"]
    context, question = runtime.context, question_of(state)
    passages = await _read(refs, context)
    update: LoopState = {"passages": [reference(passage) for passage in passages]}
    runtime.stream_writer({"passages": update["passages"]})
    if not passages:
        return {**update, **missing_state(state, Notice("nothing_found"))}, step_note("nothing_found", passages=0)
    likely, is_ungraded = context.answerable(), _is_ungraded(state)
    broken = notice_of(state["broken"])
    if likely < REFUSE and broken:
        return {**update, **failure_state(broken)}, step_note("failed", reason=broken.code)
    may_decline = context.reasoner.kind == "chat" and state["run_mode"] == "fast"  # it says if the answer is missing
    quote_odds = await _score_quotes(state, passages, context)
    is_missing = likely < REFUSE and not may_decline and (is_ungraded or not state["relevant"])
    if is_missing or combine_odds(quote_odds, likely) < IMPROBABLE:
        return {**update, **missing_state(state, Notice("not_in_pages"))}, step_note("not_in_pages", answerable=likely)
    pieces: list[str] = []
    composed, error, doubt = await write(state, passages, runtime, pieces)
    checked = await verify("".join(pieces), passages, question, context, ask=error is None and not doubt)
    is_complete = error is None or error.code == SHORTENED
    if is_complete and not doubt and context.reasoner.kind == "chat":
        doubt = doubt_notice(checked, passages, likely)
        if doubt and await quote(state, passages, runtime, pieces):
            composed, checked = "quoted", await verify("".join(pieces), passages, question, context, ask=False)
        else:
            doubt = None
    text, citations = checked.text, checked.citations
    update |= caveat_state(doubt) if doubt and text else end_state(state, text, citations, error, is_unsure, likely)
    if is_ungraded and update["outcome"] == "answered":
        update |= caveat_state(Notice(UNGRADED))
    if update["outcome"] == "answered" and quote_odds < MIN_ANSWERED:
        update |= caveat_state(Notice("closest"))
    if update["outcome"] == "answered" and (names := await _missing_names(state, passages, citations, context)):
        update |= caveat_state(Notice("not_named", {"names": " · ".join(names)}))
    update |= cast(LoopState, checked.plain())
    if text:
        update["messages"] = [AIMessage(text)]
    update["composed"] = composed
    detail = step_note(
        str(update["outcome"]), passages=len(passages), citations=len(citations), answerable=likely, way=composed
    )
    return update, detail | ({"reason": error.code} if error else {})


async def _score_quotes(state: LoopState, passages: Sequence[Passage], context: LoopContext) -> float:
    """Return the probability that the quoted sentences answer, if the answer is quotes; else 1."""
    if context.quoter is None or context.reasoner.kind == "chat":
        return 1.0
    return await asyncio.to_thread(context.quoter.answers, question_of(state), passages)


async def _missing_names(
    state: LoopState, passages: Sequence[Passage], citations: Sequence[Citation], context: LoopContext
) -> list[str]:
    """Return the question's names that no cited passage has, if the answer is quotes."""
    if context.quoter is None or context.reasoner.kind == "chat":
        return []
    cited = [(citation.url_hash, citation.start) for citation in citations]
    quoted = [one for one in passages if any(url == one.url_hash and one.start <= at < one.end for url, at in cited)]
    return await asyncio.to_thread(context.quoter.find_missing_names, question_of(state), quoted)


def _is_ungraded(state: LoopState) -> bool:
    gradings = [step["detail"].get("decision") for step in state["steps"] if step["node"] == "grade"]
    return gradings[-1:] == [UNGRADED]


def _select_best(refs: Sequence[PassageRef]) -> list[PassageRef]:
    return sorted(refs, key=lambda ref: -ref["score"])[:MAX_PASSAGES]


async def _read(refs: Sequence[PassageRef], context: LoopContext) -> list[Passage]:
    return await asyncio.to_thread(read_passages, refs, context.passages_of)


def read_passages(
    refs: Sequence[PassageRef], passages_of: Callable[[Sequence[str]], Sequence[Passage]]
) -> list[Passage]:
    """Read the passages of `refs`, in their order and with their ranks, without those deleted since."""
    by_id = {passage.id: passage for passage in passages_of([ref["id"] for ref in refs])} if refs else {}
    return [
        replace(by_id[ref["id"]], score=ref["score"], ranks=ref["ranks"], scores=ref["scores"])
        for ref in refs
        if ref["id"] in by_id
    ]


async def verify(
    text: str, passages: Sequence[Passage], question: str, context: LoopContext, *, ask: bool = True
) -> CheckedText:
    """Check the statements of `text`. Without `ask`, or if no verifier works, rules give the verdicts.

    A fast answer is one call of the chat model, which then does not check.
    """
    verifiers = [one for one in context.verifiers if ask and not (context.fast and one.checks_by == "model")]
    return (await check_with(text, passages, verifiers, question, context.options.context_tokens)).result()


async def _retrieve(query: str, before: Annotated[list[str], InjectedState("before")]) -> tuple[str, list[Passage]]:
    context = get_runtime(LoopContext).context
    with span(RETRIEVE, "tool", query=query) as search_span:
        passages = list(await asyncio.to_thread(context.search, query, before))
        search_span.attributes["passages"] = len(passages)
    lines = [f"[{place}] {passage.title or passage.url}" for place, passage in enumerate(passages, 1)]
    return "\n".join(lines) or "Nothing was found.", passages


@cache
def retrieve_tool() -> BaseTool:
    """Make the search tool: its content is a list of titles for the conversation, its artifact the passages."""
    return StructuredTool.from_function(
        coroutine=_retrieve, name=RETRIEVE, description=_DESCRIPTION, response_format="content_and_artifact"
    )


@cache
def tool_node() -> ToolNode:
    """Make the node that runs the tool's calls; errors of the search pass through."""
    return ToolNode([retrieve_tool()])


@dataclass(frozen=True, slots=True)
class AgentDecision:
    """A model's decision: to search for `queries`, or to reply with `text`; `problem` if its call was invalid."""

    queries: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""


def read_decision(message: AIMessage) -> AgentDecision:
    """Read the model's decision. A call with a readable query is valid, whatever else is wrong."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    text = message.text.strip()
    if not calls and not _LOOKS_LIKE_A_CALL.search(text):
        return AgentDecision(text=text)
    queries = [query for call in calls if (query := _read_query(call.get("args")))]
    if not calls and (query := _find_query(text)):
        queries = [query]
    if queries:
        return AgentDecision(tuple(dict.fromkeys(queries))[:MAX_QUERIES])
    name = calls[0].get("name") if calls else RETRIEVE
    if name != RETRIEVE:
        return AgentDecision(problem="there is no tool of that name")
    return AgentDecision(problem="its arguments were not a JSON object with a string named query")


def _read_query(arguments: object) -> str:
    if isinstance(arguments, dict):
        query = arguments.get("query")
        return _clean(query) if isinstance(query, str) else ""
    return _find_query(arguments) if isinstance(arguments, str) else ""


def _find_query(raw: str) -> str:
    """Return the query of a call that is not valid JSON as a whole, if its string is complete."""
    match = _QUERY.search(raw)
    if not match:
        return ""
    try:
        return _clean(str(json.loads(match[1], strict=False)))
    except json.JSONDecodeError:
        return ""


def _clean(query: str) -> str:
    return join_surrogates(query).strip()[:MAX_QUERY_CHARACTERS]
