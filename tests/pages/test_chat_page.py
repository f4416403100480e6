import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from rag.app import App, Question
from rag.app.chat_models import ChatOptions
from rag.locales import label, label_count, say
from rag.reasoning.extractive import ExtractiveReasoner
from rag.runs.run import RunOptions
from rag.store.qdrant.library import Library
from rag.text import question_language
from rag.types import Notice, ToolUse, Usage
from rag.ui.kit.parts import duration
from rag.ui.kit.session import Scope
from rag.ui.kit.sources import anchor_of
from rag.web.search import SearXNG
from rag.web.urls import url_hash
from tests.pages.conftest import ASKED, QUOTES, ROOT, Open, asked, change_answer, connect_model, newest, opened, words
from tests.support.chat_server import ChatServer, rules
from tests.support.lighthouse import LIGHTHOUSE, make_citation
from tests.support.odd_addresses import ODD_ADDRESSES
from tests.support.storing import store_pages
from tests.support.waiting import until

BOTH = pytest.mark.parametrize("language", ["en", "zh"])
TWICE = "How often was the lamp wound, and how often did the bell ring in fog?"
"""A question whose answer quotes two sentences."""
QUOTE = QUOTES["en"][0]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Make quoted answers wait until this event is set."""
    event, answer = threading.Event(), ExtractiveReasoner.answer

    async def wait_and_answer(reasoner: ExtractiveReasoner, *question: Any) -> AsyncIterator[str]:
        await asyncio.to_thread(event.wait)
        async for piece in answer(reasoner, *question):
            yield piece

    monkeypatch.setattr(ExtractiveReasoner, "answer", wait_and_answer)
    monkeypatch.setattr("rag.ui.chat.conversation._QUICK_SECONDS", 0.1)
    yield event
    event.set()


def test_an_empty_library_says_what_to_do_next(open_page: Open, app: App, language: str) -> None:
    app.clear_library("main")
    page = open_page("chat", language)
    assert not page.exception
    assert label("empty_lead", language) in words(page)
    assert page.button(key="empty-add").label == label("empty_add", language)
    popovers = {one.proto.popover.label for one in page.get("popover")}
    assert not {label("filters", language), label("options", language)} & popovers
    page.button(key="empty-samples").click().run()
    assert not page.exception
    assert len(app.imports.jobs.jobs("main")) == 1


@BOTH
def test_an_example_of_an_answer_is_only_in_an_empty_library(open_page: Open, app: App, language: str) -> None:
    def pictures() -> list[str]:
        html = [one.proto.body for one in open_page("chat", language).get("html")]
        return [body for body in html if "mark-picture" in body]

    assert not pictures()
    app.clear_library("main")
    (picture,) = pictures()
    quote, rest = label("picture_quote", language), label("picture_rest", language)
    assert f"{quote}{'' if language == 'zh' else ' '}{rest}" in re.sub("<[^>]*>", "", picture)


@BOTH
def test_a_sample_question_loads_the_sample_pages_and_is_asked(open_page: Open, app: App, language: str) -> None:
    app.clear_library("main")
    page = open_page("chat", language)
    question = page.button(key="example-0").label
    assert question_language(question) == language
    page.button(key="example-0").click().run()
    (job,), turn = app.imports.jobs.jobs("main"), newest(app)
    assert (turn.question, app.conversations.question(turn.id).options.saving) == (question, job.id)


@BOTH
def test_a_question_gets_a_cited_answer(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    assert not page.exception
    shown, source, quote = words(page), f"{anchor_of(newest(app).id)}-1", QUOTES[language][0]
    assert ASKED[language] in shown
    assert label("outcome_quoted", language) in shown
    assert f'{quote}[1](#{source} "{quote}")' in shown
    page.text_input(key="requested-source").set_value(source).run()
    assert f":yellow-background[{quote}]" in words(page)
    assert newest(app).settings["mode"] == "fast"


def test_no_stored_address_keeps_an_answer_from_being_drawn(open_page: Open, app: App) -> None:
    urls = [url for url in ODD_ADDRESSES if "\ud800" not in url]  # never stored
    pages = [replace(LIGHTHOUSE["en"], url=url, site=url, url_hash=f"{n:032x}") for n, url in enumerate(urls, 1)]
    store_pages(app.imports.ingestor("main"), *pages)
    page = asked(open_page("chat"), app)
    change_answer(app, citations=tuple(make_citation(page, QUOTE, n) for n, page in enumerate(pages, 1)))
    page.run()
    for n, url in enumerate(urls, 1):
        page.text_input(key="requested-source").set_value(f"{anchor_of(newest(app).id)}-{n}").run()
        assert not page.exception and not page.error, url
        assert f":yellow-background[{QUOTE}]" in words(page), url


def test_examples_are_offered_where_their_pages_are(open_page: Open, app: App, language: str) -> None:
    sample = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    row = next(row for row in sample if row["lang"] == language)
    before = open_page("chat", language)
    assert row["question"] not in {button.label for button in before.button}
    assert f"start-newest-{LIGHTHOUSE['en'].url_hash}" in {button.key for button in before.button}
    sample_page = replace(LIGHTHOUSE["en"], url=row["pages"][0], url_hash=url_hash(row["pages"][0]))
    store_pages(app.imports.ingestor("main"), sample_page)
    open_page("chat", language).button(key="example-0").click().run()
    assert newest(app).question == row["question"]


def test_no_question_is_suggested_from_a_note_or_an_excluded_page(open_page: Open, app: App) -> None:
    asks = "Who winds the lamp of the lighthouse?"
    text = f"## {asks}\n\nThe keeper winds it every four hours."
    pages = [replace(LIGHTHOUSE["en"], url=f"https://p.example/{n}", url_hash=f"{n:032x}", text=text) for n in (1, 2)]
    store_pages(app.imports.ingestor("main"), replace(pages[0], source="note"), pages[1])
    assert asks in {button.label for button in open_page("chat").button}
    app.library("main").set_excluded([pages[1].url_hash], True)
    store_pages(app.imports.ingestor("main"), replace(pages[0], url_hash=f"{3:032x}", source="note"))
    assert asks not in {button.label for button in open_page("chat").button}


@pytest.mark.usefixtures("release")
def test_a_running_answer_shows_its_steps_and_can_be_stopped(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    page = open_page("chat", language)
    page.chat_input[0].set_value(ASKED[language]).run()
    turn = newest(app)
    until(lambda: any(step["node"] == "generate" for step in steps_of(app, turn.run_id)))
    shown = words(page.run())
    assert label("node_retrieve", language) in shown
    (ms,) = [step["ms"] for step in steps_of(app, turn.run_id) if step["node"] == "retrieve" and "ms" in step]
    assert duration(ms, language) in shown
    assert not page.chat_input[0].disabled
    page.chat_input[0].set_value("And in fog?").run()
    assert [one.value for one in page.toast] == [say(Notice("turn_running"), language)]
    box = page.chat_input[0].proto
    assert newest(app).id == turn.id and (box.value, box.set_value) == ("And in fog?", True)
    with monkeypatch.context() as patch:
        patch.setattr(app, "cancel", cancel := Mock())  # the run would end before the page is drawn
        page.button(key=f"stop-{turn.id}").click().run()
    stop = page.button(key=f"stop-{turn.id}")
    assert (stop.label, stop.disabled) == (label("chat_stopping", language), True)
    app.cancel(*cancel.call_args.args)
    assert app.wait(turn.run_id, 60).notice
    assert label("outcome_unfinished", language) in words(page.run())


def steps_of(app: App, run_id: str) -> list[dict[str, Any]]:
    return [event.data for event in app.events(run_id) if event.kind == "step"]


def test_a_reload_finds_a_running_answer_again(open_page: Open, app: App, release: threading.Event) -> None:
    first = open_page("chat")
    first.chat_input[0].set_value(ASKED["en"]).run()
    second = open_page("chat", conversation=first.query_params["conversation"])
    assert ASKED["en"] in words(second)
    assert second.button(key=f"stop-{newest(app).id}")
    release.set()
    app.wait(newest(app).run_id, 60)
    second.run()
    assert QUOTE in words(second)


def test_a_conversation_that_is_gone_is_said_so(open_page: Open, language: str) -> None:
    page = open_page("chat", language, conversation="0" * 32)
    assert not page.exception
    assert len(page.toast) == 1
    assert "conversation" not in page.query_params


def test_a_run_that_fails_is_told(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:  # test_why_panel.py has the other outcomes
    monkeypatch.setattr(Library, "search", Mock(side_effect=RuntimeError))
    page = asked(open_page("chat", language), app, ASKED[language])
    assert label("outcome_failed", language) in words(page)


def test_a_models_caveat_is_told(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    change_answer(app, outcome="caveat", reasoner="made-up", notice=Notice("best_found", {"searches": 3}))
    assert label("outcome_caveat", language) in words(page.run())


def test_deep_mode_is_asked_for(open_page: Open, app: App) -> None:
    page = open_page("chat")
    assert page.menu_button(key="mode-menu").label == label("mode_fast", "en")
    page.menu_button(key="mode-menu").click("deep").run()
    assert page.menu_button(key="mode-menu").label == label("mode_deep", "en")
    page.chat_input[0].set_value("How often?").run()
    assert newest(app).settings["mode"] == "deep"


def test_each_mode_says_what_it_does_or_that_it_needs_a_chat_model(open_page: Open, app: App, language: str) -> None:
    lines = "\n".join(open_page("chat", language).menu_button(key="mode-menu").options)
    for key in ("mode_fast_hint", "mode_deep_quoting", "mode_research_quoting", "mode_judge_quoting", "chat_connect"):
        assert label(key, language) in lines
    connect_model(app)
    lines = "\n".join(open_page("chat", language).menu_button(key="mode-menu").options)
    assert label("mode_deep_hint", language) in lines and label("mode_judge_hint", language) in lines
    assert label("chat_connect", language) not in lines


def test_the_menu_of_ways_ends_with_deletion_and_has_a_web_search_if_there_is_one(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    key = f"way-other-{newest(app).id}"
    without = [line.partition(": ")[2] for line in page.menu_button(key=key).options]
    assert without[-1] == label("way_remove", "en")
    assert label("way_web", "en") not in without
    app.imports.web_search = SearXNG("http://127.0.0.1:9")
    assert any(label("way_web", "en") in line for line in page.run().menu_button(key=key).options)


def test_the_model_menu_lists_the_models_of_the_service_and_tells_the_speed(
    open_page: Open, app: App, service: ChatServer
) -> None:
    assert open_page("chat").button(key="model-connect").label == label("chat_connect", "en")
    connect_model(app, service.base_url)
    capacity = app.chats.capacity(app.chats.of_settings())
    capacity.window, capacity.read_speeds = 8192, [90.0]
    capacity.write_speeds, capacity.first_token_waits = [20.0, 28.0], [12.0, 13.5]
    page = opened(open_page("chat"), "model-menu")
    shown = [one.value for one in page.caption]
    assert "Context window: 8,192 tokens · 24 tokens per second · First word after 12.8 s" in shown
    assert label("model_slow_here", "en") in shown
    names = [page.button(key=f"model-{place}").label for place in range(2)]
    assert [name.replace("\\", "") for name in names] == ["qwen3:32b", "qwen3:8b"]
    page.button(key="model-1").click().run()
    assert service.requests[-1].body["model"] == "qwen3:8b", "it was tested"
    assert page.session_state["pagelight"].chat.model == "qwen3:8b"
    assert page.session_state["model-menu"] is False


def test_a_source_is_opened_turned_over_and_closed(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app, TWICE)
    assert "began at dusk" not in words(page)
    page.text_input(key="requested-source").set_value(f"{anchor_of(newest(app).id)}-1").run()
    assert "began at dusk" in words(page)
    assert page.button(key="source-before").disabled
    for number in (2, 3):
        page.button(key="source-after").click().run()
        assert page.session_state["requested-source"] == f"{anchor_of(newest(app).id)}-{number}"
    assert page.button(key="source-after").disabled
    page.button(key="source-close").click().run()
    assert "began at dusk" not in words(page)
    page.text_input(key="requested-source").set_value("source-of-nobody-1").run()
    assert not page.exception and "source-close" not in {button.key for button in page.button}


def test_a_source_is_closed_with_its_conversation(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    lamp = open_id(page)
    page.text_input(key="requested-source").set_value(f"{anchor_of(newest(app).id)}-1").run()
    page.button(key="talk-new").click().run()
    assert "source-close" not in {button.key for button in page.button}
    page.button(key=f"talk-other-{lamp}").click().run()
    assert QUOTE in words(page) and not page.session_state["requested-source"]


def test_a_models_answer_is_rendered_safely(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    change_answer(app, text="![x](https://evil.example/x.png) <img src=x> [go](https://evil.example) [1]")
    page.run()
    answer = next(str(part.value) for part in page.markdown if "go" in str(part.value))
    assert "![" not in answer
    assert "](https://evil" not in answer
    assert f"[1](#{anchor_of(newest(app).id)}-1 " in answer
    assert not any(part.allow_html for part in page.markdown)


def test_what_tools_were_called_stands_under_the_answer(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, "15% * 240")
    called = ToolUse("retrieve", "x", "1 passage: ![go](https://evil.example/x.png)")
    change_answer(app, text="36", tools=(*app.wait(newest(app).run_id).tools, called))
    page.run()
    lines = [str(one.value) for one in page.caption]
    name = "Calculator" if language == "en" else "计算器"
    assert label("outcome_told", language) in words(page)
    assert any(name in line and "240 = 36" in line for line in lines)
    assert not any("![go](" in line for line in lines)


def open_id(page: AppTest) -> str:
    """Return the id of the conversation in the address."""
    named = page.query_params["conversation"]
    return named if isinstance(named, str) else named[0]


def test_another_tab_and_a_restarted_server_show_what_was_stored(open_page: Open, app: App) -> None:
    first = asked(open_page("chat"), app, TWICE)
    app._runs._runs.clear()
    second = open_page("chat", conversation=first.query_params["conversation"])
    shown = words(second)
    assert all(quote in shown for quote in QUOTES["en"])
    assert label("outcome_quoted", "en") in shown
    second.text_input(key="requested-source").set_value(f"{anchor_of(newest(app).id)}-1").run()
    assert f":yellow-background[{QUOTE}]" in words(second)


def test_a_reload_keeps_mode_and_scope(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    state = page.session_state["pagelight"]
    state.mode, state.scope, state.choices = "deep", Scope(languages=("en",)), RunOptions(compose="refine", calls=3)
    page.chat_input[0].set_value("And the bell?").run()
    again = open_page("chat", conversation=page.query_params["conversation"]).session_state["pagelight"]
    assert (again.mode, again.scope, again.choices) == (state.mode, state.scope, state.choices)


@pytest.mark.parametrize("mode", ["tool", "summary"])
def test_a_mode_requested_in_a_message_does_not_change_the_selected_one(open_page: Open, mode: str) -> None:
    page = open_page("chat")
    page.session_state["pagelight"].mode = mode
    page.chat_input[0].set_value("15 % of 240").run()
    again = open_page("chat", conversation=page.query_params["conversation"])
    assert again.session_state["pagelight"].mode == "fast"
    assert label("app_failed", "en") not in words(again)
    assert not again.exception


def test_an_answer_that_was_cut_off_says_so_and_can_be_asked_again(open_page: Open, app: App, language: str) -> None:
    conversation, turn, _ = app.conversations._add(Question(ASKED[language], ("main",)), "", "", {})
    app._database.conversations.touch_turn(turn, "The lamp was wound", run_id="of a process that was killed")
    page = open_page("chat", language, conversation=conversation)
    shown = words(page)
    assert "The lamp was wound" in shown
    assert label("outcome_unfinished", language) in shown
    page.button(key=f"again-{turn}").click().run()
    assert [one.question for one in app.conversations.turns(conversation)] == [ASKED[language]] * 2


def test_what_a_follow_up_was_understood_as_can_be_put_right(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    turn = newest(app).id
    change_answer(app, standalone="How often was it wound in *fog*?")
    page.run()
    assert label("understood", language, question="How often was it wound in *fog*?") in words(page)
    page.text_area(key=f"meant-{turn}").set_value("How often was the bell rung?")
    page.button(key=f"meant-go-{turn}").click().run()
    question = app.conversations.question(newest(app).id)
    assert (question.text, question.options.standalone) == (ASKED[language], "How often was the bell rung?")


def test_a_finished_answer_can_be_repeated_in_another_mode_or_with_another_model(
    open_page: Open, app: App, service: ChatServer
) -> None:
    page = asked(open_page("chat"), app)
    first = newest(app).id
    opened(page, f"regenerate-{first}")
    keys = {str(button.key) for button in page.button}
    assert f"regenerate-research-{first}" in keys
    assert not keys & {f"regenerate-{name}-{first}" for name in ("fast", "deep", "judge", "model-0")}  # need a model
    page.button(key=f"regenerate-research-{first}").click().run()
    second = newest(app)
    assert [one.settings["mode"] for one in app.conversations.turns(open_id(page))] == ["fast", "research"]
    assert second.question == app.conversations.question(second.id).options.standalone == ASKED["en"]
    app.wait(second.run_id, 60)
    page.run()
    browser, options = page.session_state["pagelight"].id, ChatOptions("qwen3:8b", service.base_url, "a-key")
    app.chats.connections.add(browser, "", options)
    opened(page, f"regenerate-{first}")
    page.button(key=f"regenerate-model-0-{first}").click().run()
    third = newest(app)
    assert (third.settings["mode"], third.settings["model"]) == ("fast", "qwen3:32b")


def test_an_answer_is_saved_as_a_note_and_its_question_pinned(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    page.button(key=f"note-{newest(app).id}").click().run()
    assert not page.exception
    assert [page.title for page in app.library("main").pages() if page.source == "note"] == [ASKED["en"]]
    assert [one.value for one in page.toast] == [label("note_saved", "en")]
    pin = f"pin-{newest(app).id}"
    page.button(key=pin).click().run()
    assert not page.exception
    links = [one.value for one in page.markdown if f"#pinned-{newest(app).id}" in one.value]
    assert len(links) == 1 and page.button(key=pin).label == label("talk_unpin", "en")
    page.button(key=pin).click().run()
    assert not any("#pinned-" in one.value for one in page.markdown)


def test_more_than_eight_sources_fold(open_page: Open, app: App) -> None:
    page, cited = asked(open_page("chat"), app), make_citation(LIGHTHOUSE["en"], QUOTE)
    change_answer(
        app, citations=tuple(replace(cited, n=n, url_hash=f"{n:032x}", title=f"Page {n}") for n in range(1, 11))
    )
    shown = words(page.run())
    assert label_count("sources_more_one", "sources_more", 2, "en") in shown
    line, more = (next(text for text in shown.splitlines() if f"Page {n}]" in text) for n in (8, 9))
    assert "Page 1]" in line and "Page 9" not in line and "Page 10]" in more


def test_conversations_are_listed_searched_renamed_and_deleted(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app)
    lamp = open_id(page)
    page.button(key="talk-new").click().run()
    assert QUOTE not in words(page) and "conversation" not in page.query_params
    bell = open_id(asked(page, app, "And the bell?"))
    assert page.button(key=f"talk-open-{bell}").label == "And the bell?"
    page.text_input(key="talk-search").set_value("nothing like it").run()
    assert label("talk_none", "en") in words(page)
    page.text_input(key="talk-search").set_value("").run()
    page.button(key=f"talk-other-{lamp}").click().run()
    assert open_id(page) == lamp
    opened(page, "talk-menu-action", ("talk_rename", lamp))
    page.text_input(key=f"talk-title-{lamp}").set_value("The lamp")
    page.button(key="talk-rename").click().run()
    assert page.button(key=f"talk-open-{lamp}").label == "The lamp"
    opened(page, "talk-menu-action", ("talk_rename", lamp))
    page.text_input(key=f"talk-title-{lamp}").set_value("The bell")
    page.button(key="talk-keep").click().run()
    assert page.button(key=f"talk-open-{lamp}").label == "The lamp"
    opened(page, "talk-menu-action", ("talk_delete", lamp))
    page.button(key="talk-keep").click().run()
    assert "talk-delete" not in {button.key for button in page.button}
    opened(page, "talk-menu-action", ("talk_delete", lamp))
    page.button(key="talk-delete").click().run()
    assert [one.id for one in app.conversations.conversations("main")] == [bell]
    assert "conversation" not in page.query_params


def test_a_conversation_can_be_taken_elsewhere(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    assert not page.get("download_button")
    names = [one.proto.label for one in opened(page, "talk-menu").get("download_button")]
    assert names == ["Markdown", "HTML", "Word", "JSON"]


def test_rephrasing_a_question_starts_a_branch_with_the_earlier_turns(open_page: Open, app: App) -> None:
    page = asked(open_page("chat"), app, ASKED["en"], "And in fog?")
    source = open_id(page)
    turn = newest(app).id
    page.button(key=f"branch-{turn}").click().run()
    page.text_area(key=f"branch-question-{turn}").set_value("And at night?")
    page.button(key=f"branch-go-{turn}").click().run()
    app.wait(newest(app).run_id, 60)
    page.run()
    branch = open_id(page)
    assert [one.question for one in app.conversations.turns(source)] == [ASKED["en"], "And in fog?"]
    changed = [ASKED["en"], "And at night?"]
    assert [one.question for one in app.conversations.turns(branch)] == changed
    assert app.conversations.conversation(branch).title == "And at night?"
    page.button(key="talk-origin").click().run()
    assert open_id(page) == source
    page.button(key=f"to-branch-{branch}").click().run()
    assert open_id(page) == branch


def test_thumbs_are_kept_with_a_reason_and_a_correction(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    turn = newest(app).id
    page.feedback(key=f"thumbs-{turn}").set_value(0).run()
    assert newest(app).rating == -1
    opened(page, f"more-{turn}")
    page.selectbox(key=f"reason-{turn}").set_value("wrong")
    page.text_area(key=f"correction-{turn}").set_value("Every four hours.")
    page.button(key=f"feedback-go-{turn}").click().run()
    assert not page.exception
    assert app.feedback.details(turn) == {"reason": "wrong", "comment": "", "correction": "Every four hours."}
    assert newest(app).rating == -1
    page.feedback(key=f"thumbs-{turn}").set_value(None).run()
    assert newest(app).rating == 0


def test_questions_to_ask_next_are_one_click_away(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    app._database.conversations.add_extra(newest(app).id, {"suggestions": ["And in *fog*?"]})
    page.run()
    assert label("next_questions", language) in words(page)
    page.button(key=f"suggestion-0-{newest(app).id}").click().run()
    assert newest(app).question == "And in *fog*?"


def test_what_an_answer_used_is_said(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    change_answer(app, usage=Usage(3, 1000, 240, estimated=True, money=0.00123), seconds=1.25)
    shown = words(page.run())
    calls, tokens = label("usage_calls", language, count=3), label("usage_tokens_about", language, count="1,240")
    assert (
        f"{duration(1200, language)} · {calls} · {tokens} · {label('usage_money', language, money='0.0012')}" in shown
    )
    assert label("usage_whole", language, usage=f"{calls} · {tokens}") in shown.replace(" · 费用 0.0012", "")


def test_a_page_that_changed_or_is_gone_is_marked(open_page: Open, app: App, language: str) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    assert label("source_newer", language) not in words(page)
    stored, ingestor = LIGHTHOUSE[language], app.imports.ingestor("main")
    store_pages(ingestor, replace(stored, text=f"{stored.text} More."))
    assert label("source_newer", language) in words(page.run())
    store_pages(ingestor, stored)
    app.library("main").update_record(replace(stored, status="gone"))
    assert label("source_off_site", language) in words(page.run())
    app.clear_library("main")
    assert label("source_missing", language) in words(page.run())


def test_options_go_along_with_the_question(open_page: Open, app: App, service: ChatServer) -> None:
    connect_model(app, service.base_url)
    page = opened(open_page("chat"), "options")
    page.text_input(key="option-fast_model").set_value("small").run()
    page.slider(key="option-temperature").set_value(0.7).run()
    page.selectbox(key="option-compose").set_value("refine").run()
    page.number_input(key="option-calls").set_value(5).run()
    page.number_input(key="option-top_p").set_value(0.9).run()
    page.text_area(key="option-stop").set_value("END\n\n###").run()
    assert label("options_chosen", "en", count=4) in words(page)
    asked(page, app)
    turn = newest(app)
    chosen = {"compose": "refine", "calls": 5, "top_p": 0.9, "stop": ["END", "###"]}
    chosen |= {"model": "made-up", "fast_model": "small", "temperature": 0.7}
    assert {name: turn.settings.get(name) for name in (*chosen, "seed")} == {**chosen, "seed": None}
    options = app.conversations.question(turn.id).options
    assert (options.compose, options.calls, options.top_p, options.seed) == ("refine", 5, 0.9, None)
    assert "temperature 0.7 · top_p 0.9" in words(opened(page, f"how-{turn.id}"))


def test_a_model_named_beside_the_question_is_tried_on_the_spot(open_page: Open, app: App, language: str) -> None:
    with ChatServer(rules, models=("made-up", "bigger")) as service:
        connect_model(app, service.base_url)
        for name, menu in (("fast_model", "options"), ("model", "model-menu")):
            page = opened(open_page("chat", language), menu)
            page.text_input(key=f"option-{name}").set_value("none-such").run()
            (error,) = page.error
            assert "none-such" in error.value.replace("\\", "")
            assert page.text_input(key=f"option-{name}").value == ("made-up" if name == "model" else "")
            assert page.session_state["pagelight"].chat is None
        page.text_input(key="option-model").set_value("bigger").run()
        assert not page.error
        tried = [request.body["model"] for request in service.requests if "model" in request.body]
        assert tried == ["made-up", "none-such", "none-such", "bigger"]
        assert page.session_state["pagelight"].chat.model == "bigger"


def test_without_a_chat_model_only_the_time_can_be_limited(open_page: Open) -> None:
    page = opened(open_page("chat"), "options")
    assert [one.key for one in page.number_input] == ["option-seconds"]
    assert not page.exception


def test_other_libraries_are_chosen_beside_the_question(open_page: Open, app: App, language: str) -> None:
    name = app.libraries.create("Boats & ferries")
    page = opened(open_page("chat", language), "filters")
    page.multiselect(key="filter-libraries").set_value([name]).run()
    page.slider(key="filter-weight-1").set_value(0.5).run()
    assert "Boats" in page.button(key="chip-0").label
    asked(page, app)
    first = newest(app)
    question = app.conversations.question(first.id)
    assert (question.libraries, question.options.weights) == (("main", name), {name: 0.5})
    app.libraries.remove(name)
    page.chat_input[0].set_value(ASKED[language]).run()
    assert "Boats" in page.toast[0].value and newest(app).id == first.id, "what is gone is refused when it is asked"
    page.button(key="chip-0").click().run()
    asked(page, app)
    question = app.conversations.question(newest(app).id)
    assert (question.libraries, question.options.weights) == (("main",), {})


def test_what_was_remembered_is_said_and_undone_with_one_click(open_page: Open, app: App, language: str) -> None:
    page = open_page("chat", language)
    page.chat_input[0].set_value("Remember that I work in Berlin").run()
    assert label("remembered_kept", language, note="I work in Berlin") in words(page)
    page.button(key=f"remembered-undo-{newest(app).id}").click().run()
    assert label("remembered_gone", language) in words(page)
    assert label("remembered_kept", language, note="I work in Berlin") not in words(page)


def test_selected_pages_limit_the_questions_of_a_conversation(open_page: Open, app: App, language: str) -> None:
    stored = LIGHTHOUSE["en"]
    page = open_page("chat", language)
    page.button(key="page-picker-toggle").click().run()
    page.text_input(key="page-picker-words").set_value("lighthouse").run()
    assert [box.key for box in page.checkbox] == [f"page-tick-{stored.url_hash}"]
    page.checkbox(key=f"page-tick-{stored.url_hash}").check().run()
    assert page.button(key="page-picker-toggle").label == label("picker_some", language, chosen=1, count=2)
    page.chat_input[0].set_value(ASKED["en"]).run()
    turn = newest(app)
    assert turn.settings["scope"] == {"pages": [stored.url_hash]}
    page.button(key="talk-new").click().run()
    assert page.button(key="page-picker-toggle").label == label("picker", language)
    page.button(key=f"talk-other-{turn.conversation_id}").click().run()
    assert page.button(key="page-picker-toggle").label == label("picker_some", language, chosen=1, count=2)
