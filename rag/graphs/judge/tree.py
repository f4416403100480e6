"""The tree of a run as values: what answers a node, what is asked next, and a person's changes. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from rag.graphs.judge.state import JudgementRecord, Limits, NodeRecord
from rag.runs.options import TreeOrder

Row = dict[str, Any]

_ASKED_ELSEWHERE: Final = ("linked", "refused")
_CURIOSITY: Final = 0.5
"""Weight of exploring nodes with few searches nearby, against promising ones (the constant of UCB)."""

Same = Callable[[str, Sequence[str]], int]
"""Returns the index, among questions, of one that asks the same as the first argument; -1 for none."""


def find_answers(nodes: Sequence[NodeRecord]) -> dict[str, list[tuple[str, JudgementRecord]]]:
    """Return what answers each answered node: its 2s, or its 1s whose gaps are filled, each followed by what fills it.

    Each is a node's id and a judgement. A question that links to one above it fills no gap.
    """
    answered: dict[str, list[tuple[str, JudgementRecord]]] = {}
    children = _children_by_parent(nodes)
    while True:
        new = {
            node["id"]: steps
            for node in nodes
            if node["id"] not in answered and (steps := _find_answer(node, children.get(node["id"], ()), answered))
        }
        if not new:
            return answered
        answered.update(new)


def _find_answer(
    node: NodeRecord, children: Sequence[NodeRecord], answered: Mapping[str, list[tuple[str, JudgementRecord]]]
) -> list[tuple[str, JudgementRecord]]:
    if twos := [(node["id"], judgement) for judgement in node.get("judgements", ()) if judgement["score"] == 2]:
        return twos
    steps: list[tuple[str, JudgementRecord]] = []
    for one in node.get("judgements", ()):
        for child in children if one["score"] == 1 else ():
            if child["passage"] == one["passage"] and (rest := answered.get(child.get("same_as") or child["id"])):
                steps += [(node["id"], one), *rest]
    return steps


def _children_by_parent(nodes: Sequence[NodeRecord]) -> dict[str, list[NodeRecord]]:
    children: dict[str, list[NodeRecord]] = {}
    for node in nodes:
        children.setdefault(node["parent"], []).append(node)
    return children


def grow(nodes: Sequence[NodeRecord], limits: Limits, same: Same) -> list[NodeRecord]:
    """Return the nodes with a child for each passage that has a gap, up to `width` a node and `nodes` in total.

    A question of an ancestor is refused; one of another node is linked to it, and not asked again.
    """
    tree = list(nodes)
    for at, node in enumerate(nodes):
        gaps = _find_gaps(node, limits)
        if not gaps and node["status"] != "done":
            continue
        tree[at] = {**node, "expanded": True}
        for gap in gaps:
            if sum(other["status"] not in _ASKED_ELSEWHERE for other in tree) < limits.nodes:
                tree.append(_make_child(gap, node, tree, same))
    return tree


def _find_gaps(node: NodeRecord, limits: Limits) -> list[JudgementRecord]:
    """Return the 1s of a node without a complete answer, the most promising first."""
    judgements = node.get("judgements", ())
    if node["status"] != "done" or node.get("expanded") or node["depth"] >= limits.depth:
        return []
    if any(judgement["score"] == 2 for judgement in judgements):
        return []
    ones = [judgement for judgement in judgements if judgement["score"] == 1 and judgement["missing"]]
    return sorted(ones, key=lambda one: -one["worth"])[: limits.width]


def _make_child(judgement: JudgementRecord, parent: NodeRecord, tree: Sequence[NodeRecord], same: Same) -> NodeRecord:
    child: NodeRecord = {
        "id": f"n{1 + max(int(node['id'][1:]) for node in tree)}",
        "parent": parent["id"],
        "passage": judgement["passage"],
        "question": judgement["missing"],
        "depth": parent["depth"] + 1,
        "worth": judgement["worth"] * parent["worth"],
        "status": "open",
        "same_as": "",
    }
    searched = [node for node in tree if node["status"] not in _ASKED_ELSEWHERE]
    place = same(child["question"], [node["question"] for node in searched])
    if place < 0:
        return child
    same_node = searched[place]["id"]
    return {**child, "status": "refused" if same_node in _ancestors(child, tree) else "linked", "same_as": same_node}


def _ancestors(node: NodeRecord, tree: Sequence[NodeRecord]) -> set[str]:
    parents = {one["id"]: one["parent"] for one in tree}
    ancestors, parent = set[str](), node["parent"]
    while parent:
        ancestors.add(parent)
        parent = parents.get(parent, "")
    return ancestors


def next_levels(nodes: Sequence[NodeRecord], order: TreeOrder, limit: int) -> list[NodeRecord]:
    """Return the open nodes to search now: all of the smallest depth, or the most promising."""
    waiting = [node for node in nodes if node["status"] == "open"]
    if order == "best":
        return sorted(waiting, key=lambda node: -_confidence_bound(node, nodes))[: min(limit, 2)]
    depth = min((node["depth"] for node in waiting), default=0)
    return sorted((node for node in waiting if node["depth"] == depth), key=lambda node: -node["worth"])[:limit]


def _confidence_bound(node: NodeRecord, nodes: Sequence[NodeRecord]) -> float:
    """Return the upper confidence bound of a node (UCB1 of Auer et al. 2002, as in UCT): its promise and a bonus.

    Its promise is the mean of its worth and of the best score below its parent; fewer searches give a larger bonus.
    """
    searched = [node for node in nodes if node["status"] == "done"]
    siblings = [one for one in searched if one["parent"] == node["parent"] and one["parent"]]
    best = max((judgement["score"] / 2 for twin in siblings for judgement in twin.get("judgements", ())), default=0.5)
    bonus = math.sqrt(math.log(1 + len(searched)) / (1 + len(siblings)))
    return (node["worth"] + best) / 2 + _CURIOSITY * bonus


def branch(nodes: Sequence[NodeRecord], change: Mapping[str, Any]) -> list[NodeRecord]:
    """Return an earlier tree with a person's changes at one node; everything below that node is asked again.

    `node` is its id; `question` another question for it; `verdicts` {passage: {score, missing}} the person's verdicts;
    `without` passages to exclude. Levels that had not been searched may be searched now.
    """
    at = str(change.get("node", "n1"))
    removed = {node["id"] for node in nodes if at in _ancestors(node, nodes)}
    remaining: list[NodeRecord] = []
    for node in nodes:
        if node["id"] in removed:
            continue
        if node["id"] == at:
            node = _apply_change(node, change)
        elif node["status"] in ("cut", "running") or node.get("same_as") in removed | {at}:
            node = {**node, "status": "open", "same_as": ""}
        remaining.append(node)
    return remaining


def _apply_change(node: NodeRecord, change: Mapping[str, Any]) -> NodeRecord:
    question = " ".join(str(change.get("question", "")).split())
    if question and question != node["question"]:
        reset: NodeRecord = {**node, "question": question, "status": "open", "found": [], "judgements": []}
        return {**reset, "expanded": False, "same_as": ""}
    verdicts, without = change.get("verdicts", {}), set(change.get("without", ()))
    remaining = [judgement for judgement in node.get("judgements", ()) if judgement["passage"] not in without]
    judgements = [_overrule(one, verdicts.get(one["passage"]), node["question"]) for one in remaining]
    status = "open" if node["status"] in ("cut", "failed", "running") else node["status"]
    return {**node, "judgements": judgements, "expanded": False, "status": status}


def _overrule(judgement: JudgementRecord, own: Mapping[str, Any] | None, question: str) -> JudgementRecord:
    if not own or (own.get("score") == judgement["score"] and not own.get("missing")):
        return judgement
    missing = (" ".join(str(own.get("missing", "")).split()) or judgement["missing"] or question) * (own["score"] == 1)
    return {**judgement, "score": own["score"], "missing": missing, "by": "person", "worth": 1.0}


def rows_of(run: str, nodes: Sequence[NodeRecord], ledger: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Yield a row for each judgement, and for each node without any, as stored, drawn and exported."""
    answered = find_answers(nodes)
    for node in nodes:
        quotes = dict.fromkeys(one["quote"] for _, one in answered.get(node["id"], ()) if one["quote"])
        fields = {
            "run": run,
            "node": node["id"],
            "parent": node["parent"],
            "completes": node["passage"],
            "depth": node["depth"],
            "status": node["status"],
            "same_as": node.get("same_as", ""),
            "question": node["question"],
            "answered": node["id"] in answered,
            "answer": " ".join(quotes),
            "checkpoint": node.get("checkpoint", ""),
            "calls": node.get("calls", 0),
            "ms": node.get("ms", 0.0),
        }
        for one in node.get("judgements") or [_NO_JUDGEMENT]:
            passage = ledger.get(one["passage"], {})
            place = {key: passage.get(key, "") for key in ("url", "url_hash", "title", "start", "end")}
            yield {**fields, **one, **place}


_NO_JUDGEMENT: Final[JudgementRecord] = {
    "passage": "",
    "score": 0,
    "missing": "",
    "reason": "",
    "quote": "",
    "worth": 0.0,
    "by": "rules",
}
