"""Calls of tools: by the model, one after another, or by rules."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from rag.errors import RagError
from rag.graphs.tools.state import ToolContext, UseRecord
from rag.prompts import requests
from rag.prompts.requests import passage_block, quoted
from rag.reasoning.chat import ChatReasoner
from rag.runs.kept import record
from rag.tools import OWN_WORDS, TOOLS
from rag.tools.calculator import expression_of
from rag.tools.tool import Result, Tool
from rag.tracing import span
from rag.types import Notice, Passage

MOST_CALLS: Final = 4
OF_ROUTE: Final = {"calculate": "calculator", "date": "date", "statistics": "statistics", "web": "web_search"}
_LONGEST_ARGUMENT: Final = 20_000
_TOLD: Final = 8_000  # characters of a result that a model is told


class Calls:
    """The tools that were called for one question, and the passages that they found."""

    def __init__(self, question: str, context: ToolContext) -> None:
        self.question = question
        self.uses: list[UseRecord] = []
        self.passages: list[Passage] = []
        self._context = context

    async def by_rules(self) -> None:
        """Call the tool of the route, or for none the calculator for arithmetic, else a search."""
        name = OF_ROUTE.get(self._context.options.route, "")
        await self.call(name or ("calculator" if expression_of(self.question) else "retrieve"), self.question)

    async def by_model(self, model: ChatReasoner, history: Sequence[AnyMessage]) -> str:
        """What the model says of the results, after as many calls as it wants; "" where it called nothing.

        Raises ModelError.
        """
        budget, work = self._context.budget, self._context.work
        prompt = requests.tools(model.texts, self.question, f"{work.now:%A %Y-%m-%d %H:%M}")
        messages: list[AnyMessage] = [*history, HumanMessage(self.question)]
        while True:
            with budget.keeping_end():
                offered = self._offered() if budget.left and len(self.uses) < MOST_CALLS else []
            reply = await model.choose(prompt, messages, [tool.schema for tool in offered])
            calls = [*reply.tool_calls, *reply.invalid_tool_calls] if offered else []
            if not calls:
                return str(reply.text) if self.uses else ""
            messages.append(AIMessage(reply.text, tool_calls=[_readable(call) for call in calls]))
            for call in calls:
                told = await self._told(str(call["name"]), _argument(call.get("args")))
                messages.append(ToolMessage(told, tool_call_id=str(call["id"])))

    def _offered(self) -> list[Tool]:
        """All that can do anything here: the web only where it may be searched, code only where it may be run."""
        off = {"web_search"} if self._context.work.web is None else set()
        off |= set() if self._context.work.code else {"python"}
        return [tool for name, tool in TOOLS.items() if name not in off]

    async def _told(self, name: str, argument: str) -> str:
        """What a call of the model's is answered with. Passages are numbered through all calls."""
        if len(self.uses) >= MOST_CALLS:
            return "No more calls can be made."
        before = len(self.passages)
        use = await self.call(name, argument)
        if len(self.passages) == before:
            said = use["result"][:_TOLD] or self._said(use)
            return said if use["name"] in OWN_WORDS else quoted(said)
        block, _ = passage_block(self.passages[before:], numbers=range(before + 1, len(self.passages) + 1))
        return block[: 4 * _TOLD]

    def _said(self, use: UseRecord) -> str:
        failed = use["failed"] or record(Notice("search_none"))
        return self._context.work.say(failed["code"], **failed["params"])

    async def call(self, name: str, argument: str) -> UseRecord:
        """Call a tool, with what came of it kept; one that is not there, or fails, says so."""
        began, argument = time.perf_counter(), argument[:_LONGEST_ARGUMENT]
        use = UseRecord(name=name[:60], argument=argument[:1_000], result="", seconds=0.0, failed=None)
        with span(use["name"], "tool", argument=argument[:200]):
            try:
                result = await self._result(name, argument)
                use["result"] = result.text
                self.passages += [one for one in result.passages if one.id not in {known.id for known in self.passages}]
            except RagError as error:
                use["failed"] = record(error.notice)
        use["seconds"] = round(time.perf_counter() - began, 3)
        self.uses.append(use)
        return use

    async def _result(self, name: str, argument: str) -> Result:
        tool = TOOLS.get(name)
        if tool is None:
            raise RagError("tool_missing", name=name[:60])
        try:
            async with asyncio.timeout(tool.seconds):
                return await asyncio.to_thread(tool.run, argument, self._context.work)
        except TimeoutError as error:
            raise RagError("tool_timeout", name=name, seconds=f"{tool.seconds:g}") from error

    def found(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.passages]


def _readable(call: Any) -> Any:
    """A call as a message may hold it: with arguments that are an object."""
    args = call.get("args")
    return {"name": call["name"] or "", "args": args if isinstance(args, dict) else {}, "id": call["id"]}


def _argument(args: Any) -> str:
    """The one text that a call gives, whatever it calls it."""
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return str(args)
    values = [one for one in args.values() if isinstance(one, str | int | float)] if isinstance(args, dict) else []
    return str(values[0]) if values else ""
