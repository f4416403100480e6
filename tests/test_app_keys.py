"""A typed key: read for each request from its only store, and never used for another user."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from rag.app import App, ChatOptions, Question
from rag.app.chat_models import ChatModels, ConnectionStore, Holder
from rag.errors import ModelError
from rag.models.chat import check_chat_model
from rag.types import Answer
from tests.support.apps import add_files, app_settings, open_app
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.research_model import ResearchModel, step
from tests.support.waiting import until, until_waiting

KEY = "sk-typed-by-ann"
TEXT = b"# Aso\n\nMount Aso erupted in 1953, and again in 1979.\n\n# Bridge\n\nThe bridge was opened in 1932.\n"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with closing(open_app(tmp_path)) as opened:
        add_files(opened, ("aso.md", TEXT))
        yield opened


def connected(app: App, server: ChatServer, key: str, browser: str, owner: str = "") -> ChatOptions:
    app.chats.connections.add(browser, owner, ChatOptions("test", server.base_url, key))
    found = app.chats.connections.get(browser, owner)
    assert found is not None and found.holder == Holder(browser, owner)
    return found


def reason(model: Any) -> str:
    with pytest.raises(ModelError) as caught:
        asyncio.run(check_chat_model(model))
    return caught.value.code


def test_each_request_asks_for_the_key_anew(tmp_path: Path) -> None:
    chats = ChatModels(app_settings(tmp_path))
    with ChatServer(lambda _: "ready", key=KEY) as server, ChatServer(lambda _: "ready") as other:
        chats.connections.add("browser", "ann", ChatOptions("test", server.base_url, KEY))
        options = chats.connections.get("browser", "ann")
        assert options is not None
        model = chats.chat(options)
        asyncio.run(check_chat_model(model))
        chats.connections.add("browser", "ann", ChatOptions("other", other.base_url, "sk-of-another-service"))
        assert reason(model) == "chat_disconnected", "a key goes to no other service than it was typed for"
        chats.connections.add("browser", "ann", ChatOptions("test", server.base_url, KEY))
        asyncio.run(check_chat_model(model))
        chats.connections.forget("browser")
        assert reason(model) == "chat_disconnected"
        assert (len(server.requests), len(other.requests)) == (2, 0)


def reaches(models: Iterable[Any], text: str) -> bool:
    """Return whether a text is reachable from these models, except through code and modules."""
    seen: set[int] = set()
    waiting: list[Any] = [vars(model) for model in models]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str | bytes) and text in str(one):
            return True
        if id(one) not in seen and not isinstance(one, type | ModuleType | FunctionType):
            waiting += gc.get_referents(one)
        seen.add(id(one))
    return False


def test_nothing_that_is_built_of_a_connection_holds_its_key(tmp_path: Path) -> None:
    """The model outlives the connection if a run uses it; while connected, it reads the key from the connection."""
    chats = ChatModels(app_settings(tmp_path))
    with ChatServer(lambda _: "ready", key=KEY) as server:
        chats.connections.add("browser", "", ChatOptions("test", server.base_url, KEY, fast_model="small"))
        options = chats.connections.get("browser", "")
        assert options is not None
        fast = chats.fast_chat(options)
        models: list[Any] = [chats.chat(options), fast]
        asyncio.run(check_chat_model(models[0]))
    assert reaches(models, KEY)
    chats.connections.forget("browser")
    assert not reaches(models, KEY)


def test_another_persons_run_does_not_end_a_connection() -> None:
    connections = ConnectionStore()
    connections.add("browser", "bob", ChatOptions("bob's"))
    assert connections.snapshot_of(Holder("browser", "ann")) is None
    assert connections.get("browser", "bob") == ChatOptions("bob's")


def test_an_answer_whose_model_is_let_go_of_is_quoted(app: App) -> None:
    with ChatServer(rules, key=KEY) as server:
        chat = connected(app, server, KEY, "browser", "ann")
        app.chats.connections.forget("browser")
        asked = app.converse(Question("When was the bridge opened?", ("main",)), owner="ann", chat=chat)
        answer = app.wait(asked.run_id, 60, "ann")
        assert not server.requests
    assert answer.notice and answer.notice.cause == "chat_disconnected" and "1932" in answer.text


@pytest.mark.parametrize("resumer", ["with a model", "with none", "while the first is signed in", "in a later process"])
def test_a_waiting_report_goes_on_with_the_model_of_whoever_replies(app: App, resumer: str, tmp_path: Path) -> None:
    unclear = ResearchModel()
    unclear.replies["PlanReply"] = lambda _: {
        "aspects": ["eruption"],
        "steps": [step("When did Mount Aso erupt?")],
        "unclear": "" if len(unclear.asked) > 1 else "Which eruption?",
    }
    with ExitStack() as servers:
        first = servers.enter_context(ChatServer(unclear, key=KEY))
        second = servers.enter_context(ChatServer(ResearchModel(), key="sk-of-bob"))
        question = Question("When did Mount Aso erupt and when was the bridge opened?", ("main",), "research")
        asked = app.converse(question, chat=connected(app, first, KEY, "browser 1"))
        turn = until_waiting(app.conversations, asked.turn_id)
        spent = len(first.requests)
        assert spent
        if resumer != "while the first is signed in":
            app.chats.connections.forget("browser 1")
        here = app
        if resumer == "in a later process":
            app.close()
            here = App(app.settings)
            servers.callback(here.close)
            here.conversations.recover()
        chat = None if resumer == "with none" else connected(here, second, "sk-of-bob", "browser 2")
        replied = here.reply(asked.turn_id, {turn.waits[0].id: {"meant": "that of 1953"}}, chat=chat)
        answer: Answer = here.wait(replied.run_id, 120)
        until(lambda: here.conversations.turn(asked.turn_id).suggestions or not here.count_running())
        time.sleep(0.2)  # for the calls that follow an answer
        assert len(first.requests) == spent
        assert bool(second.requests) == (chat is not None)
        assert {one.headers["authorization"] for one in second.requests} <= {"Bearer sk-of-bob"}
        assert answer.outcome in ("answered", "caveat") and "1953" in answer.text
