from __future__ import annotations

import pytest

from rag.agent.citing.citations import cite
from tests.agent.support import BRIDGE, TEA, VOLCANO, passage

PASSAGES = [passage(1, VOLCANO), passage(2, BRIDGE), passage(3, TEA)]


def test_marks_become_quotes_numbered_in_order() -> None:
    text, citations = cite("It was opened in 1932. [2] Mount Aso erupted in 1953. [1]", PASSAGES)
    assert text == "It was opened in 1932.[1] Mount Aso erupted in 1953.[2]"
    assert [c.quote for c in citations] == ["The bridge was opened in 1932.", "Mount Aso erupted in 1953."]
    assert [c.url for c in citations] == [PASSAGES[1].url, PASSAGES[0].url]


def test_quotes_stand_where_they_say() -> None:
    _, citations = cite("The town of Aso lies inside it. [1]", PASSAGES)
    (citation,) = citations
    start = citation.start - PASSAGES[0].start
    assert VOLCANO[start : start + len(citation.quote)] == citation.quote == "The town of Aso lies inside it."


@pytest.mark.parametrize("mark", ["[2]", "[ 2 ]", "【2】", "[^2]", "[2, 9]", "[2][9]", " [2]"])
def test_spellings_of_a_mark(mark: str) -> None:
    text, citations = cite(f"The bridge was opened in 1932{mark}.", PASSAGES)
    assert text == "The bridge was opened in 1932.[1]"
    assert len(citations) == 1


@pytest.mark.parametrize("mark", ["[0]", "[4]", "[99]"])
def test_marks_of_no_passage_are_dropped(mark: str) -> None:
    text, citations = cite(f"Bananas are yellow {mark}.", PASSAGES)
    assert (text, citations) == ("Bananas are yellow.", ())


def test_a_passage_that_does_not_support_is_not_cited() -> None:
    text, citations = cite("Penguins live in Antarctica and swim well. [2]", PASSAGES)
    assert "[" not in text
    assert citations == ()


def test_an_unmarked_statement_gets_the_passage_that_supports_it() -> None:
    text, citations = cite("It carries eight lanes of traffic and two railway lines.", PASSAGES)
    assert text.endswith("[1]")
    assert citations[0].url == PASSAGES[1].url


def test_chinese() -> None:
    text, citations = cite("龙井茶产于杭州[3]。炒制需要十道手法。[3]", PASSAGES)
    assert text == "龙井茶产于杭州。[1]炒制需要十道手法。[2]"
    assert [c.quote for c in citations] == ["龙井茶产于杭州。", "炒制需要十道手法。"]


def test_across_languages_the_mark_is_believed() -> None:
    _, citations = cite("这座桥于一九三二年通车。[2]", PASSAGES)
    assert citations[0].url == PASSAGES[1].url


def test_links_and_images_lose_their_targets() -> None:
    text, _ = cite("See [here](https://evil.example/?q=1) ![x](http://evil.example/x.png).", PASSAGES)
    assert "evil" not in text
    assert text.startswith("See here")


def test_one_quote_has_one_number() -> None:
    text, citations = cite("Opened in 1932. [2]\n\nThe bridge was opened in 1932. [2]", PASSAGES)
    assert text.count("[1]") == 2
    assert len(citations) == 1


def test_lists_keep_their_shape() -> None:
    text, citations = cite("- Mount Aso erupted in 1953 [1]\n- The bridge was opened in 1932 [2]\n", PASSAGES)
    assert text == "- Mount Aso erupted in 1953[1]\n- The bridge was opened in 1932[2]"
    assert len(citations) == 2


def test_nothing_to_cite() -> None:
    assert cite("", PASSAGES) == ("", ())
    assert cite("Hello!", []) == ("Hello!", ())
