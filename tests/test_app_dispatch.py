"""Routing of the one box's messages: saved, saved and asked, asked with options, or asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.app import App, Question, RunOptions
from rag.conversations.conversations import TurnView
from rag.graphs.modes import say_saving
from rag.types import Answer
from tests.support.apps import open_app
from tests.support.page_server import PageServer

TEA = "<html><title>Tea of the Harbour</title><article><h1>Tea</h1><p>{}</p></article></html>".format(
    "Longjing tea is sold in the harbour shop for 42 crowns a tin. The shop is open from nine to five. " * 3
)


@pytest.fixture
def app(tmp_path: Path, page_server: PageServer) -> Iterator[App]:
    page_server.add("/tea", TEA)
    with closing(open_app(tmp_path, fetch_allow_private_hosts=f"{page_server.host}:{page_server.port}")) as one:
        one.imports.start()
        yield one


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, str]]:
    """Yield an app with the page about tea, which tests leave as it is, and the page's address."""
    with PageServer() as server:
        url, allowed = server.add("/tea", TEA), f"{server.host}:{server.port}"
        folder = tmp_path_factory.mktemp("harbour")
        with closing(open_app(folder, fetch_allow_private_hosts=allowed)) as one:
            one.imports.start()
            asked(one, url)
            yield one, url


def asked(app: App, text: str, conversation_id: str = "", **options: Any) -> tuple[TurnView, Answer]:
    question = Question(text, ("main",), options=RunOptions(**options))
    begun = app.converse(question, conversation_id=conversation_id)
    app.wait(begun.run_id, 60)
    turn = app.conversations.turn(begun.turn_id)
    assert turn.answer is not None
    return turn, turn.answer


def test_an_address_alone_is_saved_and_the_turn_tells_of_it(app: App, page_server: PageServer) -> None:
    turn, answer = asked(app, page_server.url("/tea"))
    assert [page.title for page in app.library("main").pages()] == ["Tea of the Harbour"]
    assert (answer.mode, answer.outcome, answer.text) == ("save", "conversation", "Added 1 page.")
    assert (turn.route["route"], turn.route["by"], len(turn.route["saved"])) == ("save", "rules", 1)


def test_a_page_that_is_already_saved_is_not_counted_as_added(app: App, page_server: PageServer) -> None:
    asked(app, page_server.url("/tea"))
    _, answer = asked(app, f"{page_server.url('/tea')} {page_server.url('/missing')}")
    assert answer.text.startswith("1 page already saved. 1 source not added.\n\n- http")


@pytest.mark.parametrize(
    ("statuses", "english", "chinese"),
    [
        (["added", "added"], "Added 2 pages.", "已添加 2 个网页。"),
        (["unchanged", "duplicate"], "2 pages already saved.", "2 个网页此前已保存。"),
        (["held", "failed", "gone", "skipped", ""], "5 sources not added.", "5 个来源未添加。"),
        (["failed", "updated", "added"], "Added 1 page. Updated 1 page. 1 source not added.",
         "已添加 1 个网页。已更新 1 个网页。1 个来源未添加。"),
    ],
)  # fmt: skip
def test_only_new_pages_count_as_added(statuses: list[str], english: str, chinese: str) -> None:
    rows = [{"status": status} for status in statuses]
    assert (say_saving(rows, "en"), say_saving(rows, "zh")) == (english, chinese)
    assert say_saving(None, "en").startswith("Nothing added yet")


def test_words_of_a_request_to_delete_match_no_title(app: App, page_server: PageServer) -> None:
    page_server.add("/fog", TEA.replace("Tea of the Harbour", "All pages about a catalogue"))
    hemp = TEA.replace("Tea of the Harbour", "A history of cannabis in northern harbour towns")
    page_server.add("/hemp", hemp.replace("Longjing tea", "Hemp"))
    asked(app, page_server.url("/fog"))
    asked(app, page_server.url("/hemp"))
    rows = asked(app, "Remove all pages about cannabis")[0].route["near"]
    assert rows[0]["title"] == "A history of cannabis in northern harbour towns"


@pytest.mark.parametrize(("text", "count"), [("Delete that page", 1), ("删除那个网页", 1), ("Delete all my pages", 0)])
def test_without_a_name_the_page_last_added_or_cited_is_to_be_removed(
    app: App, page_server: PageServer, text: str, count: int
) -> None:
    assert asked(app, text)[0].route["near"] == []
    saved, _ = asked(app, page_server.url("/tea"))
    turn, _ = asked(app, text, saved.conversation_id)
    rows = turn.route.get("remove", [])
    assert [row["title"] for row in rows] == ["Tea of the Harbour"] * count


@pytest.mark.parametrize(
    "text",
    [
        "Delete the harbour tea page",
        "请把“Tea of the Harbour”移除",
        "forget the page on tea of the harbour",
        "remove {url}",
    ],
)
def test_a_page_is_removed_by_nobody_but_the_person(harbour: tuple[App, str], text: str) -> None:
    app, url = harbour
    (page,) = app.library("main").pages()
    turn, answer = asked(app, text.format(url=url))
    assert answer.mode == "remove"
    assert turn.route["remove"] == [{"url_hash": page.url_hash, "title": "Tea of the Harbour", "library": ""}]
    assert "Nothing has been deleted yet" in answer.text or "尚未删除" in answer.text
    assert len(app.library("main").pages()) == 1


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("Delete the travel policy page", []),
        ("Delete the page about the moon landing", []),
        ("Delete the tea shop harbour page", ["Tea of the Harbour"]),
        ("Delete the page about crowns for a tin", ["Tea of the Harbour"]),
    ],
)
def test_removing_an_unknown_page_suggests_only_close_ones(
    harbour: tuple[App, str], text: str, near: list[str]
) -> None:
    turn, answer = asked(harbour[0], text)
    assert answer.mode == "remove" and "remove" not in turn.route
    assert [row["title"] for row in turn.route["near"]] == near


def test_a_question_with_a_link_is_answered_from_its_page_first(app: App, page_server: PageServer) -> None:
    turn, answer = asked(app, f"Save {page_server.url('/tea')} and then tell me what a tin of Longjing tea is sold for")
    assert "42 crowns" in answer.text
    assert {one.url for one in answer.citations} == {page_server.url("/tea")}
    assert answer.question == "tell me what a tin of Longjing tea is sold for"
    assert app.conversations.searches(turn.id)[-1].notes["scope"]["code"] == "scope_saved"


def test_a_summary_that_came_with_an_address_is_of_its_page(app: App, page_server: PageServer) -> None:
    _, answer = asked(app, f"Save {page_server.url('/tea')} and then summarise it for me")
    assert answer.mode == "summary"
    assert {one.url for one in answer.citations} == {page_server.url("/tea")}


def test_a_summary_in_a_conversation_is_of_the_page_last_added_or_cited(app: App, page_server: PageServer) -> None:
    page_server.add("/fog", TEA.replace("Tea of the Harbour", "Fog").replace("Longjing tea", "Fog"))
    asked(app, page_server.url("/fog"))
    saved, _ = asked(app, page_server.url("/tea"))
    for text in ("Summarise that page", "Summarise it"):
        _, answer = asked(app, text, saved.conversation_id)
        assert {cited.title for cited in answer.citations} == {"Tea of the Harbour"}


def test_a_page_that_cannot_be_saved_is_told_of_and_not_asked_about(app: App, page_server: PageServer) -> None:
    page_server.add("/gone", "no", status=404)
    _, answer = asked(app, f"{page_server.url('/gone')} what does it say about prices?")
    assert answer.mode == "save"
    assert answer.text.startswith("1 source not added.")
    assert answer.text.count(page_server.url("/gone")) == 1


@pytest.mark.parametrize("text", ["htp://broken..address", "{url}\nhtp://broken..address", "https://exa mple.com/page"])
def test_a_broken_link_is_reported(app: App, page_server: PageServer, text: str) -> None:
    message = text.format(url=page_server.url("/tea"))
    turn, answer = asked(app, message)
    assert answer.mode == "save"
    assert message.splitlines()[-1] in answer.text
    assert [row["status"] for row in turn.route["saved"]] == ["added"] * message.count("/tea") + ["failed"]


def test_many_addresses_are_asked_about_first(app: App, page_server: PageServer) -> None:
    text = "\n".join(page_server.url(f"/tea?{number}") for number in range(6))
    turn, _ = asked(app, text)
    assert turn.route["confirm"] == 6
    assert not app.library("main").pages()
    assert asked(app, text, confirmed=True)[0].route["saved"]
    assert app.library("main").pages()


def test_files_are_saved_and_then_asked(app: App) -> None:
    files = [("harbour.txt", b"The harbour master of Veld is Ines Okafor. She has held the office since 2019. " * 4)]
    begun = app.converse(Question("Who is the harbour master of Veld?", ("main",)), files=files)
    answer = app.wait(begun.run_id, 60)
    assert "Ines Okafor" in answer.text
    assert app.conversations.turn(begun.turn_id).route["route"] == "save_then_ask"


def test_wishes_are_followed_and_told_and_can_be_taken_off(harbour: tuple[App, str]) -> None:
    text = "In deep mode, use keyword search: where is Longjing tea sold?"
    turn, answer = asked(harbour[0], text)
    assert (answer.mode, answer.question) == ("deep", "where is Longjing tea sold?")
    assert set(turn.route["wishes"]) == {"mode", "strategy"}
    turn, answer = asked(harbour[0], text, without=("mode", "strategy"))
    assert (answer.mode, turn.route) == ("fast", {})


def test_an_overruled_route_applies_only_to_the_person_who_overruled_it(harbour: tuple[App, str]) -> None:
    app, _ = harbour
    text = "The tally of it all, by site"
    app.overrule("main", text, "ask", owner="ann")
    assert app.route(text, "ann").by == "person"
    assert app.route(text, "bob").by != "person"


def test_a_calculation_is_not_the_subject_of_a_follow_up(harbour: tuple[App, str]) -> None:
    app, url = harbour
    first, _ = asked(app, url)
    turn, answer = asked(app, "12 * 7", first.conversation_id)
    assert (answer.mode, turn.route["route"]) == ("tool", "calculate")
    assert "84" in answer.text
    _, answer = asked(app, "Where is Longjing tea sold?", first.conversation_id)
    assert [step.detail["history"] for step in answer.steps if step.detail.get("history")] == []


@pytest.mark.parametrize(
    ("text", "likeliest"),
    [
        ("save this: my wifi password is 1234", "calculate"),
        ("when is Easter 2027", "date"),
        ("距离春节还有几天", "date"),
    ],
)
def test_a_message_that_its_tool_cannot_read_is_searched_for(
    harbour: tuple[App, str], text: str, likeliest: str
) -> None:
    app, _ = harbour
    assert app.route(text).route == likeliest
    assert asked(app, text)[0].route == {}, "a plain question"
    assert asked(app, text, route=likeliest)[1].mode == "tool", "as the person chose"


def test_a_message_that_its_tool_can_read_is_for_the_tool(harbour: tuple[App, str]) -> None:
    for text, route, words in (
        ("100 dollars in euros", "calculate", "exchange rates"),
        ("what time is it in Tokyo?", "date", "(UTC+0900) in Tokyo"),
    ):
        turn, answer = asked(harbour[0], text)
        assert turn.route["route"] == route and words in answer.text


def test_a_name_that_only_the_pages_know_is_searched_for(app: App, page_server: PageServer) -> None:
    page_server.add("/shelf", TEA.replace("Longjing tea", "The Hjklm shelf").replace("Tea", "Hjklm"))
    asked(app, page_server.url("/shelf"))
    assert app.route("HJKLM").route == app.route("order two pizzas, extra cheese").route == "unknown"
    turn, answer = asked(app, "HJKLM")
    assert turn.route == {}, "a plain question"
    assert "Hjklm" in answer.text
    assert asked(app, "order two pizzas, extra cheese")[0].route["route"] == "unknown"
