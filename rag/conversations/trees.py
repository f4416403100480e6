"""The rows of a search tree as its nodes again, for whoever draws or exports them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["open", "running", "answered", "unanswered", "failed", "linked", "refused", "cut"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A question of the tree; `number` tells in which order they were asked, `same_as` is the number of its twin.

    `row` is any of its rows, for what they have in common; `judged` are those of its passages, best first. `completes`
    is the title of the passage that it was asked for, empty at the root.
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
    """The nodes, each followed by those that were asked for what its passages lack."""
    by_node: dict[str, list[Row]] = {}
    for row in rows:
        by_node.setdefault(row["node"], []).append(row)
    titles = {(at, row["passage"]): row["title"] or row["url"] for at, own in by_node.items() for row in own}
    below: dict[str, list[TreeNode]] = {}
    for own in by_node.values():
        below.setdefault(own[0]["parent"], []).append(_node(own, titles))
    return list(_in_order("", below))


def _in_order(parent: str, below: Mapping[str, Sequence[TreeNode]]) -> Iterable[TreeNode]:
    for node in below.get(parent, ()):
        yield node
        yield from _in_order(node.row["node"], below)


def _node(own: Sequence[Row], titles: Mapping[tuple[str, str], str]) -> TreeNode:
    row = own[0]
    done: State = "answered" if row["answered"] else "unanswered"
    return TreeNode(
        _number(row["node"]),
        row["depth"],
        row["question"],
        done if row["status"] == "done" else row["status"],
        row,
        _number(row["same_as"]),
        _number(row["parent"]),
        titles.get((row["parent"], row["completes"]), ""),
        [one for one in own if one["passage"]],
    )


def _number(node: str) -> int:
    return int(node[1:] or 0)
