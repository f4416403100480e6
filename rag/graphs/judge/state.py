"""State of a run of the judge mode: plain data with reducers, so that parallel branches lose nothing.

Send passes three states: the tree, a level of it, and the judgement of a level's passages.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal

import numpy as np
from langgraph.types import Overwrite
from numpy.typing import NDArray
from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.graphs.common import Conversing, blank_fields
from rag.models.usage import CallBudget
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.judge import MAX_JUDGED, ChatJudge, RuleJudge, Score
from rag.reasoning.reasoner import Reasoner
from rag.runs.options import RunOptions
from rag.runs.serialization import NoticeRecord, merge_readings, passage_of
from rag.store.sql.conversation_table import Change
from rag.types import Passage

Status = Literal["open", "running", "done", "failed", "linked", "refused", "cut"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a tree. The question has depth 0; up to `width` passages of a level lead to further questions.

    A search returns up to `recall` runs of sentences, of which the first `judged` are judged. No level starts after
    `seconds`; `at_once` levels run in parallel.
    """

    depth: int = 3
    width: int = 3
    nodes: int = 12
    judged: int = MAX_JUDGED
    recall: int = 20
    searches_by_rules: int = 6
    seconds: float = 180.0
    at_once: int = 4
    characters: int = 8_000
    """Characters of passages for the answer."""


LIMITS: Final = Limits()


class JudgementRecord(TypedDict):
    """A `Judgement` as plain data, of the passage with this key of the ledger; `by` is who made it."""

    passage: str
    score: Score
    missing: str
    reason: str
    quote: str
    worth: float
    by: Literal["model", "rules", "person"]


class NodeRecord(TypedDict, total=False):
    """A level: a question asked for the gap in `passage` of its parent, with its search results and judgements.

    `same_as` is the node that already asked the same; `worth` is how promising it is; `found` are keys of the ledger,
    best first. `expanded` is whether its gaps were asked for. `checkpoint` is the namespace of its state.
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


def merge_nodes(old: Sequence[NodeRecord], new: Sequence[NodeRecord]) -> list[NodeRecord]:
    """Merge the fields of `new` into the nodes; new nodes come last."""
    merged: dict[str, Any] = {node["id"]: node for node in old}
    for node in new:
        merged[node["id"]] = {**merged.get(node["id"], {}), **node}
    return list(merged.values())


def merge_ledgers(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Merge two ledgers; a passage that two searches found has all text read of it."""
    both = dict(old)
    for key, passage in new.items():
        both[key] = asdict(merge_readings(passage_of(both[key]), passage_of(passage))) if key in both else passage
    return both


Nodes = Annotated[list[NodeRecord], merge_nodes]
Ledger = Annotated[dict[str, dict[str, Any]], merge_ledgers]
Notes = Annotated[list[NoticeRecord], operator.add]


class TreeState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets.

    `begun` has the nodes and the ledger of an earlier tree that this one continues. `stop` is why no more levels start,
    as a notice; `checkpoint` is the id of the checkpoint with the whole tree.
    """

    begun: dict[str, Any]
    nodes: Nodes
    ledger: Ledger
    searches: Annotated[int, operator.add]
    notes: Notes
    stop: NoticeRecord | None
    spent: dict[str, float]
    checkpoint: str
    passages: list[dict[str, Any]]


class LevelOutput(TypedDict, total=False):
    nodes: Nodes
    ledger: Ledger
    searches: Annotated[int, operator.add]
    notes: Notes


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


@dataclass(frozen=True, slots=True)
class TreeContext:
    """Runtime context of a run; never saved.

    `search` and `vector`, which returns the unit vector (d,) of a question, block and are called in threads. `seconds`
    is the working time so far, `changes` are the person's changes meanwhile.
    """

    search: Callable[..., Sequence[Passage]]
    rules: RuleJudge
    budget: CallBudget
    seconds: Callable[[], float]
    changes: Callable[[], Sequence[Change]]
    reasoner: Reasoner
    model: ChatJudge | None = None
    vector: Callable[[str], NDArray[np.float32]] | None = None
    answerable: Callable[[], float] = lambda: 1.0
    condenser: ChatReasoner | None = None
    verifiers: Sequence[Verifier] = ()
    options: RunOptions = field(default_factory=RunOptions)
    limits: Limits = LIMITS


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
