"""The one tool of the loop, and how a model's wish to use it is read."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.runtime import get_runtime

from rag.graphs.answer.state import LoopContext
from rag.reasoning.messages import RETRIEVE
from rag.reasoning.utf16 import mended
from rag.tracing import span
from rag.types import Passage

MAX_QUERIES = 3
MAX_QUERY_CHARACTERS = 400

_DESCRIPTION = (
    "Search the person's saved web pages and return the passages that fit best. "
    "query: the key terms, names and numbers of what is wanted, complete in itself."
)
_QUERY = re.compile(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")')
_LOOKS_LIKE_A_CALL = re.compile(rf'<tool_call>|"name"\s*:\s*"{RETRIEVE}"|\b{RETRIEVE}\s*\(')


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
class Wish:
    """What a model wants: to search for `queries`, or to say `text`; `problem` if its call made no sense."""

    queries: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""


def read_wish(message: AIMessage) -> Wish:
    """Read the model's decision. A call whose query can be told is no problem, whatever else is wrong."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    text = message.text.strip()
    if not calls and not _LOOKS_LIKE_A_CALL.search(text):
        return Wish(text=text)
    queries = [query for call in calls if (query := _query_of(call.get("args")))]
    if not calls and (query := _query_in(text)):
        queries = [query]
    if queries:
        return Wish(tuple(dict.fromkeys(queries))[:MAX_QUERIES])
    name = calls[0].get("name") if calls else RETRIEVE
    if name != RETRIEVE:
        return Wish(problem="there is no tool of that name")
    return Wish(problem="its arguments were not a JSON object with a string named query")


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
