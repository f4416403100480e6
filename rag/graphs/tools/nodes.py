"""The steps of tool mode. Each returns what changes in the state, and what it decided, for the trace."""

from __future__ import annotations

import logging
from typing import Any, Final

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from rag.checking.citations import consulted
from rag.checking.statements import declines
from rag.errors import ModelError
from rag.graphs.common import Result, asked, collect, entered, refused, take
from rag.graphs.tools.calls import Calls
from rag.graphs.tools.state import ToolContext, ToolState, fresh
from rag.locales import say
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import is_thanks
from rag.retrieval.answerable import DOUBT, REFUSE
from rag.runs.kept import decided, notice_of, passage_of, record
from rag.tools.calculator import expression_of
from rag.types import Notice, Passage

log = logging.getLogger(__name__)

CALLS_KEPT: Final = 2
_TALK: Final = frozenset({"small_talk", "unknown"})

Running = Runtime[ToolContext]


async def enter(state: ToolState, runtime: Running) -> Result:
    """Begin a question: nothing of the one before it stays but the conversation."""
    update, route = fresh(state["question"].strip()), runtime.context.options.route
    if route != "unknown" and (end := refused(update)):
        return end
    alone = route in (*_TALK, "statistics") or expression_of(update["question"])
    return await entered(update, {} if alone else state, runtime, CALLS_KEPT, aside=route != "web")


async def talk(state: ToolState, runtime: Running) -> Result:
    """Answer what needs no tool: small talk, or a wish that nobody understands."""
    context, question = runtime.context, state["question"]
    notice: Notice | None = None
    if context.options.route == "unknown":
        notice = Notice("wish_unknown")
        text = say(notice, context.work.language)
    else:
        text = await _small_talk(question, state, context)
    take(text, runtime, [])
    update = {"text": text, "messages": [AIMessage(text)], "outcome": "conversation"}
    return update | {"notice": record(notice) if notice else None}, decided("answered_without_searching")


async def _small_talk(question: str, state: ToolState, context: ToolContext) -> str:
    history = state["messages"][:-1]
    if isinstance(context.reasoner, ChatReasoner):
        prompt = requests.decide(context.reasoner.texts, question)
        try:
            if text := (await context.reasoner.choose(prompt, state["messages"], [])).text.strip():
                return text
        except ModelError as error:
            log.info("small talk is answered by rules (%s)", error.code)
    text = (await context.rules.decide(question, history, [])).text
    return text or say(Notice("small_talk_thanks" if is_thanks(question) else "small_talk"), context.work.language)


async def call(state: ToolState, runtime: Running) -> Result:
    """Have the model call tools, or rules where there is none, it fails, or the route's own tool knows.

    What a model says without a tool is its own opinion, and not believed.
    """
    context, question = runtime.context, asked(state)
    calls, drafted, problem = Calls(question, context), "", None
    no_web = context.options.route == "web" and context.work.web is None
    plain = no_web or expression_of(question)
    if isinstance(context.reasoner, ChatReasoner) and not plain:
        try:
            drafted = await calls.by_model(context.reasoner, state["messages"][:-1])
        except ModelError as error:
            problem = record(error.notice)
    if not calls.uses:
        await calls.by_rules()
    update = {"uses": calls.uses, "passages": calls.found()}
    runtime.stream_writer(update)
    names = [use["name"] for use in calls.uses]
    return {**update, "drafted": drafted, "problem": problem}, decided("called", tools=names)


async def write(state: ToolState, runtime: Running) -> Result:
    """Say what came of it: in the model's words, else in the tools' own, or quotes of what they found."""
    context, problem = runtime.context, state["problem"]
    passages = [passage_of(kept) for kept in state["passages"]]
    told = [use for use in state["uses"] if not use["failed"]]
    if not told:
        failed = next(use["failed"] for use in state["uses"])
        sentence = say(notice_of(failed) or Notice("run_failed"), context.work.language)
        take(sentence, runtime, [])
        nothing = {"text": sentence, "outcome": "failed", "notice": failed, "messages": [AIMessage(sentence)]}
        return nothing, decided("failed", reason=failed["code"] if failed else "")
    pieces: list[str] = []
    if state["drafted"]:
        take(state["drafted"], runtime, pieces)
    elif passages and context.answerable() < REFUSE:
        pass  # there is nothing to quote
    elif passages:
        await collect(context.rules.answer(asked(state), passages), runtime, pieces)
    else:
        take("\n\n".join(use["result"] for use in told), runtime, pieces)
    update = await _checked("".join(pieces), passages, state, context)
    outcome, notice = _ended(update["text"], bool(update["citations"]), passages, state)
    if outcome == "answered" and passages and not state["drafted"] and context.answerable() < DOUBT:
        outcome, notice = "caveat", record(Notice("in_doubt"))
    update |= {"outcome": outcome, "notice": notice or problem, "messages": [AIMessage(update["text"])]}
    if problem and outcome == "answered":
        update["outcome"] = "caveat"
    return update, decided("said", passages=len(passages), citations=len(update["citations"]))


async def _checked(text: str, passages: list[Passage], state: ToolState, context: ToolContext) -> dict[str, Any]:
    """The text with its marks held against the passages; without any it is what tools said, and has no marks."""
    verifiers = context.verifiers if state["drafted"] and passages else ()
    check = await consulted(text, passages, verifiers, asked(state), context.options.context_tokens)
    made = check.result().plain()
    if passages:
        return made
    return {**made, "statements": [], "text": made["text"] if state["drafted"] else text}


def _ended(text: str, cited: bool, passages: list[Passage], state: ToolState) -> tuple[str, Any]:
    searched = {use["name"] for use in state["uses"]} <= {"retrieve", "web_search"}
    if not text.strip() or (searched and passages and not cited and declines(text)):
        return "not_in_pages", record(Notice("not_in_pages"))
    if searched and not passages:
        return "not_in_pages", record(Notice("search_none"))
    return "answered", record(Notice("no_citations")) if searched and not cited else None
