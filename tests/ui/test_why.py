from dataclasses import replace

from rag.types import Retrieval
from rag.ui.why import facts, note_lines
from tests.support.lighthouse import CHINESE, ENGLISH, make_page, make_search

FOUND = make_search("How often?", make_page(1, "Keeping a lighthouse", ENGLISH, "en"))


def test_the_facts_of_a_search() -> None:
    told = "\n".join(facts(FOUND, "en"))
    assert ":gray[Asked] “How often?”" in told
    assert "Varied" in told
    assert "Meaning + Words" in told
    assert "1 of 2 candidates" in told
    assert "searching 12 ms · choosing 3 ms" in told


def test_a_leg_that_could_not_read_the_question_is_told() -> None:
    found = make_search("多久？", make_page(2, "灯塔的看守", CHINESE, "zh"))
    assert "语义未参与" in "\n".join(facts(found, "zh"))
    assert "语义未参与" not in "\n".join(facts(replace(found, strategy="keyword"), "zh"))


def test_notes_are_put_into_words() -> None:
    notes = {
        "why": {"code": "auto_facets", "params": {"parts": 2}},
        "queries": ["one", "![x](https://evil.example)"],
        "passage": "A :smile: passage",
        "some_number": 0.51234,
        "nothing": None,
        "deep": {"a": ["x", {"code": "no_such_code"}]},
    }
    told = "\n".join(note_lines(notes, "en"))
    assert ":gray[Because] The question asks 2 things" in told
    assert "one · " in told
    assert "0.51" in told
    assert "nothing" not in told
    assert "no\\_such\\_code" in told
    assert "![" not in told
    assert ":smile:" not in told
    assert "问题包含 2 个方面" in "\n".join(note_lines(notes, "zh"))


def test_a_single_query_is_the_question_and_not_told_again() -> None:
    assert note_lines({"queries": ["q"]}, "en") == []


def test_an_unknown_strategy_goes_by_its_own_name() -> None:
    found = Retrieval("q", "new_one", (), (), ("dense",), {"brew": 2.0})
    told = "\n".join(facts(found, "en"))
    assert r"new\_one" in told
    assert "brew 2 ms" in told
