"""What a run of judge mode knows: plain data, with reducers, so that branches side by side lose nothing.

Three states are joined by Send: the tree, a level of it, and the judgement of what a level found.
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
from rag.reasoning.judge import JUDGED, ChatJudge, RuleJudge, Score
from rag.reasoning.reasoner import Reasoner
from rag.runs.options import RunOptions
from rag.runs.serialization import NoticeRecord, merge_readings, passage_of
from rag.store.sql.conversation_table import Change
from rag.types import Passage

Status = Literal["open", "running", "done", "failed", "linked", "refused", "cut"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tree may take. The question stands at depth 0; `width` are the passages of a level that ask on.

    A search brings `recall` runs of sentences at most, of which the first `judged` are judged. `seconds` are those
    after which no level is begun; `at_once` levels run side by side.
    """

    depth: int = 3
    width: int = 3
    nodes: int = 12
    judged: int = JUDGED
    recall: int = 20
    searches_by_rules: int = 6
    seconds: float = 180.0
    at_once: int = 4
    characters: int = 8_000
    """Of passages, that the answer is written from."""


LIMITS: Final = Limits()


class JudgementRecord(TypedDict):
    """As `Judgement`, of the passage with this key of the ledger; `by` says whose verdict it is."""

    passage: str
    score: Score
    missing: str
    reason: str
    quote: str
    worth: float
    by: Literal["model", "rules", "person"]


class NodeRecord(TypedDict, total=False):
    """A level: a question, asked for what `passage` of its parent lacks, and what was found and judged for it.

    `same_as` is the node that had asked the same; `worth` how promising it is; `found` are keys of the ledger, best
    first. `expanded` once what it lacks was asked for. `checkpoint` is the namespace that holds its own state.
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
    """The nodes with the fields of `new` in theirs; those that are new come last."""
    kept: dict[str, Any] = {node["id"]: node for node in old}
    for node in new:
        kept[node["id"]] = {**kept.get(node["id"], {}), **node}
    return list(kept.values())


def merge_ledgers(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Both ledgers: of a passage that two searches read, all that they read of it."""
    both = dict(old)
    for key, kept in new.items():
        both[key] = asdict(merge_readings(passage_of(both[key]), passage_of(kept))) if key in both else kept
    return both


Nodes = Annotated[list[NodeRecord], merge_nodes]
Ledger = Annotated[dict[str, dict[str, Any]], merge_ledgers]
Notes = Annotated[list[NoticeRecord], operator.add]


class TreeState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `fresh` resets.

    `begun` are the nodes and the ledger of an earlier tree that this one goes on from. `stop` is why no further level
    was begun, as a notice; `checkpoint` the id of the one that holds the whole tree.
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
    """One level: its node, the `whole` question, how many calls it may make, what it found, and the verdicts so far."""

    node: NodeRecord
    whole: str
    allowed: int
    passages: list[dict[str, Any]]
    verdicts: Annotated[list[JudgementRecord], operator.add]
    calls: Annotated[int, operator.add]
    ms: Annotated[float, operator.add]


class JudgeInput(TypedDict):
    """What is judged in one go: these passages of a level."""

    node: NodeRecord
    whole: str
    allowed: int
    passages: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TreeContext:
    """What a run works with: never saved.

    `search` blocks and is called in threads, as `vector` is, which gives the unit vector (d,) of a question.
    `seconds` is how long the run has been at work, `changes` what a person changed meanwhile.
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


def fresh(question: str, begun: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a question that no more is known about than an earlier tree tells."""
    root: NodeRecord = {"id": "n1", "parent": "", "passage": "", "depth": 0, "worth": 1.0, "status": "open"}
    nodes = begun.get("nodes") or [{**root, "question": ""}]
    return {
        **blank_fields(question),
        "begun": {},
        "nodes": Overwrite(nodes),
        "ledger": Overwrite(begun.get("ledger", {})),
        "searches": Overwrite(0),
        "notes": Overwrite([]),
        "stop": None,
        "spent": {},
        "checkpoint": "",
        "passages": [],
    }
