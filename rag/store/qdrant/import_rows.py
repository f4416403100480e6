"""Rows of an exported file, which anybody may have made, as pages, versions and chunks. ValueError for others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, get_args

from rag.store.qdrant.records import chunk_payload
from rag.store.values import text_hash
from rag.text import plain
from rag.types import Chunk, Page, PageSource, PageStatus, PageVersion
from rag.web.guard import is_web_address, shown
from rag.web.url_key import split_url

_HASH = re.compile(r"[0-9a-f]{32}")
_NUMBERS = frozenset(["chunks", "characters", "failures", "version", "reading"])
_LARGEST = 2**31
_NEEDED = frozenset(["url", "url_hash", "title", "text_hash", "generation", "added_at"])
_OPTIONAL = frozenset(field.name for field in fields(Page)) - _NEEDED
_TIMES = frozenset(["updated_at", "checked_at"])
# Narrower than what Python takes for a time: the engine leaves out of its order what it cannot read.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


class AddressError(ValueError):
    """A page's address that no page can have; its message is the address as it may be shown."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk on its way in: `dense` tells whether it has a vector, `terms` how long its sparse one is."""

    page: Page
    chunk: Chunk
    content_hash: str
    left_out: bool
    dense: bool
    terms: int
    parent_id: str = ""

    def payload(self, written: float) -> dict[str, Any]:
        active = not self.left_out
        payload = chunk_payload(self.page, self.chunk, self.content_hash, active=active, written=written)
        payload["metadata"] |= {"left_out": True} if self.left_out else {}
        payload["metadata"] |= {"parent_id": self.parent_id} if self.chunk.parent else {}
        return payload


def checked_page(row: Mapping[str, Any], text: str) -> Page:
    """The page of a row, with its text."""
    given: dict[str, Any] = {"text": text}
    for field in fields(Page):
        if field.name == "text" or (field.name not in row and field.name in _OPTIONAL):
            continue
        given[field.name] = _value(field.name, row[field.name])
    page = Page(**{"language": "", "site": "", "source": "import", **given})
    page = replace(page, title=plain(page.title), author=plain(page.author))
    _require(bool(_HASH.fullmatch(page.url_hash)) and page.source in get_args(PageSource))
    _require(page.status in get_args(PageStatus) and page.version > 0 and bool(page.generation or not page.chunks))
    _require(_is_moment(page.added_at) and all(_is_moment(getattr(page, name) or page.added_at) for name in _TIMES))
    _require(page.text_hash == text_hash(text))
    return page


def addressed(page: Page) -> Page:
    """The page, whose address passes the test that rows of JSONL pass, or is that of a file, with its real aliases.

    Raises AddressError.
    """
    if not (is_web_address(page.url) or (page.source in ("file", "note") and _is_file_address(page.url))):
        raise AddressError(shown(page.url))
    return replace(page, aliases=tuple(filter(_is_address, page.aliases)))


def checked_claim(row: Mapping[str, Any]) -> str:
    """The address that the page of a row says is its own; empty for what is none."""
    claim = row.get("claim", "")
    _require(isinstance(claim, str))
    return claim if _is_address(claim) else ""


def checked_version(row: Mapping[str, Any], text: str) -> PageVersion:
    """The version of a row, with its text."""
    number = row["number"]
    _require(isinstance(number, int) and not isinstance(number, bool))
    names = ("url_hash", "title", "text_hash", "since", "until")
    words = {name: row[name] for name in names}
    _require(all(isinstance(value, str) for value in words.values()))
    return PageVersion(number=number, text=text, **{**words, "title": plain(words["title"])})


def checked_chunk(row: Mapping[str, Any], pages: Mapping[str, tuple[Page, bool]]) -> ChunkRow:
    """The chunk of a row, a slice of one of `pages`."""
    page, left_out = pages[row["page"]]
    start, end, index, terms = row["start"], row["end"], row["index"], row["terms"]
    _require(all(type(value) is int for value in (start, end, index, terms)) and type(row["dense"]) is bool)
    _require(0 <= start <= end <= len(page.text) and 0 <= index < page.chunks and 0 <= terms <= 1_000_000)
    section, content_hash, header = row["section"], row["hash"], row.get("header", "")
    _require(isinstance(content_hash, str) and isinstance(header, str))
    _require(isinstance(section, list) and all(isinstance(s, str) for s in section))
    parent, parent_id = None, ""
    if row.get("parent") is not None:
        first, last, parent_id = row["parent"]
        _require(type(first) is int and type(last) is int and isinstance(parent_id, str))
        _require(0 <= first <= start and end <= last <= len(page.text))
        parent = (first, last)
    chunk = Chunk(index, page.text[start:end], start, end, tuple(section), header, parent)
    return ChunkRow(page, chunk, content_hash, left_out, row["dense"], terms, parent_id)


def _value(name: str, given: Any) -> Any:
    if name == "aliases":
        _require(isinstance(given, list) and all(isinstance(one, str) for one in given))
        return tuple(given)
    _require(type(given) is (int if name in _NUMBERS else str))
    _require(name not in _NUMBERS or 0 <= given < _LARGEST)
    return given


def _is_address(given: str) -> bool:
    return is_web_address(given) or _is_file_address(given)


def _is_file_address(given: str) -> bool:
    """Return whether this is a file address as imports make them, with a percent-encoded name."""
    return split_url(given).scheme == "file" and given.isascii() and given.isprintable() and " " not in given


def _is_moment(given: str) -> bool:
    """Return whether this is a stored time: ISO 8601 with a time zone."""
    if not _MOMENT.fullmatch(given):
        return False
    datetime.fromisoformat(given)  # ValueError for the 31st of February
    return True


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("a value that cannot be")
