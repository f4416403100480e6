"""What a tool is: what it is for, the one text that it takes, how long it may take, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rag.locales import say
from rag.types import Notice, Page, Passage


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool says in the asker's language, the same as plain data, and the passages that it found, to be cited."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    passages: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What tools work with in one run. All of it blocks. `web` is None where nothing searches the web."""

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
    """`about` and `told` say to a model what it is for, and what its one argument holds.

    `run` blocks, takes the argument, whatever it is, and raises RagError with a sentence where it can do nothing with
    it. `seconds` is how long it is waited for: work that may hang bounds itself.
    """

    name: str
    about: str
    argument: str
    told: str
    seconds: float
    run: Callable[[str, Work], Result]

    @property
    def schema(self) -> dict[str, Any]:
        """As services that call functions want it."""
        argument = {self.argument: {"type": "string", "description": self.told}}
        parameters = {"type": "object", "properties": argument, "required": [self.argument]}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.about, "parameters": parameters},
        }
