"""HTTP clients of chat models: one for models that users connect, one for the configured model.

A user's client sends only that user's data, and only to their address. It ignores the server's environment: no proxy,
no key, no organisation or other header of the operator. It follows no redirects, limits the size of replies, and with
`Admit` connects only to the IP addresses that this returned for the host, which prevents DNS rebinding.

The configured model's client uses the proxy variables and SSL_CERT_FILE. It bypasses the proxy for this machine,
private networks and hosts in NO_PROXY. It reads the variables at each request, so that an invalid one only makes that
request fail, with a ModelError.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any, Final, NoReturn, cast
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx2

from rag.errors import ModelError

Key = str | Callable[[], str]
"""A key, or a function called at each request, so that nothing stores the key; raises ModelError if it is missing."""
Admit = Callable[[str, int], Sequence[str]]
"""A function from host and port to the allowed IP addresses. Blocks; raises ModelError."""

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
_RESOLVE_SECONDS: Final = 2.0  # behind a proxy, looking up public names may fail slowly
_CONNECTION_ERRORS: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


# Transports by event loop, scheme and proxy, which reuse their connections for later questions.
_transports: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], httpx2.AsyncHTTPTransport]] = (
    WeakKeyDictionary()
)


def client_options(transport: httpx2.AsyncBaseTransport) -> dict[str, Any]:
    """Return ChatOpenAI's arguments for a client over this transport; async calls only."""
    client = httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)
    unused = httpx2.Client(transport=NoTransport(), trust_env=False)
    return {"http_async_client": client, "http_client": unused, "openai_proxy": None, "http_socket_options": ()}


class UserTransport(httpx2.AsyncBaseTransport):
    """A transport to the origin of `base_url`, with a connection for each request: none of a user's stays open."""

    def __init__(self, base_url: str, key: Key, admit: Admit | None) -> None:
        self._origin = _origin(httpx2.URL(base_url))
        self._key = key
        self._admit = admit
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=authorities(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            raise httpx2.ConnectError("the request leaves the configured origin")
        problem: httpx2.TransportError | None = None
        for address in await self._addresses(request):
            try:
                response = await self._inner.handle_async_request(self._rebuild(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                problem = problem or error
                continue
            # Compression that was not requested is not decoded.
            headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
            stream = _LimitedStream(cast(httpx2.AsyncByteStream, response.stream))
            return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)
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
        """Return the request to an IP address, with necessary headers only; TLS and the Host header use the name."""
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
    """A transport for the unused synchronous client, whose default transport would not be guarded."""

    def handle_request(self, request: httpx2.Request) -> NoReturn:
        raise httpx2.UnsupportedProtocol("connected models support only asynchronous calls")


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


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, _port(url)


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


@cache
def authorities() -> ssl.SSLContext:
    """Return a TLS context with the system's certificate authorities (including a company's) and Mozilla's."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(cafile=certifi.where())
    return context


def check_environment() -> None:
    """Raise ModelError if a proxy variable or SSL_CERT_FILE is unusable."""
    for scheme in ("http", "https", "all"):
        variable, proxy = _proxy_variable(scheme)
        _open_transport("https", variable, proxy)


class EnvironmentTransport(httpx2.AsyncBaseTransport):
    """The configured model's transport, which raises ModelError if the environment is at fault, not the service."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        scheme = request.url.scheme
        variable, proxy = _proxy_variable(scheme)
        if proxy and await _bypasses_proxy(request.url):
            variable, proxy = "", ""
        transports = _transports.setdefault(asyncio.get_running_loop(), {})
        if (scheme, proxy) not in transports:
            transports[scheme, proxy] = _open_transport(scheme, variable, proxy)
        try:
            return await transports[scheme, proxy].handle_async_request(request)
        except _CONNECTION_ERRORS as error:
            if not proxy:
                raise
            raise ModelError("chat_proxy_unreachable", variable=variable) from error


def _proxy_variable(scheme: str) -> tuple[str, str]:
    """Return the proxy variable for a scheme, and the URL of the proxy; both are "" without a proxy."""
    proxies = {**getproxies(), "openai": os.environ.get("OPENAI_PROXY", "")}
    for name in ("openai", scheme, "all"):
        if proxy := proxies.get(name, "").strip():
            return f"{name.upper()}_PROXY", proxy if "://" in proxy else f"http://{proxy}"
    return "", ""


def _open_transport(scheme: str, variable: str, proxy: str) -> httpx2.AsyncHTTPTransport:
    """Open a transport. Raises ModelError for an unusable proxy or SSL_CERT_FILE, which is read for TLS only."""
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
    """Return the authorities of SSL_CERT_FILE alone if it is set. Raises ModelError if the file cannot be read."""
    name = os.environ.get("SSL_CERT_FILE", "")
    try:
        return ssl.create_default_context(cafile=name) if name else authorities()
    except OSError as error:
        raise ModelError("chat_certificates_missing", name=name) from error


async def _bypasses_proxy(url: httpx2.URL) -> bool:
    """True if NO_PROXY covers the service, or if its name or address is on this machine or a private network."""
    port = _port(url)
    if _is_in_no_proxy(url.host, port, getproxies().get("no", "")):
        return True
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            answers = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    addresses = [ip_address(answer[4][0]) for answer in answers]
    addresses = [getattr(address, "ipv4_mapped", None) or address for address in addresses]
    are_private = [any(address in network for network in _PRIVATE_NETWORKS) for address in addresses]
    return bool(are_private) and all(are_private)


def _is_in_no_proxy(host: str, port: int, entries: str) -> bool:
    """True if an entry of NO_PROXY covers the host. As in curl, an entry is a domain with its subdomains, `*`, an IP
    address, or a network such as 10.0.0.0/8; each with an optional port."""
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
