"""The key of a page: one canonical spelling of its URL.

A URL is parsed as in browsers (WHATWG's URL standard, through can_ada), then normalised by a fixed set of rules.
Everything else stays unchanged, because dropping too much would merge different pages.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import can_ada

from rag.patterns import lazy_regex

_WEB = frozenset(["http:", "https:"])
_TRACKING = frozenset("gclid fbclid msclkid dclid gbraid wbraid mc_cid mc_eid igshid _hsenc _hsmi".split())
_ESCAPE = lazy_regex(r"%([0-9A-Fa-f]{2})")
_BARE_PERCENT = lazy_regex(r"%(?![0-9A-Fa-f]{2})")
_NORMAL = lazy_regex(r"[\w!$&'()*+,\-./:;=?@\[\]~#|]*", re.ASCII)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# The ASCII punctuation that browsers send unchanged; the rest is percent-encoded as UTF-8.
SENT_AS_IS = "!$%&'()*+,-./:;=?@[]_~#|"


def url_key(url: str) -> str:
    """Return the canonical spelling of a web address; other text is only stripped.

    Idempotent. Never raises, because stored pages may have other addresses, such as `file:///name`.
    """
    text = url.strip()
    parsed = browser_url(text)
    if parsed is None:
        return text
    query = _strip_tracking(normalise_escapes(parsed.search.removeprefix("?")))
    fragment = parsed.hash.removeprefix("#")
    route = normalise_escapes(fragment) if fragment.startswith(("!", "/")) else ""
    key = f"{parsed.protocol}//{_authority(parsed)}{normalise_escapes(parsed.pathname)}"
    return key + (f"?{query}" if query else "") + (f"#{route}" if route else "")


def strip_tracking(url: str) -> str:
    """Return a web address without tracking parameters; return other text unchanged."""
    address, mark, fragment = url.strip().partition("#")
    path, _, query = address.partition("?")
    rest = _strip_tracking(query)
    stripped = path + (f"?{rest}" if rest else "") + mark + fragment
    return stripped if rest != query and url_key(stripped) == url_key(url) else url


def url_hash(url: str) -> str:
    """Return the page's identifier: the MD5 of its key as 32 lower-case hexadecimal digits."""
    key = url_key(url).encode("utf-8", "surrogatepass")
    return hashlib.md5(key, usedforsecurity=False).hexdigest()


def browser_url(text: str, base: str = "") -> can_ada.URL | None:
    """Parse a web address as a browser does, relative to `base`; None if it is invalid."""
    try:
        parsed = can_ada.parse(_clean(base)) + _clean(text) if base else can_ada.parse(_clean(text))
    except ValueError:
        return None
    return parsed if parsed.protocol in _WEB else None


def split_url(url: str) -> SplitResult:
    """Call `urlsplit`, but return empty parts if it cannot split the text, such as `http://[::1/x`."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def join_url(base: str, reference: str) -> str:
    """Resolve `reference` on a page at `base`; return "" if the result is not a web address.

    Keeps the original spelling if it is equivalent, so that `/中文` stays readable.
    """
    joined = browser_url(reference, base)
    if joined is None:
        return ""
    try:
        plain = urljoin(base, reference.strip())
    except ValueError:
        return joined.href
    parsed = browser_url(plain)
    return plain if parsed is not None and parsed.href == joined.href else joined.href


def join_location(base: str, reference: str) -> str:
    """Resolve the target of a redirect from a page at `base`.

    Spaces and invisible characters are percent-encoded, as in the URL standard. Text with control characters or
    backslashes, which browsers silently drop or replace, is returned unchanged for `check_url` to reject.
    """
    if any(c < " " or c in "\\\x7f" for c in reference):
        return reference
    encoded = "".join(quote(c) if c == " " or unicodedata.category(c)[0] in "CZ" else c for c in reference)
    return join_url(base, encoded) or encoded


def web_address(base: str, text: str) -> str:
    """Return `text` as a web address, relative to `base`; "" if it is invalid."""
    joined = join_url(base, text) if text else ""
    parts = split_url(joined)
    return joined if parts.scheme in ("http", "https") and parts.hostname else ""


def normalise_escapes(text: str) -> str:
    """Percent-encode all but the ASCII that browsers send unchanged, upper-case escapes, decode unreserved ones."""

    if _NORMAL.fullmatch(text):
        return text

    def normalise(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    escaped = _BARE_PERCENT.sub("%25", text)
    return _ESCAPE.sub(normalise, quote(escaped, safe=SENT_AS_IS, errors="replace"))


def ascii_host(host: str) -> str:
    """Return `host` in lower case, each label in IDNA 2008 form. Raises ValueError if there is no such form."""
    return ".".join(_ascii_label(label) for label in host.split("."))


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    import idna

    lowered = unicodedata.normalize("NFC", label.lower())
    if lowered.isascii():  # a look-alike such as the Kelvin sign turned into a letter
        raise ValueError(f"no IDNA 2008 form: {label!r}")
    try:
        return idna.alabel(lowered).decode("ascii")
    except idna.IDNAError as error:
        raise ValueError(f"no IDNA 2008 form: {label!r}") from error


def _clean(text: str) -> str:
    """Return `text` as browsers handle it: lone surrogates, which cannot be encoded, are replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _authority(parsed: can_ada.URL) -> str:
    secret = f":{parsed.password}" if parsed.password else ""
    user = f"{parsed.username}{secret}@" if parsed.username or secret else ""
    port = f":{parsed.port}" if parsed.port else ""
    host = parsed.hostname if parsed.hostname.endswith("..") else parsed.hostname.removesuffix(".")
    return f"{user}{host or parsed.hostname}{port}"


def _strip_tracking(query: str) -> str:
    if not query:
        return ""
    remaining = [part for part in query.split("&") if not _is_tracking(normalise_escapes(part.partition("=")[0]))]
    return "&".join(remaining)


def _is_tracking(name: str) -> bool:
    return name.startswith("utm_") or name in _TRACKING
