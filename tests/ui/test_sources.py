from dataclasses import replace

from rag.ui.sources import _quote_in_context, _reading, _state, anchor_of, live_address
from tests.support.lighthouse import ENGLISH, make_citation, make_page, make_passage

PAGE = make_page(1, "Keeping a lighthouse", ENGLISH, "en")
QUOTE = "The lamp was wound every four hours, day and night."


def test_the_quote_is_highlighted_where_it_stands() -> None:
    citation = make_citation(PAGE, QUOTE)
    shown = _quote_in_context(citation, make_passage(PAGE, QUOTE))
    assert f":yellow-background[{QUOTE}] A keeper who slept" in shown


def test_without_its_passage_the_quote_stands_alone() -> None:
    assert _quote_in_context(make_citation(PAGE, QUOTE), None) == f":yellow-background[{QUOTE}]"


def test_reading_in_the_page_points_at_the_very_letters() -> None:
    citation = make_citation(PAGE, QUOTE)
    note, text, span = _reading(PAGE, citation, make_passage(PAGE, QUOTE))
    assert note == ""
    assert span is not None
    assert text[slice(*span)] == QUOTE


def test_a_long_page_is_cut_around_the_quote() -> None:
    long_page = make_page(1, "Long", "word " * 800 + QUOTE + " word" * 800, "en")
    note, text, span = _reading(long_page, make_citation(long_page, QUOTE), None)
    assert note == ""
    assert span is not None
    assert text[slice(*span)] == QUOTE
    assert text.startswith("…")
    assert text.endswith("…")
    assert len(text) < 2500


def test_a_page_that_changed_or_went_is_said_so() -> None:
    citation, passage = make_citation(PAGE, QUOTE), make_passage(PAGE, QUOTE)
    changed = make_page(1, "Keeping a lighthouse", "Other " + ENGLISH, "en")
    for page, note in ((changed, "source_changed"), (None, "source_gone")):
        told, text, span = _reading(page, citation, passage)
        assert told == note
        assert span is not None
        assert text[slice(*span)] == QUOTE


def test_anchors_hold_nothing_but_letters_and_digits() -> None:
    assert anchor_of('x"><img src=y>-0123456789abcdef') == "source-456789abcdef"


def test_the_live_address_is_built_from_the_best_text_there_is() -> None:
    citation, passage = make_citation(PAGE, QUOTE), make_passage(PAGE, QUOTE)
    expected = f"{citation.url}#:~:text=The%20lamp%20was%20wound%20every%20four%20hours%2C%20day%20and%20night"
    changed = make_page(1, "Keeping a lighthouse", "Other " + ENGLISH, "en")
    for page, found in ((PAGE, passage), (changed, passage), (None, passage), (None, None)):
        assert live_address(citation, page, found) == expected


def test_a_repeated_sentence_is_told_apart_by_the_whole_page() -> None:
    twice = make_page(1, "Twice", f"First. {QUOTE}\n\nSecond, the night watch. {QUOTE}", "en")
    citation = replace(make_citation(twice, QUOTE), start=twice.text.rindex(QUOTE), end=len(twice.text))
    assert "text=Second%2C%20the%20night%20watch.-,The%20lamp" in live_address(citation, twice, None)


def test_a_mark_where_the_page_is_newer_or_gone() -> None:
    citation = make_citation(PAGE, QUOTE)
    changed = make_page(1, "Keeping a lighthouse", "Other " + ENGLISH, "en")
    assert _state(PAGE, citation, "en") == ""
    assert "newer version" in _state(changed, citation, "en")
    assert "已不在资料库" in _state(None, citation, "zh")
