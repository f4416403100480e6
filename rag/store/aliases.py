"""The other addresses of a page, which lead to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

_ALIASES = 500
_ALIAS_BYTES = 100_000  # a record's row in an exported file is read up to 256 KB


def alias_hash(address: str) -> str:
    """The url_hash of an alias, which is spelled as its key already (`rag.web.url_key`)."""
    return hashlib.md5(address.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def joined_aliases(before: Iterable[str], seen: Iterable[str]) -> tuple[str, ...]:
    """The aliases that a page has, those seen last at the end; of too many the newest stay.

    An address that leads somewhere else at every look would make them grow without end.
    """
    fresh = dict.fromkeys(seen)
    every = [*(one for one in dict.fromkeys(before) if one not in fresh), *fresh]
    kept: list[str] = []
    room = _ALIAS_BYTES
    for address in reversed(every[-_ALIASES:]):
        room -= len(json.dumps(address)) + 1
        if room < 0:
            break
        kept.append(address)
    return tuple(reversed(kept))
