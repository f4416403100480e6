"""Blocking of endpoints that reveal metrics, unused interfaces and versions."""

from __future__ import annotations

import hashlib
import re
import sys
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CLOSED = re.compile(r"/_stcore/(?:metrics|agent|script-health-check)(?:/|$)")
_PYTHON = ".".join(map(str, sys.version_info)).encode()


class NoDisclosure:
    """ASGI middleware that blocks those paths, and removes versions from the message that opens a session.

    A session opens before sign-in: the sign-in page runs in one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _CLOSED.search(scope["path"]):
            await PlainTextResponse("Not Found", status_code=404)(scope, receive, send)
            return

        async def send_without_versions(message: Message) -> None:
            # Almost no message has a version, and most are large: they are searched, not parsed.
            if message["type"] == "websocket.send" and _PYTHON in (message.get("bytes") or b""):
                message["bytes"] = remove_versions(message["bytes"])
            await send(message)

        await self._app(scope, receive, send_without_versions if scope["type"] == "websocket" else send)


def remove_versions(data: bytes) -> bytes:
    """Return a message of Streamlit's without Python's version and the kind of system.

    Streamlit's own version becomes a digest: a tab that is open across an upgrade must see the change, and reloads.
    """
    message = ForwardMsg.FromString(data)
    if message.WhichOneof("type") != "new_session":
        return data
    environment = message.new_session.initialize.environment_info
    digest = hashlib.sha256(environment.streamlit_version.encode()).hexdigest()[:16]
    environment.Clear()
    environment.streamlit_version = digest
    result: bytes = message.SerializeToString()
    return result
