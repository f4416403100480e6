"""The tool mode: answers a message with tools that a model or rules call.

Each step returns a state update, and its decision for the trace.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph

from rag.checking.citations import check_with
from rag.checking.statements import declines
from rag.errors import ModelError, RagError
from rag.graphs.common import (
    CALLS_RESERVED,
    ConversationState,
    Result,
    Running,
    add_steps,
    blank_fields,
    check_question,
    collect,
    question_of,
    require_quoter,
    start_turn,
    stream_piece,
    summary_messages,
)
from rag.locales import Language, say
from rag.prompts import requests
from rag.prompts.requests import passage_block, wrap_quote
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import is_greeting, is_thanks
from rag.retrieval.context import CAVEAT_THRESHOLD, REFUSAL_THRESHOLD
from rag.runs.run import NoticeRecord, Run, end_update, notice_of, passage_of, record, step_note
from rag.text import is_chinese
from rag.tools import OWN_WORDS, TOOLS
from rag.tools.calculator import expression_of
from rag.tools.tool import ToolResources, ToolResult
from rag.tracing import span
from rag.types import Notice, Passage, ToolUse

log = logging.getLogger(__name__)

_MAX_CALLS: Final = 4
TOOL_OF_ROUTE: Final = {"calculate": "calculator", "date": "date", "statistics": "statistics", "web": "web_search"}
_MAX_ARGUMENT: Final = 20_000
_MAX_RESULT: Final = 8_000  # characters of a result that a model reads
_MAX_BLOCK: Final = 4 * _MAX_RESULT  # characters of passages that a model reads
_TALK_ROUTES: Final = frozenset({"small_talk", "unknown"})


class ToolState(ConversationState, total=False):
    """The conversation, and the fields of the current question, which `enter` resets.

    `uses` are the tool calls, each a `ToolUse` as plain data; `drafted` is the model's text on the results, `problem`
    why there is none.
    """

    uses: list[dict[str, Any]]
    passages: list[dict[str, Any]]
    drafted: str
    problem: NoticeRecord | None


class ToolCalls:
    """The tool calls for one question, and the passages that they found."""

    def __init__(self, question: str, run: Run) -> None:
        self.question = question
        self.uses: list[ToolUse] = []
        self.passages: list[Passage] = []
        self._options = run.options
        self._budget = run.budget
        self._resources = _tool_resources(run)

    async def call_by_rules(self) -> None:
        """Call the tool of the route; without one, the calculator for arithmetic, else a search."""
        name = TOOL_OF_ROUTE.get(self._options.route, "")
        await self.call(name or ("calculator" if expression_of(self.question) else "retrieve"), self.question)

    async def call_by_model(self, model: ChatReasoner, history: Sequence[AnyMessage]) -> str:
        """Let the model call tools, and return its text on their results; "" if it calls none.

        Raises ModelError.
        """
        prompt = requests.tools(model.texts, self.question, f"{self._resources.now:%A %Y-%m-%d %H:%M}")
        messages: list[AnyMessage] = [*history, HumanMessage(self.question)]
        unavailable = {"web_search"} if self._resources.web is None else set()
        unavailable |= set() if self._resources.code else {"python"}
        available = [tool for name, tool in TOOLS.items() if name not in unavailable]
        while True:
            with self._budget.reserve_final_calls():
                tools = available if self._budget.remaining and len(self.uses) < _MAX_CALLS else []
            reply = await model.choose(prompt, messages, [tool.schema for tool in tools])
            calls: list[Any] = [*reply.tool_calls, *reply.invalid_tool_calls] if tools else []
            if not calls:
                return str(reply.text) if self.uses else ""
            readable = [  # a message's arguments must be an object
                {
                    "name": call["name"] or "",
                    "args": args if isinstance(args := call.get("args"), dict) else {},
                    "id": call["id"],
                }
                for call in calls
            ]
            messages.append(AIMessage(reply.text, tool_calls=readable))
            for call in calls:
                result_text = await self._reply_to(str(call["name"]), _argument(call.get("args")))
                messages.append(ToolMessage(result_text, tool_call_id=str(call["id"])))

    async def _reply_to(self, name: str, argument: str) -> str:
        """Call a tool for the model, and return the reply. Passages are numbered across all calls."""
        if len(self.uses) >= _MAX_CALLS:
            return "No more calls can be made."
        before = len(self.passages)
        use = await self.call(name, argument)
        if found := self.passages[before:]:
            for count in range(len(found), 0, -1):  # the first ones that fit in whole tags, at least one
                block, _ = passage_block(found[:count], numbers=range(before + 1, before + 1 + count))
                if len(block) <= _MAX_BLOCK:
                    break
            return block
        failure = use.failed or Notice("search_none")
        text = use.result[:_MAX_RESULT] or self._resources.say(failure.code, **failure.params)
        return text if use.name in OWN_WORDS else wrap_quote(text)

    async def call(self, name: str, argument: str) -> ToolUse:
        """Call a tool and record its result; an unknown or failing tool is recorded with its error."""
        began, argument, text, failure = time.perf_counter(), argument[:_MAX_ARGUMENT], "", None
        with span(name[:60], "tool", argument=argument[:200]):
            try:
                result = await self._run_tool(name, argument)
                text = result.text
                self.passages += [one for one in result.passages if one.id not in {seen.id for seen in self.passages}]
            except RagError as error:
                failure = error.notice
        use = ToolUse(name[:60], argument[:1_000], text, round(time.perf_counter() - began, 3), failure)
        self.uses.append(use)
        return use

    async def _run_tool(self, name: str, argument: str) -> ToolResult:
        tool = TOOLS.get(name)
        if tool is None:
            raise RagError("tool_missing", name=name[:60])
        try:
            async with asyncio.timeout(tool.seconds):
                return await asyncio.to_thread(tool.run, argument, self._resources)
        except TimeoutError as error:
            raise RagError("tool_timeout", name=name, seconds=f"{tool.seconds:g}") from error


def _argument(args: Any) -> str:
    """Return the first text or number among a call's arguments, whatever its name; "" if there is none."""
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return str(args)
    values = [one for one in args.values() if isinstance(one, str | int | float)] if isinstance(args, dict) else []
    return str(values[0]) if values else ""


async def enter(state: ToolState, runtime: Running) -> Result:
    """Start a question; only the conversation survives from the earlier state."""
    update: dict[str, Any] = {**blank_fields(state["question"].strip()), "uses": [], "passages": []}
    update |= {"drafted": "", "problem": None}
    route = runtime.context.options.route
    if route != "unknown" and (end := check_question(update)):
        return end
    is_standalone = route in (*_TALK_ROUTES, "statistics") or expression_of(update["question"])
    return await start_turn(update, {} if is_standalone else state, runtime, CALLS_RESERVED, aside=route != "web")


async def talk(state: ToolState, runtime: Running) -> Result:
    """Answer small talk, or a request that is not understood, without a tool."""
    run, question = runtime.context, state["question"]
    notice = Notice("wish_unknown") if run.options.route == "unknown" else None
    text = say(notice, _language_of(run)) if notice else await _answer_small_talk(question, state, run)
    stream_piece(text, runtime, [])
    update = {"text": text, "messages": [AIMessage(text)], **end_update("conversation", notice)}
    return update, step_note("answered_without_searching")


async def _answer_small_talk(question: str, state: ToolState, run: Run) -> str:
    history = [*summary_messages(state), *state["messages"][:-1]]
    if isinstance(run.reasoner, ChatReasoner):
        prompt = requests.decide(run.reasoner.texts, question)
        try:
            if text := (await run.reasoner.choose(prompt, [*history, state["messages"][-1]], [])).text.strip():
                return text
        except ModelError as error:
            log.info("small talk is answered by rules (%s)", error.code)
    text = (await require_quoter(run).decide(question, history, [])).text
    greeting = "small_talk" if is_greeting(question) and not history else "small_talk_help"
    return text or say(Notice("small_talk_thanks" if is_thanks(question) else greeting), _language_of(run))


async def call(state: ToolState, runtime: Running) -> Result:
    """Have the model call tools; use rules if there is no model, if it fails or calls none, and for arithmetic.

    A model's text without a tool call is ignored, since it has no source.
    """
    run, question = runtime.context, question_of(state)
    calls, drafted, problem = ToolCalls(question, run), "", None
    no_web = run.options.route == "web" and run.cache.retriever.web is None
    skip_model = no_web or expression_of(question)
    if isinstance(run.reasoner, ChatReasoner) and not skip_model:
        try:
            drafted = await calls.call_by_model(run.reasoner, state["messages"][:-1])
        except ModelError as error:
            problem = record(error.notice)
    if not calls.uses:
        await calls.call_by_rules()
    update = {"uses": [asdict(use) for use in calls.uses], "passages": [asdict(one) for one in calls.passages]}
    runtime.stream_writer(update)
    names = [use.name for use in calls.uses]
    return {**update, "drafted": drafted, "problem": problem}, step_note("called", tools=names)


async def write(state: ToolState, runtime: Running) -> Result:
    """Write the answer: the model's text, else quotes of the passages, else the results of the tools."""
    run, problem = runtime.context, state["problem"]
    passages = [passage_of(data) for data in state["passages"]]
    succeeded = [use for use in state["uses"] if not use["failed"]]
    if not succeeded:
        failure = next(use["failed"] for use in state["uses"])
        sentence = say(notice_of(failure) or Notice("run_failed"), _language_of(run))
        stream_piece(sentence, runtime, [])
        nothing = {"text": sentence, "outcome": "failed", "notice": failure, "messages": [AIMessage(sentence)]}
        return nothing, step_note("failed", reason=failure["code"] if failure else "")
    pieces: list[str] = []
    if state["drafted"]:
        stream_piece(state["drafted"], runtime, pieces)
    elif passages and run.cache.answerable() < REFUSAL_THRESHOLD:
        pass  # the passages are unlikely to answer, so nothing is quoted
    elif passages:
        await collect(require_quoter(run).answer(question_of(state), passages), runtime, pieces)
    else:
        stream_piece("\n\n".join(use["result"] for use in succeeded), runtime, pieces)
    update = await _check("".join(pieces), passages, state, run)
    outcome, notice = _outcome(update["text"], bool(update["citations"]), passages, state)
    if outcome == "answered" and passages and not state["drafted"] and run.cache.answerable() < CAVEAT_THRESHOLD:
        outcome, notice = "caveat", record(Notice("in_doubt"))
    update |= {"outcome": outcome, "notice": notice or problem, "messages": [AIMessage(update["text"])]}
    if problem and outcome == "answered":
        update["outcome"] = "caveat"
    return update, step_note("said", passages=len(passages), citations=len(update["citations"]))


async def _check(text: str, passages: list[Passage], state: ToolState, run: Run) -> dict[str, Any]:
    """Return the text with its citations checked against the passages; text of tools has no citations."""
    verifiers = run.verifiers if state["drafted"] and passages else ()
    check = await check_with(text, passages, verifiers, question_of(state), run.options.context_tokens)
    result = check.result().plain()
    if passages:
        return result
    return {**result, "statements": [], "text": result["text"] if state["drafted"] else text}


def _outcome(text: str, has_citations: bool, passages: list[Passage], state: ToolState) -> tuple[str, Any]:
    searched = {use["name"] for use in state["uses"]} <= {"retrieve", "web_search"}
    if not text.strip() or (searched and passages and not has_citations and declines(text)):
        return "not_in_pages", record(Notice("not_in_pages"))
    if searched and not passages:
        return "not_in_pages", record(Notice("search_none"))
    return "answered", record(Notice("no_citations")) if searched and not has_citations else None


@cache
def graph_of(saver: Any) -> Any:
    """Build enter → call → write, or enter → talk, on first use; all runs share the graph."""
    builder = StateGraph(ToolState, context_schema=Run)
    add_steps(builder, enter, talk, call, write)
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["talk", "call", END])
    builder.add_edge("talk", END)
    builder.add_edge("call", "write")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver)


def _after_enter(state: ToolState, runtime: Running) -> Literal["talk", "call", "__end__"]:
    if state["outcome"]:
        return "__end__"
    return "talk" if runtime.context.options.route in _TALK_ROUTES else "call"


def _language_of(run: Run) -> Language:
    return "zh" if is_chinese(run.question.text) else "en"


def _tool_resources(run: Run) -> ToolResources:
    cache, options = run.cache, run.question.options
    reader = cache.retriever.reader

    def text(url_hash: str) -> str:
        page = reader.read(url_hash) if reader else None
        return page.text if page else ""

    return ToolResources(
        language=_language_of(run),
        now=datetime.now().astimezone(),
        search=cache.search,
        pages=reader.list_pages if reader else tuple,
        text=text,
        web=cache.retriever.web if options.web == "allowed" or options.route == "web" else None,
        code=options.code,
    )
