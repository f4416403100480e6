"""A message taken apart, the addresses in it and the words around them, and the ways that it can go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from rag.ingest.paste import located_urls
from rag.types import Notice
from rag.web.url_key import split_url

Route = Literal[
    "ask",
    "save",
    "save_then_ask",
    "remove",
    "summarise",
    "what_changed",
    "statistics",
    "calculate",
    "date",
    "web",
    "small_talk",
    "unknown",
]
RouteBy = Literal["rules", "classifier", "model", "person"]
ROUTES: Final[tuple[Route, ...]] = get_args(Route)


@dataclass(frozen=True, slots=True)
class Routed:
    """The route of a message, who chose it and why, and how sure (0 to 1) that is."""

    route: Route
    by: RouteBy
    reason: Notice
    confidence: float = 1.0
    addresses: tuple[str, ...] = ()
    rest: str = ""


ADDRESS: Final = "\u27e8url\u27e9"
SITE: Final = "\u27e8site\u27e9"
"""What stands in a message in the place of an address."""
_WORD: Final = re.compile(r"\w")
_AROUND: Final = (
    " \t\r\n,;:|<>()[]\"'\u2018\u2019\u201c\u201d\uff0c\u3001\uff1b\uff1a\uff08\uff09\u3010\u3011\u300a\u300b"
)


@dataclass(frozen=True, slots=True)
class Message:
    """`addresses` as they are to be fetched, `words` what stands around them, and `masked` the text with a sign in
    the place of each. `attached` says that files came with it.
    """

    text: str
    addresses: tuple[str, ...]
    words: str
    masked: str
    attached: bool = False

    @property
    def only_sites(self) -> bool:
        """Whether what it names are sites rather than pages of them."""
        return bool(self.addresses) and all(_is_site(address) for address in self.addresses)

    @property
    def wordless(self) -> bool:
        return not _WORD.search(self.words)


def read_message(text: str, *, attached: bool = False) -> Message:
    found = located_urls(text)
    words, masked, end = [], [], 0
    for start, stop, address in found:
        words.append(text[end:start])
        masked += [text[end:start], f" {SITE if _is_site(address) else ADDRESS} "]
        end = stop
    rest = " ".join(part.strip(_AROUND) for part in (*words, text[end:]))
    addresses = tuple(dict.fromkeys(address for _, _, address in found))
    return Message(text, addresses, " ".join(rest.split()), "".join((*masked, text[end:])), attached)


def _is_site(address: str) -> bool:
    parts = split_url(address)
    return parts.path in ("", "/") and not parts.query
