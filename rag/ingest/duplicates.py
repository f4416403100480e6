"""Whether a page that was read is in the library already, under another address or in nearly the same words.

From the surest sign to the least: an address known to lead to a stored page; a permanent redirect; a
canonical link on the same host; an address that differs in http or www alone; the same text; nearly the
same text. Sites err with canonical links (to their home page, or to the first page of a list), so one
counts only where the texts are alike. Until the address that it names was read it is a claim: kept with
the page, so that the two are known as one whichever comes first, and no reason to leave that address alone.

New pages none of which can be what another repeats or gives way to (`independent_groups`) are stored together.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from rag.ingest.loader import OnStage, Read
from rag.store.duplicates import THRESHOLD, Signature, likeness, sign
from rag.types import Decision, Notice, Page, PageVersion
from rag.web.guard import MAX_LENGTH
from rag.web.url_key import split_url, url_hash, url_key

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

Lookup: TypeAlias = "Library | PrefetchedLookup"
"""Read access to the stored pages, by address and by text; a page comes without its text."""

ALIKE = 0.5
"""Two addresses that are said to be of one page are believed from this similarity of the texts on."""
RELATED = 0.2
"""An upload that has less in common with the document of its name is another document."""
_LIKES = 3
"""Pages with one text that are looked at when a stored page shows that text too."""
_PAGING = frozenset(["page", "p", "pg", "paged", "start", "offset", "from", "seite", "pn", "pageno", "page_no"])
_PAGE_PATH = re.compile(r"/(?:page|p)[/-]?\d+/?$", re.IGNORECASE)
_ADDRESS = re.compile(r"(?P<scheme>https?)://(?P<www>www\.)?(?P<rest>[\d.]*+[^/:\[\]\d.][^/:]*+/.*)", re.DOTALL)
MOST = 32
"""Pages of a group: what a kill in its midst may leave to be done again."""


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
    def gives_way(self) -> bool:
        """Whether the stored page came first, under another address than its own, which is that of the page read."""
        return self.reason == "canonical_first"

    @property
    def choices(self) -> tuple[Decision, ...]:
        return ("skip", "keep_both") if self.reason == "same_text" else ("skip", "refresh", "keep_both")


@dataclass(frozen=True, slots=True)
class Judged:
    """What spoke against storing a page, if a person decides so, as of some moment (`Library.as_of`) of its library."""

    objection: Notice | Duplicate | None
    decision: Decision
    as_of: object | None


def find_duplicate(library: Lookup, page: Page, *, moved_to: str = "", canonical: str = "") -> Duplicate | None:
    """The stored page that `page`, not stored itself, repeats; None when it is new.

    `moved_to` is where its address redirects to for good, `canonical` what it says its address is.
    """
    canonical = believable(canonical, page.url)
    twins = twin_addresses(page.url)
    named = [page.url_hash, *(url_hash(one) for one in (moved_to, canonical) if one), *map(url_hash, twins)]
    known = library.resolve(named)
    if found := _same_address(library, page, known, moved_to, canonical, twins):
        return found
    return next(_same_words(library, page), None)


def with_own_name(library: Lookup, read: Read) -> Read:
    """An upload as the next text of the document of its name, or under a number of its own beside another one."""
    page = read.page
    while read.source.is_upload and (other := library.known([page.url_hash]).get(page.url_hash)):
        if (
            other.text_hash == page.text_hash
            or likeness(library.texts([other.url_hash])[other.url_hash], page.text) >= RELATED
        ):
            break
        name, _, number = page.url.partition("?")
        url = f"{name}?{int(number or 1) + 1}"
        page = replace(page, url=url, url_hash=url_hash(url))
    return read if page is read.page else replace(read, page=page)


def _same_words(library: Lookup, page: Page) -> Iterator[Duplicate]:
    """The other pages with the text of `page`, then those with nearly that text, the nearest first."""
    for one in library.same_text(page.text_hash):
        if one.url_hash != page.url_hash:
            yield Duplicate("same_text", one, False)
    for one, similarity in library.near_texts(sign(page.text)):
        if one.url_hash != page.url_hash and one.text_hash != page.text_hash:
            yield Duplicate("near_text", one, False, similarity)


def replaced_page(library: Lookup, before: Page, page: Page, final_url: str) -> Duplicate | None:
    """The other stored page that the site shows by now in the place of the stored `before`; None where there is none.

    `page` is what was read, `final_url` where redirects ended. Pages that were alike before were taken in
    knowingly and may go on being alike.
    """
    for found in (*_arrived_at(library, before, final_url), *islice(_same_words(library, page), _LIKES)):
        if not _were_alike(library, before, found.page):
            return found
    return None


def _arrived_at(library: Lookup, before: Page, final_url: str) -> Iterator[Duplicate]:
    key = url_hash(final_url) if final_url else before.url_hash
    other = library.resolve([key]).get(key)
    if other is not None and other.url_hash != before.url_hash:
        yield Duplicate("now_elsewhere", other, False)


def _were_alike(library: Lookup, one: Page, other: Page) -> bool:
    """Whether the two, as they are stored, have or once had nearly the same text."""
    ours, theirs = library.versions(one.url_hash), library.versions(other.url_hash)
    if {version.text_hash for version in ours} & {version.text_hash for version in theirs}:
        return True
    return any(likeness(ours[-1].text, version.text) >= THRESHOLD for version in reversed(theirs)) if ours else False


def _same_address(
    library: Lookup,
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
    claimed = library.claimants([key for key, _, _ in signs])
    signs += [(url_hash(address), reason, THRESHOLD) for address, reason in twins.items()]
    candidates: list[tuple[Page, str, float]] = []
    for key, reason, least in signs:
        candidates += [(known[key], reason, least)] if key in known else []
        ways = [(other, _gives_way(other) and not canonical) for other in claimed.get(key, [])]
        candidates += [(other, "canonical_first" if way else reason, least) for other, way in ways]
    texts = library.texts([other.url_hash for other, _, _ in candidates])
    for other, reason, least in candidates:
        similarity = likeness(texts.get(other.url_hash, ""), page.text)
        if similarity >= least:
            return Duplicate(reason, other, True, similarity)
    return None


def _gives_way(stored: Page) -> bool:
    """A page with earlier texts stays where these are, whatever address it names."""
    return stored.version == 1


def aliases_of(page: Page, *, moved_to: str = "") -> tuple[str, ...]:
    """The other addresses that are known to lead to a page which is no duplicate, spelled as their keys."""
    key = url_key(moved_to) if moved_to else ""
    return (key,) if key and key != url_key(page.url) else ()


def claim_of(page: Page, canonical: str) -> str:
    """The address that a page says is its own, spelled as its key; "" for one that cannot be or is known to lead to it.

    Nobody has seen that this is so before the address was read itself.
    """
    key = url_key(canonical) if believable(canonical, page.url) else ""
    return "" if key in page.aliases or len(key) > MAX_LENGTH else key


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
    theirs, ours = split_url(url_key(canonical)), split_url(url_key(url))
    if not theirs.scheme:
        return ""
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


@dataclass(frozen=True, slots=True)
class Settling:
    """What was read, and what `Ingestor.settle` is told beside it."""

    read: Read
    on_stage: OnStage
    decision: Decision = ""
    online: bool = False


def independent_groups(given: Sequence[Settling]) -> Iterator[list[int]]:
    """The places of those that can go together, in their order: new pages none of which can be another's duplicate."""
    group: list[int] = []
    taken: set[Hashable] = set()
    for at, one in enumerate(given):
        signs = _signs(one.read)
        if group and (not signs or signs & taken or len(group) == MOST):
            yield group
            group, taken = [], set()
        group.append(at)
        taken |= signs
        if not signs:
            yield group
            group = []
    if group:
        yield group


def _signs(read: Read) -> set[Hashable]:
    """What two pages share where one may repeat the other; none for a page that was looked at again."""
    if read.known is not None:
        return set()
    named: set[Hashable] = {*_names(read)}
    return named if read.source.kind == "import" else {*named, read.page.text_hash, *sign(read.page.text).bands.indices}


def _names(read: Read) -> list[str]:
    """The hashes of all addresses by which the page may be in the library, its own first."""
    own = read.page.url_hash
    if read.source.kind == "import":
        return [own]
    url = read.page.url
    others = (read.moved_to, believable(read.canonical, url), *twin_addresses(url))
    return [own, *(url_hash(one) for one in others if one)]


class PrefetchedLookup:
    """The library as it is before a group of new pages is stored, looked up for all of them at the first question.

    Once it `is_stale`, and for whatever was not foreseen, the library is asked.
    """

    def __init__(self, library: Library, reads: Sequence[Read]) -> None:
        self.is_stale = False
        self._library = library
        self._names = frozenset(name for read in reads for name in _names(read))
        self._resolved = library.resolve(list(self._names))
        self._web = [read.page for read in reads if read.source.kind != "import"]

    @cached_property
    def _claimed(self) -> dict[str, list[Page]]:
        return self._library.claimants(list(self._names), most=MOST * len(self._web)) if self._web else {}

    @cached_property
    def _same(self) -> dict[str, list[Page]]:
        found: dict[str, list[Page]] = {page.text_hash: [] for page in self._web}
        for one in self._library.same_texts(list(found)) if found else []:
            found[one.text_hash].append(one)
        return found

    @cached_property
    def _near(self) -> dict[Signature, list[tuple[Page, float]]]:
        signatures = list({sign(page.text) for page in self._web})
        return dict(zip(signatures, self._library.near_texts_of(signatures), strict=True))

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {one: page for one, page in self.resolve(url_hashes).items() if page.url_hash == one}

    def resolve(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        if self.is_stale or not self._names.issuperset(url_hashes):
            return self._library.resolve(url_hashes)
        return {one: self._resolved[one] for one in url_hashes if one in self._resolved}

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        return self._library.texts(url_hashes)

    def versions(self, url_hash: str) -> list[PageVersion]:
        return self._library.versions(url_hash)

    def claimants(self, url_hashes: Sequence[str], *, most: int = 0) -> dict[str, list[Page]]:
        if self.is_stale or not self._names.issuperset(url_hashes):
            return self._library.claimants(url_hashes)
        return {one: self._claimed[one] for one in url_hashes if one in self._claimed}

    def same_text(self, text_hash: str) -> list[Page]:
        if self.is_stale or text_hash not in self._same:
            return self._library.same_text(text_hash)
        return self._same[text_hash]

    def near_texts(self, signature: Signature) -> list[tuple[Page, float]]:
        if self.is_stale or signature not in self._near:
            return self._library.near_texts(signature)
        return self._near[signature]
