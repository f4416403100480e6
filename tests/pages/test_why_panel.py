from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from rag.locales import label, say
from rag.types import Notice
from tests.pages.conftest import Open, words
from tests.pages.test_chat_page import ASKED, connected_chats
from tests.support.fake_app import FakeApp


def answered(open_page: Open, language: str) -> AppTest:
    page = open_page("chat", language)
    page.chat_input[0].set_value(ASKED[language][0]).run()
    return page.run()


def opened(page: AppTest, app: FakeApp) -> AppTest:
    page.session_state[f"how-{app.newest}"] = True
    return page.run()


def test_every_candidate_says_why_it_is_there_or_not(open_page: Open, app: FakeApp, language: str) -> None:
    page = answered(open_page, language)
    assert label("how", language) in words(page)
    assert label("why_left_out", language) not in words(page), "a closed panel draws nothing"
    page = opened(page, app)
    assert not page.exception
    shown = words(page)
    for key in ("why_kept", "why_left_out", "candidate_relevant", "candidate_irrelevant", "strategy_mmr"):
        assert label(key, language) in shown
    assert label("why_likely", language, percent=87) in shown
    assert "93%" in shown
    assert say(Notice("auto_exact", {"words": "![x](https://evil.example)"}), language).rstrip("。.") in shown
    assert not any("![x]" in str(part.value) for part in page.markdown)
    assert app.searched == [] and len(app.asked) == 1, "opening the panel searches nothing"
    del app.runs.answers["run1"]
    shown = words(opened(page, app))
    for key in ("why_kept", "why_left_out", "candidate_relevant", "strategy_mmr"):
        assert label(key, language) in shown, "a stored answer tells it too"
    assert "93%" in shown


def test_several_searches_have_a_tab_each(open_page: Open, app: FakeApp) -> None:
    page = answered(open_page, "en")
    answer = app.runs.answers["run1"]
    (search,) = answer.searches
    twice = (search, replace(search, question="the lamp in other words"))
    app.runs.answers["run1"] = replace(answer, searches=twice)
    shown = words(opened(page, app))
    assert "2 · the lamp in other words" in shown
    assert shown.count(label("why_left_out", "en")) == 2


@pytest.mark.parametrize("outcome", ["not_in_pages", "caveat"])
def test_an_answer_that_is_missing_says_what_was_searched(
    open_page: Open, app: FakeApp, outcome: str, language: str
) -> None:
    app.outcome = outcome  # type: ignore[assignment]
    page = answered(open_page, language)
    shown = words(page)
    assert label("missing_searched", language) not in shown  # the question itself was searched for
    assert label(f"outcome_{outcome}", language) in shown
    assert shown.count(label("nearest", language)) == (outcome == "not_in_pages")
    (search,) = app.runs.answers["run1"].searches
    app.runs.answers["run1"] = replace(app.runs.answers["run1"], searches=(replace(search, question="lamp"),))
    assert f"{label('missing_searched', language)}] “lamp”" in words(page.run())


def test_deep_mode_is_offered_for_one_question_if_there_is_a_chat_model(open_page: Open, app: FakeApp) -> None:
    app.outcome = "not_in_pages"
    page = answered(open_page, "en")
    offer = f"next-deep-{app.newest}"
    assert not [button for button in page.button if button.key == offer]
    app.chats = connected_chats(app)
    page.run()
    page.button(key=offer).click().run()
    assert (app.asked[1]["question"], app.asked[1]["mode"]) == (ASKED["en"][0], "deep")
    assert page.session_state["pagelight"].mode == "fast"


def test_without_passages_the_first_candidates_are_the_nearest(open_page: Open, app: FakeApp) -> None:
    app.outcome = "not_in_pages"
    page = answered(open_page, "en")
    app.runs.answers["run1"] = replace(app.runs.answers["run1"], passages=())
    shown = words(page.run())
    assert label("nearest", "en") in shown
    assert "In fog the bell rang twice a minute." in shown
