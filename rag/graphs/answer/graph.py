"""The fast and deep graphs of the answer loop: all steps but the last, the search tool, and the context of a run.

Each step returns a state update, and its decision for the trace.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, Literal, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.runtime import Runtime, get_runtime

from rag.errors import ModelError, RagError
from rag.graphs.answer.state import (
    MAX_PASSAGES,
    MAX_REWRITES,
    UNGRADED,
    LoopContext,
    LoopState,
    Result,
    blank_state,
    earlier_messages,
    needs_summary,
    read_passages,
    reference,
    removals,
)
from rag.graphs.answer.writing import failure_state, generate
from rag.graphs.common import (
    check_question,
    make_standalone,
    prepare_graph,
    question_of,
    shorten_answers,
    summarise,
    trace_step,
)
from rag.models.usage import BUDGET_CODES
from rag.patterns import lazy_regex
from rag.reasoning.history import RETRIEVE, exchanges_of, human_message, make_call, questions_before
from rag.reasoning.questions import has_subject, is_about_conversation, is_third_language
from rag.retrieval.scoped_search import LEDGER_LEG
from rag.runs.run import PreparedGraph, Run
from rag.runs.serialization import record, step_note
from rag.text import join_surrogates
from rag.tracing import span
from rag.types import Passage

_SLOW = "model_slow"
_UNUSABLE = "chat_unusable"
MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 400

_RECURSION_LIMIT = 24  # a deep run that rewrites three times takes 17 steps
_DESCRIPTION = (
    "Search the user's saved web pages and return the best-matching passages. "
    "query: a self-contained search query with the key terms, names and numbers."
)
_QUERY = lazy_regex(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")')
_LOOKS_LIKE_A_CALL = lazy_regex(rf'<tool_call>|"name"\s*:\s*"{RETRIEVE}"|\b{RETRIEVE}\s*\(')


_Builder = StateGraph[LoopState, LoopContext, LoopState, LoopState]
_Graph = CompiledStateGraph[LoopState, LoopContext, LoopState, LoopState]


async def enter(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Start a question; only the conversation survives from the earlier state."""
    question = state["question"].strip()
    update = blank_state(question, state["run_mode"])
    if end := check_question(update):
        return cast(Result, end)
    correction = " ".join(runtime.context.options.standalone.split())
    update["messages"] = [*removals(state.get("messages", [])), human_message(question, correction)]
    if correction:
        runtime.stream_writer({"standalone": correction})
        return {**update, "standalone": correction}, step_note("corrected", question=correction)
    return update, step_note("begin")


async def condense(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Summarise a long conversation, and have a model complete the question.

    Without a model, old answers are shortened, and earlier questions are searched for along with this one.
    """
    context, question, earlier = runtime.context, state["question"], state["messages"][:-1]
    budget, memory, condenser = context.budget, context.options.memory_scope, context.condenser
    summary, removed = state.get("summary", ""), list[AnyMessage]()
    if condenser:
        summary, removed = await summarise(earlier, summary, condenser, budget, memory, budget.final_calls)
    update = LoopState(summary=summary, messages=removed if condenser else shorten_answers(earlier, memory))
    if is_about_conversation(question) or state["standalone"]:
        return update, step_note("stands_alone")
    history = exchanges_of(earlier[len(removed) :])
    standalone = await make_standalone(
        question, history, summary, condenser, budget, memory=memory, spare=budget.final_calls
    )
    if not standalone:
        exchanges = history or exchanges_of(earlier)  # their words make a better query than a summary
        before = questions_before(exchanges[memory.first_visible(exchanges) :])
        if has_subject(question) or not before:
            return {**update, "before": before}, step_note("followed", before=before)
        update["before"], standalone = before[:-1], before[-1]
    update["messages"] = [*update["messages"], human_message(question, standalone, state["messages"][-1].id)]
    runtime.stream_writer({"standalone": standalone})
    decision = "stands_alone" if standalone == question else "condensed"
    return {**update, "standalone": standalone}, step_note(decision, question=standalone)


async def agent(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Call the search, or answer from the conversation. A model decides only if the question is about the conversation,
    or in a language from which the query should be translated."""
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


async def _choose(state: LoopState, context: LoopContext) -> tuple[_AgentDecision, str]:
    """Ask the model, retry once if its call is invalid, and fall back to a search for the question itself."""
    question, history = state["question"], earlier_messages(state, context.options.memory_scope)
    fallback = _AgentDecision((question,))
    tools = [retrieve_tool()]
    try:
        with context.budget.reserve_final_calls():
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
        with runtime.context.budget.reserve_final_calls():  # some strategies have a model write their queries
            output = await _tool_node().ainvoke({"messages": state["messages"][-1:], "before": state["before"]})
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
    decision = "found_in_ledger" if passages and all(LEDGER_LEG in passage.ranks for passage in passages) else "found"
    return update, step_note(decision, queries=queries, passages=len(refs), new=len(new))


def _interleave(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Merge rankings by rank: all first results, then all second ones; a passage gets its best rank."""
    depth = max(map(len, lists), default=0)
    ranked = [results[rank] for rank in range(depth) for results in lists if rank < len(results)]
    unique: dict[str, Passage] = {}
    for passage in ranked:
        unique.setdefault(passage.id, passage)
    return list(unique.values())


async def grade(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Select the relevant passages among those that were not graded before.

    If the model's verdicts are late or unreadable, all are selected, as in a fast run.
    """
    context = runtime.context
    if context.is_sure() and context.reasoner.kind == "chat" and not state["graded"]:
        return {"relevant": len(state["passages"])}, step_note("sure", of=len(state["passages"]))
    refs = [ref for ref in state["passages"] if ref["id"] not in state["graded"]]
    passages = await read_passages(refs, context.passages_of)
    try:
        with context.budget.reserve_final_calls():
            verdicts = await context.reasoner.grade(question_of(state), passages) if passages else []
        decision = "graded"
    except ModelError as error:
        if error.code in BUDGET_CODES:
            verdicts, decision = [False] * len(passages), error.code
        elif error.code in (_UNUSABLE, "chat_timeout", _SLOW):
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
    """Rewrite the query, given the earlier ones; the search ends if the reply is empty or repeats one."""
    context, attempt = runtime.context, state["loop_step"] + 1
    passages = await read_passages(state["passages"], context.passages_of)
    update: LoopState = {"loop_step": attempt}
    try:
        with context.budget.reserve_final_calls():
            query = await context.reasoner.rewrite(question_of(state), state["tried"], passages)
    except ModelError as error:
        if error.code not in BUDGET_CODES and error.code != _UNUSABLE:
            detail = step_note("failed", reason=error.code, attempt=attempt)
            return {**update, "broken": record(error.notice)}, detail
        query = ""
    query = " ".join(query.split())[:MAX_QUERY_CHARACTERS]
    if not query or query.casefold() in {tried.casefold() for tried in state["tried"]}:
        return {**update, "exhausted": True}, step_note("nothing_left_to_try", attempt=attempt)
    return {**update, "query": query}, step_note("rewritten", query=query, attempt=attempt)


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
def _tool_node() -> ToolNode:
    """Make the node that runs the tool's calls; search errors propagate."""
    return ToolNode([retrieve_tool()])


@dataclass(frozen=True, slots=True)
class _AgentDecision:
    """A model's decision: to search for `queries`, or to reply with `text`; `problem` if its call was invalid."""

    queries: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""


def read_decision(message: AIMessage) -> _AgentDecision:
    """Parse the model's decision. A call with a readable query is valid, whatever else is wrong."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    text = message.text.strip()
    if not calls and not _LOOKS_LIKE_A_CALL.search(text):
        return _AgentDecision(text=text)
    queries = [query for call in calls if (query := _read_query(call.get("args")))]
    if not calls and (query := _find_query(text)):
        queries = [query]
    if queries:
        return _AgentDecision(tuple(dict.fromkeys(queries))[:MAX_QUERIES])
    name = calls[0].get("name") if calls else RETRIEVE
    if name != RETRIEVE:
        return _AgentDecision(problem="there is no tool of that name")
    return _AgentDecision(problem="its arguments were not a JSON object with a string named query")


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


def build_fast(checkpointer: Any = None) -> _Graph:
    """Build enter → agent → retrieve → generate: one model call, or two for a follow-up; no grading, one search."""
    builder = _start_builder()
    builder.add_conditional_edges("retrieve", after_fast_search, ["generate", END])
    return _compile(builder, checkpointer)


def build_deep(checkpointer: Any = None) -> _Graph:
    """Build the fast graph with grading after the search, and up to three more searches with rewritten queries."""
    builder = _start_builder()
    _add_steps(builder, grade, rewrite)
    builder.add_conditional_edges("retrieve", after_deep_search, ["grade", "generate", END])
    builder.add_conditional_edges("grade", after_grade, ["generate", "rewrite", END])
    builder.add_conditional_edges("rewrite", after_rewrite, ["agent", "generate", END])
    return _compile(builder, checkpointer)


def _start_builder() -> _Builder:
    builder = StateGraph(LoopState, context_schema=LoopContext)
    _add_steps(builder, enter, condense, agent, retrieve, generate)
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", after_enter, ["condense", "agent", END])
    builder.add_edge("condense", "agent")
    builder.add_conditional_edges("agent", after_agent, ["retrieve", END])
    builder.add_edge("generate", END)
    return builder


def _add_steps(builder: _Builder, *steps: Callable[..., Awaitable[Result]]) -> None:
    for step in steps:
        builder.add_node(step.__name__, trace_step(step.__name__, step, stores=True))


def _compile(builder: _Builder, checkpointer: Any) -> _Graph:
    graph = builder.compile(checkpointer=checkpointer)
    return graph.with_config(recursion_limit=_RECURSION_LIMIT)


def after_enter(state: LoopState, runtime: Runtime[LoopContext]) -> Literal["condense", "agent", "__end__"]:
    """Skip `condense` for a first question or, in a short conversation, for a complete one or one about it."""
    if state["outcome"]:
        return "__end__"
    if len(state["messages"]) < 2:
        return "agent"
    follows = not (state["standalone"] or is_about_conversation(state["question"]))
    return "condense" if follows or needs_summary(state, runtime.context.options.memory_scope) else "agent"


def after_agent(state: LoopState) -> Literal["retrieve", "__end__"]:
    """Search even if the model failed to decide; the passages are then quoted."""
    return "__end__" if state["outcome"] == "conversation" else "retrieve"


def after_fast_search(state: LoopState) -> Literal["generate", "__end__"]:
    return "__end__" if state["outcome"] else "generate"


def after_deep_search(state: LoopState) -> Literal["grade", "generate", "__end__"]:
    """Skip grading if the model failed."""
    if state["outcome"]:
        return "__end__"
    return "generate" if state["broken"] else "grade"


def after_grade(state: LoopState, runtime: Runtime[LoopContext]) -> Literal["generate", "rewrite", "__end__"]:
    """Rewrite only while rewrites remain, and calls for one and the answer after it."""
    if state["outcome"]:
        return "__end__"
    is_exhausted = state["loop_step"] >= MAX_REWRITES or runtime.context.budget.remaining < 2
    return "generate" if state["relevant"] or state["broken"] or is_exhausted else "rewrite"


def after_rewrite(state: LoopState) -> Literal["agent", "generate", "__end__"]:
    if state["outcome"]:
        return "__end__"
    return "generate" if state["exhausted"] or state["broken"] else "agent"


@cache
def graph_of(mode: str, saver: Any) -> _Graph:
    """Return the graph of `mode`, built on first use and shared by all runs; `saver` stores its conversations."""
    return (build_deep if mode == "deep" else build_fast)(saver)


async def prepare(run: Run) -> PreparedGraph:
    async def extra_input(_: Any) -> dict[str, Any]:
        return {"run_mode": run.mode.name}

    return await prepare_graph(run, partial(graph_of, run.mode.name), _context, extra_input)


def _context(run: Run) -> LoopContext:
    cache = run.cache
    return LoopContext(
        reasoner=run.reasoner,
        search=cache.search,
        passages_of=cache.passages_of,
        budget=run.budget,
        answerable=cache.answerable,
        is_sure=cache.is_sure,
        is_fast=run.mode.name == "fast",
        condenser=run.condenser,
        quoter=run.quoter,
        verifiers=run.verifiers,
        options=run.question.options,
    )


async def remember(run: Run) -> None:
    """Add the text of an interrupted run to its conversation, which has only the question."""
    if not run.thread or run.saver is None or not run.text.strip():
        return
    graph, config = graph_of(run.mode.name, run.checkpointer()), run.config()
    snapshot = await graph.aget_state(config)
    if snapshot.values.get("question") == run.question.text.strip():
        await graph.aupdate_state(config, {"messages": [AIMessage(run.text)]}, as_node="generate")
