from __future__ import annotations

import pytest

from rag.checking.citations import check
from rag.checking.rules import find_sentences, occurs_in
from tests.support.answering import passage

PAGE = "In January it is −5 °C at night. Boats may not enter.\n\n| Lamp | 1 234 |\n\n可以进港。不可以夜航。"


@pytest.mark.parametrize(
    ("said", "sentences"),
    [
        ("In January it is −5 °C", "In January it is −5 °C at night."),
        ("it is minus 5 °C at night", "In January it is −5 °C at night."),
        ("5 °C at night", ""),
        ("Boats may not enter", "Boats may not enter."),
        ("Boats may enter", ""),
        ("| Lamp | 1,234 |", "| Lamp | 1 234 |"),
        ("可以夜航", "不可以夜航。"),
        ("at night. Boats may not", "In January it is −5 °C at night. Boats may not enter."),
        ("", ""),
        ("...", ""),
    ],
)
def test_a_quote_is_the_whole_sentences_it_is_of(said: str, sentences: str) -> None:
    assert find_sentences(said, PAGE) == sentences


@pytest.mark.parametrize(
    ("said", "text", "stands"),
    [
        ("5 °C", "it was 5 °C", True),
        ("5", "it was 5 °C", True),
        ("5 °C", "it was −5 °C", False),
        ("5", "it was 5.5", False),
        ("1,234", "all of the 1 234 boats", True),
        ("art", "a smart art", True),
        ("art", "a smart boat", False),
        ("百分之六", "税率为6%。", True),
    ],
)
def test_an_answer_stands_in_a_text_by_its_values(said: str, text: str, stands: bool) -> None:
    assert occurs_in(said, text) is stands


def test_what_is_struck_out_is_no_sentence_to_quote() -> None:
    assert find_sentences("It costs 99 euros.", "It costs ~~99 euros~~.") == ""


def test_a_later_copy_is_found_behind_one_within_a_sentence() -> None:
    page = passage(1, "He said that the lamp burns all night. The lamp burns all night.")
    ((statement,), (citation,)) = ((c := check("The lamp burns all night. [1]", [page])).statements, c.citations)
    assert (statement.reason, citation.quote) == ("verbatim", "The lamp burns all night.")
