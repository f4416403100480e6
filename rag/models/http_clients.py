"""The HTTP clients of chat models: one for a model that a person connected, one for the model of the settings.

A person's client sends their data only, to their address only. It ignores the server's own environment: no proxy, no
organisation or other header of the operator, no key. Redirects are not followed, replies are limited, and with `Admit`,
connections go only to addresses that it returned for the host, so that a second DNS answer changes nothing.

The settings' client uses the proxy variables and SSL_CERT_FILE. No proxy is used for this machine and private networks,
nor for hosts in NO_PROXY. The variables are read at each request, so that a broken one is a ModelError of that request
only.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final, NoReturn, cast
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx2

from rag.errors import ModelError

Key = str | Callable[[], str]
"""A key, or a function that returns it at each request, so that nothing stores it; raises ModelError if it is gone."""
Admit = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses that a host may be connected to. Blocks; raises ModelError."""

MAX_REPLY_BYTES: Final = 8_000_000
_LOOK_UP_SECONDS: Final = 10.0
_HEADERS: Final = ("accept", "content-type", "content-length", "transfer-encoding")

_PRIVATE_NETWORKS: Final = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/32", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("100.64.0.0/10", "::/127", "fc00::/7", "fe80::/10"),
    )
)
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=5.0)
_NAME_SECONDS: Final = 2.0  # behind a proxy, public names may fail to resolve, slowly
_CONNECTION_ERRORS: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


# Connections by event loop, scheme and proxy; they stay open from one question to the next.
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], httpx2.AsyncHTTPTransport]] = (
    WeakKeyDictionary()
)


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


def environment_clients() -> dict[str, Any]:
    """Return the arguments by which ChatOpenAI uses such a client; only for async calls."""
    client = httpx2.AsyncClient(transport=_EnvironmentTransport(), trust_env=False)
    unused = httpx2.Client(transport=NoTransport(), trust_env=False)
    return {"http_async_client": client, "http_client": unused, "openai_proxy": None, "http_socket_options": ()}


def check_environment() -> None:
    """Raise ModelError for the first proxy variable, or SSL_CERT_FILE, that no HTTP client can use."""
    for scheme in ("http", "https", "all"):
        variable, proxy = _proxy_variable(scheme)
        _open_transport("https", variable, proxy)


class _EnvironmentTransport(httpx2.AsyncBaseTransport):
    """A transport that raises ModelError if the environment, not the service, is at fault."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        scheme = request.url.scheme
        variable, proxy = _proxy_variable(scheme)
        if proxy and await _bypasses_proxy(request.url):
            variable, proxy = "", ""
        transports = _open.setdefault(asyncio.get_running_loop(), {})
        if (scheme, proxy) not in transports:
            transports[scheme, proxy] = _open_transport(scheme, variable, proxy)
        try:
            return await transports[scheme, proxy].handle_async_request(request)
        except _CONNECTION_ERRORS as error:
            if not proxy:
                raise
            raise ModelError("chat_proxy_unreachable", variable=variable) from error


def _proxy_variable(scheme: str) -> tuple[str, str]:
    """Return the name of the variable for a scheme, and the address of the proxy; "" for none."""
    proxies = {**getproxies(), "openai": os.environ.get("OPENAI_PROXY", "")}
    for name in ("openai", scheme, "all"):
        if proxy := proxies.get(name, "").strip():
            return f"{name.upper()}_PROXY", proxy if "://" in proxy else f"http://{proxy}"
    return "", ""


def _open_transport(scheme: str, variable: str, proxy: str) -> httpx2.AsyncHTTPTransport:
    """Open a transport. Raises ModelError for an unusable proxy or authorities, which are read for TLS only."""
    verify = _environment_authorities() if "https" in (scheme, proxy.partition("://")[0]) else authorities()
    try:
        if proxy and not (httpx2.URL(proxy).host and (httpx2.URL(proxy).port or 0) < 65_536):
            raise ValueError(proxy)
        return httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, limits=_LIMITS, proxy=proxy or None)
    except ImportError as error:
        raise ModelError("chat_proxy_package", variable=variable) from error
    except (ValueError, httpx2.InvalidURL) as error:
        raise ModelError("chat_proxy_invalid", variable=variable) from error


def _environment_authorities() -> ssl.SSLContext:
    """Return only those of SSL_CERT_FILE, if it is set. Raises ModelError for a file that cannot be read."""
    name = os.environ.get("SSL_CERT_FILE", "")
    try:
        return ssl.create_default_context(cafile=name) if name else authorities()
    except OSError as error:
        raise ModelError("chat_certificates_missing", name=name) from error


async def _bypasses_proxy(url: httpx2.URL) -> bool:
    """Return whether the service is in NO_PROXY, or on this machine or a private network, by address or name."""
    port = url.port or (443 if url.scheme == "https" else 80)
    if _is_excepted(url.host, port, getproxies().get("no", "")):
        return True
    try:
        async with asyncio.timeout(_NAME_SECONDS):
            answers = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return bool(answers) and all(_is_private(ip_address(answer[4][0])) for answer in answers)


def _is_private(address: IPv4Address | IPv6Address) -> bool:
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in _PRIVATE_NETWORKS)


def _is_excepted(host: str, port: int, entries: str) -> bool:
    """Return whether an entry of NO_PROXY covers the host, as curl reads them: a name with its subdomains, `*`, an
    address, a network such as 10.0.0.0/8; each with an optional port."""
    for entry in re.split(r"[\s,]+", entries.lower()):
        name, _, entry_port = entry.rpartition(":")
        if not entry_port.isdigit() or (":" in name and not name.endswith("]")):
            name, entry_port = entry, ""
        if entry_port in ("", str(port)) and _covers(name.strip("[]"), host):
            return True
    return False


def _covers(name: str, host: str) -> bool:
    if name == "*":
        return True
    try:
        network = ip_network(name, strict=False)
    except ValueError:
        name = name.removeprefix("*").strip(".")
        return bool(name) and (host == name or host.endswith(f".{name}"))
    try:
        return ip_address(host) in network
    except ValueError:
        return False
