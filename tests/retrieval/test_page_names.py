"""Pages that a message names."""

from __future__ import annotations

import pytest

from rag.retrieval.page_names import find_named_pages
from rag.types import Page
from rag.web.urls import url_hash


def page(title: str, url: str) -> Page:
    return Page(url, url_hash(url), title, "", "", "", "", "web")


LIBRARY = [
    page("Travel policy", "https://acme.example/hr/travel-policy"),
    page("Skiff handbook", "https://skiff.example/handbook"),
    page("Skiff prices", "https://skiff.example/prices"),
    page("深圳地铁票价表", "https://sz.example/metro"),
    page("差旅费用政策", "https://acme.example/zh/travel"),
    page("Metro fares in Shenzhen", "https://sz.example/en/fares"),
    page("Everything about home insurance", "https://x.example/a"),
    page("Library", "https://x.example/library"),
    page("What's new", "https://x.example/new"),
    page("个人知识库搭建", "https://x.example/kb"),
    *[page(f"Minutes of the board, part {n}", f"https://x.example/m/{n}") for n in range(5)],
]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Summarise the travel policy", ["Travel policy"]),
        ("What changed in the travel policy and in the Skiff handbook?", ["Skiff handbook", "Travel policy"]),
        ("Summarise the page about metro fares for my boss", ["Metro fares in Shenzhen"]),
        ("Summarize the handbook.", ["Skiff handbook"]),
        ('Give me the gist of "Library"', ["Library"]),
        ("总结《深圳地铁票价表》", ["深圳地铁票价表"]),
        ("请总结一下地铁票价这个页面", ["深圳地铁票价表"]),
        ("概括差旅政策", ["差旅费用政策"]),
        ("Summarise sz.example", ["深圳地铁票价表", "Metro fares in Shenzhen"]),
        ("Summarise https://sz.example/metro#top please", ["深圳地铁票价表"]),
        ("Summarise (https://sz.example/metro), then stop.", ["深圳地铁票价表"]),
        ("Summarise http://sz.example/elsewhere", []),
        ("Summarise Skiff", []),
        ("Summarise the minutes of the board", []),
        ("Summarise everything", []),
        ("Summarise the pages in this library", []),
        ("What is new since last week?", []),
        ("总结这个知识库的所有页面", []),
        ("最近有什么变化？", []),
        ("", []),
    ],
)
def test_pages_are_named_by_address_by_title_and_by_words_that_few_have(text: str, titles: list[str]) -> None:
    assert sorted(found.title for found in find_named_pages(text, LIBRARY)) == sorted(titles)


def test_an_exact_title_goes_before_longer_ones_with_the_same_words() -> None:
    library = [page(f"Travel policy {year}", f"https://acme.example/{year}") for year in range(2019, 2025)]
    assert find_named_pages("Summarise the travel policy", library) == []
    exact = page("Travel policy", "https://acme.example/now")
    assert find_named_pages("Summarise the travel policy", [*library, exact]) == [exact]


def test_an_empty_library_has_no_names() -> None:
    assert find_named_pages("Summarise the travel policy", []) == []
