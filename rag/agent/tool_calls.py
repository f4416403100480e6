"""The messages that call the search tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

RETRIEVE: Final = "retrieve"


def call_for(queries: Sequence[str]) -> AIMessage:
    """Return the message that calls the tool once for each query."""
    from langchain_core.messages import AIMessage

    return AIMessage(
        content="",
        tool_calls=[
            {"name": RETRIEVE, "args": {"query": query}, "id": f"call_{uuid4().hex}", "type": "tool_call"}
            for query in queries
        ],
    )


def unreadable_call() -> AIMessage:
    """Return the message that stands for a call of which nothing can be told."""
    from langchain_core.messages import AIMessage
    from langchain_core.messages.tool import invalid_tool_call

    return AIMessage(content="", invalid_tool_calls=[invalid_tool_call(name=RETRIEVE)])
