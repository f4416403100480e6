from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from rag.app import App
from rag.locales import Language, label, say
from rag.types import Answer, Notice, Step
from rag.ui.chat.search_explanation import likelihood
from tests.pages.conftest import ASKED, Open, asked, change_answer, connect_model, newest, opened, record_calls, words

NOT_SAVED = "Who painted the harbour?"


def explained(page: AppTest, app: App) -> AppTest:
    return opened(page, f"how-{newest(app).id}")


def answer_of(app: App) -> Answer:
    return app.wait(newest(app).run_id)


def test_every_candidate_says_why_it_is_there_or_not(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: Language
) -> None:
    search = record_calls(monkeypatch, app, "search")
    page = asked(open_page("chat", language), app, ASKED[language])
    assert label("how", language) in words(page)
    assert label("why_left_out", language) not in words(page), "a closed panel draws nothing"
    page = explained(page, app)
    assert not page.exception
    shown = words(page)
    for key in ("why_kept", "why_left_out", "strategy_rerank"):
        assert label(key, language) in shown
    assert likelihood(answer_of(app).answerable, language) in shown
    assert not search.called and len(app.conversations.conversations("main")) == 1, "opening the panel searches nothing"
    app._runs._runs.clear()
    shown = words(explained(page, app))
    for key in ("why_kept", "why_left_out", "strategy_rerank"):
        assert label(key, language) in shown, "a stored answer tells it too"


def test_grades_near_duplicates_and_reasons_are_told(open_page: Open, app: App, language: Language) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    answer = answer_of(app)
    (search,), (first, second, *_) = answer.searches, answer.searches[0].candidates
    repeats = replace(second, repeats=first.passage.id, similarity=0.93, fate=None, into=None)
    why = {"why": {"code": "auto_exact", "params": {"words": "![x](https://evil.example)"}}}
    grades = [{"id": one.passage.id, "relevant": one is first} for one in (first, second)]
    change_answer(
        app,
        searches=(replace(search, candidates=(first, repeats), notes=why),),
        steps=(*answer.steps, Step("grade", 6.0, {"decision": "graded", "relevant": 1, "of": 2, "grades": grades})),
    )
    page = explained(page.run(), app)
    shown = words(page)
    for key in ("candidate_relevant", "candidate_irrelevant"):
        assert label(key, language) in shown
    assert "93%" in shown
    assert say(Notice("auto_exact", {"words": "![x](https://evil.example)"}), language).rstrip("。.") in shown
    assert not any("![x]" in str(part.value) for part in page.markdown)


def test_several_searches_have_a_tab_each(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    (search,) = answer_of(app).searches
    change_answer(app, searches=(search, replace(search, question="the lamp in other words")))
    shown = words(explained(page, app))
    assert "2 · the lamp in other words" in shown
    assert shown.count(label("why_left_out", "en")) == 2


@pytest.mark.parametrize(
    ("question", "outcome"), [("灯塔是谁建造的？", "not_in_pages"), ("看守的工钱是多少克朗？", "closest")]
)
def test_an_answer_that_is_missing_says_what_was_searched(
    open_page: Open, app: App, question: str, outcome: str, language: Language
) -> None:
    page = asked(open_page("chat", language), app, question)
    shown = words(page)
    assert label("missing_searched", language) not in shown  # the question itself was searched for
    assert label(f"outcome_{outcome}", language) in shown
    assert shown.count(label("nearest", language)) == (outcome == "not_in_pages")
    (search,) = answer_of(app).searches
    change_answer(app, searches=(replace(search, question="lamp"),))
    assert f"{label('missing_searched', language)}] “lamp”" in words(page.run())


def test_deep_mode_is_offered_for_one_question_if_there_is_a_chat_model(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app, NOT_SAVED)
    offer = f"next-deep-{newest(app).id}"
    assert not [button for button in page.button if button.key == offer]
    connect_model(app)
    page.run()
    page.button(key=offer).click().run()
    turn = newest(app)
    assert (turn.question, turn.settings["mode"]) == (NOT_SAVED, "deep")
    assert page.session_state["pagelight"].mode == "fast"


def test_without_passages_the_first_candidates_are_the_nearest(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app, NOT_SAVED)
    change_answer(app, passages=())
    shown = words(page.run())
    assert label("nearest", "en") in shown
    assert "In fog the bell rang twice a minute." in shown
