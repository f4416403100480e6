"""The rows of a search tree as nodes, for drawing and exporting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["open", "running", "answered", "unanswered", "failed", "linked", "refused", "cut"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A question of the tree; `number` is its position in order of creation, `same_as` the number of its duplicate.

    `row` is any of its rows, for the fields they share; `judged` are the rows of its passages, best first. `completes`
    is the title of the passage whose gap it asks about, empty at the root.
    """

    number: int
    depth: int
    question: str
    state: State
    row: Row
    same_as: int = 0
    parent: int = 0
    completes: str = ""
    judged: Sequence[Row] = field(default=())


def nodes_of(rows: Iterable[Row]) -> list[TreeNode]:
    """Return the nodes, each followed by the questions about gaps in its passages."""
    by_node: dict[str, list[Row]] = {}
    for row in rows:
        by_node.setdefault(row["node"], []).append(row)
    titles = {(at, row["passage"]): row["title"] or row["url"] for at, group in by_node.items() for row in group}
    below: dict[str, list[TreeNode]] = {}
    for group in by_node.values():
        row = group[0]
        outcome: State = "answered" if row["answered"] else "unanswered"
        node = TreeNode(
            _number(row["node"]),
            row["depth"],
            row["question"],
            outcome if row["status"] == "done" else row["status"],
            row,
            _number(row["same_as"]),
            _number(row["parent"]),
            titles.get((row["parent"], row["completes"]), ""),
            [other for other in group if other["passage"]],
        )
        below.setdefault(row["parent"], []).append(node)
    return list(_walk("", below))


def _walk(parent: str, below: Mapping[str, Sequence[TreeNode]]) -> Iterable[TreeNode]:
    for node in below.get(parent, ()):
        yield node
        yield from _walk(node.row["node"], below)


def _number(node: str) -> int:
    return int(node[1:] or 0)
