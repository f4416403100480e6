"""What a conversation can call besides a search: each tool is a file here, and a row.

Texts of pages and files are never read as calls: a tool gets what the person typed, or what the chat model asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rag.locales import say, sentences
from rag.tools import calculator, calendar_day, code, outline, searches, statistics
from rag.tools.tool import Tool
from rag.types import Notice, ToolUse

_ROWS: Final[tuple[Tool, ...]] = (
    searches.RETRIEVE,
    calculator.TOOL,
    calendar_day.TOOL,
    statistics.TOOL,
    outline.TOOL,
    searches.WEB,
    code.TOOL,
)
TOOLS: Final[Mapping[str, Tool]] = MappingProxyType({tool.name: tool for tool in _ROWS})

_LINE: Final = 160
OWN_WORDS: Final = frozenset({"calculator", "date"})
"""What these say holds what they were given, and no words of pages."""


def use_line(use: ToolUse, language: str, answer: str = "") -> str:
    """`Calculator: 15% * 240 = 36`: what was called, and the beginning of what it said, on one line.

    What is the whole `answer` is not said again.
    """
    told = " ".join((say(use.failed, language) if use.failed else use.result).split())
    name = say(Notice(f"tool_{use.name}"), language) if f"tool_{use.name}" in sentences("en") else use.name
    if use.name in OWN_WORDS and not use.failed:
        return f"{name}: {told[:_LINE]}"
    given = f"{name} “{' '.join(use.argument.split())[: _LINE // 2]}”"
    if use.result.strip() == answer.strip():
        return given
    return f"{given}: {told[:_LINE]}{'…' * (len(told) > _LINE)}"
