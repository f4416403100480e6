"""A message taken apart: the addresses in it, and the words around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from rag.ingest.paste import located_urls
from rag.routing.features import ADDRESS, SITE, only_saves

_WORD: Final = re.compile(r"\w")
_AROUND: Final = (
    " \t\r\n,;:|<>()[]\"'\u2018\u2019\u201c\u201d\uff0c\u3001\uff1b\uff1a\uff08\uff09\u3010\u3011\u300a\u300b"
)
_PASTED: Final = 300  # characters from which on a text is worth keeping
_HEAD: Final = re.compile(r"\s*+(?P<head>[^\n:：]{2,200})(?:[:：]|\n)")
_HEAD_END: Final = re.compile(r"[,，.。;；]")


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


def pasted(text: str) -> tuple[str, str]:
    """A wish to save what stands below or behind it, and that text; the whole message and nothing for any other."""
    first = _HEAD.match(text)
    body = text[first.end() :].strip() if first else ""
    if first is None or len(body) < _PASTED or not only_saves(_HEAD_END.split(first["head"])[0]):
        return text, ""
    return first["head"], body


def _is_site(address: str) -> bool:
    parts = urlsplit(address)
    return parts.path in ("", "/") and not parts.query
