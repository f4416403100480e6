"""Protection against server-side request forgery: which URLs may be fetched, and which DNS answers are accepted.

Both checks are pure functions: `check_url` checks the text of a URL, `check_addresses` the IP addresses of its host.
`rag.web.fetch` calls both for every request and redirect. An allow-list exempts exact host and port pairs from the
label, suffix, port and address rules; metadata services stay blocked.

Non-public IP addresses are listed here, as `ipaddress.is_global` is True for multicast, NAT64 and 6to4. The tables have
IANA's special-purpose registries, plus public-looking addresses that clouds use internally.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, NoReturn

from rag.errors import FetchError
from rag.text import lazy_regex, replace_surrogates, to_plain_line
from rag.types import because
from rag.web.urls import ascii_host, browser_url, split_url

Address = IPv4Address | IPv6Address

_DENIED_4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")
_DENIED_6 = tuple(
    IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
_METADATA_4 = tuple(
    IPv4Network(block)
    for block in (
        "169.254.169.0/24",
        "169.254.170.0/24",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
    )
)
_METADATA_6 = tuple(IPv6Network(block) for block in ("fd00:ec2::/32", "fd20:ce::/32"))
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


def parse_address(text: str) -> Address:
    """Parse an IP address, without its IPv6 zone. Raises ValueError for other text."""
    return ip_address(text.partition("%")[0])


def is_public(address: Address) -> bool:
    """Return whether `address` may be fetched from without being on the allow-list."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _DENIED_4)
    if address in _MAPPED or address in _NAT64:
        return is_public(_last_32_bits(address))
    return address in _GLOBAL_6 and not any(address in block for block in _DENIED_6)


def is_metadata(address: Address) -> bool:
    """Return whether `address`, or an IPv4 address embedded in it, is a cloud's metadata service."""
    if isinstance(address, IPv4Address):
        return any(address in block for block in _METADATA_4)
    return any(address in block for block in _METADATA_6) or any(map(is_metadata, _embedded_ipv4(address)))


def _embedded_ipv4(address: IPv6Address) -> Iterator[IPv4Address]:
    if any(address in block for block in (_MAPPED, _NAT64, _COMPATIBLE, _LOCAL_NAT64)):
        yield _last_32_bits(address)
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


Pair = tuple[str, int]

MAX_LENGTH = 2048
_PORTS = frozenset([80, 443, 8080, 8443])
_DEFAULT_PORTS = {"http": 80, "https": 443}
# The scheme needs re.ASCII: with re.IGNORECASE alone "http\u017f" would pass as "https".
_URL = lazy_regex(r"(?P<scheme>https?)://(?P<authority>[^/?#]*).*", re.ASCII | re.IGNORECASE | re.DOTALL)
_AUTHORITY = lazy_regex(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?", re.ASCII)
_IPV4 = lazy_regex(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?!$)|$)){4}", re.ASCII)
_NUMBER = lazy_regex(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_LABEL = lazy_regex(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_UNSAFE_CATEGORIES = frozenset(["Cc", "Cf", "Cs", "Zs", "Zl", "Zp"])
_INTERNAL_SUFFIXES = frozenset(
    "localhost localdomain local internal intranet lan home corp private svc consul onion i2p arpa".split()
)


@dataclass(frozen=True, slots=True)
class CheckedUrl:
    """A URL that passed `check_url`, in the parts of a request.

    `host` is ASCII, without brackets; `target` is the path and query as browsers send them, with dot segments resolved;
    `allowed` means that host and port are on the allow-list.
    """

    raw: str
    scheme: str
    host: str
    port: int
    target: str
    allowed: bool = False

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def pair(self) -> str:
        """Host and port in the format of FETCH_ALLOW_PRIVATE_HOSTS."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_url(raw: str, allow: Collection[Pair] = frozenset()) -> CheckedUrl:
    """Check the text of a URL, without network access. `allow` is a result of `allow_list`.

    Raises FetchError("blocked") with the `cause` in its parameters.
    """
    _check_text(raw)
    match = _URL.fullmatch(raw)
    if not match:
        _refuse(raw, "scheme")
    scheme = match["scheme"].lower()
    host, port = _host_and_port(raw, match["authority"], scheme)
    checked = CheckedUrl(raw, scheme, host, port, _target(raw, host, port), (host, port) in allow)
    _check_host(checked)
    if port not in _PORTS and not checked.allowed:
        _refuse(raw, "port", host=host, port=port, pair=checked.pair)
    return checked


def check_addresses(url: CheckedUrl, addresses: Sequence[str]) -> None:
    """Raise FetchError("blocked") if any address in a DNS answer may not be fetched from."""
    for text in addresses:
        try:
            address = parse_address(text)
        except ValueError:
            _refuse(url.raw, "host", host=url.host)
        values = {"host": url.host, "address": text, "pair": url.pair}
        if is_metadata(address):
            _refuse(url.raw, "metadata", **values)
        if not url.allowed and not is_public(address):
            _refuse(url.raw, "private_address", **values)


def allow_list(pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Return host and port pairs as `check_url` compares them, without invalid hosts."""
    return frozenset((host, port) for host, port in ((_normalise_host(name), number) for name, number in pairs) if host)


def is_literal(host: str) -> bool:
    """Return whether a checked host is an IP address rather than a name."""
    return ":" in host or bool(_IPV4.fullmatch(host))


def printable(url: str, limit: int = 200) -> str:
    """Return a URL for a message: printable, and truncated to `limit` characters."""
    text = "".join(c if c == " " or unicodedata.category(c) not in _UNSAFE_CATEGORIES else "\ufffd" for c in url)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_web_address(url: str) -> bool:
    """Return whether `url` can identify a page: a full http or https URL that browsers parse the same way.

    It may still be blocked.
    """
    parts = split_url(url)
    is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= MAX_LENGTH
    return is_absolute and replace_surrogates(to_plain_line(url)) == url.strip() and browser_url(url) is not None


def _check_text(raw: str) -> None:
    if len(raw) > MAX_LENGTH:
        _refuse(raw, "too_long", limit=MAX_LENGTH)
    if "\\" in raw or any(unicodedata.category(character) in _UNSAFE_CATEGORIES for character in raw):
        _refuse(raw, "characters")


def _host_and_port(raw: str, authority: str, scheme: str) -> tuple[str, int]:
    if "@" in authority:
        _refuse(raw, "userinfo")
    match = _AUTHORITY.fullmatch(authority)
    if not match or "%" in authority:
        _refuse(raw, "host", host=printable(authority, 80))
    host = _normalise_host(match["host"])
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if not host or port > 65535:
        _refuse(raw, "host", host=printable(authority, 80))
    return host, port


def _target(raw: str, host: str, port: int) -> str:
    """Return the request target as a browser parses it; both parsers must agree on the host."""
    parsed = browser_url(raw)
    if parsed is None or int(parsed.port or _DEFAULT_PORTS[parsed.protocol.rstrip(":")]) != port:
        _refuse(raw, "host", host=printable(host, 80))
    name = parsed.hostname.strip("[]").removesuffix(".")
    if name != host and _normalise_ipv6(name) != host:
        _refuse(raw, "host", host=printable(host, 80))
    return parsed.pathname + parsed.search


def _normalise_host(host: str) -> str:
    """Return the canonical form of a valid host, else ""."""
    if host.startswith("[") or host.count(":") > 1:
        return _normalise_ipv6(host.strip("[]"))
    try:
        name = ascii_host(host)
    except ValueError:
        return ""
    if _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]):
        return name if _IPV4.fullmatch(name) else ""
    return _normalise_name(name.removesuffix("."))


def _normalise_ipv6(text: str) -> str:
    try:
        return "" if "%" in text else IPv6Address(text).compressed
    except ValueError:
        return ""


def _normalise_name(name: str) -> str:
    labels = name.split(".")
    is_valid = len(name) <= 253 and all(_LABEL.fullmatch(label) and _is_valid_punycode(label) for label in labels)
    return name if is_valid and "_" not in labels[-1] else ""


def _is_valid_punycode(label: str) -> bool:
    if not label.startswith("xn--"):
        return True
    import idna

    try:
        return idna.alabel(idna.ulabel(label)).decode("ascii") == label
    except idna.IDNAError:
        return False


def _check_host(url: CheckedUrl) -> None:
    if is_literal(url.host):
        check_addresses(url, [url.host])
        return
    labels = url.host.split(".")
    is_internal = len(labels) < 2 or labels[-1] in _INTERNAL_SUFFIXES
    if is_internal and not url.allowed:
        _refuse(url.raw, "internal_name", host=url.host, pair=url.pair)


def _refuse(raw: str, cause: str, **params: Any) -> NoReturn:
    raise FetchError("blocked", url=printable(raw), **because(cause, **params))
