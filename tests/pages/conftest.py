"""Pages under Streamlit's test runner, over an app with two pages that imports nothing until a test lets it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any
from unittest.mock import Mock

import pytest
import streamlit as st
from pydantic import SecretStr
from streamlit.testing.v1 import AppTest

from rag.app import App
from rag.app.chat_models import ChatModels
from rag.conversations.conversations import TurnView
from rag.reading.parser import Parser
from rag.runs.run import to_json
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.sql.job_table import NewItem
from rag.types import IngestResult
from rag.ui.kit import session
from rag.ui.kit.markdown import JOINER
from rag.ui.settings import sign_in
from tests.support.apps import Snapshot, open_app
from tests.support.chat_server import ChatServer, rules
from tests.support.hashed_model import use_hashed_model
from tests.support.lighthouse import CHINESE_QUOTES, ENGLISH_QUOTES, LIGHTHOUSE
from tests.support.storing import store_pages

ROOT = Path(__file__).resolve().parents[2]
FILES = {"chat": "chat", "search": "search", "add": "add_pages", "library": "library", "settings": "settings"}
# The test runner takes the folder pages/ next to main.py for Streamlit's older navigation and opens its pages
# without the frame. So this script draws what main.py draws, from a folder without pages/.
SCRIPT = "from rag.ui.shell import draw_shell\n\ndraw_shell()\n"

ASKED = {"en": "How often was the lamp wound?", "zh": "灯多久上一次发条？"}
QUOTES = {"en": ENGLISH_QUOTES, "zh": CHINESE_QUOTES}

Open = Callable[..., AppTest]
Admit = Callable[..., None]
SIGNED_IN: dict[str, object] = {"is_logged_in": True, "iss": "https://id.example", "email_verified": True}
ANN = SIGNED_IN | {"sub": "1", "email": "ann@example.com", "name": "Ann"}
BOB = SIGNED_IN | {"sub": "2", "email": "bob@example.com", "name": "Bob"}


class Engine:
    """A database with a page in each language, opened anew only after a change, which takes 0.14 s."""

    def __init__(self, snapshot: Snapshot, folder: Path) -> None:
        self._snapshot = snapshot
        self._folder = folder
        self._client: EdgeClient | None = None
        self._is_changed = False

    def connect(self) -> EdgeClient:
        if self._client is None or self._is_changed:
            self.close()
            self._client = EdgeClient(self._snapshot.restore(self._folder))
            self._client.close = lambda **_: None  # by the app
            self._is_changed = False
            for call in ("_write", "create_collection", "delete_collection"):
                setattr(self._client.backend, call, self._note_change(getattr(self._client.backend, call)))
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.backend.close()
            rmtree(self._folder)

    def _note_change(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def note_and_write(*args: Any, **options: Any) -> Any:
            self._is_changed = True
            return write(*args, **options)

        return note_and_write


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory, shared_parser: Parser) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("lighthouse")
    with pytest.MonkeyPatch.context() as patch:
        use_hashed_model(patch.setattr)
        with closing(open_app(folder)) as app:
            store_pages(app.imports.ingestor("main"), *LIGHTHOUSE.values())
    with closing(Engine(Snapshot(folder / "qdrant"), folder / "shared")) as opened:
        yield opened


@pytest.fixture
def settings() -> dict[str, Any]:
    """Return the settings of the app that differ from those of tests."""
    return {}


@pytest.fixture
def app(engine: Engine, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """Yield the app that the pages use, with a page in each language. Its imports wait for `run_imports`."""
    monkeypatch.setattr("rag.app.connect", lambda _: engine.connect())
    with closing(open_app(tmp_path / "data", **settings)) as opened:
        opened.imports.jobs._worker.wake = lambda: None
        monkeypatch.setattr(session, "build_app", lambda: opened)
        monkeypatch.setattr(session, "browser_id", str)  # the test runner has no cookies
        session.get_app.clear()
        yield opened
        session.get_app.clear()


@pytest.fixture
def service() -> Iterator[ChatServer]:
    """Yield a chat server with two models, which needs the key `a-key`."""
    with ChatServer(rules, key="a-key", listed_models=("qwen3:32b", "qwen3:8b")) as server:
        yield server


@pytest.fixture
def admit(app: App, monkeypatch: pytest.MonkeyPatch) -> Admit:
    """Return a function that signs everyone in with `claims` from the identity provider, and sets who is allowed."""

    def admit_(claims: dict[str, object] | None, *allowed: str) -> None:
        app.settings = app.settings.model_copy(update={"auth_allow": allowed})
        monkeypatch.setattr(sign_in, "user_claims", lambda: claims)
        monkeypatch.setattr(st, "secrets", {"auth": {"client_id": "x", "client_kwargs": {"prompt": "login"}}})

    return admit_


@pytest.fixture
def language() -> str:
    """Return the language of tests that run in either language; the others are in English."""
    return "zh"


@pytest.fixture
def open_page(app: App, tmp_path: Path) -> Open:
    """Return a function that opens a page in a language, with query parameters, and runs it once."""
    script = tmp_path / "main.py"
    script.write_text(SCRIPT)

    def open_(name: str, language: str = "en", **params: Any) -> AppTest:
        test = AppTest.from_file(str(script), default_timeout=120)
        test.query_params["lang"] = language
        if name != "chat":
            test.run()
            test.switch_page(page_file(name))
        for key, value in params.items():
            test.query_params[key] = value
        return test.run()

    return open_


def run_imports(app: App) -> None:
    """Let the app import what is queued, and what will be."""
    del app.imports.jobs._worker.wake
    app.imports.start()


def end_job(app: App, job_id: str, *results: IngestResult) -> None:
    """End a queued import with these results of its sources, or of those that it finds."""
    items = app._database.items
    if not items.count(job_id):
        items.append(job_id, [NewItem(result.source, result.url) for result in results])
        app._database.jobs.set_discovery(job_id, "done")
    for position, result in enumerate(results):
        items.finish(job_id, position, result)
    app._database.jobs.end_if_done(job_id)


def asked(page: AppTest, app: App, *questions: str) -> AppTest:
    """Ask these questions one after the other, and draw the last answer."""
    for question in questions or (ASKED["en"],):
        page.chat_input[0].set_value(question).run()
        state = page.session_state["pagelight"]
        app.wait(app.conversations.turns(state.conversation, state.owner)[-1].run_id, 60)
        page.run()
    return page


def opened(page: AppTest, key: str, value: object = True) -> AppTest:
    """Run the page with an element open: after each run the test runner forgets that it is."""
    page.session_state[key] = value
    return page.run()


def newest(app: App) -> TurnView:
    """Return the latest turn of all conversations."""
    latest = app.conversations.conversations("main")[0]
    return app.conversations.turns(latest.id)[-1]


def change_answer(app: App, **changes: Any) -> None:
    """Change the latest answer to one that this app cannot give."""
    run = app._runs._runs[newest(app).run_id]
    assert run.answer
    run.answer = replace(run.answer, **changes)
    app._database.conversations.finish_turn(newest(app).id, to_json(run.answer))


def connect_model(app: App, base_url: str = "http://127.0.0.1:9/v1") -> None:
    """Configure a chat model, by default one that never responds."""
    chosen = {"llm_model": "made-up", "llm_base_url": base_url, "llm_api_key": SecretStr("a-key")}
    app.settings = app.settings.model_copy(update=chosen)
    app.chats = ChatModels(app.settings)


def record_calls(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> Mock:
    """Return a mock that records the calls of a method."""
    mock = Mock(wraps=getattr(owner, name))
    monkeypatch.setattr(owner, name, mock)
    return mock


def page_file(name: str) -> str:
    """Return the file of a page, for `AppTest.switch_page`."""
    return str(ROOT / "pages" / f"{FILES[name]}.py")


def words(test: AppTest) -> str:
    """Return all text of a page as a user sees it: without escapes and joiners."""
    elements = [*test.markdown, *test.caption, *test.info, *test.error, *test.success, *test.warning]
    text = "\n".join(str(element.value) for element in elements)
    labels = [element.label for element in (*test.button, *test.expander, *test.tabs)]
    return re.sub(r"\\([^\w\s]|_)", r"\1", text + "\n" + "\n".join(labels)).replace(JOINER, "")
