"""The searches of one question: the scope of each, and the notes about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rag.retrieval.retriever import ScopedSearch, may_name_scope, read_scope, site_filters
from rag.store.values import Filters
from rag.types import Page, Passage, Retrieval

NOTES = Page("https://a.example/release-notes", "notes", "Skiff release notes", "en", "a.example", "", "", "web")
TEA = Page("https://a.example/tea", "tea", "Tea", "en", "a.example", "", "", "web")
PASSAGE = Passage("p", NOTES.url, "notes", "", "", "en", (), "text", 0, 4)
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Searched:
    """A retriever that finds a passage everywhere except in the pages of `empty`."""

    empty: tuple[str, ...] = ()
    asked: list[tuple[str, Filters, dict[str, Any]]] = field(default_factory=list)

    def search(self, question: str, *, filters: Filters, **options: Any) -> Retrieval:
        self.asked.append((question, filters, options))
        found = () if filters.pages and set(filters.pages) <= set(self.empty) else (PASSAGE,)
        return Retrieval(question, "mmr", found, (), (), notes={"own": 1})


def search(retriever: Searched, question: str, **how: Any) -> ScopedSearch:
    return ScopedSearch(lambda: retriever, lambda: [NOTES, TEA], question, **how)  # type: ignore[arg-type, return-value]


def test_a_query_that_lost_the_scope_keeps_the_questions() -> None:
    retriever = Searched()
    scoped = search(retriever, "In the release notes, what is new?", strategy="rerank")
    assert scoped.search("news of skiff", ["What is tea?"]).notes["scope"]["params"] == {"names": "Skiff release notes"}
    assert retriever.asked == [
        ("news of skiff", Filters(pages=("notes",)), {"strategy": "rerank", "earlier_questions": ["What is tea?"]})
    ]


def test_a_query_with_a_scope_of_its_own_is_searched_there() -> None:
    retriever = Searched()
    search(retriever, "In the release notes, what is new?").search("according to the tea page, how hot is the water")
    assert retriever.asked[0][:2] == ("how hot is the water", Filters(pages=("tea",)))


def test_an_empty_scope_is_left_and_said() -> None:
    retriever = Searched(empty=("notes",))
    question = "In the release notes, what is new?"
    found = search(retriever, question, filters=Filters(languages=("en",))).search(question)
    assert [filters.pages for _, filters, _ in retriever.asked] == [("notes",), ()]
    assert retriever.asked[1][:2] == (question, Filters(languages=("en",)))
    assert found.notes == {"own": 1, "scope": {"code": "scope_empty", "params": {"names": "Skiff release notes"}}}


def test_what_was_chosen_beside_the_question_always_holds() -> None:
    retriever = Searched()
    search(retriever, "x", filters=Filters(pages=("tea",))).search("In the release notes, what is new?")
    assert retriever.asked[0][1] == Filters(pages=("tea",))


def test_the_pages_are_not_listed_for_a_plain_question() -> None:
    def listing() -> list[Page]:
        raise AssertionError("listed")

    retriever = Searched()
    ScopedSearch(lambda: retriever, listing, "What is new?").search("what is new")  # type: ignore[arg-type, return-value]
    assert "scope" not in ScopedSearch(lambda: retriever, listing, "x").search("y").notes  # type: ignore[arg-type, return-value]


def page(url: str, title: str) -> Page:
    return Page(url, f"hash of {url}", title, "en", urlsplit(url).hostname or "", "", "", "web")


PAGES = [
    page("https://docs.example.com/skiff/handbook", "Skiff Handbook: install, sync, share, restore"),
    page("https://docs.example.com/skiff/pricing", "Skiff plans and prices"),
    page("https://docs.example.com/skiff/security", "Skiff security policy"),
    page("https://docs.example.com/skiff/release-notes", "Skiff release notes"),
    page("https://docs.example.com/people/travel-policy", "Travel and expenses policy"),
    page("https://docs.example.com/people/zh/remote-work", "远程办公管理制度"),
    page("https://docs.example.com/city/zh/metro-fares", "临江地铁票价与乘车指南"),
    page("https://en.wikipedia.org/wiki/Warsaw", "Warsaw"),
    page("https://en.wikipedia.org/wiki/Normans", "Normans"),
]


@pytest.mark.parametrize(
    ("question", "rest", "title"),
    [
        ("In the pricing page, what does Team cost?", "what does Team cost?", "Skiff plans and prices"),
        ("What does Team cost according to the pricing page?", "What does Team cost?", "Skiff plans and prices"),
        ("According to the release notes, what is new?", "what is new?", "Skiff release notes"),
        ("How fast does it start according to the release notes?", "How fast does it start?", "Skiff release notes"),
        ("In the travel policy, what is the limit?", "what is the limit?", "Travel and expenses policy"),
        ("How large is the installer in the handbook?", "How large is the installer?", PAGES[0].title),
        ("According to Skiff plans and prices, what is free?", "what is free?", "Skiff plans and prices"),
        ('In "Skiff release notes", what is faster?', "what is faster?", "Skiff release notes"),
        ("在《远程办公管理制度》中，每周可以远程几天？", "每周可以远程几天？", "远程办公管理制度"),
        ("根据《远程办公管理制度》，每周可以远程几天？", "每周可以远程几天？", "远程办公管理制度"),
        ("《远程办公管理制度》里每周可以远程几天？", "每周可以远程几天？", "远程办公管理制度"),
        ("根据远程办公制度，每周可以远程几天？", "每周可以远程几天？", "远程办公管理制度"),
        ("根据票价页，一日票多少钱？", "一日票多少钱？", "临江地铁票价与乘车指南"),
        ("在地铁票价页面中，一日票多少钱？", "一日票多少钱？", "临江地铁票价与乘车指南"),
    ],
)
def test_a_page_is_named(question: str, rest: str, title: str) -> None:
    scope = read_scope(question, PAGES)
    assert scope.question == rest
    assert scope.names == (title,)
    assert scope.filters == Filters(pages=tuple(one.url_hash for one in PAGES if one.title == title))


@pytest.mark.parametrize(
    "question",
    [
        "How many people live in Warsaw?",
        "What happened in Warsaw, and when?",
        "Who defeated the Normans in the 11th century?",
        "In the 19th century, who was king?",
        "Which page describes the limit in the policy?",
        "According to President Biden, what changed?",
        "According to him, who was in the Beatles?",
        "What is in the paper?",
        "Is it based on the Rust language?",
        "Where is the page of prices?",
        "Write to team@example.com about what?",
        "《远程办公管理制度》的作者是谁？",
        "在上海，一日票多少钱？",
        "根据他的说法，一日票多少钱？",
        "一页纸有多厚？",
        "在中国，什么茶最有名？",
    ],
)
def test_what_only_looks_like_a_scope_stays_in_the_question(question: str) -> None:
    assert read_scope(question, PAGES) == (question, Filters(), ())


def test_a_name_that_fits_many_pages_tells_none() -> None:
    pages = [page(f"https://a.example/{i}", f"Release notes {i}") for i in range(5)]
    assert not read_scope("According to the release notes, what is new?", pages).filters
    scope = read_scope("According to the release notes, what is new?", pages[:2])
    assert scope.filters.pages == tuple(one.url_hash for one in pages[:2])


@pytest.mark.parametrize("question", ["What is in the pricing page?", "In the pricing page", "在票价页里有什么？"])
def test_the_question_is_never_swallowed(question: str) -> None:
    scope = read_scope(question, PAGES)
    assert scope.question == question
    assert scope.filters


def test_a_page_that_speaks_stays_in_the_sentence() -> None:
    question = "What does the pricing page say about storage?"
    scope = read_scope(question, PAGES)
    assert (scope.question, scope.names) == (question, ("Skiff plans and prices",))


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What does Team cost on docs.example.com?", "What does Team cost?"),
        ("On the website docs.example.com, what does Team cost?", "what does Team cost?"),
        ("在 docs.example.com 网站上，一日票多少钱？", "一日票多少钱？"),
    ],
)
def test_a_site_is_named_by_its_host(question: str, rest: str) -> None:
    scope = read_scope(question, PAGES)
    assert scope == (rest, Filters(sites=("docs.example.com",)), ("docs.example.com",))


def test_a_host_with_a_site_name_shared_elsewhere_goes_by_its_pages() -> None:
    pages = [*PAGES, Page("https://other.example/x", "x", "X", "en", "docs.example.com", "", "", "web")]
    scope = read_scope("What does Team cost on docs.example.com?", pages)
    assert scope.filters.pages == tuple(one.url_hash for one in PAGES if "docs.example.com" in one.url)
    assert not read_scope("What does it cost on unknown.example.net?", PAGES).filters


def test_a_site_by_name_or_host() -> None:
    assert site_filters("docs.example.com", PAGES) == Filters(sites=("docs.example.com",))
    assert site_filters("wikipedia.org", PAGES) == Filters(sites=("en.wikipedia.org",))
    assert site_filters("Nowhere", PAGES) == Filters(sites=("Nowhere",))


def test_most_sample_questions_need_no_list_of_pages_and_none_names_a_scope() -> None:
    rows = json.loads((ROOT / "examples" / "pages.json").read_text(encoding="utf-8"))
    pages = [page(row["url"], row["title"]) for row in rows]
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    questions = [row["question"] for row in rows]
    assert sum(map(may_name_scope, questions)) * 4 < len(questions)
    assert may_name_scope("In the pricing page, what does Team cost?")
    assert [question for question in questions if read_scope(question, pages).filters] == []
