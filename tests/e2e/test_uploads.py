"""Streamlit's upload endpoint, behind access control and limits, on the served app."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from rag.locales import Language, label
from rag.ui.serving.uploads import SESSION_FILES
from tests.e2e.conftest import OpenTab, serve

BODY = b'--cut\r\nContent-Disposition: form-data; name="f"; filename="f.md"\r\n\r\n# One\r\n--cut--\r\n'


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the app with required sign-in that nobody can complete."""
    with serve(tmp_path_factory.mktemp("closed"), AUTH_ALLOW="ann@example.com") as address:
        yield address


@contextmanager
def drawn(address: str) -> Iterator[str]:
    """Open a tab and wait until it is drawn; yield its session's id."""
    place = f"ws://{urlsplit(address).netloc}/_stcore/stream"
    with connect(place, subprotocols=[Subprotocol("streamlit")], max_size=None) as tab:
        asked = BackMsg()
        asked.rerun_script.query_string = ""
        tab.send(asked.SerializeToString())
        session_id, kind = "", ""
        while not (session_id and kind == "script_finished"):
            message = ForwardMsg.FromString(tab.recv(timeout=60, decode=False))
            kind = str(message.WhichOneof("type"))
            session_id = message.new_session.initialize.session_id if kind == "new_session" else session_id
        yield session_id


def put(address: str, session_id: str, name: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request("GET", "/_stcore/health")
        answer = connection.getresponse()
        answer.read()
        token = re.search(r"_streamlit_xsrf=([^;]+)", answer.headers["set-cookie"] or "")
        assert token is not None
        headers = {"Cookie": f"_streamlit_xsrf={token[1]}", "X-Xsrftoken": token[1]}
        headers["Content-Type"] = "multipart/form-data; boundary=cut"
        connection.request("PUT", f"/_stcore/upload_file/{session_id}/{name}", BODY, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_tab_before_the_door_uploads_nothing(closed: str) -> None:
    with drawn(closed) as session_id:
        status, text = put(closed, session_id, "a")
    assert status == 403
    assert "who have access" in text


def test_an_open_tab_uploads_up_to_its_number(address: str) -> None:
    with drawn(address) as session_id:
        for number in range(SESSION_FILES):
            assert put(address, session_id, str(number))[0] in (200, 204)
        status, text = put(address, session_id, "one-more")
    assert status == 413
    assert f"{SESSION_FILES} files" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_files_are_chosen_in_the_language_of_the_page(open_tab: OpenTab, language: Language) -> None:
    page = open_tab(language, "/add")
    page.get_by_role("tab", name=label("add_tab_files", language)).click()
    expect(page.get_by_role("button", name=label("upload", language), exact=True)).to_be_visible()
    expect(page.get_by_text("MB per file •")).to_be_hidden()
