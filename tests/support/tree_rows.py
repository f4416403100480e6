"""Rows of search trees, as the nodes of judge mode write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

HOSTILE = '<script>alert("1")</script> & ](#x) 《龙井》\u202e\x07'


def row(number: int, parent: int = 0, *, depth: int = 0, status: str = "done", **more: Any) -> dict[str, Any]:
    """Return a row of node `number` for its passage `p{number}`, or with `passage=""` for the node alone."""
    return {
        "run": "r",
        "node": f"n{number}",
        "parent": f"n{parent}" if parent else "",
        "completes": f"p{parent}" if parent else "",
        "depth": depth,
        "status": status,
        "same_as": "",
        "question": HOSTILE,
        "answered": False,
        "answer": "",
        "checkpoint": "",
        "calls": 1,
        "ms": 3.0,
        "passage": f"p{number}",
        "score": 1,
        "missing": HOSTILE,
        "reason": HOSTILE,
        "quote": HOSTILE,
        "worth": 0.0,
        "by": "model",
        "url": "https://example.org/a",
        "url_hash": "h",
        "title": HOSTILE,
        "start": 0,
        "end": 9,
        **more,
    }


def five() -> list[dict[str, Any]]:
    """Return a root with a child for each of two passages, one linked to a grandchild, and a refused node."""
    return [
        row(1, answered=True),
        row(1, passage="q", score=0),
        row(2, 1, depth=1, answered=True),
        row(3, 1, depth=1, status="linked", same_as="n4", passage="", completes="q"),
        row(4, 2, depth=2, answered=True, score=2),
        row(5, 2, depth=2, status="refused", same_as="n1", passage=""),
    ]


def twelve() -> Sequence[dict[str, Any]]:
    """Return a root with three children, two below each, and two at the bottom, one cut off and one failed."""
    below = [row(at, 1, depth=1) for at in (2, 3, 4)]
    deeper = [row(5 + at, 2 + at // 2, depth=2) for at in range(6)]
    last = [row(11, 5, depth=3, status="cut", passage=""), row(12, 5, depth=3, status="failed", passage="")]
    return [row(1), *below, *deeper, *last]
