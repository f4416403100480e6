"""The map of a library is computed once for the same pages, again for others, and never lost to an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from rag.app.overviews import PageMaps
from rag.errors import StoreUnavailableError
from rag.models.embedding import SparseEncoder
from rag.retrieval.page_map import MIN_PAGES
from rag.store.qdrant.library import Library
from rag.types import Page
from tests.store.support import draft

WORDS = "harbour lamp storm keeper granite tide diary museum winter rope".split()


class Texts:
    """The texts of a library's pages, unavailable for the next `away` calls."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []
        self.away = 0

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        self.asked.append(url_hashes)
        if self.away:
            self.away -= 1
            raise StoreUnavailableError("store_away", url="a.example", since="12:03")
        return {one: " ".join(WORDS[at % 7 : at % 7 + 4]) for at, one in enumerate(url_hashes)}


@pytest.fixture
def library() -> Texts:
    return Texts()


@pytest.fixture
def maps(library: Texts) -> Iterator[PageMaps]:
    made = PageMaps(lambda _: cast(Library, cast(Any, library)), SparseEncoder)
    yield made
    made.close()


def pages(number: int = MIN_PAGES) -> list[Page]:
    return [draft(f"page-{n}", site=f"s{n % 2}.example").page for n in range(number)]


def test_it_is_made_once_for_the_same_pages(maps: PageMaps, library: Texts) -> None:
    assert maps.latest("main") is None
    first = maps.get("main", pages()).result(60)
    assert first is not None and set(first.positions) == {page.url_hash for page in pages()}
    assert maps.get("main", pages()).result(60) is first is maps.latest("main")
    assert len(library.asked) == 1


def test_a_page_that_came_went_or_changed_makes_it_anew(maps: PageMaps, library: Texts) -> None:
    first = maps.get("main", pages()).result(60)
    more = pages(MIN_PAGES + 1)
    second = maps.get("main", more).result(60)
    assert second is not first and second is not None and len(second.positions) == MIN_PAGES + 1
    maps.get("main", [replace(more[0], text_hash="another"), *more[1:]]).result(60)
    maps.get("other", more).result(60)
    assert len(library.asked) == 4


def test_what_the_database_could_not_tell_is_asked_again(maps: PageMaps, library: Texts) -> None:
    library.away = 1
    with pytest.raises(StoreUnavailableError):
        maps.get("main", pages()).result(60)
    assert maps.latest("main") is None
    assert maps.get("main", pages()).result(60) is not None


def test_of_too_few_pages_there_is_none(maps: PageMaps) -> None:
    assert maps.get("main", pages(MIN_PAGES - 1)).result(60) is None
