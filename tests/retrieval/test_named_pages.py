from __future__ import annotations

from dataclasses import replace

import pytest

from rag.models.embedding import SparseEncoder
from rag.retrieval.page_names import find_named
from rag.types import Passage
from tests.retrieval.test_context import piece

SPARSE = SparseEncoder()


def page(title: str, *, name: str = "", score: float = 1.0) -> Passage:
    text = "It opened in May."
    return replace(piece(name or title, 0, len(text), page=name or title, text=text, score=score), title=title)


def names(question: str, *pages: Passage) -> set[str]:
    asked = dict.fromkeys(SPARSE.encode_query(question).indices, 1.0)
    found = find_named(pages, asked, SPARSE)
    return {one.title for one in pages if one.url_hash in found}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which opened earlier, Grey Harbour or Mill Lane?", {"Grey Harbour", "Mill Lane"}),
        ("When did Grey Harbour open?", {"Grey Harbour"}),
        ("Which harbour opened earlier, and which lane?", set()),  # half a title names no page
        ("What is the toll?", set()),
    ],
)
def test_a_page_is_named_by_its_whole_title(question: str, expected: set[str]) -> None:
    assert names(question, page("Grey Harbour"), page("Mill Lane"), page("Old Market")) == expected


def test_titles_in_chinese_name_pages_too() -> None:
    pages = page("灰塔博物馆"), page("磨坊图书馆"), page("老市场")
    assert names("灰塔博物馆和磨坊图书馆哪个更早开放？", *pages) == {"灰塔博物馆", "磨坊图书馆"}


def test_of_pages_with_one_title_the_better_one_is_named() -> None:
    pages = page("Mill Lane"), page("Grey Harbour", name="a", score=0.2), page("Grey Harbour", name="b", score=0.9)
    asked = dict.fromkeys(SPARSE.encode_query("Mill Lane or Grey Harbour, which is older?").indices, 1.0)
    assert find_named(pages, asked, SPARSE) == {pages[0].url_hash, pages[2].url_hash}


def test_without_passages_none_is_named() -> None:
    assert names("Grey Harbour or Mill Lane?") == set()
