"""Tools that a conversation can call, listed in `TOOLS`.

Text of pages and files is never parsed for calls: arguments come from the user's message or the chat model's request.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rag.locales import say, sentences
from rag.tools import calculator, calendar_day, code, pages
from rag.tools.tool import Tool
from rag.types import Notice, ToolUse

_ROWS: Final[tuple[Tool, ...]] = (
    pages.RETRIEVE,
    calculator.TOOL,
    calendar_day.TOOL,
    pages.STATISTICS,
    pages.OUTLINE,
    pages.WEB,
    code.TOOL,
)
TOOLS: Final[Mapping[str, Tool]] = MappingProxyType({tool.name: tool for tool in _ROWS})

_LINE: Final = 160
OWN_WORDS: Final = frozenset({"calculator", "date"})
"""Tools whose results repeat their argument, and contain no text of pages."""


def describe_use(use: ToolUse, language: str, answer: str = "") -> str:
    """Return a line with the tool, its argument and the start of its result: `Calculator: 15% * 240 = 36`.

    A result that equals the `answer` is omitted.
    """
    result = " ".join((say(use.failed, language) if use.failed else use.result).split())
    name = say(Notice(f"tool_{use.name}"), language) if f"tool_{use.name}" in sentences("en") else use.name
    if use.name in OWN_WORDS and not use.failed:
        return f"{name}: {result[:_LINE]}"
    label = f"{name} “{' '.join(use.argument.split())[: _LINE // 2]}”"
    if use.result.strip() == answer.strip():
        return label
    return f"{label}: {result[:_LINE]}{'…' * (len(result) > _LINE)}"
