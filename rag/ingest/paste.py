"""Addresses in pasted text, however they were written down there."""

from __future__ import annotations

import html
import re

from rag.web.media import ENDINGS
from rag.web.url_key import url_key

MAX_URLS = 200
_MAX_TEXT = 1_000_000
_MAX_ADDRESS = 4096

# What no address holds unescaped: white space, quotes, angle brackets, the punctuation of Chinese text.
_END = (
    '\\s<>"`\u00ab\u00bb\u2018\u2019\u201c\u201d\u2026\u3001\u3002\u3008-\u3011\u3014-\u301b'
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d"
)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_BARE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?::[0-9]{1,5})?"
_SCHEME = "[A-Za-z][A-Za-z0-9+-]{1,15}:"
# What is meant as an address and is none, in a text or on a line of its own, is found too: its row says so.
_CANDIDATE = re.compile(
    rf"(?P<full>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{{1,15}}://[^{_END}]{{1,{_MAX_ADDRESS}}})"
    rf"|(?P<slip>(?<![\w@.:-]){_SCHEME}/(?!/)[^{_END}]{{1,{_MAX_ADDRESS}}})"
    rf"|(?P<alone>^{_SCHEME}(?!//)[!-~]{{1,{_MAX_ADDRESS}}}(?=\r?$))"
    rf"|(?P<bare>(?<![\w@/.:%+-]){_BARE}(?![\w@])(?:[/?#][^{_END}]{{0,{_MAX_ADDRESS}}})?)"
    rf"|(?P<glued>(?<=[{_CJK}]){_BARE}(?![A-Za-z0-9@])(?:[/?#][^{_END}]{{0,{_MAX_ADDRESS}}})?)",
    re.MULTILINE,
)
# Where one address is stuck to the next; after "=" or "/" it belongs to the first (archives, redirects).
# A run of marks is looked at from its first one only, or a long one would take its length squared.
_NEXT = re.compile(r"(?<![=/%&])(?:(?<![,;|])|(?<=[=/%&][,;|]))[,;|]*+(?=https?://)", re.IGNORECASE)
_TRAILING = ".,;:!?'*~|(&[{"
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_STUCK_TEXT = re.compile(rf"(?<=[A-Za-z0-9])[{_CJK}]")
_TITLED_BY_PATH = re.compile(
    r"/(?:wiki|item|tags?|topic|search|zh|zh-(?:cn|tw|hans|hant))/[^/?#]*$|[?&#]", re.IGNORECASE
)
_USUAL = (
    "com|org|net|edu|gov|mil|int|info|io|ai|dev|app|co|cn|hk|tw|jp|kr|sg|uk|us|eu|de|fr|es|it|nl|se|no|fi|ch|at|be"
    "|ru|ua|br|in|au|ca|nz|tv|me|blog|wiki|site|online|tech|cloud|news|xyz|top|page|example"
)
_FILE = "|".join(ending.lstrip(".") for ending in ENDINGS) + (
    "|php|py|js|ts|css|jsonl?|xml|ya?ml|toml|doc|ppt|png|jpe?g|gif|svg|zip|gz|exe|sh|bat|log|ini|cfg|lock"
)
_USUAL_DOMAIN = re.compile(rf"(?:www\.\S+|\S+\.(?:{_USUAL}))(?::[0-9]+)?", re.IGNORECASE)
_FILE_NAME = re.compile(rf"\S+\.(?:{_FILE})", re.IGNORECASE)
# A list of bare domains with nothing but a mark between them.
_NEXT_DOMAIN = re.compile(
    rf"(?<![,;|])[,;|]++(?=(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_USUAL})(?:[/?#:,;|]|$))", re.IGNORECASE
)


def find_urls(pasted: str, limit: int | None = MAX_URLS) -> tuple[list[str], int]:
    """The addresses in `pasted` in order, each page once, and how many more there were past `limit`.

    Without a limit the whole of a text is read, else its first million characters.

    A bare domain gets `https://`. Other schemes and slips such as `htp:/…` are found too, so that the guard can say
    why it refuses them.
    """
    found: dict[str, str] = {}
    for match in _CANDIDATE.finditer(pasted if limit is None else pasted[:_MAX_TEXT]):
        for address in _addresses(match):
            found.setdefault(url_key(address), address)
    urls = list(found.values())
    return urls[:limit], max(0, len(urls) - (limit or len(urls)))


def located_urls(text: str) -> list[tuple[int, int, str]]:
    """The web addresses in a short text, and from where to where each stands there as it is written."""
    found = []
    for match in _CANDIDATE.finditer(text[:_MAX_TEXT]):
        end = match.start()
        for address in _addresses(match):
            written = address if address in match.group() else address.partition("://")[2]
            start = max(end, text.find(written, end, match.end()))
            if address.lower().startswith(("http://", "https://")):
                end = start + len(written) if text.startswith(written, start) else match.end()
                found.append((start, end, address))
    return found


def _addresses(match: re.Match[str]) -> list[str]:
    if match["alone"]:
        return [match["alone"]]
    if match["slip"]:
        return [_trimmed(match["slip"], match.string[match.start() - 1 : match.start()] == "'")]
    if match["full"]:
        whole = html.unescape(match["full"]) if "&amp;" in match["full"] else match["full"]
        quote = match.string[match.start() - 1 : match.start()] == "'"
        pieces = [part for piece in _NEXT.split(whole) for part in _NEXT_DOMAIN.split(piece)]
        return [address for piece in pieces if (address := _completed(_trimmed(piece, quote)))]
    pieces = _NEXT_DOMAIN.split(match["bare"] or match["glued"])
    return [address for piece in pieces if (address := _completed(_trimmed(piece, False)))]


def _completed(address: str) -> str:
    """`address` with a scheme, or nothing when it is no address."""
    if "://" in address[:20]:
        return address if address.partition("://")[2] else ""
    return f"https://{address}" if _is_domain(address) else ""


def _trimmed(address: str, quoted: bool) -> str:
    """`address` without what the sentence around it added: text stuck to it, brackets, punctuation."""
    if quoted:
        address = address.partition("'")[0]
    address = _without_stuck_text(address)
    address = address[: _first_unmatched(address)]
    return address.rstrip(_TRAILING)


def _first_unmatched(address: str) -> int:
    """Where the first bracket closes that was not opened within the address, or its end."""
    open_brackets: list[str] = []
    for place, character in enumerate(address):
        if character in _CLOSERS.values():
            open_brackets.append(character)
        elif character in _CLOSERS:
            if _CLOSERS[character] not in open_brackets:
                return place
            open_brackets.remove(_CLOSERS[character])
    return len(address)


def _without_stuck_text(address: str) -> str:
    """Cut where Chinese follows Latin: text usually, but not in titles (`/wiki/C语言`) and queries."""
    for match in _STUCK_TEXT.finditer(address):
        if not _TITLED_BY_PATH.search(address[: match.start()]):
            return address[: match.start()]
    return address


def _is_domain(address: str) -> bool:
    """Whether a text with dots is meant as an address: its ending is a usual one, or a path follows."""
    host, slash, _ = re.sub(r"[?#]", "/", address, count=1).partition("/")
    return bool(_USUAL_DOMAIN.fullmatch(host) or (slash and not _FILE_NAME.fullmatch(host)))
