"""The tree of a run as values: what answers a node, what is asked next, what a person changes of it. Nothing is I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from rag.graphs.judge.state import JudgementRecord, Limits, NodeRecord
from rag.runs.options import TreeOrder

Row = dict[str, Any]

_ASKED_ELSEWHERE: Final = ("linked", "refused")
_CURIOSITY: Final = 0.5
"""What a node that was little looked below counts beside one that is promising (the constant of UCB)."""

Same = Callable[[str, Sequence[str]], int]
"""The place, among questions, of one that asks the same as the first argument; -1 for none."""


def answers(nodes: Sequence[NodeRecord]) -> dict[str, list[tuple[str, JudgementRecord]]]:
    """What answers each node that is answered: its 2s, or its 1s that were completed, each followed by what does.

    Each is a node's id and a judgement. A question that links to one above it completes nothing.
    """
    found: dict[str, list[tuple[str, JudgementRecord]]] = {}
    below = _children(nodes)
    while True:
        new = {
            node["id"]: steps
            for node in nodes
            if node["id"] not in found and (steps := _answer(node, below.get(node["id"], ()), found))
        }
        if not new:
            return found
        found.update(new)


def _answer(
    node: NodeRecord, children: Sequence[NodeRecord], found: Mapping[str, list[tuple[str, JudgementRecord]]]
) -> list[tuple[str, JudgementRecord]]:
    if twos := [(node["id"], one) for one in node.get("judgements", ()) if one["score"] == 2]:
        return twos
    steps: list[tuple[str, JudgementRecord]] = []
    for one in node.get("judgements", ()):
        for child in children if one["score"] == 1 else ():
            if child["passage"] == one["passage"] and (own := found.get(child.get("same_as") or child["id"])):
                steps += [(node["id"], one), *own]
    return steps


def _children(nodes: Sequence[NodeRecord]) -> dict[str, list[NodeRecord]]:
    below: dict[str, list[NodeRecord]] = {}
    for node in nodes:
        below.setdefault(node["parent"], []).append(node)
    return below


def grow(nodes: Sequence[NodeRecord], limits: Limits, same: Same) -> list[NodeRecord]:
    """The nodes with a child for each passage that lacks something, at most `width` a node and `nodes` in all.

    What an ancestor asks is refused; what another node asks is linked to it, and not asked again.
    """
    tree = list(nodes)
    for at, node in enumerate(nodes):
        lacking = _lacking(node, limits)
        if not lacking and node["status"] != "done":
            continue
        tree[at] = {**node, "expanded": True}
        for one in lacking:
            if sum(other["status"] not in _ASKED_ELSEWHERE for other in tree) < limits.nodes:
                tree.append(_child(one, node, tree, same))
    return tree


def _lacking(node: NodeRecord, limits: Limits) -> list[JudgementRecord]:
    """The 1s of a node that nothing answers by itself, the most promising first."""
    judged = node.get("judgements", ())
    if node["status"] != "done" or node.get("expanded") or node["depth"] >= limits.depth:
        return []
    if any(one["score"] == 2 for one in judged):
        return []
    ones = [one for one in judged if one["score"] == 1 and one["missing"]]
    return sorted(ones, key=lambda one: -one["worth"])[: limits.width]


def _child(one: JudgementRecord, parent: NodeRecord, tree: Sequence[NodeRecord], same: Same) -> NodeRecord:
    child: NodeRecord = {
        "id": f"n{1 + max(int(node['id'][1:]) for node in tree)}",
        "parent": parent["id"],
        "passage": one["passage"],
        "question": one["missing"],
        "depth": parent["depth"] + 1,
        "worth": one["worth"] * parent["worth"],
        "status": "open",
        "same_as": "",
    }
    asked = [node for node in tree if node["status"] not in _ASKED_ELSEWHERE]
    place = same(child["question"], [node["question"] for node in asked])
    if place < 0:
        return child
    twin = asked[place]["id"]
    return {**child, "status": "refused" if twin in _above(child, tree) else "linked", "same_as": twin}


def _above(node: NodeRecord, tree: Sequence[NodeRecord]) -> set[str]:
    parents = {one["id"]: one["parent"] for one in tree}
    above, at = set[str](), node["parent"]
    while at:
        above.add(at)
        at = parents.get(at, "")
    return above


def next_levels(nodes: Sequence[NodeRecord], order: TreeOrder, most: int) -> list[NodeRecord]:
    """The open nodes to search now: all of the uppermost depth, or those that promise most."""
    waiting = [node for node in nodes if node["status"] == "open"]
    if order == "best":
        return sorted(waiting, key=lambda node: -_bound(node, nodes))[: min(most, 2)]
    depth = min((node["depth"] for node in waiting), default=0)
    return sorted((node for node in waiting if node["depth"] == depth), key=lambda node: -node["worth"])[:most]


def _bound(node: NodeRecord, nodes: Sequence[NodeRecord]) -> float:
    """The upper confidence bound of a node (UCB1 of Auer et al. 2002, as in UCT): its promise, and how little was seen.

    Its promise is the mean of its own worth and of the best score that was found below its parent.
    """
    searched = [one for one in nodes if one["status"] == "done"]
    beside = [one for one in searched if one["parent"] == node["parent"] and one["parent"]]
    best = max((one["score"] / 2 for twin in beside for one in twin.get("judgements", ())), default=0.5)
    seen = math.sqrt(math.log(1 + len(searched)) / (1 + len(beside)))
    return (node["worth"] + best) / 2 + _CURIOSITY * seen


def branch(nodes: Sequence[NodeRecord], change: Mapping[str, Any]) -> list[NodeRecord]:
    """An earlier tree with what a person changes at one node, of which all that was asked below is asked anew.

    `node` is its id; `question` another question for it; `verdicts` {passage: {score, missing}} what the person says
    of passages; `without` passages that are left out. What was cut off may be searched now.
    """
    at = str(change.get("node", "n1"))
    gone = {node["id"] for node in nodes if at in _above(node, nodes)}
    kept: list[NodeRecord] = []
    for node in nodes:
        if node["id"] in gone:
            continue
        if node["id"] == at:
            node = _apply_change(node, change)
        elif node["status"] in ("cut", "running") or node.get("same_as") in gone | {at}:
            node = {**node, "status": "open", "same_as": ""}
        kept.append(node)
    return kept


def _apply_change(node: NodeRecord, change: Mapping[str, Any]) -> NodeRecord:
    question = " ".join(str(change.get("question", "")).split())
    if question and question != node["question"]:
        bare: NodeRecord = {**node, "question": question, "status": "open", "found": [], "judgements": []}
        return {**bare, "expanded": False, "same_as": ""}
    said, without = change.get("verdicts", {}), set(change.get("without", ()))
    judged = [one for one in node.get("judgements", ()) if one["passage"] not in without]
    own = [_overrule(one, said.get(one["passage"]), node["question"]) for one in judged]
    status = "open" if node["status"] in ("cut", "failed", "running") else node["status"]
    return {**node, "judgements": own, "expanded": False, "status": status}


def _overrule(one: JudgementRecord, said: Mapping[str, Any] | None, question: str) -> JudgementRecord:
    if not said or (said.get("score") == one["score"] and not said.get("missing")):
        return one
    missing = (" ".join(str(said.get("missing", "")).split()) or one["missing"] or question) * (said["score"] == 1)
    return {**one, "score": said["score"], "missing": missing, "by": "person", "worth": 1.0}


def rows_of(run: str, nodes: Sequence[NodeRecord], ledger: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """A row for each judgement, and for each node that has none, as they are kept, drawn and exported."""
    found = answers(nodes)
    for node in nodes:
        quotes = dict.fromkeys(one["quote"] for _, one in found.get(node["id"], ()) if one["quote"])
        own = {
            "run": run,
            "node": node["id"],
            "parent": node["parent"],
            "completes": node["passage"],
            "depth": node["depth"],
            "status": node["status"],
            "same_as": node.get("same_as", ""),
            "question": node["question"],
            "answered": node["id"] in found,
            "answer": " ".join(quotes),
            "checkpoint": node.get("checkpoint", ""),
            "calls": node.get("calls", 0),
            "ms": node.get("ms", 0.0),
        }
        for one in node.get("judgements") or [_NONE]:
            kept = ledger.get(one["passage"], {})
            place = {key: kept.get(key, "") for key in ("url", "url_hash", "title", "start", "end")}
            yield {**own, **one, **place}


_NONE: Final[JudgementRecord] = {
    "passage": "",
    "score": 0,
    "missing": "",
    "reason": "",
    "quote": "",
    "worth": 0.0,
    "by": "rules",
}
