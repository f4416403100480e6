"""The headings of a page."""

from __future__ import annotations

import re
from typing import Final

from rag.errors import ToolError
from rag.retrieval.page_names import find_named_pages
from rag.text import escape_markdown, fenced_blocks
from rag.tools.tool import Result, Tool, Work

_HEADING: Final = re.compile(r"^(#{1,6}) ++(.+)$", re.MULTILINE)
_MOST: Final = 100


def outline(request: str, work: Work) -> Result:
    """Return the outline of the named page, or of the only one. Raises ToolError if none or several are meant."""
    pages = work.pages()
    matches = find_named_pages(request, pages) or (pages if len(pages) == 1 else [])
    if len(matches) != 1:
        raise ToolError("outline_which")
    (page,) = matches
    text = work.text(page.url_hash)
    code = fenced_blocks(text)
    headers = [one for one in _HEADING.finditer(text) if not any(start <= one.start() < end for start, end in code)]
    headings = [(len(one[1]), one[2].strip()) for one in headers[:_MOST]]
    title, data = (
        escape_markdown(page.title or page.url),
        {"url": page.url, "headings": [list(one) for one in headings]},
    )
    if not headings:
        return Result(work.say("outline_none", title=title), data)
    lines = [f"{'  ' * (level - 1)}- {heading}" for level, heading in headings]
    return Result("\n".join([work.say("outline_of", title=title), "", *lines]), data)


TOOL: Final = Tool(
    "outline",
    "Lists the headings of one page of the person's library.",
    "page",
    "the page's title or address",
    10.0,
    outline,
)
