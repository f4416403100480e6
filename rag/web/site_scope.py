"""The scope of a website import: the URLs that belong to it, without crawler traps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from rag.patterns import lazy_regex
from rag.web.url_key import split_url, url_key

MAX_DEPTH = 3
MAX_PAGES = 200
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


@dataclass(frozen=True, slots=True)
class SiteScope:
    """The pages on `start`'s host with a path below `prefix`, up to `max_depth` links from the start.

    The default `prefix` is the folder of `start`. The scheme and a leading `www.` are ignored; other subdomains are
    other sites. Callers enforce `max_pages`.
    """

    start: str
    prefix: str = ""
    max_depth: int = MAX_DEPTH
    max_pages: int = MAX_PAGES

    def admits(self, url: str, depth: int = 0) -> bool:
        """Return whether `url`, found `depth` links from the start, is a page to import."""
        return depth <= self.max_depth and self.contains(url) and not is_trap(url)

    def contains(self, url: str) -> bool:
        """Return whether `url` has the right host and path; redirects must stay within them too."""
        parts = split_url(url_key(url))
        site, root = _site_and_folder(self.start, self.prefix)
        if parts.scheme not in ("http", "https") or _site(parts.netloc) != site:
            return False
        return parts.path == root or parts.path.startswith(root if root.endswith("/") else root + "/")

    @property
    def folder(self) -> str:
        """The path prefix of all pages, normalised as in a page's key."""
        return _site_and_folder(self.start, self.prefix)[1]


def same_site(first: str, second: str) -> bool:
    """Return whether two URLs have the same host and port, ignoring `www.` and the scheme."""
    return _site(split_url(url_key(first)).netloc) == _site(split_url(url_key(second)).netloc)


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
    return (
        len(url) > MAX_LENGTH
        or len(segments) > _MAX_SEGMENTS
        or len(parameters) > _MAX_PARAMETERS
        or any(segments.count(segment) > _MAX_REPEATS for segment in set(segments) if not segment.isdigit())
        or any(_is_action(part) for part in parameters)
        or _is_in_far_future(url)
    )


@lru_cache(maxsize=256)
def _site_and_folder(start: str, prefix: str) -> tuple[str, str]:
    """Return the site and the path prefix of a scope."""
    parts = split_url(url_key(start))
    path = split_url(url_key(f"http://x/{prefix.lstrip('/')}")).path
    return _site(parts.netloc), path if prefix else parts.path.rpartition("/")[0] + "/"


def _site(netloc: str) -> str:
    """Return host and port without `www.` and default ports."""
    return netloc.rpartition("@")[2].removeprefix("www.").removesuffix(":80").removesuffix(":443")


def _is_session(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    name = name.lower()
    return name in _SESSION_NAMES or (name in ("sid", "s", "session") and bool(_LONG_HEX.fullmatch(value)))


def _is_action(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.lower() in _ACTIONS or (name.lower() in ("action", "do", "mode") and value.lower() in _ACTION_VALUES)


def _is_in_far_future(url: str) -> bool:
    """Return whether this is a calendar page beyond next year: such pages link to later ones without end."""
    match = _DATE_IN_URL.search(url)
    year = (match["year"] or match["query_year"]) if match else ""
    return bool(_YEAR.fullmatch(year)) and int(year) > datetime.now(UTC).year + 1
