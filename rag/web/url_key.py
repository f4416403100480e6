"""The key of a page: one canonical spelling of its address.

An address is parsed as browsers do (the WHATWG's URL standard, through can_ada), and then normalised by closed rules;
everything else is left unchanged, because dropping too much merges different pages.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import can_ada

_WEB = frozenset(["http:", "https:"])
_TRACKING = frozenset("gclid fbclid msclkid dclid gbraid wbraid mc_cid mc_eid igshid _hsenc _hsmi".split())
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# The ASCII punctuation that browsers send unchanged; the rest is percent-encoded as UTF-8.
SENT_AS_IS = "!$%&'()*+,-./:;=?@[]_~#|"


def url_key(url: str) -> str:
    """Return the canonical spelling of a web address; other text is stripped.

    Idempotent. Never raises, because it also applies to imported pages.
    """
    text = url.strip()
    parsed = browser_url(text)
    if parsed is None:
        return text
    query = _without_tracking(normalise_escapes(parsed.search.removeprefix("?")))
    fragment = parsed.hash.removeprefix("#")
    route = normalise_escapes(fragment) if fragment.startswith(("!", "/")) else ""
    key = f"{parsed.protocol}//{_authority(parsed)}{normalise_escapes(parsed.pathname)}"
    return key + (f"?{query}" if query else "") + (f"#{route}" if route else "")


def without_tracking(url: str) -> str:
    """Return a web address without tracking parameters, else unchanged."""
    whole, mark, fragment = url.strip().partition("#")
    path, _, query = whole.partition("?")
    kept = _without_tracking(query)
    short = path + (f"?{kept}" if kept else "") + mark + fragment
    return short if kept != query and url_key(short) == url_key(url) else url


def url_hash(url: str) -> str:
    """Return the page's identifier: the MD5 of its key as 32 lower-case hexadecimal digits."""
    key = url_key(url).encode("utf-8", "surrogatepass")
    return hashlib.md5(key, usedforsecurity=False).hexdigest()


def browser_url(text: str, base: str = "") -> can_ada.URL | None:
    """Parse a web address as a browser does, relative to `base`; None if it is invalid."""
    try:
        parsed = can_ada.parse(_whole(base)) + _whole(text) if base else can_ada.parse(_whole(text))
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
    """Return the web address of `reference` on a page at `base`; "" if there is none.

    Keeps the original spelling if it means the same, so that `/中文` stays readable.
    """
    joined = browser_url(reference, base)
    if joined is None:
        return ""
    try:
        written = urljoin(base, reference.strip())
    except ValueError:
        return joined.href
    read = browser_url(written)
    return written if read is not None and read.href == joined.href else joined.href


def join_location(base: str, reference: str) -> str:
    """Return the absolute form of the address that a page at `base` redirects to.

    Spaces and invisible characters are percent-encoded, as in the URL standard. Text with control characters or
    backslashes, which browsers silently drop or replace, is returned unchanged for `check_url` to reject.
    """
    if any(character < " " or character in "\\\x7f" for character in reference):
        return reference
    written = "".join(quote(one) if one == " " or unicodedata.category(one)[0] in "CZ" else one for one in reference)
    return join_url(base, written) or written


def web_address(base: str, text: str) -> str:
    """Return `text` as a web address, relative to `base`; "" if it is invalid."""
    joined = join_url(base, text) if text else ""
    parts = split_url(joined)
    return joined if parts.scheme in ("http", "https") and parts.hostname else ""


def normalise_escapes(text: str) -> str:
    """Percent-encode all but the ASCII that browsers send unchanged, upper-case escapes, decode unreserved ones."""

    def spell(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    whole = _BARE_PERCENT.sub("%25", text)
    return _ESCAPE.sub(spell, quote(whole, safe=SENT_AS_IS, errors="replace"))


def ascii_host(host: str) -> str:
    """Return `host` in lower case, each label in IDNA 2008 form. Raises ValueError if there is no such form."""
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


def _whole(text: str) -> str:
    """Return `text` as browsers handle it: lone surrogates, which cannot be encoded, are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _authority(parsed: can_ada.URL) -> str:
    secret = f":{parsed.password}" if parsed.password else ""
    user = f"{parsed.username}{secret}@" if parsed.username or secret else ""
    port = f":{parsed.port}" if parsed.port else ""
    host = parsed.hostname if parsed.hostname.endswith("..") else parsed.hostname.removesuffix(".")
    return f"{user}{host or parsed.hostname}{port}"


def _without_tracking(query: str) -> str:
    kept = [part for part in query.split("&") if not _is_tracking(normalise_escapes(part.partition("=")[0]))]
    return "&".join(kept)


def _is_tracking(name: str) -> bool:
    return name.startswith("utm_") or name in _TRACKING
