"""What an earlier report was written from, read again for the questions that follow on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag.retrieval.ensemble import Reading
from rag.runs.kept import revive
from rag.types import Passage


def kept_passages(kept: Sequence[Mapping[str, Any]], library: Reading) -> list[Passage]:
    """The passages of a trail's ledger: those of the web as they were kept, the library's from its pages.

    What the library does not hold any more, or in another text, is left out.
    """
    beyond = [_from_web(one) for one in kept if one.get("passage")]
    rest = {str(one["id"]): one for one in kept if not one.get("passage")}
    found = library.passages(list(rest))
    texts = library.texts(list({one.url_hash for one in found}))
    return [*beyond, *(_whole(one, rest[one.id], texts) for one in found)]


def _from_web(entry: Mapping[str, Any]) -> Passage:
    return replace(revive(Passage, entry["passage"]), fetched_at=str(entry["fetched_at"]), ranks={}, scores={})


def _whole(passage: Passage, entry: Mapping[str, Any], texts: Mapping[str, str]) -> Passage:
    """The passage as far as the report read it, which may be more than the part that was found first."""
    start, end = min(passage.start, int(entry["start"])), max(passage.end, int(entry["end"]))
    text = texts.get(passage.url_hash, "")
    return replace(passage, text=text[start:end], start=start, end=end) if len(text) >= end else passage
