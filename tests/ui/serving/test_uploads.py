"""Uploads: only by admitted users, and never more than the memory reserved for them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from rag.ui.serving import uploads
from rag.ui.serving.uploads import SESSION_FILES, TOTAL_FILES, UploadLimits, release_uploads

MB = 1_000_000


class Server:
    """A Streamlit that stores what the middleware lets through; `ann` and `ben` are admitted, `eve` is not."""

    def __init__(self) -> None:
        self.manager = MemoryUploadedFileManager("/_stcore/upload_file")
        self.app = UploadLimits(self._keep, session_mb=2, total_mb=3)
        self.sent: list[dict[str, Any]] = []

    def keep(self, tab: str, name: str, size: int) -> None:
        self.manager.add_file(tab, UploadedFileRec(name, name, "text/plain", bytes(size)))

    async def _keep(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        tab, name = scope["path"].split("/")[-2:]
        await receive()
        self.keep(tab, name, int(dict(scope["headers"])[b"content-length"]))

    async def request(self, tab: str, name: str, receive: Any, method: str = "PUT", **headers: str) -> int:
        raw = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
        path = f"/_stcore/upload_file/{tab}/{name}"
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app({"type": "http", "method": method, "path": path, "headers": raw}, receive, send)
        self.sent = sent
        return int(sent[0]["status"])

    def put(self, tab: str, name: str, **headers: str) -> int:
        async def receive() -> None:
            return None

        return asyncio.run(self.request(tab, name, receive, **headers))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    one = Server()
    monkeypatch.setattr(uploads, "_manager", lambda: one.manager)
    monkeypatch.setattr(uploads, "is_admitted", lambda tab: tab in ("ann", "ben"))
    return one


def test_only_tabs_that_were_let_in_may_upload(server: Server) -> None:
    assert server.put("ann", "a", content_length="10") == 204
    assert server.put("eve", "a", content_length="10") == 403
    assert server.put("", "a", content_length="10") == 403
    assert b"who have access" in server.sent[1]["body"]
    assert set(server.manager.file_storage) == {"ann"}


@pytest.mark.parametrize("told", ["ten", "9" * 400, "-1", ""])
def test_how_much_comes_must_be_told(server: Server, told: str) -> None:
    assert server.put("ann", "a", content_length=told) == 411
    assert server.put("ann", "a") == 411


def test_a_length_beside_chunks_binds_nobody(server: Server) -> None:
    assert server.put("ann", "a", content_length="1", transfer_encoding="chunked") == 411


def test_a_tab_has_its_share_and_all_have_theirs(server: Server) -> None:
    assert server.put("ann", "a", content_length=str(2 * MB)) == 204
    assert server.put("ann", "b", content_length="1") == 413
    assert b"2 MB" in server.sent[1]["body"]
    assert server.put("ben", "a", content_length=str(MB)) == 204
    assert server.put("ben", "b", content_length="1") == 503


def test_files_are_counted_too(server: Server) -> None:
    for number in range(SESSION_FILES):
        server.keep("ann", str(number), 0)
    assert server.put("ann", "more", content_length="0") == 413
    for number in range(TOTAL_FILES - SESSION_FILES):
        server.keep(f"tab-{number}", "one", 0)
    assert server.put("ben", "more", content_length="0") == 503


def test_what_is_on_its_way_counts(server: Server) -> None:
    async def two_at_once() -> tuple[int, int]:
        held = asyncio.Event()
        first = asyncio.create_task(server.request("ann", "a", held.wait, content_length=str(2 * MB)))
        await asyncio.sleep(0)
        second = await server.request("ann", "b", held.wait, content_length="1")
        held.set()
        return await first, second

    assert asyncio.run(two_at_once()) == (204, 413)
    server.manager.remove_session_files("ann")
    assert server.put("ann", "c", content_length=str(2 * MB)) == 204


def test_everything_else_passes(server: Server) -> None:
    async def through(method: str) -> int:
        return await server.request("eve", "a", asyncio.Event().wait, method, content_length="1")

    async def passed(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    server.app = UploadLimits(passed, 1, 1)
    assert asyncio.run(through("OPTIONS")) == 204
    assert asyncio.run(through("DELETE")) == 403


def test_what_was_taken_in_is_forgotten(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda: SimpleNamespace(session_id="ann"))
    server.keep("ann", "a", MB)
    server.keep("ann", "b", MB)
    (record,) = server.manager.get_files("ann", ["a"])
    release_uploads([UploadedFile(record, FileURLs())])
    assert [file.name for file in server.manager.get_files("ann", ["a", "b"])] == ["b"]
