"""What the nodes of any mode keep in a state, which holds plain data alone, and how an answer is read from it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from rag.types import Citation, Notice, Statement


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
