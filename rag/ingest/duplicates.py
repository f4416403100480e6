"""Whether a page that was read is in the library already, under another address or in nearly the same words.

From the surest sign to the least: an address known to lead to a stored page; a permanent redirect; a
canonical link on the same host; an address that differs in http or www alone; the same text; nearly the
same text. Sites err with canonical links (to their home page, or to the first page of a list), so one
counts only where the texts are alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rag.ingest.url_key import url_hash, url_key
from rag.store.duplicates import THRESHOLD, likeness, sign
from rag.store.library import Library
from rag.types import Decision, Notice, Page

ALIKE = 0.5
"""Two addresses that are said to be of one page are believed from this similarity of the texts on."""
_PAGING = frozenset(["page", "p", "pg", "paged", "start", "offset", "from", "seite", "pn", "pageno", "page_no"])
_PAGE_PATH = re.compile(r"/(?:page|p)[/-]?\d+/?$", re.IGNORECASE)
_ADDRESS = re.compile(r"(?P<scheme>https?)://(?P<www>www\.)?(?P<rest>[^/:\[\]]*[^/:\[\]\d.][^/:]*/.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A stored page that the one read repeats. `is_alias` tells that its address leads to that page."""

    reason: str
    page: Page
    is_alias: bool
    similarity: float = 1.0

    @property
    def notice(self) -> Notice:
        params: dict[str, Any] = {"title": self.page.title, "other": self.page.url, "url_hash": self.page.url_hash}
        return Notice(self.reason, {**params, "percent": min(99, round(100 * self.similarity))})

    @property
    def choices(self) -> tuple[Decision, ...]:
        return ("skip", "keep_both") if self.reason == "same_text" else ("skip", "refresh", "keep_both")


def find_duplicate(library: Library, page: Page, *, moved_to: str = "", canonical: str = "") -> Duplicate | None:
    """The stored page that `page`, not stored itself, repeats; None when it is new.

    `moved_to` is where its address redirects to for good, `canonical` what it says its address is.
    """
    canonical = believable(canonical, page.url)
    twins = twin_addresses(page.url)
    named = [page.url_hash, *(url_hash(one) for one in (moved_to, canonical) if one), *map(url_hash, twins)]
    known = library.resolve(named)
    if found := _same_address(library, page, known, moved_to, canonical, twins):
        return found
    if same := [one for one in library.same_text(page.text_hash) if one.url_hash != page.url_hash]:
        return Duplicate("same_text", same[0], False)
    signature = sign(page.text)
    near = [one for one in library.near_texts(signature) if one[0].url_hash != page.url_hash]
    return Duplicate("near_text", near[0][0], False, near[0][1]) if near else None


def _same_address(
    library: Library,
    page: Page,
    known: dict[str, Page],
    moved_to: str,
    canonical: str,
    twins: dict[str, str],
) -> Duplicate | None:
    if moved_to and (other := known.get(url_hash(moved_to))):
        return Duplicate("moved_address", other, True)
    signs = [(page.url_hash, "alias_address", ALIKE)]
    signs += [(url_hash(canonical), "canonical_alias", ALIKE)] if canonical else []
    signs += [(url_hash(address), reason, THRESHOLD) for address, reason in twins.items()]
    candidates = [(known[key], reason, least) for key, reason, least in signs if key in known]
    texts = library.texts([other.url_hash for other, _, _ in candidates])
    for other, reason, least in candidates:
        similarity = likeness(texts.get(other.url_hash, ""), page.text)
        if similarity >= least:
            return Duplicate(reason, other, True, similarity)
    return None


def aliases_of(page: Page, *, moved_to: str = "", canonical: str = "") -> tuple[str, ...]:
    """The other addresses that lead to a page which is no duplicate, spelled as their keys."""
    given = [moved_to, believable(canonical, page.url)]
    keys = dict.fromkeys(url_key(one) for one in given if one)
    return tuple(key for key in keys if key != url_key(page.url))


def with_alias(page: Page, address: str) -> Page:
    """The stored page with one more address that leads to it."""
    key = url_key(address)
    if key == url_key(page.url) or key in page.aliases:
        return page
    return replace(page, aliases=(*page.aliases, key))


def without_alias(page: Page, address: str) -> Page:
    return replace(page, aliases=tuple(one for one in page.aliases if one != url_key(address)))


def believable(canonical: str, url: str) -> str:
    """The canonical address, or "" for one that cannot be: the site's root, or a list's page that names another."""
    if not canonical or url_key(canonical) == url_key(url):
        return ""
    theirs, ours = urlsplit(url_key(canonical)), urlsplit(url_key(url))
    if theirs.path == "/" and not theirs.query and ours.path != "/":
        return ""
    return "" if _paging(ours.path, ours.query) != _paging(theirs.path, theirs.query) else canonical


def _paging(path: str, query: str) -> Sequence[object]:
    """Which page of a list an address asks for."""
    steps = [(name, value) for name, value in parse_qsl(query) if name.lower() in _PAGING]
    return [*steps, *_PAGE_PATH.findall(path)]


def twin_addresses(url: str) -> dict[str, str]:
    """The addresses that differ in http or www alone, with the reason's code; none of a file, a port or a bare IP."""
    match = _ADDRESS.fullmatch(url_key(url))
    if match is None:
        return {}
    scheme, www, rest = match["scheme"], match["www"] or "", match["rest"]
    other_scheme, other_www = ("http" if scheme == "https" else "https"), ("" if www else "www.")
    return {
        f"{other_scheme}://{www}{rest}": "twin_https",
        f"{scheme}://{other_www}{rest}": "twin_www",
        f"{other_scheme}://{other_www}{rest}": "twin_both",
    }
