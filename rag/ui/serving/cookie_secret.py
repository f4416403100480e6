"""The secret that signs cookies."""

from __future__ import annotations

import streamlit as st
from streamlit import config
from streamlit.errors import StreamlitSecretNotFoundError

from rag.config import Settings
from rag.errors import ConfigError

_OPTION = "server.cookieSecret"


def check_cookie_secret(settings: Settings) -> None:
    """Raise ConfigError if several apps share a database and each would make up another secret.

    A visitor who is signed in at one of them would be unknown to the others.
    """
    if settings.database_url.get_secret_value() and not (config.is_manually_set(_OPTION) or _has_auth_secret()):
        raise ConfigError("cookie_secret_missing")


def _has_auth_secret() -> bool:
    try:
        return bool(st.secrets.get("auth", {}).get("cookie_secret"))
    except StreamlitSecretNotFoundError:
        return False
