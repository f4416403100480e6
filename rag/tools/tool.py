"""A tool: its purpose, its one argument, its time limit, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rag.locales import say
from rag.types import Notice, Page, Passage


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's text in the asker's language, the same as plain data, and the passages it found, for citation."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    passages: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class Work:
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
    """`about` and `told` describe the tool and its argument to a model.

    `run` blocks, takes any argument, and raises RagError with a sentence if it can't use it. `seconds` is its timeout:
    work that may hang limits itself.
    """

    name: str
    about: str
    argument: str
    told: str
    seconds: float
    run: Callable[[str, Work], Result]

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as services with function calling expect it."""
        argument = {self.argument: {"type": "string", "description": self.told}}
        parameters = {"type": "object", "properties": argument, "required": [self.argument]}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.about, "parameters": parameters},
        }
