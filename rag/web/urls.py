"""URLs: the canonical spelling that is a page's key, and the scope of a website import, without crawler traps.

A URL is parsed as in browsers (WHATWG's URL standard, through can_ada), then normalised by a fixed set of rules.
Everything else stays unchanged, because dropping too much would merge different pages.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import can_ada

from rag.text import lazy_regex

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
    names = ((part, normalise_escapes(part.partition("=")[0])) for part in query.split("&"))
    return "&".join(part for part, name in names if not name.startswith("utm_") and name not in _TRACKING)


MAX_LENGTH = 1024
_MAX_SEGMENTS = 15
_MAX_PARAMETERS = 8
_MAX_REPEATS = 2
_YEAR = lazy_regex(r"(?:19|20|21)[0-9]{2}", re.ASCII)
_DATE_IN_URL = lazy_regex(
    r"/(?P<year>[0-9]{4})(?:/|-)(?:0?[1-9]|1[0-2])(?=[/-]|$)|[?&](?:y|yr|year)=(?P<query_year>[0-9]{4})\b", re.ASCII
)
_SESSION_PATH = lazy_regex(r";(?:jsessionid|phpsessid|sid)=[^/?#;]*", re.IGNORECASE)
_SESSION_NAMES = frozenset(["phpsessid", "jsessionid", "sessionid", "session_id", "cfid", "cftoken", "zenid", "oscsid"])
_LONG_HEX = lazy_regex(r"[0-9a-f]{16,}", re.IGNORECASE | re.ASCII)
# Query parameters of links that trigger an action: reply, share, buy, edit.
_ACTIONS = frozenset(["replytocom", "add-to-cart", "add_to_cart", "share", "oldid", "diff"])
_ACTION_VALUES = frozenset(["edit", "history", "login", "logout", "register", "submit", "delete", "raw", "print"])
_UNREADABLE = frozenset(
    "jpg jpeg png gif webp avif svg ico bmp tif tiff heic psd mp3 mp4 m4a m4v webm avi mov mkv wav ogg ogv flac wmv "
    "zip gz tgz bz2 xz 7z rar tar iso dmg exe msi apk deb rpm jar war bin dll so whl css js mjs map json wasm woff "
    "woff2 ttf otf eot swf xls ppt doc ods odp mobi ics vcf torrent sqlite db parquet".split()
)


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page's URL, its `depth` in links from the start, and `modified` from a sitemap or feed (ISO 8601 or "")."""

    url: str
    depth: int = 0
    modified: str = ""


def same_site(first: str, second: str) -> bool:
    """Return whether two URLs have the same host and port, ignoring `www.` and the scheme."""
    return site_of(split_url(url_key(first)).netloc) == site_of(split_url(url_key(second)).netloc)


def is_page_name(url: str) -> bool:
    """Return whether a URL may be that of a readable document, judging by its file extension."""
    name = split_url(url).path.rpartition("/")[2].lower()
    return "." not in name or name.rpartition(".")[2] not in _UNREADABLE


def page_address(url: str) -> str:
    """Return the canonical URL of a link, without fragment, session id and tracking parameters."""
    bare = _SESSION_PATH.sub("", url.partition("#")[0])
    path, mark, query = url_key(bare).partition("?")
    remaining = [part for part in query.split("&") if part and not _is_session(part)]
    return path + (mark + "&".join(remaining) if remaining else "")


def is_trap(url: str) -> bool:
    """Return whether a URL looks like a crawler trap: too long, repetitive, a date in the far future, an action."""
    parts = split_url(url)
    segments = [segment for segment in parts.path.split("/") if segment]
    parameters = [part for part in parts.query.split("&") if part]
    date = _DATE_IN_URL.search(url)
    year = (date["year"] or date["query_year"]) if date else ""
    return (
        len(url) > MAX_LENGTH
        or len(segments) > _MAX_SEGMENTS
        or len(parameters) > _MAX_PARAMETERS
        or any(segments.count(segment) > _MAX_REPEATS for segment in set(segments) if not segment.isdigit())
        or any(_is_action(part) for part in parameters)
        # Calendars beyond next year link to later pages without end.
        or (_YEAR.fullmatch(year) is not None and int(year) > datetime.now(UTC).year + 1)
    )


@lru_cache(maxsize=256)
def site_and_folder(start: str, prefix: str) -> tuple[str, str]:
    """Return the site at `start` and the path prefix of its pages, by default the folder of `start`."""
    parts = split_url(url_key(start))
    path = split_url(url_key(f"http://x/{prefix.lstrip('/')}")).path
    return site_of(parts.netloc), path if prefix else parts.path.rpartition("/")[0] + "/"


def mentions_any(sentence: str, *addresses: str) -> bool:
    """Return whether one of these non-empty URLs or file names is in `sentence`."""
    return any(address in sentence for address in addresses if address)


def site_of(netloc: str) -> str:
    """Return host and port without `www.` and default ports."""
    return netloc.rpartition("@")[2].removeprefix("www.").removesuffix(":80").removesuffix(":443")


def _is_session(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    name = name.lower()
    return name in _SESSION_NAMES or (name in ("sid", "s", "session") and bool(_LONG_HEX.fullmatch(value)))


def _is_action(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.lower() in _ACTIONS or (name.lower() in ("action", "do", "mode") and value.lower() in _ACTION_VALUES)
