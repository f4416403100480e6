"""The HTTP client of the settings' chat model, which uses the proxy variables and SSL_CERT_FILE.

No proxy is used for this machine and private networks, nor for hosts in NO_PROXY. The variables are read at each
request, so that a broken one is a ModelError of that request only.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx2

from rag.errors import ModelError
from rag.models.own_client import NoTransport, authorities

_PRIVATE_NETWORKS: Final = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/32", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("100.64.0.0/10", "::/127", "fc00::/7", "fe80::/10"),
    )
)
_LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=5.0)
_LOOK_UP_SECONDS: Final = 2.0  # behind a proxy, public names may fail to resolve, slowly
_CONNECTION_ERRORS: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


# Connections by event loop, scheme and proxy; they stay open from one question to the next.
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], httpx2.AsyncHTTPTransport]] = (
    WeakKeyDictionary()
)


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
        async with asyncio.timeout(_LOOK_UP_SECONDS):
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
