"""Search limited to the user's filters and to the part of the library that the question names.

For example "in the pricing page …", "on docs.example.com", "根据《…》". The sources of an earlier report in the
conversation are searched first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag.models.sparse import SparseEncoder
from rag.patterns import lazy_regex
from rag.retrieval.answerable import REFUSAL_THRESHOLD, features_of
from rag.retrieval.context import select_best
from rag.retrieval.page_names import MAX_PAGES, find_on_site, is_full_name, slug, words
from rag.retrieval.page_reader import PageReader
from rag.retrieval.retriever import EnsembleRetriever, K, Retriever
from rag.store.values import Filters
from rag.text import is_chinese
from rag.types import Page, Passage, Retrieval

LEDGER_LEG: Final = "ledger"
"""Key in the `ranks` of a passage found among the sources of an earlier report."""
MIN_COVERAGE: Final = 0.7
"""Minimum share of the question, without title terms, in one place of the sources that makes a search unnecessary. The
probability of an answer is less reliable here (docs/quality.md, `benchmarks.ledger`)."""
_PAGE = "page|article|document|doc|post|website|site|web page|webpage"
_KIND = (
    "notes|handbook|guide|manual|policy|policies|report|post-mortem|postmortem|faq|readme|changelog|documentation|docs"
    "|tutorial|standard|rules|agreement|contract|minutes|paper"
)
_S = r"\s{1,3}"  # bounded, to limit backtracking: names may contain spaces too
_O = r"\s{0,3}"
_NAME = r"[^,.;:?!，。；：？！\"“”]{2,70}?"
_HOST = r"(?:https?://)?(?P<host>(?:[a-z0-9-]+\.)+[a-z]{2,})/?(?![\w@])"
_SITE = "(?:web)?site"
_IN = rf"\b(?:in|on|from|within|according to|per|based on){_S}"
_THE = rf"(?:the|our|your|this){_S}"
_ZH_IN = rf"(?:在|根据|按照|依据|据|参照|从){_O}"
_ZH_NAMED = r"[^，,。；？?《》“”「」]"
_ZH_PAGE = r"(?:这篇文章|这一页|这个页面|页面|网页|网站|文章|文档|一文|页)"
_ZH_WITHIN = rf"(?:中|里|内|上)?(?:的)?{_O}[，,]?"

# The most reliable forms first: a host, a quoted name, a name before a word for a page, one that ends in such a word.
_FORMS = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:on|from|at|in|within|according to){_S}(?:the{_S})?(?:{_SITE}{_S})?{_HOST}(?:{_S}{_SITE})?{_O},?",
        rf"{_ZH_IN}{_HOST}{_O}(?:这个)?(?:网站|站点)?{_ZH_WITHIN}",
        rf"{_IN}(?:the{_S})?(?:(?:{_PAGE}){_S})?[\"“](?P<quoted>[^\"“”]{{2,120}})[\"”](?:{_S}(?:{_PAGE})\b)?{_O},?",
        rf"{_IN}{_THE}(?P<page>{_NAME}){_S}(?:{_PAGE})\b{_O},?",
        rf"{_IN}{_THE}(?P<kind>(?:{_NAME}{_S})?(?:{_KIND}))\b{_O},?",
        rf"\b(?:according to|as per|based on){_S}(?:{_THE})?(?P<named>{_NAME})(?={_O}(?:[,.;:?!]|$)){_O},?",
        rf"{_ZH_IN}《(?P<title>[^《》]{{1,80}})》{_O}{_ZH_PAGE}?(?:的规定|所述|的说法)?{_ZH_WITHIN}",
        rf"《(?P<inside>[^《》]{{1,80}})》{_O}{_ZH_PAGE}?(?:中|里)(?:的)?{_O}[，,]?",
        rf"{_ZH_IN}[“「]?(?P<zh_page>{_ZH_NAMED}{{1,20}}?)[”」]?{_O}{_ZH_PAGE}{_ZH_WITHIN}",
        rf"{_ZH_IN}[“「]?(?P<zh_named>{_ZH_NAMED}{{3,30}}+)[”」]?{_O}[，,]",
    )
)
# A page as the subject of the sentence; it stays in the question.
_SPEAKS = lazy_regex(
    rf"\b(?:does|do|did){_S}(?:the|our){_S}(?P<page>{_NAME})(?:{_S}(?:{_PAGE})){_S}(?:say|state|mention|explain|list|tell)\b",
    re.IGNORECASE,
)
_ASKING = frozenset(
    "what which who whom when where why how much many is are was were be do does did can say said there it"
    " 什么 多少 哪里 哪些 怎么 如何 为什 有什 有哪".split()
)
_LEFT_OVER = " \t,，、:：。"


@dataclass(frozen=True, slots=True)
class CachedEvidence:
    """Results that needed no search."""

    passages: Sequence[Passage]


@dataclass
class Ledger:
    """The sources of an earlier report in the conversation, which are searched first.

    `read` returns the passages and may block; `idf` returns the IDF of terms in the library.
    """

    read: Callable[[], Sequence[Passage]]
    sparse: SparseEncoder
    idf: Callable[[Sequence[int]], Mapping[int, float]]

    def find(self, question: str, k: int) -> CachedEvidence | None:
        """Return the passages if one place in them covers nearly the whole question; else None."""
        best = select_best(question, self.passages, self.sparse, k)
        idf = self.idf(sorted(self.sparse.encode_query(question).indices))
        if features_of(idf, best, self.sparse)["asked"] < MIN_COVERAGE:
            return None
        return CachedEvidence([replace(passage, ranks={LEDGER_LEG: place}) for place, passage in enumerate(best, 1)])

    @cached_property
    def passages(self) -> Sequence[Passage]:
        return self.read()


class ScopedSearch:
    """A search over one or several libraries, for one question and the queries derived from it.

    `make_retriever` creates the retriever for each search, so that a run can begin before the models are loaded;
    `pages` lists the library's pages, and is called only for questions that may name some.
    """

    def __init__(
        self,
        make_retriever: Callable[[], Retriever | EnsembleRetriever],
        pages: Callable[[], Sequence[Page]],
        question: str,
        *,
        filters: Filters | None = None,
        web: Callable[[str], Sequence[Passage]] | None = None,
        ledger: Ledger | None = None,
        priority_pages: Sequence[str] = (),
        reader: PageReader | None = None,
        **options: Any,
    ) -> None:
        """`web` searches the web, if it is configured and the user allows it. The sources in `ledger` are searched
        first, then the pages in `priority_pages`, then the others. `reader` reads whole pages."""
        self._priority_pages = Filters(pages=tuple(priority_pages))
        self.web = web
        self.reader = reader
        self._ledger = ledger
        self._make_retriever = make_retriever
        self._pages = pages
        self._question = question
        self._filters = filters or Filters()
        self._options = options

    def search(
        self, question: str, earlier_questions: Sequence[str] = (), *, sections: Sequence[str] = (), **options: Any
    ) -> Retrieval | CachedEvidence:
        """Search for the question, or for a query derived from it, without the words that name the scope.

        `earlier_questions` are the questions before it. `sections` (headings to search under) and `options` (those of
        `Retriever.search`) apply only to this search.

        If the named scope has no results, everything is searched, and the notes say so. If the ledger has the answer,
        nothing is searched.
        """
        if cached := self.find_cached(question, options.get("k", K)):
            return cached
        scope = self._scope(question)
        filters = replace(self._filters, sections=tuple(sections)) if sections else self._filters
        if self._priority_pages.pages and not scope.names:
            result = self._search(question, filters.intersect(self._priority_pages), earlier_questions, options)
            if result.passages and result.answerable >= REFUSAL_THRESHOLD:
                return _add_note(result, "scope_saved", "")
        result = self._search(scope.question, filters.intersect(scope.filters), earlier_questions, options)
        if not scope.names:
            return result
        names = ", ".join(scope.names)
        if result.passages:
            return _add_note(result, "scope_named", names)
        return _add_note(self._search(question, filters, earlier_questions, options), "scope_empty", names)

    def find_cached(self, question: str, k: int = K) -> CachedEvidence | None:
        """Return the ledger's passages if they are likely to answer the question."""
        return self._ledger.find(question, k) if self._ledger else None

    def titles(self) -> list[str]:
        """Return the titles of the pages that match the user's filters."""
        filters = Filters(self._filters.pages, self._filters.sites)
        return [page.title for page in self._pages() if page.title and filters.matches(page, dated=False)]

    def vector(self, question: str) -> NDArray[np.float32]:
        """Return the unit vector (d,) of a question."""
        return self._make_retriever().vector(question)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Reload passages by id, those of the ledger from the ledger, since their pages may be in no library."""
        cached = {one.id: one for one in self._ledger.passages if one.id in ids} if self._ledger else {}
        others = {one.id: one for one in self._make_retriever().passages([key for key in ids if key not in cached])}
        return [(cached | others)[key] for key in ids if key in cached or key in others]

    def _search(
        self, question: str, filters: Filters, earlier_questions: Sequence[str], options: Mapping[str, Any]
    ) -> Retrieval:
        return self._make_retriever().search(
            question, filters=filters, earlier_questions=earlier_questions, **{**self._options, **options}
        )

    def _scope(self, question: str) -> Scope:
        """Return the scope that the query names, or that of the original question if rewriting dropped it."""
        if not may_name_scope(question) and not may_name_scope(self._question):
            return Scope(question, Filters(), ())
        pages = self._pages()
        scope = read_scope(question, pages)
        return scope if scope.names else read_scope(self._question, pages)._replace(question=question)


def _add_note(result: Retrieval, code: str, names: str) -> Retrieval:
    return replace(result, notes={**result.notes, "scope": {"code": code, "params": {"names": names}}})


class Scope(NamedTuple):
    """A `question` without the words that name the scope, the scope itself, and its names for display."""

    question: str
    filters: Filters
    names: tuple[str, ...]


def may_name_scope(question: str) -> bool:
    """True if the question may name a scope, so that the list of pages is needed; most do not."""
    return next(_find_mentions(question), None) is not None


def read_scope(question: str, pages: Sequence[Page]) -> Scope:
    """Find the pages or the site that the question is limited to.

    Only an unambiguous page title, last part of a link, or site counts; other phrases of this form ("in the 19th
    century") stay in the question, which never becomes empty.
    """
    for match in _find_mentions(question):
        kind, name = next((kind, name) for kind, name in match.groupdict().items() if name)
        matches = find_on_site(name, pages) if kind == "host" else _pages_by_title(kind, name, pages)
        if matches:
            rest = question if match.re.pattern == _SPEAKS.pattern else _remove_match(question, match)
            return Scope(rest, _make_filters(matches, pages, kind), _display_names(matches, kind, name))
    return Scope(question, Filters(), ())


def _find_mentions(question: str) -> Iterator[re.Match[str]]:
    for form in (*_FORMS, _SPEAKS):
        yield from form.finditer(question)


def _remove_match(question: str, match: re.Match[str]) -> str:
    """Return the rest of the question, or all of it if too little remains to search for."""
    before, after = question[: match.start()].rstrip(_LEFT_OVER), question[match.end() :].lstrip(_LEFT_OVER)
    separator = "" if is_chinese(question) or not before or after[:1] in "?!.？！" else " "
    rest = f"{before}{separator}{after}".strip()
    return rest if words(rest) - _ASKING else question


def _pages_by_title(kind: str, name: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages of that name, by their whole title or link, else by a part of it that matches few pages."""
    whole = [page for page in pages if is_full_name(name, page)]
    if whole:
        return whole if len(whole) <= MAX_PAGES else []
    if kind in ("quoted", "inside"):
        return []
    hits = [page for page in pages if any(_is_part(name, text) for text in (page.title, f"{page.title} {slug(page)}"))]
    is_specific = len(name) >= 4 if is_chinese(name) else len(words(name)) >= 2
    return hits if len(hits) <= (MAX_PAGES if is_specific else _max_pages(kind)) else []


def _max_pages(kind: str) -> int:
    """Return how many pages a single word may name: one, next to a word for a page; else none."""
    return 0 if kind in ("named", "zh_named") else 1


def _is_part(name: str, title: str) -> bool:
    """True if the title has all words of the name; in Chinese, all its characters in order."""
    if not is_chinese(name):
        name_words = words(name)
        return bool(name_words) and name_words <= words(title)
    rest = iter(title)
    return len(name) >= 2 and all(character in rest for character in name)


def _make_filters(matches: Sequence[Page], pages: Sequence[Page], kind: str) -> Filters:
    """Return filters for these pages, by site if that is equivalent: a site may have thousands of pages."""
    hashes = tuple(page.url_hash for page in matches)
    sites = {page.site for page in matches}
    if kind == "host" and all(sites) and sum(page.site in sites for page in pages) == len(hashes):
        return Filters(sites=tuple(sorted(sites)))
    return Filters(pages=hashes)


def _display_names(matches: Sequence[Page], kind: str, name: str) -> tuple[str, ...]:
    return (name.lower(),) if kind == "host" else tuple(page.title or page.url for page in matches)


def site_filters(name: str, pages: Sequence[Page]) -> Filters:
    """Return filters for the pages of a site, given its name or host."""
    if any(page.site == name for page in pages) or not (matches := find_on_site(name, pages)):
        return Filters(sites=(name,))
    return _make_filters(matches, pages, "host")
