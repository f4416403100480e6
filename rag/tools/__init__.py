"""What a conversation can call besides a search: each tool is a file here, and a row.

Texts of pages and files are never read as calls: a tool gets what the person typed, or what the chat model asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rag.tools import calculator, calendar_day, code, outline, searches, statistics
from rag.tools.tool import Tool

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
