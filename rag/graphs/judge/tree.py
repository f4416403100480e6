"""The question tree of a run: its state as plain data, its answers, its next questions, and the user's changes. No I/O.

Reducers merge the results of parallel branches. The graph has three states: the tree, a level of it, and a request to
judge passages of a level.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from rag.graphs.common import ConversationState, blank_fields, merge_by_id, merge_values
from rag.reasoning.judge import Judgement, Score
from rag.runs.run import NoticeRecord, TreeOrder, merge_readings, passage_of

Status = Literal["open", "running", "done", "failed", "linked", "refused", "cut"]
_Row = dict[str, Any]
_NOT_SEARCHED: Final = ("linked", "refused")
_EXPLORATION: Final = 0.5
"""Weight of exploration, of nodes with few searched siblings, against promise (the constant of UCB)."""

FindEquivalent = Callable[[str, Sequence[str]], int]
"""A function that returns the index of the question equivalent to the first argument, or -1."""


# Limits of a tree

MAX_DEPTH: Final = 3
"""Depth of the last questions; that of the user's has depth 0."""
MAX_WIDTH: Final = 3
"""Maximum number of passages of a level that lead to further questions."""
MAX_NODES: Final = 12


class JudgementRecord(TypedDict):
    """A `Judgement` as plain data; `passage` is a key of the ledger, `by` is who judged."""

    passage: str
    score: Score
    missing: str
    reason: str
    quote: str
    worth: float
    by: Literal["model", "rules", "person"]


class NodeRecord(TypedDict, total=False):
    """A level: a question about the gap in its parent's `passage`, with its search results and judgements.

    `same_as` is the node with an equivalent question; `worth` is how promising it is; `found` are keys of the ledger,
    best first. `expanded` is whether its gaps have been followed up. `checkpoint` is the namespace of its state.
    """

    id: str
    parent: str
    passage: str
    question: str
    depth: int
    worth: float
    status: Status
    same_as: str
    found: list[str]
    judgements: list[JudgementRecord]
    expanded: bool
    failure: NoticeRecord
    checkpoint: str
    calls: int
    ms: float


def _merge_ledgers(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Merge two ledgers; a passage that two searches found has the text that both read."""
    return merge_values(old, new, lambda one, other: asdict(merge_readings(passage_of(one), passage_of(other))))


_Nodes = Annotated[list[NodeRecord], merge_by_id]
_Ledger = Annotated[dict[str, dict[str, Any]], _merge_ledgers]
_Notes = Annotated[list[NoticeRecord], operator.add]


class TreeState(ConversationState, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets.

    `begun` has the nodes and the ledger of an earlier tree that this one continues. `stop` is why no more levels start,
    as a notice; `checkpoint` is the id of the checkpoint with the whole tree.
    """

    begun: dict[str, Any]
    nodes: _Nodes
    ledger: _Ledger
    searches: Annotated[int, operator.add]
    notes: _Notes
    stop: NoticeRecord | None
    spent: dict[str, float]
    checkpoint: str
    passages: list[dict[str, Any]]


class LevelOutput(TypedDict, total=False):
    nodes: _Nodes
    ledger: _Ledger
    searches: Annotated[int, operator.add]
    notes: _Notes


class LevelState(LevelOutput, total=False):
    """One level: its node, the `whole` question, its limit of calls, its passages, and the verdicts so far."""

    node: NodeRecord
    whole: str
    allowed: int
    passages: list[dict[str, Any]]
    verdicts: Annotated[list[JudgementRecord], operator.add]
    calls: Annotated[int, operator.add]
    ms: Annotated[float, operator.add]


class JudgeInput(TypedDict):
    """Passages of a level that are judged in one request."""

    node: NodeRecord
    whole: str
    allowed: int
    passages: list[dict[str, Any]]


def blank_state(question: str, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial fields of a question, with the nodes and ledger of an earlier tree, if any."""
    root: NodeRecord = {"id": "n1", "parent": "", "passage": "", "depth": 0, "worth": 1.0, "status": "open"}
    nodes = earlier.get("nodes") or [{**root, "question": ""}]
    return {
        **blank_fields(question),
        "begun": {},
        "nodes": Overwrite(nodes),
        "ledger": Overwrite(earlier.get("ledger", {})),
        "searches": Overwrite(0),
        "notes": Overwrite([]),
        "stop": None,
        "spent": {},
        "checkpoint": "",
        "passages": [],
    }


def find_answers(nodes: Sequence[NodeRecord]) -> dict[str, list[tuple[str, JudgementRecord]]]:
    """Return the evidence for each answered node: its 2s, or its 1s with a filled gap, each followed by what fills it.

    Evidence is pairs of a node id and a judgement. A question that links to an ancestor fills no gap.
    """
    answered: dict[str, list[tuple[str, JudgementRecord]]] = {}
    children: dict[str, list[NodeRecord]] = {}
    for node in nodes:
        children.setdefault(node["parent"], []).append(node)
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


def grow(nodes: Sequence[NodeRecord], find_equivalent: FindEquivalent) -> list[NodeRecord]:
    """Return the nodes with a child for each passage that has a gap, up to `MAX_WIDTH` per node and `MAX_NODES` in all.

    A question that an ancestor asks is refused; one that another node asks is linked to it and not searched again.
    """
    tree = list(nodes)
    for at, node in enumerate(nodes):
        gaps = _find_gaps(node)
        if not gaps and node["status"] != "done":
            continue
        tree[at] = {**node, "expanded": True}
        for gap in gaps:
            if sum(other["status"] not in _NOT_SEARCHED for other in tree) < MAX_NODES:
                tree.append(_make_child(gap, node, tree, find_equivalent))
    return tree


def _find_gaps(node: NodeRecord) -> list[JudgementRecord]:
    """Return the 1s of a node without a complete answer, the most promising first."""
    judgements = node.get("judgements", ())
    if node["status"] != "done" or node.get("expanded") or node["depth"] >= MAX_DEPTH:
        return []
    if any(judgement["score"] == 2 for judgement in judgements):
        return []
    ones = [judgement for judgement in judgements if judgement["score"] == 1 and judgement["missing"]]
    return sorted(ones, key=lambda one: -one["worth"])[:MAX_WIDTH]


def _make_child(
    judgement: JudgementRecord, parent: NodeRecord, tree: Sequence[NodeRecord], find_equivalent: FindEquivalent
) -> NodeRecord:
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
    searched = [node for node in tree if node["status"] not in _NOT_SEARCHED]
    place = find_equivalent(child["question"], [node["question"] for node in searched])
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
    """Return up to `limit` open nodes to search now: those of the smallest depth, or the two most promising."""
    waiting = [node for node in nodes if node["status"] == "open"]
    if order == "best":
        return sorted(waiting, key=lambda node: -_confidence_bound(node, nodes))[: min(limit, 2)]
    depth = min((node["depth"] for node in waiting), default=0)
    return sorted((node for node in waiting if node["depth"] == depth), key=lambda node: -node["worth"])[:limit]


def _confidence_bound(node: NodeRecord, nodes: Sequence[NodeRecord]) -> float:
    """Return the upper confidence bound of a node (UCB1 of Auer et al. 2002, as in UCT): its promise plus a bonus.

    The promise is the mean of its worth and its searched siblings' best score; the fewer these are, the larger the
    bonus.
    """
    searched = [node for node in nodes if node["status"] == "done"]
    siblings = [one for one in searched if one["parent"] == node["parent"] and one["parent"]]
    best = max((judgement["score"] / 2 for twin in siblings for judgement in twin.get("judgements", ())), default=0.5)
    bonus = math.sqrt(math.log(1 + len(searched)) / (1 + len(siblings)))
    return (node["worth"] + best) / 2 + _EXPLORATION * bonus


def branch(nodes: Sequence[NodeRecord], change: Mapping[str, Any]) -> list[NodeRecord]:
    """Return an earlier tree with the user's changes to one node, without the nodes below it, which are asked again.

    `change` has the `node` id and may have another `question`, the user's `verdicts` {passage: {score, missing}}, and
    passages to exclude (`without`). Levels that were cut, interrupted or linked to a removed one become open.
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


def rows_of(run: str, nodes: Sequence[NodeRecord], ledger: Mapping[str, Mapping[str, Any]]) -> Iterator[_Row]:
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


_NO_JUDGEMENT: Final[Any] = {"passage": "", **asdict(Judgement(0)), "by": "rules"}
