"""Detection of pages that are already in the library, under another URL or with nearly the same text.

Evidence, strongest first: a permanent redirect to a stored page; a known alias of one; a canonical link on the same
host; a URL that differs only in http or www; the same text; nearly the same text. Sites get canonical links wrong (they
name the home page, or the first page of a list), so one counts only if the texts are similar. Until its target has been
read, it is a claim: stored with the page, so that the two match in either order, but no reason to skip the target.

New pages that cannot repeat or replace each other (`independent_groups`) are stored together.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl

from rag.ingest.sources import Duplicate, LoadedPage, OnStage, ignore_stage
from rag.store.values import SIMILARITY_THRESHOLD, Signature, jaccard_similarity, sign
from rag.text import lazy_regex
from rag.types import Decision, Page, PageVersion
from rag.web.guard import MAX_LENGTH
from rag.web.urls import split_url, url_hash, url_key

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

Lookup: TypeAlias = "Library | PrefetchedLookup"
"""Read access to the stored pages by URL and by text; pages are returned without their text."""

SAME_PAGE_SIMILARITY = 0.5
"""Minimum similarity of the texts for two URLs to count as one page."""
SAME_UPLOAD_SIMILARITY = 0.2
"""Minimum similarity for an upload to be a new version of the document with its name."""
_MAX_SIMILAR_PAGES = 3
"""Maximum number of similar pages to compare with the new text of a stored page."""
_PAGING = frozenset(["page", "p", "pg", "paged", "start", "offset", "from", "seite", "pn", "pageno", "page_no"])
_PAGE_PATH = lazy_regex(r"/(?:page|p)[/-]?\d+/?$", re.IGNORECASE)
_ADDRESS = lazy_regex(r"(?P<scheme>https?)://(?P<www>www\.)?(?P<rest>[\d.]*+[^/:\[\]\d.][^/:]*+/.*)", re.DOTALL)
MAX_GROUP = 32
"""Maximum number of pages in a group, all of which may have to be repeated after a crash."""


def find_duplicate(library: Lookup, page: Page, *, moved_to: str = "", canonical: str = "") -> Duplicate | None:
    """Return the stored page that the new `page` repeats; None if there is none.

    `moved_to` is the target of permanent redirects from its URL, `canonical` the URL in its canonical link.
    """
    canonical = check_canonical(canonical, page.url)
    twins = twin_addresses(page.url)
    hashes = [page.url_hash, *(url_hash(url) for url in (moved_to, canonical) if url), *map(url_hash, twins)]
    existing = library.resolve(hashes)
    if duplicate := _find_same_address(library, page, existing, moved_to, canonical, twins):
        return duplicate
    return next(_find_similar(library, page), None)


def with_unique_name(library: Lookup, loaded: LoadedPage) -> LoadedPage:
    """Return the upload, with a number added to its name if that belongs to a different document."""
    page = loaded.page
    while loaded.source.is_upload and (other := library.stored_pages([page.url_hash]).get(page.url_hash)):
        if (
            other.text_hash == page.text_hash
            or jaccard_similarity(library.texts([other.url_hash])[other.url_hash], page.text) >= SAME_UPLOAD_SIMILARITY
        ):
            break
        name, _, number = page.url.partition("?")
        url = f"{name}?{int(number or 1) + 1}"
        page = replace(page, url=url, url_hash=url_hash(url))
    return loaded if page is loaded.page else replace(loaded, page=page)


def _find_similar(library: Lookup, page: Page) -> Iterator[Duplicate]:
    """Yield the other pages with the text of `page`, then those with nearly that text, most similar first."""
    for other in library.pages_with_text(page.text_hash):
        if other.url_hash != page.url_hash:
            yield Duplicate("same_text", other, False)
    for other, similarity in library.similar_pages(sign(page.text)):
        if other.url_hash != page.url_hash and other.text_hash != page.text_hash:
            yield Duplicate("near_text", other, False, similarity)


def find_replacement(library: Lookup, before: Page, page: Page, final_url: str) -> Duplicate | None:
    """Return the other stored page that the site now shows in place of the stored `before`; None if there is none.

    `page` is the page as just read, `final_url` its URL after redirects. Pages whose texts were similar before do not
    count, as they were added knowingly.
    """
    key = url_hash(final_url) if final_url else before.url_hash
    target = library.resolve([key]).get(key)
    twins = [Duplicate("now_elsewhere", target, False)] if target and target.url_hash != before.url_hash else []
    for twin in (*twins, *islice(_find_similar(library, page), _MAX_SIMILAR_PAGES)):
        if not _were_similar(library, before, twin.page):
            return twin
    return None


def _were_similar(library: Lookup, page: Page, other: Page) -> bool:
    """Return whether the two stored pages have or once had nearly the same text."""
    ours, theirs = library.versions(page.url_hash), library.versions(other.url_hash)
    if {version.text_hash for version in ours} & {version.text_hash for version in theirs}:
        return True
    return bool(ours) and any(
        jaccard_similarity(ours[-1].text, version.text) >= SIMILARITY_THRESHOLD for version in reversed(theirs)
    )


def _find_same_address(
    library: Lookup,
    page: Page,
    existing: dict[str, Page],
    moved_to: str,
    canonical: str,
    twins: dict[str, str],
) -> Duplicate | None:
    if moved_to and (other := existing.get(url_hash(moved_to))):
        return Duplicate("moved_address", other, True)
    clues = [(page.url_hash, "alias_address", SAME_PAGE_SIMILARITY)]
    clues += [(url_hash(canonical), "canonical_alias", SAME_PAGE_SIMILARITY)] if canonical else []
    claims = library.claimants([key for key, _, _ in clues])
    clues += [(url_hash(address), reason, SIMILARITY_THRESHOLD) for address, reason in twins.items()]
    candidates: list[tuple[Page, str, float]] = []
    for key, reason, minimum in clues:
        candidates += [(existing[key], reason, minimum)] if key in existing else []
        for other in claims.get(key, []):
            is_replaceable = other.version == 1 and not canonical  # earlier versions would have to stay at its URL
            candidates.append((other, "canonical_first" if is_replaceable else reason, minimum))
    texts = library.texts([other.url_hash for other, _, _ in candidates])
    for other, reason, minimum in candidates:
        similarity = jaccard_similarity(texts.get(other.url_hash, ""), page.text)
        if similarity >= minimum:
            return Duplicate(reason, other, True, similarity)
    return None


def claim_of(page: Page, canonical: str) -> str:
    """Return the key of a page's canonical URL; "" if that is not credible or already an alias.

    The claim is unconfirmed until the canonical URL itself has been read.
    """
    key = url_key(canonical) if check_canonical(canonical, page.url) else ""
    return "" if key in page.aliases or len(key) > MAX_LENGTH else key


def with_alias(page: Page, address: str) -> Page:
    """Return the page with `address` as another alias, spelled as a key."""
    key = url_key(address)
    if key == url_key(page.url) or key in page.aliases:
        return page
    return replace(page, aliases=(*page.aliases, key))


def without_alias(page: Page, address: str) -> Page:
    return replace(page, aliases=tuple(alias for alias in page.aliases if alias != url_key(address)))


def check_canonical(canonical: str, url: str) -> str:
    """Return the canonical URL; "" if it is `url`, or not credible (the site's root, another page of a list)."""
    if not canonical or url_key(canonical) == url_key(url):
        return ""
    theirs, ours = split_url(url_key(canonical)), split_url(url_key(url))
    if not theirs.scheme:
        return ""
    if theirs.path == "/" and not theirs.query and ours.path != "/":
        return ""
    return "" if _page_markers(ours.path, ours.query) != _page_markers(theirs.path, theirs.query) else canonical


def _page_markers(path: str, query: str) -> Sequence[object]:
    """Return the parts of a URL that give the page number in a list."""
    steps = [(name, value) for name, value in parse_qsl(query) if name.lower() in _PAGING]
    return [*steps, *_PAGE_PATH.findall(path)]


def twin_addresses(url: str) -> dict[str, str]:
    """Return the URLs that differ only in http or www, with the reason's code; none for files, ports and IPs."""
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
class StoreRequest:
    """A page that was read, to be stored; `decision` is the user's choice for it.

    `online` means that something else answered meanwhile, so a missing answer counts against the page.
    """

    loaded: LoadedPage
    on_stage: OnStage = ignore_stage
    decision: Decision = ""
    online: bool = False


def independent_groups(requests: Sequence[StoreRequest]) -> Iterator[list[int]]:
    """Yield groups of positions, in order, to store together: new pages that cannot repeat each other."""
    group: list[int] = []
    seen: set[Hashable] = set()
    for at, request in enumerate(requests):
        # Identifiers, one of which two pages share if they may be duplicates; none for a re-checked page.
        loaded, identifiers = request.loaded, set[Hashable]()
        if loaded.known is None:
            identifiers.update(_address_hashes(loaded))
            if loaded.source.kind != "import":
                identifiers |= {loaded.page.text_hash, *sign(loaded.page.text).bands.indices}
        if group and (not identifiers or identifiers & seen or len(group) == MAX_GROUP):
            yield group
            group, seen = [], set()
        group.append(at)
        seen |= identifiers
        if not identifiers:
            yield group
            group = []
    if group:
        yield group


def _address_hashes(loaded: LoadedPage) -> list[str]:
    """Return the hashes of all URLs under which the page may be stored, its own first."""
    own = loaded.page.url_hash
    if loaded.source.kind == "import":
        return [own]
    url = loaded.page.url
    others = (loaded.moved_to, check_canonical(loaded.canonical, url), *twin_addresses(url))
    return [own, *(url_hash(address) for address in others if address)]


class PrefetchedLookup:
    """A prefetched view of the library before a group of new pages is stored, with one query of each kind for all.

    Once it `is_stale`, and for anything that was not prefetched, the library itself is queried.
    """

    def __init__(self, library: Library, loaded_pages: Sequence[LoadedPage]) -> None:
        self.is_stale = False
        self._library = library
        self._hashes = frozenset(name for loaded in loaded_pages for name in _address_hashes(loaded))
        self._resolved = library.resolve(list(self._hashes))
        self._pages = [loaded.page for loaded in loaded_pages if loaded.source.kind != "import"]

    @cached_property
    def _claims(self) -> dict[str, list[Page]]:
        return self._library.claimants(list(self._hashes), limit=MAX_GROUP * len(self._pages)) if self._pages else {}

    @cached_property
    def _same_pages(self) -> dict[str, list[Page]]:
        by_text: dict[str, list[Page]] = {page.text_hash: [] for page in self._pages}
        for page in self._library.pages_with_texts(list(by_text)) if by_text else []:
            by_text[page.text_hash].append(page)
        return by_text

    @cached_property
    def _near_pages(self) -> dict[Signature, list[tuple[Page, float]]]:
        signatures = list({sign(page.text) for page in self._pages})
        return dict(zip(signatures, self._library.similar_pages_batch(signatures), strict=True))

    def stored_pages(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        return {key: page for key, page in self.resolve(url_hashes).items() if page.url_hash == key}

    def resolve(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        if self.is_stale or not self._hashes.issuperset(url_hashes):
            return self._library.resolve(url_hashes)
        return {key: self._resolved[key] for key in url_hashes if key in self._resolved}

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        return self._library.texts(url_hashes)

    def versions(self, url_hash: str) -> list[PageVersion]:
        return self._library.versions(url_hash)

    def claimants(self, url_hashes: Sequence[str]) -> dict[str, list[Page]]:
        if self.is_stale or not self._hashes.issuperset(url_hashes):
            return self._library.claimants(url_hashes)
        return {key: self._claims[key] for key in url_hashes if key in self._claims}

    def pages_with_text(self, text_hash: str) -> list[Page]:
        if self.is_stale or text_hash not in self._same_pages:
            return self._library.pages_with_text(text_hash)
        return self._same_pages[text_hash]

    def similar_pages(self, signature: Signature) -> list[tuple[Page, float]]:
        if self.is_stale or signature not in self._near_pages:
            return self._library.similar_pages(signature)
        return self._near_pages[signature]
