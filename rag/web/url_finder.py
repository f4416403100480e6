"""URLs in pasted or typed text, with or without a scheme, between words of any language."""

from __future__ import annotations

import html
import re

from rag.text import lazy_regex
from rag.web.guard import is_web_address
from rag.web.media import EXTENSION_TYPES
from rag.web.urls import url_key

MAX_URLS = 200
_MAX_TEXT = 1_000_000
_MAX_ADDRESS = 4096

# Never unescaped in a URL: white space, quotes, angle brackets, Chinese punctuation.
_END = (
    '\\s<>"`\u00ab\u00bb\u2018\u2019\u201c\u201d\u2026\u3001\u3002\u3008-\u3011\u3014-\u301b'
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d"
)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_BARE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?::[0-9]{1,5})?"
_SCHEME = "[A-Za-z][A-Za-z0-9+-]{1,15}:"
# Malformed URLs, within a text or alone on a line, match too, so that they are reported to the user.
_CANDIDATE = lazy_regex(
    rf"(?P<full>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{{1,15}}://[^{_END}]{{1,{_MAX_ADDRESS}}})"
    rf"|(?P<slip>(?<![\w@.:-]){_SCHEME}/(?!/)[^{_END}]{{1,{_MAX_ADDRESS}}})"
    rf"|(?P<alone>^{_SCHEME}(?!//)[!-~]{{1,{_MAX_ADDRESS}}}(?=\r?$))"
    rf"|(?P<bare>(?<![\w@/.:%+-]){_BARE}(?![\w@])(?:[/?#][^{_END}]{{0,{_MAX_ADDRESS}}})?)"
    rf"|(?P<glued>(?<=[{_CJK}]){_BARE}(?![A-Za-z0-9@])(?:[/?#][^{_END}]{{0,{_MAX_ADDRESS}}})?)",
    re.MULTILINE,
)
# Where one URL runs into the next; after "=" or "/" it is part of the first (archives, redirects).
# A run of marks is tried only from its first mark, as a long one would otherwise take quadratic time.
_WEB = lazy_regex(r"https?://", re.IGNORECASE)
_WITH_SLASH = lazy_regex(rf"{_SCHEME}/", re.IGNORECASE)
_SPACES = lazy_regex(r"[ \t]+")
_ONE_WORD_HOST = lazy_regex(r"https?://(?!localhost$)[^./:?#]*", re.IGNORECASE)
_NEXT = lazy_regex(r"(?<![=/%&])(?:(?<![,;|])|(?<=[=/%&][,;|]))[,;|]*+(?=https?://)", re.IGNORECASE)
_TRAILING = ".,;:!?'*~|(&[{"
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_ATTACHED_TEXT = lazy_regex(rf"(?<=[A-Za-z0-9])[{_CJK}]")
_TITLED_BY_PATH = lazy_regex(
    r"/(?:wiki|item|tags?|topic|search|zh|zh-(?:cn|tw|hans|hant))/[^/?#]*$|[?&#]", re.IGNORECASE
)
_USUAL_ENDINGS = (
    "com|org|net|edu|gov|mil|int|info|io|ai|dev|app|co|cn|hk|tw|jp|kr|sg|uk|us|eu|de|fr|es|it|nl|se|no|fi|ch|at|be"
    "|ru|ua|br|in|au|ca|nz|tv|me|blog|wiki|site|online|tech|cloud|news|xyz|top|page|example"
)
_FILE_ENDINGS = "|".join(ending.lstrip(".") for ending in EXTENSION_TYPES) + (
    "|php|py|js|ts|css|jsonl?|xml|ya?ml|toml|doc|ppt|png|jpe?g|gif|svg|zip|gz|exe|sh|bat|log|ini|cfg|lock"
)
_USUAL_DOMAIN = lazy_regex(rf"(?:www\.\S+|\S+\.(?:{_USUAL_ENDINGS}))(?::[0-9]+)?", re.IGNORECASE)
_FILE_NAME = lazy_regex(rf"\S+\.(?:{_FILE_ENDINGS})", re.IGNORECASE)
# Bare domains separated only by a mark.
_NEXT_DOMAIN = lazy_regex(
    rf"(?<![,;|])[,;|]++(?=(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_USUAL_ENDINGS})(?:[/?#:,;|]|$))", re.IGNORECASE
)


def find_urls(pasted: str, limit: int | None = MAX_URLS) -> tuple[list[str], int]:
    """Return the URLs in `pasted` in order, each page once, and the number of further ones beyond `limit`.

    A bare domain gets `https://`. Other schemes and typos such as `htp:/…` are included, so that the guard can say
    why it refuses them. With a limit, only the first _MAX_TEXT characters are read.
    """
    by_key: dict[str, str] = {}
    for _, _, address in _find_addresses(pasted if limit is None else pasted[:_MAX_TEXT]):
        by_key.setdefault(url_key(address), address)
    urls = list(by_key.values())
    return urls[:limit], max(0, len(urls) - (limit or len(urls)))


def locate_urls(text: str) -> list[tuple[int, int, str]]:
    """Return the web addresses in a text, each as (start, end, address); only _MAX_TEXT characters are read.

    If the text has nothing but links, those with other schemes and typos are included, for the guard to refuse.
    """
    spans = [span for span in _find_addresses(text[:_MAX_TEXT]) if _WITH_SLASH.match(span[2])]
    ends = [0, *(end for _, end, _ in spans)]
    between = "".join(
        text[end:start] for end, start in zip(ends, [start for start, _, _ in spans] + [None], strict=True)
    )
    return spans if not re.search(r"\w", between) else [span for span in spans if _WEB.match(span[2])]


def _find_addresses(text: str) -> list[tuple[int, int, str]]:
    """Return the links in a text, malformed ones too, each as (start, end, address).

    Words without a scheme right after a link that ends within its host are a part of it: the rest of the host would be
    a stranger's.
    """
    spans: list[tuple[int, int, str]] = []
    end = 0
    for match in _CANDIDATE.finditer(text):
        if match["bare"] and spans and _SPACES.fullmatch(text, end, match.start()) and _is_cut_off(spans[-1][2]):
            start, _, _ = spans.pop()
            end = match.end()
            spans.append((start, end, _trim(text[start:end], False)))
            continue
        for address in _extract_addresses(match):
            spelling = address if address in match.group() else address.partition("://")[2]
            start = max(end, text.find(spelling, end, match.end()))
            end = start + len(spelling) if text.startswith(spelling, start) else match.end()
            spans.append((start, end, address))
    return spans


def _is_cut_off(address: str) -> bool:
    """Return whether a link has no valid host, or ends after a word of it: `https://exa` of `https://exa mple.com`."""
    return not is_web_address(address) or bool(_ONE_WORD_HOST.fullmatch(address))


def _extract_addresses(match: re.Match[str]) -> list[str]:
    if match["alone"]:
        return [match["alone"]]
    if match["slip"]:
        return [_trim(match["slip"], match.string[match.start() - 1 : match.start()] == "'")]
    if match["full"]:
        whole = html.unescape(match["full"]) if "&amp;" in match["full"] else match["full"]
        quote = match.string[match.start() - 1 : match.start()] == "'"
        pieces = [part for piece in _NEXT.split(whole) for part in _NEXT_DOMAIN.split(piece)]
        return [address for piece in pieces if (address := _add_scheme(_trim(piece, quote)))]
    pieces = _NEXT_DOMAIN.split(match["bare"] or match["glued"])
    return [address for piece in pieces if (address := _add_scheme(_trim(piece, False)))]


def _add_scheme(address: str) -> str:
    """Return `address` with a scheme, or "" if it is not an address."""
    if "://" in address[:20]:
        return address if address.partition("://")[2] else ""
    # Text with dots is meant as an address if it has a common top-level domain, or a path follows.
    host, slash, _ = re.sub(r"[?#]", "/", address, count=1).partition("/")
    is_domain = _USUAL_DOMAIN.fullmatch(host) or (slash and not _FILE_NAME.fullmatch(host))
    return f"https://{address}" if is_domain else ""


def _trim(address: str, in_quotes: bool) -> str:
    """Remove parts of the surrounding sentence from `address`: attached text, brackets, punctuation."""
    if in_quotes:
        address = address.partition("'")[0]
    # Chinese that follows Latin is text, except in titles (`/wiki/C语言`) and queries.
    ends = (match.start() for match in _ATTACHED_TEXT.finditer(address))
    address = address[: next((end for end in ends if not _TITLED_BY_PATH.search(address[:end])), None)]
    address = address[: _first_unmatched(address)]
    return address.rstrip(_TRAILING)


def _first_unmatched(address: str) -> int:
    """Return the position of the first closing bracket without an opening one in `address`, or its length."""
    open_brackets: list[str] = []
    for place, character in enumerate(address):
        if character in _CLOSERS.values():
            open_brackets.append(character)
        elif character in _CLOSERS:
            if _CLOSERS[character] not in open_brackets:
                return place
            open_brackets.remove(_CLOSERS[character])
    return len(address)
