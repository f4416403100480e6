"""What the nodes of any mode keep in a state, which holds plain data alone, and how an answer is read from it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from rag.retrieval.context import joined
from rag.types import Citation, Notice, Passage, Statement


class NoticeRecord(TypedDict):
    code: str
    params: dict[str, Any]


def record(notice: Notice) -> NoticeRecord:
    return {"code": notice.code, "params": dict(notice.params)}


def notice_of(kept: NoticeRecord | None) -> Notice | None:
    return Notice(kept["code"], kept["params"]) if kept else None


def decided(decision: str, **detail: Any) -> dict[str, Any]:
    """What a step decided, for the trace."""
    return {"decision": decision, **detail}


def citations_of(state: Mapping[str, Any]) -> tuple[Citation, ...]:
    return tuple(Citation(**{**kept, "section": tuple(kept["section"])}) for kept in state.get("citations", ()))


def statements_of(state: Mapping[str, Any]) -> tuple[Statement, ...]:
    return tuple(Statement(**{**kept, "marks": tuple(kept["marks"])}) for kept in state.get("statements", ()))


def passage_of(kept: Mapping[str, Any]) -> Passage:
    parent = kept.get("parent")
    return Passage(**{**kept, "section": tuple(kept["section"]), "parent": tuple(parent) if parent else None})


def whole_of(one: Passage, other: Passage) -> Passage:
    """All that two searches read of a passage; what the first read where that is not in one piece."""
    apart = one.end < other.start - len(other.lead) or other.end < one.start - len(one.lead)
    return one if apart or (one.start <= other.start and other.end <= one.end) else joined(one, other)
