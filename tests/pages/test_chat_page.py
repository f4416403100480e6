import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from rag.app.chat_models import ChatOptions
from rag.locales import label, label_count, say
from rag.runs.run import RunOptions
from rag.text import question_language
from rag.types import Notice, ToolUse, Usage
from rag.ui.kit.parts import duration
from rag.ui.kit.session import Scope
from rag.ui.kit.sources import anchor_of
from rag.web.urls import url_hash
from tests.pages.conftest import ROOT, Open, words
from tests.support.fake_app import FakeApp, FakeChats
from tests.support.lighthouse import CHINESE_QUOTES, ENGLISH_QUOTES, make_citation
from tests.support.odd_addresses import ODD_ADDRESSES

ASKED = {
    "en": ("How often was the lamp wound?", ENGLISH_QUOTES),
    "zh": ("灯多久上一次发条？", CHINESE_QUOTES),
}
BOTH = pytest.mark.parametrize("language", ["en", "zh"])


def test_an_empty_library_says_what_to_do_next(open_page: Open, app: FakeApp, language: str) -> None:
    app.library().clear()
    page = open_page("chat", language)
    assert not page.exception
    assert label("empty_lead", language) in words(page)
    assert page.button(key="empty-add").label == label("empty_add", language)
    popovers = {one.proto.popover.label for one in page.get("popover")}
    assert not {label("filters", language), label("options", language)} & popovers
    page.button(key="empty-samples").click().run()
    assert not page.exception
    assert [job.library for job in app.imports.jobs_by_id.values()] == ["main"]


@BOTH
def test_a_sample_question_loads_the_sample_pages_and_is_asked(open_page: Open, app: FakeApp, language: str) -> None:
    app.library().clear()
    page = open_page("chat", language)
    question = page.button(key="example-0").label
    assert question_language(question) == language
    page.button(key="example-0").click().run()
    (job,) = app.imports.jobs_by_id
    assert (app.asked[0]["question"], app.asked[0]["saving"]) == (question, job)


@BOTH
def test_a_question_gets_a_cited_answer(open_page: Open, app: FakeApp, language: str) -> None:
    question, quotes = ASKED[language]
    page = asked(open_page("chat", language), question)
    assert not page.exception
    shown = words(page)
    assert question in shown
    assert label("outcome_quoted", language) in shown
    for number, quote in enumerate(quotes, 1):
        assert f'{quote}[{number}](#{anchor_of(app.newest)}-{number} "{quote}")' in shown
        page.text_input(key="requested-source").set_value(f"{anchor_of(app.newest)}-{number}").run()
        assert f":yellow-background[{quote}]" in words(page)
    assert app.asked[0]["mode"] == "fast"
    assert app.asked[0]["library"] == "main"


def test_no_stored_address_keeps_an_answer_from_being_drawn(open_page: Open, app: FakeApp) -> None:
    stored, urls = app.library("main").stored, [url for url in ODD_ADDRESSES if "\ud800" not in url]  # never stored
    stored[:] = [replace(stored[0], url=url, site=url, url_hash=f"{n:032x}") for n, url in enumerate(urls, 1)]
    app.cited = tuple(make_citation(page, ENGLISH_QUOTES[0], n) for n, page in enumerate(stored, 1))
    page = asked(open_page("chat"), ASKED["en"][0])
    for n, url in enumerate(urls, 1):
        page.text_input(key="requested-source").set_value(f"{anchor_of(app.newest)}-{n}").run()
        assert not page.exception and not page.error, url
        assert f":yellow-background[{ENGLISH_QUOTES[0]}]" in words(page), url


def test_examples_are_offered_where_their_pages_are(open_page: Open, app: FakeApp, language: str) -> None:
    sample = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    row = next(row for row in sample if row["lang"] == language)
    before = open_page("chat", language)
    assert row["question"] not in {button.label for button in before.button}
    assert f"start-newest-{app.library('main').stored[0].url_hash}" in {button.key for button in before.button}
    page = replace(app.library("main").stored[0], url_hash=url_hash(row["pages"][0]))
    app.library("main").stored.append(page)
    open_page("chat", language).button(key="example-0").click().run()
    assert app.asked[0]["question"] == row["question"]


def test_a_running_answer_shows_its_steps_and_can_be_stopped(open_page: Open, app: FakeApp, language: str) -> None:
    app.visible_events = 7
    page = open_page("chat", language)
    page.chat_input[0].set_value(ASKED[language][0]).run()
    shown = words(page)
    assert label("node_retrieve", language) in shown
    assert duration(14, language) in shown
    assert not page.chat_input[0].disabled
    page.chat_input[0].set_value("And in fog?").run()
    assert [one.value for one in page.toast] == [say(Notice("turn_running"), language)]
    box = page.chat_input[0].proto
    assert len(app.asked) == 1 and (box.value, box.set_value) == ("And in fog?", True)
    page.button(key=f"stop-{app.newest}").click().run()
    stop = page.button(key=f"stop-{app.newest}")
    assert (stop.label, stop.disabled) == (label("chat_stopping", language), True)
    assert app.cancelled == ["run1"]


def test_a_reload_finds_a_running_answer_again(open_page: Open, app: FakeApp) -> None:
    app.visible_events = 4
    first = open_page("chat")
    first.chat_input[0].set_value("How often was the lamp wound?").run()
    second = open_page("chat", conversation=first.query_params["conversation"])
    assert "How often was the lamp wound?" in words(second)
    assert second.button(key=f"stop-{app.newest}")
    app.visible_events = 1000
    second.run()
    second.run()
    assert ENGLISH_QUOTES[0] in words(second)


def test_a_conversation_that_is_gone_is_said_so(open_page: Open, language: str) -> None:
    page = open_page("chat", language, conversation="0" * 32)
    assert not page.exception
    assert len(page.toast) == 1
    assert "conversation" not in page.query_params


@pytest.mark.parametrize("outcome", ["caveat", "failed"])  # test_why_panel.py has the third
def test_every_outcome_is_told(open_page: Open, app: FakeApp, outcome: str, language: str) -> None:
    app.outcome = outcome  # type: ignore[assignment]
    page = asked(open_page("chat", language), ASKED[language][0])
    assert label(f"outcome_{outcome}", language) in words(page)


def test_deep_mode_is_asked_for(open_page: Open, app: FakeApp) -> None:
    page = open_page("chat")
    assert page.menu_button(key="mode-menu").label == label("mode_fast", "en")
    page.menu_button(key="mode-menu").click("deep").run()
    assert page.menu_button(key="mode-menu").label == label("mode_deep", "en")
    page.chat_input[0].set_value("How often?").run()
    assert app.asked[0]["mode"] == "deep"


def test_each_mode_says_what_it_does_or_that_it_needs_a_chat_model(
    open_page: Open, app: FakeApp, language: str
) -> None:
    lines = "\n".join(open_page("chat", language).menu_button(key="mode-menu").options)
    for key in ("mode_fast_hint", "mode_deep_quoting", "mode_judge_quoting", "chat_connect"):
        assert label(key, language) in lines
    app.chats = connected_chats(app)
    lines = "\n".join(open_page("chat", language).menu_button(key="mode-menu").options)
    assert label("mode_deep_hint", language) in lines and label("mode_judge_hint", language) in lines
    assert label("chat_connect", language) not in lines


def test_the_model_menu_lists_the_models_of_the_service_and_tells_the_speed(open_page: Open, app: FakeApp) -> None:
    assert open_page("chat").button(key="model-connect").label == label("chat_connect", "en")
    app.chats = connected_chats(app)
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
    assert app.chats.tested[-1].model == "qwen3:8b"
    assert page.session_state["pagelight"].chat.model == "qwen3:8b"
    assert page.session_state["model-menu"] is False


def connected_chats(app: FakeApp) -> FakeChats:
    return FakeChats(app.settings.model_copy(update={"llm_model": "made-up", "llm_base_url": "http://127.0.0.1:9/v1"}))


def test_a_source_is_opened_turned_over_and_closed(open_page: Open, app: FakeApp) -> None:
    page = asked(open_page("chat"))
    assert "began at dusk" not in words(page)
    page.text_input(key="requested-source").set_value(f"{anchor_of(app.newest)}-1").run()
    assert "began at dusk" in words(page)
    assert page.button(key="source-before").disabled
    page.button(key="source-after").click().run()
    assert page.session_state["requested-source"] == f"{anchor_of(app.newest)}-2"
    assert page.button(key="source-after").disabled
    page.button(key="source-close").click().run()
    assert "began at dusk" not in words(page)
    page.text_input(key="requested-source").set_value("source-of-nobody-1").run()
    assert not page.exception and "source-close" not in {button.key for button in page.button}


def test_a_models_answer_is_rendered_safely(open_page: Open, app: FakeApp) -> None:
    app.answer_text = "![x](https://evil.example/x.png) <img src=x> [go](https://evil.example) [1]"
    page = asked(open_page("chat"))
    answer = next(str(part.value) for part in page.markdown if "go" in str(part.value))
    assert "![" not in answer
    assert "](https://evil" not in answer
    assert f"[1](#{anchor_of(app.newest)}-1 " in answer
    assert not any(part.allow_html for part in page.markdown)


def test_what_tools_were_called_stands_under_the_answer(open_page: Open, app: FakeApp, language: str) -> None:
    app.answer_text = "36"
    called = ToolUse("retrieve", "x", "1 passage: ![go](https://evil.example/x.png)")
    app.tools = (ToolUse("calculator", "15% * 240", "15% * 240 = 36"), called)
    page = asked(open_page("chat", language), ASKED[language][0])
    lines = [str(one.value) for one in page.caption]
    name = "Calculator" if language == "en" else "计算器"
    assert label("outcome_told", language) in words(page)
    assert any(name in line and "240 = 36" in line for line in lines)
    assert not any("![go](" in line for line in lines)


def asked(page: AppTest, *questions: str) -> AppTest:
    for question in questions or ("How often was the lamp wound?",):
        page.chat_input[0].set_value(question).run()
        page.run()
    return page


def open_id(page: AppTest) -> str:
    """Return the id of the conversation in the address."""
    named = page.query_params["conversation"]
    return named if isinstance(named, str) else named[0]


def opened(page: AppTest, key: str, value: object = True) -> AppTest:
    page.session_state[key] = value
    return page.run()


def test_another_tab_and_a_restarted_server_show_what_was_stored(open_page: Open, app: FakeApp) -> None:
    first = asked(open_page("chat"))
    app.runs.answers.clear()
    second = open_page("chat", conversation=first.query_params["conversation"])
    shown = words(second)
    assert all(quote in shown for quote in ENGLISH_QUOTES)
    assert label("outcome_quoted", "en") in shown
    second.text_input(key="requested-source").set_value(f"{anchor_of(app.newest)}-1").run()
    assert f":yellow-background[{ENGLISH_QUOTES[0]}]" in words(second)


def test_a_reload_keeps_mode_and_scope(open_page: Open) -> None:
    page = open_page("chat")
    page.chat_input[0].set_value("How often was the lamp wound?").run()
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


def test_an_answer_that_was_cut_off_says_so_and_can_be_asked_again(
    open_page: Open, app: FakeApp, language: str
) -> None:
    app.visible_events = 7
    page = open_page("chat", language)
    page.chat_input[0].set_value(ASKED[language][0]).run()
    turn = app.newest
    app.database.conversations.touch_turn(turn, "The lamp was wound")
    app.runs.answers.clear()
    page = open_page("chat", language, conversation=page.query_params["conversation"])
    shown = words(page)
    assert "The lamp was wound" in shown
    assert label("outcome_unfinished", language) in shown
    app.visible_events = 1000
    page.button(key=f"again-{turn}").click().run()
    assert [one["question"] for one in app.asked] == [ASKED[language][0]] * 2
    assert app.asked[1]["conversation_id"] == page.query_params["conversation"]


def test_what_a_follow_up_was_understood_as_can_be_put_right(open_page: Open, app: FakeApp, language: str) -> None:
    app.standalone = "How often was it wound in *fog*?"
    page = asked(open_page("chat", language), ASKED[language][0])
    turn = app.newest
    assert label("understood", language, question="How often was it wound in *fog*?") in words(page)
    page.text_area(key=f"meant-{turn}").set_value("How often was the bell rung?")
    page.button(key=f"meant-go-{turn}").click().run()
    assert app.asked[1]["standalone"] == "How often was the bell rung?"
    assert app.asked[1]["question"] == ASKED[language][0]


def test_a_finished_answer_can_be_repeated_in_another_mode_or_with_another_model(open_page: Open, app: FakeApp) -> None:
    page = asked(open_page("chat"))
    first = app.newest
    opened(page, f"regenerate-{first}")
    keys = {str(button.key) for button in page.button}
    assert f"regenerate-research-{first}" in keys
    assert not keys & {f"regenerate-{name}-{first}" for name in ("fast", "deep", "judge", "model-0")}  # need a model
    page.button(key=f"regenerate-research-{first}").click().run()
    page.run()
    assert [one["mode"] for one in app.asked] == ["fast", "research"]
    assert app.asked[1]["conversation_id"] == open_id(page)
    assert app.asked[1]["question"] == app.asked[1]["standalone"] == app.asked[0]["question"]
    chats = app.chats = FakeChats(app.settings)
    chats.connections.add(page.session_state["pagelight"].id, "", ChatOptions("qwen3:8b", "http://127.0.0.1:9/v1"))
    opened(page, f"regenerate-{first}")
    page.button(key=f"regenerate-model-0-{first}").click().run()
    assert app.asked[2]["mode"] == "fast"
    assert app.asked[2]["chat"].model == "qwen3:32b"


def test_an_answer_is_saved_as_a_note_and_its_question_pinned(open_page: Open, app: FakeApp) -> None:
    page = asked(open_page("chat"))
    page.button(key=f"note-{app.newest}").click().run()
    assert not page.exception
    assert app.notes == [app.newest]
    assert [one.value for one in page.toast] == [label("note_saved", "en")]
    pin = f"pin-{app.newest}"
    page.button(key=pin).click().run()
    assert not page.exception
    links = [one.value for one in page.markdown if f"#pinned-{app.newest}" in one.value]
    assert len(links) == 1 and page.button(key=pin).label == label("talk_unpin", "en")
    page.button(key=pin).click().run()
    assert not any("#pinned-" in one.value for one in page.markdown)


def test_more_than_eight_sources_fold(open_page: Open, app: FakeApp) -> None:
    page = app.library("main").stored[0]
    app.cited = tuple(
        replace(make_citation(page, ENGLISH_QUOTES[0], n), url_hash=f"{n:032x}", title=f"Page {n}")
        for n in range(1, 11)
    )
    shown = words(asked(open_page("chat")))
    assert label_count("sources_more_one", "sources_more", 2, "en") in shown
    line, more = (next(text for text in shown.splitlines() if f"Page {n}]" in text) for n in (8, 9))
    assert "Page 1]" in line and "Page 9" not in line and "Page 10]" in more


def test_conversations_are_listed_searched_renamed_and_deleted(open_page: Open, app: FakeApp) -> None:
    page = asked(open_page("chat"))
    lamp = open_id(page)
    page.button(key="talk-new").click().run()
    assert ENGLISH_QUOTES[0] not in words(page) and "conversation" not in page.query_params
    bell = open_id(asked(page, "And the bell?"))
    assert page.button(key=f"talk-open-{bell}").label == "And the bell?"
    page.text_input(key="talk-search").set_value("nothing like it").run()
    assert label("talk_none", "en") in words(page)
    page.text_input(key="talk-search").set_value("").run()
    page.button(key=f"talk-other-{lamp}").click().run()
    assert open_id(page) == lamp
    opened(page, "talk-menu-action", ("talk_rename", lamp))
    page.text_input(key=f"talk-title-{lamp}").set_value("The lamp").run()
    assert page.button(key=f"talk-open-{lamp}").label == "The lamp"
    opened(page, "talk-menu-action", ("talk_delete", lamp))
    page.button(key="talk-keep").click().run()
    assert "talk-delete" not in {button.key for button in page.button}
    opened(page, "talk-menu-action", ("talk_delete", lamp))
    page.button(key="talk-delete").click().run()
    assert [one.id for one in app.conversations.conversations("main")] == [bell]
    assert "conversation" not in page.query_params


def test_a_conversation_can_be_taken_elsewhere(open_page: Open, language: str) -> None:
    page = asked(open_page("chat", language), ASKED[language][0])
    assert not page.get("download_button")
    names = [one.proto.label for one in opened(page, "talk-menu").get("download_button")]
    assert names == ["Markdown", "HTML", "Word", "JSON"]


def test_rephrasing_a_question_starts_a_branch_with_the_earlier_turns(open_page: Open, app: FakeApp) -> None:
    page = asked(open_page("chat"), "How often was the lamp wound?", "And in fog?")
    source = open_id(page)
    assert [one["conversation_id"] for one in app.asked] == ["", source]
    turn = app.newest
    page.button(key=f"branch-{turn}").click().run()
    page.text_area(key=f"branch-question-{turn}").set_value("And at night?")
    page.button(key=f"branch-go-{turn}").click().run()
    page.run()
    branch = open_id(page)
    assert [one.question for one in app.conversations.turns(source)] == ["How often was the lamp wound?", "And in fog?"]
    changed = ["How often was the lamp wound?", "And at night?"]
    assert [one.question for one in app.conversations.turns(branch)] == changed
    assert app.conversations.conversation(branch).title == "And at night?"
    page.button(key="talk-origin").click().run()
    assert open_id(page) == source
    page.button(key=f"to-branch-{branch}").click().run()
    assert open_id(page) == branch


def test_thumbs_are_kept_with_a_reason_and_a_correction(open_page: Open, app: FakeApp, language: str) -> None:
    page = asked(open_page("chat", language), ASKED[language][0])
    turn = app.newest
    page.feedback(key=f"thumbs-{turn}").set_value(0).run()
    assert app.turns()[-1].rating == -1
    opened(page, f"more-{turn}")
    page.selectbox(key=f"reason-{turn}").set_value("wrong")
    page.text_area(key=f"correction-{turn}").set_value("Every four hours.")
    page.button(key=f"feedback-go-{turn}").click().run()
    assert not page.exception
    assert app.feedback.details(turn) == {"reason": "wrong", "comment": "", "correction": "Every four hours."}
    assert app.turns()[-1].rating == -1
    page.feedback(key=f"thumbs-{turn}").set_value(None).run()
    assert app.turns()[-1].rating == 0


def test_questions_to_ask_next_are_one_click_away(open_page: Open, app: FakeApp, language: str) -> None:
    app.suggestions = ("And in *fog*?",)
    page = asked(open_page("chat", language), ASKED[language][0])
    assert label("next_questions", language) in words(page)
    page.button(key=f"suggestion-0-{app.newest}").click().run()
    assert app.asked[1]["question"] == "And in *fog*?"


def test_what_an_answer_used_is_said(open_page: Open, app: FakeApp, language: str) -> None:
    app.usage = Usage(3, 1000, 240, estimated=True, money=0.00123)
    page = asked(open_page("chat", language), ASKED[language][0])
    shown = words(page)
    calls, tokens = label("usage_calls", language, count=3), label("usage_tokens_about", language, count="1,240")
    assert (
        f"{duration(1200, language)} · {calls} · {tokens} · {label('usage_money', language, money='0.0012')}" in shown
    )
    assert label("usage_whole", language, usage=f"{calls} · {tokens}") in shown.replace(" · 费用 0.0012", "")


def test_a_page_that_changed_or_is_gone_is_marked(open_page: Open, app: FakeApp, language: str) -> None:
    page = asked(open_page("chat", language), ASKED[language][0])
    assert label("source_newer", language) not in words(page)
    stored = app.library().stored
    stored[:] = [replace(one, text_hash="another") for one in stored]
    assert label("source_newer", language) in words(page.run())
    stored[:] = [replace(one, status="gone") for one in app.add_sample_pages().library().stored]
    assert label("source_off_site", language) in words(page.run())
    stored.clear()
    assert label("source_missing", language) in words(page.run())


def test_options_go_along_with_the_question(open_page: Open, app: FakeApp) -> None:
    app.settings = app.settings.model_copy(update={"llm_model": "big", "llm_base_url": "http://127.0.0.1:1/v1"})
    app.chats = FakeChats(app.settings)
    app.usage = Usage(calls=1)
    page = opened(open_page("chat"), "options")
    page.text_input(key="option-fast_model").set_value("small").run()
    page.slider(key="option-temperature").set_value(0.7).run()
    page.selectbox(key="option-compose").set_value("refine").run()
    page.number_input(key="option-calls").set_value(5).run()
    page.number_input(key="option-top_p").set_value(0.9).run()
    page.text_area(key="option-stop").set_value("END\n\n###").run()
    assert label("options_chosen", "en", count=4) in words(page)
    asked(page)
    (sent,) = app.asked
    assert (sent["chat"].model, sent["chat"].fast_model, sent["chat"].temperature) == ("big", "small", 0.7)
    assert (sent["compose"], sent["calls"], sent["top_p"], sent["seed"]) == ("refine", 5, 0.9, None)
    chosen = {"compose": "refine", "calls": 5, "fast_model": "small", "temperature": 0.7}
    assert sent["settings"] == {**chosen, "top_p": 0.9, "stop": ("END", "###")}
    assert "temperature 0.7 · top_p 0.9" in words(opened(page, f"how-{app.newest}"))


def test_a_model_named_beside_the_question_is_tried_on_the_spot(open_page: Open, app: FakeApp, language: str) -> None:
    app.settings = app.settings.model_copy(update={"llm_model": "big", "llm_base_url": "http://127.0.0.1:1/v1"})
    app.chats = FakeChats(app.settings)
    for name, menu in (("fast_model", "options"), ("model", "model-menu")):
        page = opened(open_page("chat", language), menu)
        page.text_input(key=f"option-{name}").set_value("none-such").run()
        (error,) = page.error
        assert "none-such" in error.value
        assert page.text_input(key=f"option-{name}").value == ("big" if name == "model" else "")
        assert page.session_state["pagelight"].chat is None
    page.text_input(key="option-model").set_value("bigger").run()
    assert not page.error
    assert [chat.model for chat in app.chats.tested] == ["big", "none-such", "bigger"]
    assert page.session_state["pagelight"].chat.model == "bigger"


def test_without_a_chat_model_only_the_time_can_be_limited(open_page: Open) -> None:
    page = opened(open_page("chat"), "options")
    assert [one.key for one in page.number_input] == ["option-seconds"]
    assert not page.exception


def test_other_libraries_are_chosen_beside_the_question(open_page: Open, app: FakeApp, language: str) -> None:
    name = app.libraries.create("Boats & ferries")
    page = opened(open_page("chat", language), "filters")
    page.multiselect(key="filter-libraries").set_value([name]).run()
    page.slider(key="filter-weight-1").set_value(0.5).run()
    assert "Boats" in page.button(key="chip-0").label
    asked(page)
    (sent,) = app.asked
    assert (sent["libraries"], sent["weights"]) == (("main", name), {name: 0.5})
    app.libraries.remove(name)
    asked(page)
    assert app.asked[-1]["libraries"] == ("main", name), "what is gone is refused when it is asked"
    page.button(key="chip-0").click().run()
    asked(page)
    assert (app.asked[-1]["libraries"], app.asked[-1]["weights"]) == (("main",), {})


def test_what_was_remembered_is_said_and_undone_with_one_click(
    open_page: Open, app: FakeApp, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.ui.chat.conversation.person_id", lambda: "ann")
    page = asked(open_page("chat", language))
    note = app.memory.add("ann", "I work in Berlin", permanent=True)
    app.database.conversations.add_extra(app.newest, {"settings": {"remembered": note}})
    assert label("remembered_kept", language, note="I work in Berlin") in words(page.run())
    page.button(key=f"remembered-undo-{app.newest}").click().run()
    assert app.memory.notes("ann") == [] and label("remembered_gone", language) in words(page)


def test_selected_pages_limit_the_questions_of_a_conversation(open_page: Open, app: FakeApp, language: str) -> None:
    stored = app.library("main").stored[0]
    page = open_page("chat", language)
    page.button(key="page-picker-toggle").click().run()
    page.text_input(key="page-picker-words").set_value("lighthouse").run()
    assert [box.key for box in page.checkbox] == [f"page-tick-{stored.url_hash}"]
    page.checkbox(key=f"page-tick-{stored.url_hash}").check().run()
    assert page.button(key="page-picker-toggle").label == label("picker_some", language, chosen=1, count=2)
    page.chat_input[0].set_value("How often was the lamp wound?").run()
    turn = app.turns()[-1]
    assert turn.settings["scope"] == {"pages": [stored.url_hash]}
    page.button(key="talk-new").click().run()
    assert page.button(key="page-picker-toggle").label == label("picker", language)
    page.button(key=f"talk-other-{turn.conversation_id}").click().run()
    assert page.button(key="page-picker-toggle").label == label("picker_some", language, chosen=1, count=2)
