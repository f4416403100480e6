"""The interface of tools: description, argument, timeout and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rag.locales import say
from rag.types import Notice, Page, Passage


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: text in the user's language, and passages to cite."""

    text: str
    passages: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class ToolResources:
    """The resources of tools in one run. All callables block. `web` is None without web search."""

    language: str
    now: datetime
    search: Callable[[str], Sequence[Passage]]
    pages: Callable[[], Sequence[Page]]
    text: Callable[[str], str]
    web: Callable[[str], Sequence[Passage]] | None = None
    code: bool = False

    def say(self, code: str, **params: Any) -> str:
        return say(Notice(code, params), self.language)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; `description` and `argument_description` describe it and its argument to a model.

    `run` blocks, accepts any argument, and raises RagError if it cannot use it. `seconds` is its timeout; work that may
    hang must limit itself.
    """

    name: str
    description: str
    argument: str
    argument_description: str
    seconds: float
    run: Callable[[str, ToolResources], ToolResult]

    @property
    def schema(self) -> dict[str, Any]:
        """The tool in the format of function calling."""
        argument = {self.argument: {"type": "string", "description": self.argument_description}}
        parameters = {"type": "object", "properties": argument, "required": [self.argument]}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": parameters},
        }
