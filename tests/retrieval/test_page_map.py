"""A library on a plane: positions, subjects and their names."""

import math
from collections import Counter

import pytest

from rag.models.embedding import SparseEncoder
from rag.retrieval.page_map import MIN_PAGES, PageMap, map_pages
from tests.support.lighthouse import make_page

TALKS = {
    "harbour": ["ships", "anchors", "pilots", "quays", "tides", "cranes"],
    "kitchen": ["bread", "ovens", "flour", "recipes", "butter", "spoons"],
    "细胞": ["基因", "蛋白质", "细菌", "病毒", "染色体", "酶"],
}


@pytest.fixture(scope="module")
def encoder() -> SparseEncoder:
    return SparseEncoder()


def laid_out(encoder: SparseEncoder) -> tuple[PageMap, dict[str, str]]:
    """Return a map of pages about three subjects, and the subject of each page."""
    pages, texts, talk_of = [], {}, {}
    for talk, words in TALKS.items():
        for at in range(8):
            chosen = [words[(at + step) % len(words)] for step in range(4)]
            text = "，".join([talk, *chosen]) + "。" if talk == "细胞" else f"The {talk} has {', '.join(chosen)}."
            page = make_page(len(pages) + 1, "", text, "en")
            pages.append(page)
            texts[page.url_hash], talk_of[page.url_hash] = text, talk
    found = map_pages(pages, texts, encoder)
    assert found is not None
    return found, talk_of


def test_pages_that_say_similar_things_lie_near_each_other(encoder: SparseEncoder) -> None:
    found, talk_of = laid_out(encoder)
    for one, place in found.positions.items():
        nearest = min(found.positions.keys() - {one}, key=lambda other: math.dist(place, found.positions[other]))
        assert talk_of[nearest] == talk_of[one]
        assert all(0 <= value <= 1 for value in place)


def test_a_subject_is_named_by_what_its_pages_say_and_others_do_not(encoder: SparseEncoder) -> None:
    found, talk_of = laid_out(encoder)
    words = {talk: {talk, *of} for talk, of in TALKS.items()}
    for subject in found.topics:
        talks = {talk_of[one] for one in found.pages_of(subject)}
        assert len(talks) == 1
        assert all(word in words[talk] for talk in talks for word in subject.split(" · "))
    assert len(set(found.topics)) == len(found.topics)
    assert found.pages_of("no such subject") == set()


def test_words_of_titles_name_a_subject_before_common_words(encoder: SparseEncoder) -> None:
    titles = {"Sailing boats": "People like good things there. ", "烘焙面包": "他们喜欢其他东西。"}
    pages = [make_page(number, title, "", "en") for number, title in enumerate([*titles] * 5)]
    found = map_pages(pages, {page.url_hash: titles[page.title] * 9 for page in pages}, encoder)
    assert found is not None
    assert {word.lower() for name in found.topics for word in name.split(" · ")} == {"sailing", "boats", "烘焙", "面包"}


def test_the_largest_subject_comes_first(encoder: SparseEncoder) -> None:
    found, _ = laid_out(encoder)
    sizes = Counter(found.topic_of.values())
    assert [sizes[at] for at in range(len(found.topics))] == sorted(sizes.values(), reverse=True)


def test_the_same_pages_are_laid_out_alike(encoder: SparseEncoder) -> None:
    assert laid_out(encoder) == laid_out(encoder)


def test_few_pages_have_no_map(encoder: SparseEncoder) -> None:
    pages = [make_page(number, f"Page {number}", "text", "en") for number in range(1, MIN_PAGES)]
    assert map_pages(pages, {}, encoder) is None


@pytest.mark.parametrize("texts", ["abcdefgh", "aaaaaaaa", "        "])
def test_pages_that_share_no_word_or_all_are_laid_out_too(encoder: SparseEncoder, texts: str) -> None:
    pages = [make_page(number, "", "", "en") for number in range(1, MIN_PAGES + 1)]
    found = map_pages(pages, {page.url_hash: sign * 5 for page, sign in zip(pages, texts, strict=True)}, encoder)
    assert found is not None
    assert all(math.isfinite(value) for place in found.positions.values() for value in place)
