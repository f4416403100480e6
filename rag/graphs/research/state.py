"""What a run of research knows: plain data, with reducers, so that parallel steps never overwrite each other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.graphs.common import Conversing, blank_fields
from rag.models.usage import CallBudget
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.research import AspectKind, Leg, RuleResearcher, Tool
from rag.reasoning.research_chat import ChatResearcher
from rag.runs.options import RunOptions
from rag.runs.serialization import NoticeRecord, merge_readings, passage_of
from rag.store.sql.conversation_table import Change
from rag.types import Passage

Status = Literal["open", "running", "done", "empty", "skipped", "failed"]
ENDED: Final[frozenset[Status]] = frozenset({"done", "empty", "skipped", "failed"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take. A search brings `recall` passages at most, runs of sentences that fill the context's room
    together; a step reads the first `keep` of them.

    `seconds` are those after which no step is begun; `at_once` steps run side by side.
    """

    rounds: int = 7
    recall: int = 20
    keep: int = 3
    searches: int = 12
    searches_by_rules: int = 6
    seconds: float = 180.0
    at_once: int = 4
    revisions: int = 2
    characters: int = 8_000
    """Of passages, that the report is written from."""


LIMITS: Final = Limits()


class AspectRecord(TypedDict):
    id: str
    text: str
    kind: AspectKind


class StepRecord(TypedDict, total=False):
    """A step of the plan. `needs` are ids; `by` says who put it there.

    `query`, `leg` and `reason` tell how it was searched for (leg `ledger`: not at all, an earlier report had it),
    `summary` what was found, in one sentence, `kept` the passages that it keeps (url_hash, url, title), `round` when it
    began, `failure` why it failed (a notice).
    """

    id: str
    sub_question: str
    justification: str
    tool: Tool
    keywords: list[str]
    section: str
    needs: list[str]
    status: Status
    by: Literal["plan", "revision", "person"]
    query: str
    leg: Leg | Literal["ledger"]
    reason: str
    summary: str
    kept: list[dict[str, str]]
    round: int
    by_rules: bool
    failure: NoticeRecord


class Entry(TypedDict):
    """A passage that was found. `ranks` are its places by step, `distilled` sentences of it, to the letter,
    `fetched_at` when it was read from the web (ISO 8601), else empty."""

    passage: dict[str, Any]
    ranks: dict[str, int]
    distilled: list[str]
    source: Tool
    fetched_at: str


class PastStep(TypedDict):
    step: str
    summary: str
    met: list[str]


class DecisionRecord(TypedDict):
    action: str
    justification: str
    by: Literal["model", "rules"]


def merge_steps(old: Sequence[StepRecord], new: Sequence[StepRecord]) -> list[StepRecord]:
    """The plan with the fields of `new` in their steps; steps that are new come last."""
    kept: dict[str, Any] = {step["id"]: step for step in old}
    for step in new:
        kept[step["id"]] = {**kept.get(step["id"], {}), **step}
    return list(kept.values())


def merge_ledgers(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> dict[str, Entry]:
    """Both ledgers: what two steps found is kept once, with all that was read of it."""
    both = dict(old)
    for key, entry in new.items():
        known = both.get(key)
        both[key] = _merge_entries(known, entry) if known else entry
    return both


def _merge_entries(one: Entry, other: Entry) -> Entry:
    return {
        "passage": asdict(merge_readings(entry_passage(one), entry_passage(other))),
        "ranks": {**one["ranks"], **other["ranks"]},
        "distilled": list(dict.fromkeys([*one["distilled"], *other["distilled"]])),
        "source": one["source"],
        "fetched_at": one["fetched_at"],
    }


def append_unique(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))


class ResearchState(Conversing, total=False):
    """The conversation, and the fields of the current question, which `fresh` resets.

    `unclear` is what the planner asks the person, `clarified` what was answered; `met` are the ids of aspects that were
    met, `gain` how many new ones each round met, `reviewed` how many of the `past` steps were looked at. `web` is
    whether the person lets the question go there, empty until that is asked. `stop` is why no further step was begun,
    as a notice. `struck` are the sentences that nothing bore out, `notes` what went otherwise than planned.
    """

    aspects: list[AspectRecord]
    plan: Annotated[list[StepRecord], merge_steps]
    ledger: Annotated[dict[str, Entry], merge_ledgers]
    past: Annotated[list[PastStep], operator.add]
    met: Annotated[list[str], append_unique]
    searches: Annotated[int, operator.add]
    decisions: list[DecisionRecord]
    gain: list[int]
    revisions: int
    round: int
    reviewed: int
    unclear: str
    clarified: str
    web: Literal["", "asking", "yes", "no"]
    spent: dict[str, float]
    stop: NoticeRecord | None
    notes: Annotated[list[NoticeRecord], operator.add]
    struck: list[str]
    passages: list[dict[str, Any]]


class StepInput(TypedDict):
    """What one step is sent; `web` is whether it may leave the library, `headings` are those of what was found."""

    question: str
    step: StepRecord
    aspects: list[AspectRecord]
    past: list[str]
    calls: int
    web: bool
    headings: list[str]


@dataclass(frozen=True, slots=True)
class ResearchContext:
    """What a run works with: never saved.

    `search` and `web`, the same beyond the library, block and are called in threads; `web` is None where it is not
    allowed. `holds` says whether an earlier report's ledger answers a question; it may block. `seconds` is how long the
    run has been at work, `changes` what a person changed meanwhile; `may_wait` tells whether there is one to ask.
    """

    search: Callable[..., Sequence[Passage]]
    rules: RuleResearcher
    budget: CallBudget
    seconds: Callable[[], float]
    changes: Callable[[], Sequence[Change]]
    model: ChatResearcher | None = None
    web: Callable[[str], Sequence[Passage]] | None = None
    titles: Callable[[], Sequence[str]] = tuple
    answerable: Callable[[], float] = lambda: 1.0
    holds: Callable[[str], bool] = lambda _: False
    may_wait: bool = False
    condenser: ChatReasoner | None = None
    verifiers: Sequence[Verifier] = ()
    options: RunOptions = field(default_factory=RunOptions)
    limits: Limits = LIMITS


def fresh(question: str) -> dict[str, Any]:
    """The fields of a question that nothing is known about yet."""
    reduced = {"plan": [], "ledger": {}, "past": [], "met": [], "searches": 0, "notes": []}
    return {
        **blank_fields(question),
        "aspects": [],
        **{name: Overwrite(value) for name, value in reduced.items()},
        "decisions": [],
        "gain": [],
        "revisions": 0,
        "round": 0,
        "reviewed": 0,
        "unclear": "",
        "clarified": "",
        "web": "",
        "spent": {},
        "stop": None,
        "struck": [],
        "passages": [],
    }


def may_leave(state: ResearchState, context: ResearchContext) -> bool:
    """Whether the question may go to the web: allowed beforehand, or by the person when that was asked."""
    return context.web is not None and (context.options.web == "allowed" or state["web"] == "yes")


def entry_passage(entry: Entry) -> Passage:
    return passage_of(entry["passage"])


def found_by(state: ResearchState, step_id: str) -> list[Passage]:
    """What a step found, best first."""
    ranked = [(entry["ranks"][step_id], entry) for entry in state["ledger"].values() if step_id in entry["ranks"]]
    return [entry_passage(entry) for _, entry in sorted(ranked, key=lambda one: one[0])]
