"""New pages that are looked up and stored together, where none can be what another repeats or gives way to."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from rag.ingest.duplicates import believable, twin_addresses
from rag.ingest.source_reading import OnStage, Read
from rag.store.duplicates import Signature, sign
from rag.store.ports import PageLookup, Pages
from rag.types import Decision, Page, PageVersion
from rag.web.url_key import url_hash

MOST = 32
"""Pages of a group: what a kill in its midst may leave to be done again."""


@dataclass(frozen=True, slots=True)
class Settling:
    """What was read, and what `Ingestor.settle` is told beside it."""

    read: Read
    on_stage: OnStage
    decision: Decision = ""
    online: bool = False


def apart(given: Sequence[Settling]) -> Iterator[list[int]]:
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


class Foreseen(PageLookup):
    """The library as it is before a group of new pages is stored, looked up for all of them at once.

    Once it `is_stale`, and for whatever was not foreseen, the library is asked.
    """

    def __init__(self, library: Pages, reads: Sequence[Read]) -> None:
        self.is_stale = False
        self._library = library
        self._names = frozenset(name for read in reads for name in _names(read))
        self._resolved = library.resolve(list(self._names))
        web = [read.page for read in reads if read.source.kind != "import"]
        self._claimed = library.claimants(list(self._names), most=MOST * len(web)) if web else {}
        self._same: dict[str, list[Page]] = {page.text_hash: [] for page in web}
        for one in library.same_texts(list(self._same)) if web else []:
            self._same[one.text_hash].append(one)
        signatures = list({sign(page.text) for page in web})
        self._near = dict(zip(signatures, library.near_texts_of(signatures), strict=True))

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
