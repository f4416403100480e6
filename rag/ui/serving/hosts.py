"""The names under which the app is served, so that a web page that points its own name here gets nothing.

A browser sends the name that it opened (Host) and the requesting page (Origin). A name that is not allowed is DNS
rebinding; an Origin other than the requested name and port is another site, or another program on this machine.
Starlette's TrustedHostMiddleware knows neither IPv6 nor Origin, and refuses without naming the setting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from rag.locales import preferred
from rag.ui.kit.strings import label

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

Refusal = Literal["", "host", "origin"]

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_.-]{1,253}))(?::[0-9]{1,5})?", re.ASCII)


class AllowedHosts:
    """ASGI middleware that allows requests and sockets to the names of this machine and to `allowed` ones.

    `allowed` are names and addresses in lower case, without ports and brackets (ALLOWED_HOSTS). Others get status 403
    and one sentence.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str] = ()) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reason = refusal(headers.getlist("host"), headers.getlist("origin"), self._allowed)
        answer: ASGIApp = PlainTextResponse(_sentence(reason, headers), status_code=403) if reason else self._app
        await answer(scope, receive, send)


def refusal(hosts: Sequence[str], origins: Sequence[str], allowed: frozenset[str]) -> Refusal:
    """Return why a request with these Host and Origin headers is refused; empty if it is allowed.

    Programs send no Origin, and browsers none when they open a page; if there is one, it must be the name and port of
    Host.
    """
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None:
        return "host"
    name = (match["name"] or match["six"]).lower().rstrip(".")
    if name not in allowed and not _is_local(name):
        return "host"
    ours = {f"{scheme}://{hosts[0].lower()}" for scheme in ("http", "https")}
    return "" if all(origin.lower() in ours for origin in origins) else "origin"


def _is_local(name: str) -> bool:
    """Return whether the name leads to no other machine, whatever a name server says (RFC 6761, section 6.3)."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _sentence(reason: Refusal, headers: Headers) -> str:
    language = preferred(headers.get("accept-language", ""))
    name = headers.get("host", "")
    return label(f"refused_{reason}", language, name=name if _HOST.fullmatch(name) else "?")
