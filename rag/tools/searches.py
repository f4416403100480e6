"""Search the library, or the web; results are passages, which are cited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag.errors import ToolError
from rag.text import to_plain_line
from rag.tools.tool import Result, Tool, Work
from rag.types import Passage


def retrieve(query: str, work: Work) -> Result:
    return _result(work.search(query), work)


def search_web(query: str, work: Work) -> Result:
    """Search the web. Raises ToolError if web search is off, and WebSearchError."""
    if work.web is None:
        raise ToolError("web_tool_off")
    return _result(work.web(query), work)


def _result(passages: Sequence[Passage], work: Work) -> Result:
    titles = dict.fromkeys(to_plain_line(one.title or one.url) for one in passages)
    text = work.say("search_found", count=len(passages), titles=" · ".join(titles)) if passages else ""
    return Result(text or work.say("search_none"), {"passages": [one.id for one in passages]}, passages)


RETRIEVE: Final = Tool(
    "retrieve",
    "Searches the person's saved web pages and returns the passages that fit best.",
    "query",
    "the key terms, names and numbers of what is wanted, complete in itself",
    60.0,
    retrieve,
)
WEB: Final = Tool(
    "web_search",
    "Searches the open web, reads the first pages, and returns passages of them. For what saved pages cannot hold.",
    "query",
    "what to search for, in a few words",
    90.0,
    search_web,
)
