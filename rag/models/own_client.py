"""The HTTP client of a chat model that a person connected: it sends their data only, to their address only.

It ignores the server's own environment: no proxy, no organisation or other header of the operator, no key. Redirects
are not followed, replies are limited, and with `Admit`, connections go only to addresses that it returned for the host,
so that a second DNS answer changes nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Any, Final, NoReturn, cast

import httpx2

Key = str | Callable[[], str]
"""A key, or a function that returns it at each request, so that nothing stores it; raises ModelError if it is gone."""
Admit = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses that a host may be connected to. Blocks; raises ModelError."""

MAX_REPLY_BYTES: Final = 8_000_000
_LOOK_UP_SECONDS: Final = 10.0
_HEADERS: Final = ("accept", "content-type", "content-length", "transfer-encoding")


def own_clients(base_url: str, key: Key, admit: Admit | None = None) -> dict[str, Any]:
    """Return the arguments of ChatOpenAI for such a client and requests below `base_url`; only for async calls."""
    client = httpx2.AsyncClient(transport=OwnTransport(base_url, key, admit), trust_env=False, follow_redirects=False)
    unused = httpx2.Client(transport=NoTransport(), trust_env=False)
    return {"http_async_client": client, "http_client": unused, "openai_proxy": None, "http_socket_options": ()}


class OwnTransport(httpx2.AsyncBaseTransport):
    """A transport with one connection for each request: nothing of a person remains open after it."""

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
                return _limit_size(await self._inner.handle_async_request(self._rebuild(request, address)))
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

    def _rebuild(self, request: httpx2.Request, address: str) -> httpx2.Request:
        """Return the request with only the necessary data, to one address; TLS and the Host header have the name."""
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
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
    """A transport for the unused client; a default one would not be guarded."""

    def handle_request(self, request: httpx2.Request) -> NoReturn:
        raise httpx2.UnsupportedProtocol("a connected model is asked asynchronously")


class _LimitedStream(httpx2.AsyncByteStream):
    """The bytes of a reply, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining = MAX_REPLY_BYTES
        async for chunk in self._stream:
            remaining -= len(chunk)
            if remaining < 0:
                raise httpx2.ReadError("the reply is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _limit_size(response: httpx2.Response) -> httpx2.Response:
    """Limit the response in transfer and in reading; compression that was not requested is not unpacked."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
    stream = _LimitedStream(cast(httpx2.AsyncByteStream, response.stream))
    return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


@cache
def authorities() -> ssl.SSLContext:
    """Return the system's authorities (including a company's) and Mozilla's."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(cafile=certifi.where())
    return context
