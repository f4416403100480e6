"""Log lines that contain untrusted text."""

from __future__ import annotations

import http.client
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from rag.process import configure_logging
from tests.e2e.conftest import serve

FORGED = "x\n2026-01-01 INFO rag: nothing happened\r\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp\u2028\u0085\x00 é 灯"
SHOWN = r"x\n2026-01-01 INFO rag: nothing happened\r\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp\u2028\x85\x00 é 灯"
SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1/oauth2callback"
cookie_secret = "0123456789abcdef0123456789abcdef"
client_id = "app"
client_secret = "secret"
server_metadata_url = "http://127.0.0.1:9/.well-known/openid-configuration"
"""


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    """Yield what a logger of any library writes, formatted by its handler."""
    before, stream = logging.getLogRecordFactory(), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("a.library")
    logger.addHandler(handler)
    configure_logging()
    yield stream
    logger.removeHandler(handler)
    logging.setLogRecordFactory(before)


def test_what_others_wrote_is_shown_on_one_line(told: io.StringIO) -> None:
    log = logging.getLogger("a.library")
    log.warning("said %s", FORGED)
    log.warning(f"said {FORGED}")
    log.warning("said %(what)s", {"what": FORGED})
    assert told.getvalue().split("\n") == [f"WARNING said {SHOWN}"] * 3 + [""]


def test_no_line_of_a_traceback_looks_like_another_message(told: io.StringIO) -> None:
    try:
        raise ValueError(FORGED)
    except ValueError:
        logging.getLogger("a.library").exception("it failed")
    first, *rest = told.getvalue().rstrip("\n").split("\n")
    assert first == "ERROR it failed" and all(line.startswith("  ") for line in rest)
    assert all(line.isprintable() for line in rest)
    assert rest[-1].endswith(r"title\x07\x9b31m\u202egnp\u2028\x85\x00 é 灯") and any(
        "test_process_log.py" in line for line in rest
    )


def test_nobody_writes_into_the_log_before_they_are_signed_in(tmp_path: Path) -> None:
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_text(SECRETS)
    with serve(tmp_path) as address:
        said = quote("\x1b[2Jforged\n\x9b")
        for path in (f"oauth2callback?error={said}&error_description={said}&state={said}", f"{said}?library={said}"):
            connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
            connection.request("GET", f"/{path}")
            connection.getresponse().read()
            connection.close()
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert r"Error during authentication: \x1b[2Jforged" in log
    assert all(line.isprintable() for line in log.replace("\t", "").split("\n"))
