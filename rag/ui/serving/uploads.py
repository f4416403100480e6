"""Upload limits: Streamlit keeps uploads in memory and accepts them for any open tab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rag.locales import Language, choose_language, label
from rag.ui.kit.session import is_admitted

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from rag.app import App

Refusal = Literal["", "outside", "length", "session", "total"]

_PATH: Final = "/_stcore/upload_file/"
_STATUS: Final[Mapping[Refusal, int]] = {"outside": 403, "length": 411, "session": 413, "total": 503}
_MEGABYTE: Final = 1_000_000
SESSION_FILES: Final = 200
TOTAL_FILES: Final = 2000


class UploadLimits:
    """ASGI middleware that accepts uploads of admitted tabs only, up to `session_mb` per tab and `total_mb` in total.

    An upload in progress counts at its announced size, which the server enforces. The limit per file is Streamlit's
    setting server.maxUploadSize.
    """

    def __init__(self, app: ASGIApp, session_mb: int, total_mb: int) -> None:
        self._app = app
        self._session_mb = session_mb
        self._total_mb = total_mb
        self._incoming: list[tuple[str, int]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS") or _PATH not in scope["path"]:
            await self._app(scope, receive, send)
            return
        session_id = scope["path"].partition(_PATH)[2].partition("/")[0]
        headers = Headers(scope=scope)
        if reason := self._refusal(session_id, size := _announced_size(scope["method"], headers)):
            language = choose_language(headers.get("accept-language", ""))
            limits = {"files": SESSION_FILES, "megabytes": self._session_mb} if reason == "session" else {}
            text = label(f"upload_{reason}", language, **limits)
            await PlainTextResponse(text, _STATUS[reason], headers={"connection": "close"})(scope, receive, send)
            return
        upload = (session_id, size)
        self._incoming.append(upload)
        try:
            await self._app(scope, receive, send)
        finally:
            self._incoming.remove(upload)

    def _refusal(self, session_id: str, size: int) -> Refusal:
        if not is_admitted(session_id):
            return "outside"
        if size < 0:
            return "length"
        uploads = [*self._incoming, (session_id, size)]
        if (manager := _manager()) is not None:  # of which other threads change the dictionaries
            for tab, files in list(manager.file_storage.items()):
                uploads += [(tab, len(file.data)) for file in list(files.values())]
        of_session = [upload_size for tab, upload_size in uploads if tab == session_id]
        if len(of_session) > SESSION_FILES or sum(of_session) > self._session_mb * _MEGABYTE:
            return "session"
        fits = len(uploads) <= TOTAL_FILES and sum(size for _, size in uploads) <= self._total_mb * _MEGABYTE
        return "" if fits else "total"


def _announced_size(method: str, headers: Headers) -> int:
    """Return the announced bytes, which the server enforces: -1 if missing or invalid, 0 for methods other than PUT."""
    if method != "PUT":
        return 0
    length = headers.get("content-length", "")
    is_valid = length.isascii() and length.isdigit() and len(length) < 16 and "transfer-encoding" not in headers
    return int(length) if is_valid else -1


def upload_limits_text(app: App, language: Language) -> str:
    """Return the upload limits in words; Streamlit itself shows only a status code."""
    per_file, per_session = st.get_option("server.maxUploadSize"), app.settings.upload_session_mb
    return label("upload_bounds", language, one=min(per_file, per_session), files=SESSION_FILES, all=per_session)


def release_uploads(files: Iterable[UploadedFile]) -> None:
    """Free this tab's uploads after they were saved: Streamlit keeps them as long as the tab is open."""
    manager, tab = _manager(), get_script_run_ctx()
    if manager is not None and tab is not None:
        for file in files:
            manager.remove_file(tab.session_id, file.file_id)


def _manager() -> MemoryUploadedFileManager | None:
    """Return Streamlit's upload store; None under its test runner, which uses another."""
    manager = Runtime.instance().uploaded_file_mgr if Runtime.exists() else None
    return manager if isinstance(manager, MemoryUploadedFileManager) else None
