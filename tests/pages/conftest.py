"""Pages under Streamlit's test runner, over a fake app."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rag.ui.kit import session
from rag.ui.kit.markdown import JOINER
from rag.ui.settings import sign_in
from tests.support.fake_app import FakeApp

ROOT = Path(__file__).resolve().parents[2]
FILES = {"chat": "chat", "search": "search", "add": "add_pages", "library": "library", "settings": "settings"}
# The test runner takes the folder pages/ next to main.py for Streamlit's older navigation and opens its pages
# without the frame. So this script draws what main.py draws, from a folder without pages/.
SCRIPT = "from rag.ui.shell import draw_shell\n\ndraw_shell()\n"

Open = Callable[..., AppTest]
Admit = Callable[..., None]
SIGNED_IN: dict[str, object] = {"is_logged_in": True, "iss": "https://id.example", "email_verified": True}
ANN = SIGNED_IN | {"sub": "1", "email": "ann@example.com", "name": "Ann"}
BOB = SIGNED_IN | {"sub": "2", "email": "bob@example.com", "name": "Bob"}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApp]:
    """Yield the fake app that the pages use, with a page in each language."""
    fake = FakeApp().add_sample_pages()
    monkeypatch.setattr(session, "build_app", lambda: fake)
    monkeypatch.setattr(session, "browser_id", str)  # the test runner has no cookies
    session.get_app.clear()
    yield fake
    session.get_app.clear()


@pytest.fixture
def admit(app: FakeApp, monkeypatch: pytest.MonkeyPatch) -> Admit:
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
def open_page(app: FakeApp, tmp_path: Path) -> Open:
    """Return a function that opens a page in a language, with query parameters, and runs it once."""
    script = tmp_path / "main.py"
    script.write_text(SCRIPT)

    def open_(name: str, language: str = "en", **params: Any) -> AppTest:
        test = AppTest.from_file(str(script), default_timeout=120)
        test.query_params["lang"] = language
        for key, value in params.items():
            test.query_params[key] = value
        if name != "chat":
            test.run()
            test.switch_page(page_file(name))
        return test.run()

    return open_


def page_file(name: str) -> str:
    """Return the file of a page, for `AppTest.switch_page`."""
    return str(ROOT / "pages" / f"{FILES[name]}.py")


def words(test: AppTest) -> str:
    """Return all text of a page as a user sees it: without escapes and joiners."""
    elements = [*test.markdown, *test.caption, *test.info, *test.error, *test.success, *test.warning]
    text = "\n".join(str(element.value) for element in elements)
    labels = [element.label for element in (*test.button, *test.expander, *test.tabs)]
    return re.sub(r"\\([^\w\s])", r"\1", text + "\n" + "\n".join(labels)).replace(JOINER, "")
