"""A file with the facts that its text must and must not contain, and the faults of the extracted text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag.errors import IngestError
from rag.reading.parser import ExtractedDocument, Parser
from rag.reading.quality import check_quality

_BLANKS = re.compile(r"[^\S\n]+")
Fact = str | tuple[str, ...]
"""A piece of text, or several alternatives."""


@dataclass(frozen=True, slots=True)
class Case:
    """One spelling of a construct, as a file.

    Facts are searched for as written, and with each run of blanks as one space. `error` is the expected error code,
    `notice` the code of the expected reason for review.
    """

    construct: str
    spelling: str
    body: bytes
    content_type: str = "text/html"
    must: tuple[Fact, ...] = ()
    must_not: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    title: str = ""
    error: str = ""
    notice: str = ""
    name: str = "https://example.org/page"


def faults(case: Case, parser: Parser) -> list[str]:
    """Return the faults of the text that the app reads from the file, a line each; empty if there are none."""
    try:
        result = parser.parse(case.body, case.content_type, None, case.name)
    except IngestError as error:
        return [] if case.error == error.code else [f"refused: {error.code}"]
    return [f"not refused as {case.error}"] if case.error else [*_in_text(case, result.text), *_in_facts(case, result)]


def _in_text(case: Case, text: str) -> list[str]:
    plain = _BLANKS.sub(" ", text)
    counts = {fact: max(text.count(fact), plain.count(fact)) for fact in _pieces(case)}
    return [
        *(f"lacks {fact!r}" for fact in case.must if not any(counts[one] for one in _options(fact))),
        *(f"has {fact!r}" for fact in case.must_not if counts[fact]),
        *(f"has {fact!r} {counts[fact]} times" for fact in case.once if counts[fact] != 1),
    ]


def _in_facts(case: Case, result: ExtractedDocument) -> list[str]:
    notice = check_quality(result, can_read=lambda text: True)
    code = notice.code if notice else ""
    return [
        *([f"title {result.title!r}"] if case.title and result.title != case.title else []),
        *([f"needs review: {code!r}"] if code != case.notice else []),
    ]


def _pieces(case: Case) -> set[str]:
    return {one for fact in (*case.must, *case.must_not, *case.once) for one in _options(fact)}


def _options(fact: Fact) -> tuple[str, ...]:
    return (fact,) if isinstance(fact, str) else fact
