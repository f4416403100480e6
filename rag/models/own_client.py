"""The HTTP client of a chat model that a person connected: it sends what they gave, to the address they gave.

The server's own environment has no part in it: no proxy, no organisation or other header of the operator, no key.
Redirects are not followed, replies are bounded, and where `Admit` is given, connections go only to addresses that
it returned for the host, so that a second DNS answer changes nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Any, Final, NoReturn, cast

import httpx2

Key = str | Callable[[], str]
"""A key, or what gives it at each request, so that nothing keeps it. Raises ModelError where there is none any more."""
Admit = Callable[[str, int], Sequence[str]]
"""The IP addresses under which a host may be connected to. Blocks; raises ModelError."""

MAX_REPLY_BYTES: Final = 8_000_000
_LOOK_UP_SECONDS: Final = 10.0
_SENT: Final = ("accept", "content-type", "content-length", "transfer-encoding")


def own_clients(base_url: str, key: Key, admit: Admit | None = None) -> dict[str, Any]:
    """The arguments by which ChatOpenAI uses such a client for requests below `base_url`; only for async calls."""
    line = httpx2.AsyncClient(transport=OwnTransport(base_url, key, admit), trust_env=False, follow_redirects=False)
    none = httpx2.Client(transport=NoTransport(), trust_env=False)
    return {"http_async_client": line, "http_client": none, "openai_proxy": None, "http_socket_options": ()}


class OwnTransport(httpx2.AsyncBaseTransport):
    """One connection for each request, kept for no other: nothing of a person's stays open after it."""

    def __init__(self, base_url: str, key: Key, admit: Admit | None) -> None:
        self._origin = _origin(httpx2.URL(base_url))
        self._key = key
        self._admit = admit
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=authorities(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            raise httpx2.ConnectError("not the address that was given")
        problem: httpx2.TransportError | None = None
        for address in await self._addresses(request):
            try:
                return _bounded(await self._inner.handle_async_request(self._made_over(request, address)))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                problem = problem or error
        raise problem or httpx2.ConnectError("the host has no address")

    async def _addresses(self, request: httpx2.Request) -> Sequence[str]:
        _, host, port = self._origin
        if self._admit is None:
            return [host]
        try:
            async with asyncio.timeout(_LOOK_UP_SECONDS):
                return await asyncio.to_thread(self._admit, host, port)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("the name was not resolved in time") from error
        except OSError as error:
            raise httpx2.ConnectError("the name was not resolved") from error

    def _made_over(self, request: httpx2.Request, address: str) -> httpx2.Request:
        """The request with nothing in it but what it needs, to one address; TLS and the Host header keep the name."""
        headers = {name: request.headers[name] for name in _SENT if name in request.headers}
        headers |= {"host": request.headers["host"], "user-agent": "Pagelight", "accept-encoding": "identity"}
        if key := self._key if isinstance(self._key, str) else self._key():
            headers["authorization"] = f"Bearer {key}"
        named = {} if address == self._origin[1] else {"sni_hostname": self._origin[1]}
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=headers,
            stream=request.stream,
            extensions={**request.extensions, **named},
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class NoTransport(httpx2.BaseTransport):
    """For the client that nothing uses; a default one would not be guarded."""

    def handle_request(self, request: httpx2.Request) -> NoReturn:
        raise httpx2.UnsupportedProtocol("a connected model is asked asynchronously")


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of a reply, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_REPLY_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError("the reply is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _bounded(response: httpx2.Response) -> httpx2.Response:
    """The response, bounded as it comes off the wire and as it is read: what is compressed unasked is not unpacked."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
    stream = _Bounded(cast(httpx2.AsyncByteStream, response.stream))
    return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


@cache
def authorities() -> ssl.SSLContext:
    """The system's authorities (a company's too) and Mozilla's."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(cafile=certifi.where())
    return context
