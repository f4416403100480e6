"""The key of a page: one spelling for all the ways to write its address.

No library canonicalises right for this (docs/decisions), so the rules are here and closed:
what they do not name stays as it is, because dropping too much merges two different pages.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from ipaddress import IPv6Address
from urllib.parse import SplitResult, quote, urljoin, urlsplit

_PARTS = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_TRACKING = frozenset(
    [
        "gclid",
        "fbclid",
        "msclkid",
        "dclid",
        "gbraid",
        "wbraid",
        "mc_cid",
        "mc_eid",
        "igshid",
        "_hsenc",
        "_hsmi",
    ]
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Everything ASCII that a browser sends as it is; the rest is percent-encoded as UTF-8.
SENT_AS_IS = "!$%&'()*+,-./:;=?@[]_~#|"


def url_key(url: str) -> str:
    """The canonical spelling of a web address; text that is not one comes back stripped.

    Idempotent, and total: it never raises, because it also names pages that were imported.
    """
    text = url.strip()
    match = _PARTS.fullmatch(text)
    if not match:
        return text
    scheme = match["scheme"].lower()
    path = _remove_dot_segments(normalise_escapes(match["path"])) or "/"
    query = _without_tracking(normalise_escapes(match["query"] or ""))
    fragment = match["fragment"] or ""
    route = normalise_escapes(fragment) if fragment.startswith(("!", "/")) else ""
    key = f"{scheme}://{_authority(match['authority'], scheme)}{path}"
    return key + (f"?{query}" if query else "") + (f"#{route}" if route else "")


def url_hash(url: str) -> str:
    """The page's identifier: the MD5 of its key as 32 lower-case hexadecimal digits."""
    key = url_key(url).encode("utf-8", "surrogatepass")
    return hashlib.md5(key, usedforsecurity=False).hexdigest()


def split_url(url: str) -> SplitResult:
    """`urlsplit`, but nothing in all parts for what it cannot split, such as `http://[::1/x`."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def join_url(base: str, reference: str) -> str:
    """`urljoin`, but "" where the two make no address."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return ""


def normalise_escapes(text: str) -> str:
    """Percent-encode what is not ASCII or not sent as it is, upper-case escapes, decode unreserved ones."""

    def spell(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    whole = _BARE_PERCENT.sub("%25", text)
    return _ESCAPE.sub(spell, quote(whole, safe=SENT_AS_IS, errors="replace"))


def ascii_host(host: str) -> str:
    """`host` in lower case, each label in IDNA 2008 form. Raises ValueError for one that has no such form."""
    return ".".join(_ascii_label(label) for label in host.split("."))


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    import idna

    lower = unicodedata.normalize("NFC", label.lower())
    if lower.isascii():  # a look-alike such as the Kelvin sign turned into a letter
        raise ValueError(f"no IDNA 2008 form: {label!r}")
    try:
        return idna.alabel(lower).decode("ascii")
    except idna.IDNAError as error:
        raise ValueError(f"no IDNA 2008 form: {label!r}") from error


def _authority(authority: str, scheme: str) -> str:
    userinfo, at, host_port = authority.rpartition("@")
    host, colon, port = host_port.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]*", port, re.ASCII):
        host, port = host_port, ""
    port = port.lstrip("0")
    suffix = "" if port in ("", _DEFAULT_PORTS[scheme]) else f":{port}"
    return f"{userinfo}{at}{_host(host)}{suffix}"


def _host(host: str) -> str:
    try:
        if host.startswith("["):
            return f"[{IPv6Address(host.strip('[]')).compressed}]"
        return ascii_host(host.removesuffix("."))
    except ValueError:
        return host.lower().removesuffix(".")


def _remove_dot_segments(path: str) -> str:
    """RFC 3986, section 5.2.4, for the path of an address with a host."""
    output: list[str] = []
    segments = path.split("/")[1:] if path.startswith("/") else path.split("/")
    for segment in segments:
        if segment == "..":
            output = output[:-1]
        elif segment != ".":
            output.append(segment)
    if segments[-1] in (".", ".."):
        output.append("")
    return "/" + "/".join(output)


def _without_tracking(query: str) -> str:
    kept = [part for part in query.split("&") if not _is_tracking(part.partition("=")[0])]
    return "&".join(kept)


def _is_tracking(name: str) -> bool:
    return name.startswith("utm_") or name in _TRACKING
