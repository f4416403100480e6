import json
from dataclasses import replace

import pytest

from rag.ingest.url_key import url_hash
from rag.ui.sources import anchor_of
from rag.ui.strings import label
from tests.pages.conftest import ROOT, Open, words
from tests.support.fake_app import FakeApp
from tests.support.lighthouse import CHINESE_QUOTES, ENGLISH_QUOTES

ASKED = {
    "en": ("How often was the lamp wound?", ENGLISH_QUOTES),
    "zh": ("灯多久上一次发条？", CHINESE_QUOTES),
}
BOTH = pytest.mark.parametrize("language", ["en", "zh"])


@BOTH
def test_an_empty_library_says_what_to_do_next(open_page: Open, language: str) -> None:
    page = open_page("chat", language)
    assert not page.exception
    assert label("empty_title", language) in words(page)
    assert page.button(key="empty-add").label == label("empty_add", language)


def test_the_sample_pages_are_one_click_away(open_page: Open, app: FakeApp) -> None:
    page = open_page("chat")
    page.button(key="empty-samples").click().run()
    assert not page.exception
    assert [job.library for job in app.imports.jobs_by_id.values()] == ["main"]


@BOTH
def test_a_question_gets_a_cited_answer(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    question, quotes = ASKED[language]
    page = open_page("chat", language)
    page.chat_input[0].set_value(question).run()
    page.run()
    assert not page.exception
    shown = words(page)
    assert question in shown
    assert label("outcome_answered", language) in shown
    for number, quote in enumerate(quotes, 1):
        assert f"{quote}[{number}](#{anchor_of(app.newest)}-{number})" in shown
        assert f":yellow-background[{quote}]" in shown
    assert app.asked[0]["mode"] == "fast"
    assert app.asked[0]["library"] == "main"


@BOTH
def test_examples_are_offered_where_their_pages_are(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    assert not [button for button in open_page("chat", language).button if "example" in (button.key or "")]
    sample = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    row = next(row for row in sample if row["lang"] == language)
    page = replace(app.library("main").stored[0], url_hash=url_hash(row["pages"][0]))
    app.library("main").stored.append(page)
    open_page("chat", language).button(key="example-0").click().run()
    assert app.asked[0]["question"] == row["question"]


def test_the_next_question_belongs_to_the_same_conversation(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("chat")
    for question in ("How often was the lamp wound?", "And in fog?"):
        page.chat_input[0].set_value(question).run()
        page.run()
    assert app.asked[0]["conversation_id"] == ""
    assert app.asked[1]["conversation_id"] == page.query_params["conversation"]
    assert [turn.question for turn in app.turns()] == ["How often was the lamp wound?", "And in fog?"]


@BOTH
def test_a_running_answer_shows_its_steps_and_can_be_stopped(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    app.released = 7
    page = open_page("chat", language)
    page.chat_input[0].set_value(ASKED[language][0]).run()
    shown = words(page)
    assert label("step_retrieve", language) in shown
    assert "14 ms" in shown
    assert page.chat_input[0].disabled
    page.button(key=f"stop-{app.newest}").click().run()
    assert app.cancelled == ["run1"]


def test_a_reload_finds_a_running_answer_again(open_page: Open, app: FakeApp) -> None:
    app.filled()
    app.released = 4
    first = open_page("chat")
    first.chat_input[0].set_value("How often was the lamp wound?").run()
    second = open_page("chat", conversation=first.query_params["conversation"])
    assert "How often was the lamp wound?" in words(second)
    assert second.button(key=f"stop-{app.newest}")
    app.released = 1000
    second.run()
    second.run()
    assert ENGLISH_QUOTES[0] in words(second)


@BOTH
def test_a_conversation_that_is_gone_is_said_so(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    page = open_page("chat", language, conversation="0" * 32)
    assert not page.exception
    assert len(page.toast) == 1
    assert "conversation" not in page.query_params


@BOTH
@pytest.mark.parametrize("outcome", ["caveat", "not_in_pages", "failed"])
def test_every_outcome_is_told(open_page: Open, app: FakeApp, outcome: str, language: str) -> None:
    app.filled()
    app.outcome = outcome  # type: ignore[assignment]
    page = open_page("chat", language)
    page.chat_input[0].set_value(ASKED[language][0]).run()
    page.run()
    assert label(f"outcome_{outcome}", language) in words(page)
    if outcome == "not_in_pages":
        assert label("nearest", language) in words(page)


def test_deep_mode_is_asked_for(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("chat")
    page.button_group(key="mode").set_value("deep").run()
    assert label("mode_deep_hint", "en") in words(page)
    page.chat_input[0].set_value("How often?").run()
    assert app.asked[0]["mode"] == "deep"


def test_a_new_conversation_forgets_the_old_one(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("chat")
    page.chat_input[0].set_value("How often was the lamp wound?").run()
    page.run()
    page.button(key="talk-new").click().run()
    assert ENGLISH_QUOTES[0] not in words(page)
    assert "conversation" not in page.query_params


def test_reading_in_the_page_opens_its_text(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("chat")
    page.chat_input[0].set_value("How often was the lamp wound?").run()
    page.run()
    assert "began at dusk" not in words(page)
    page.session_state[f"read-{app.newest}-1"] = True
    page.run()
    assert "began at dusk" in words(page)


def test_a_models_answer_is_rendered_safely(open_page: Open, app: FakeApp) -> None:
    app.filled()
    app.answer_text = "![x](https://evil.example/x.png) <img src=x> [go](https://evil.example) [1]"
    page = open_page("chat")
    page.chat_input[0].set_value("How often was the lamp wound?").run()
    page.run()
    answer = next(str(part.value) for part in page.markdown if "go" in str(part.value))
    assert "![" not in answer
    assert "](https://evil" not in answer
    assert f"[1](#{anchor_of(app.newest)}-1)" in answer
    assert not any(part.allow_html for part in page.markdown)
