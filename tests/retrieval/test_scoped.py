"""One question's searches: where each looks, and what the notes say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rag.retrieval.filters import Filters
from rag.retrieval.scoped import ScopedSearch
from rag.types import Page, Passage, Retrieval

NOTES = Page("https://a.example/release-notes", "notes", "Skiff release notes", "en", "a.example", "", "", "web")
TEA = Page("https://a.example/tea", "tea", "Tea", "en", "a.example", "", "", "web")
PASSAGE = Passage("p", NOTES.url, "notes", "", "", "en", (), "text", 0, 4)


@dataclass
class Searched:
    """A retriever that finds a passage everywhere but in the pages of `empty`."""

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
        ("news of skiff", Filters(pages=("notes",)), {"strategy": "rerank", "before": ["What is tea?"]})
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
