"""Apps that share a database need one secret for cookies."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from pydantic import SecretStr
from streamlit import config

from rag.config import Settings
from rag.errors import ConfigError
from rag.ui.serving.protection import check_cookie_secret

ALONE = Settings.model_construct()
SHARED = Settings.model_construct(database_url=SecretStr("postgresql://db/pagelight"))


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Streamlit's secrets, empty at first; the option is not set."""
    secrets: dict[str, Any] = {}
    monkeypatch.setattr(st, "secrets", secrets)
    monkeypatch.setattr(config, "is_manually_set", lambda option: False)
    return secrets


@pytest.mark.usefixtures("given")
def test_one_app_needs_none() -> None:
    check_cookie_secret(ALONE)


@pytest.mark.usefixtures("given")
def test_apps_that_share_a_database_refuse_to_start_without_one() -> None:
    with pytest.raises(ConfigError, match="STREAMLIT_SERVER_COOKIE_SECRET"):
        check_cookie_secret(SHARED)


def test_that_of_the_server_or_of_sign_in_will_do(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given["auth"] = {"cookie_secret": "x"}
    check_cookie_secret(SHARED)
    given.clear()
    monkeypatch.setattr(config, "is_manually_set", lambda option: option == "server.cookieSecret")
    check_cookie_secret(SHARED)
