"""State of a research run: plain data with reducers, so that parallel steps never overwrite each other.

The user can add, edit, skip and reorder steps that have not started, before and during a run. Each dispatch applies all
changes again, so they must be idempotent: an added step brings its id.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from rag.graphs.common import ConversationState, blank_fields, merge_by_id, merge_values, require_quoter
from rag.reasoning.research import ChatResearcher, RuleResearcher, SearchMethod, SubQuestion, Tool
from rag.runs.run import NoticeRecord, Run, merge_readings, passage_of
from rag.store.sql.conversation_table import Change
from rag.types import Passage

Status = Literal["open", "running", "done", "empty", "skipped", "failed"]
StepBy = Literal["plan", "revision", "person"]
_MAX_CHARACTERS: Final = 400  # characters of a step that the user writes
END_STATUSES: Final[frozenset[Status]] = frozenset({"done", "empty", "skipped", "failed"})


MAX_SEARCHES: Final = 12


class StepRecord(TypedDict, total=False):
    """A step of the plan. `needs` are the ids of steps that must end first; `by` is who added it.

    `query`, `leg` and `reason` describe its search (leg `ledger`: no search, since an earlier report had the passages),
    `summary` is the finding in one sentence, `kept` are the selected passages (url_hash, url, title), `round` is the
    round in which it started, `failure` why it failed (a notice).
    """

    id: str
    sub_question: str
    justification: str
    tool: Tool
    keywords: list[str]
    section: str
    needs: list[str]
    status: Status
    by: StepBy
    query: str
    leg: SearchMethod | Literal["ledger"]
    reason: str
    summary: str
    kept: list[dict[str, str]]
    round: int
    by_rules: bool
    failure: NoticeRecord


class LedgerEntry(TypedDict):
    """A passage of the ledger. `ranks` are its ranks by step, `distilled` verbatim sentences, `fetched_at` the time it
    was read from the web (ISO 8601), else empty."""

    passage: dict[str, Any]
    ranks: dict[str, int]
    distilled: list[str]
    source: Tool
    fetched_at: str


class PastStep(TypedDict):
    step: str
    summary: str
    met: list[str]


def _merge_ledgers(old: Mapping[str, LedgerEntry], new: Mapping[str, LedgerEntry]) -> dict[str, LedgerEntry]:
    """Merge two ledgers; a passage that two steps found appears once, with the text that both read."""
    return merge_values(old, new, _merge_entries)


def _merge_entries(one: LedgerEntry, other: LedgerEntry) -> LedgerEntry:
    return {
        "passage": asdict(merge_readings(passage_of(one["passage"]), passage_of(other["passage"]))),
        "ranks": {**one["ranks"], **other["ranks"]},
        "distilled": list(dict.fromkeys([*one["distilled"], *other["distilled"]])),
        "source": one["source"],
        "fetched_at": one["fetched_at"],
    }


def _append_unique(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))


class ResearchState(ConversationState, total=False):
    """The conversation, and the fields of the current question, which `blank_state` resets.

    `aspects` are those of the plan as plain data; `decisions` have an `action`, its `justification` and who decided
    (`by`). `unclear` is the planner's question to the user, `clarified` the reply; `met` are ids of covered aspects,
    `gain` is the number of newly covered ones per round, `reviewed` the number of `past` steps already reviewed. `web`
    is whether the user allows web search, empty until asked. `stop` is why no more steps start, as a notice. `struck`
    are unsupported sentences removed from the report, `notes` are notices of fallbacks.
    """

    aspects: list[dict[str, Any]]
    plan: Annotated[list[StepRecord], merge_by_id]
    ledger: Annotated[dict[str, LedgerEntry], _merge_ledgers]
    past: Annotated[list[PastStep], operator.add]
    met: Annotated[list[str], _append_unique]
    searches: Annotated[int, operator.add]
    decisions: list[dict[str, str]]
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
    """Input of one step; `web` is whether it may search the web, `headings` are those of passages found so far."""

    question: str
    step: StepRecord
    aspects: list[dict[str, Any]]
    past: list[str]
    calls: int
    web: bool
    headings: list[str]


def blank_state(question: str) -> dict[str, Any]:
    """Return the initial fields of a new question."""
    initial = {"plan": [], "ledger": {}, "past": [], "met": [], "searches": 0, "notes": []}
    return {
        **blank_fields(question),
        "aspects": [],
        **{name: Overwrite(value) for name, value in initial.items()},
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


def researchers(run: Run) -> tuple[ChatResearcher | None, RuleResearcher]:
    """Return the researcher that asks the run's chat model, if there is one, and the one that follows rules."""
    rules = RuleResearcher(require_quoter(run), run.cache.retriever.find_name)
    return ChatResearcher(run.chat) if run.chat else None, rules


def web_search(run: Run) -> Callable[[str], Sequence[Passage]] | None:
    """Return the function that searches the web, which blocks; None if that isn't allowed, or the run would have to
    wait for permission but can't."""
    return run.cache.retriever.web if run.options.web != "ask" or run.thread else None


def may_search_web(state: ResearchState, run: Run) -> bool:
    """Return whether web search is allowed, by an option or by the user's reply."""
    return web_search(run) is not None and (run.options.web == "allowed" or state["web"] == "yes")


def step_passages(state: ResearchState, step_id: str) -> list[Passage]:
    """Return the passages that a step found, best first."""
    ranked = [(entry["ranks"][step_id], entry) for entry in state["ledger"].values() if step_id in entry["ranks"]]
    return [passage_of(entry["passage"]) for _, entry in sorted(ranked, key=lambda one: one[0])]


def apply_changes(steps: Sequence[StepRecord], changes: Sequence[Change]) -> list[StepRecord]:
    """Apply the user's changes to the plan, ignoring invalid ones, such as those to a finished step."""
    plan = list(steps)
    for change in changes:
        step_id = str(change.data.get("id", ""))
        if change.kind == "step_add":
            text = _sub_question(change.data)
            if step_id and text and not any(one["id"] == step_id for one in plan):
                question = SubQuestion(text, tool="web" if change.data.get("tool") == "web" else "library")
                plan.append(open_step(step_id, question, [], "person"))
        elif change.kind == "step_edit":
            plan = [_edit_step(one, change.data) if one["id"] == step_id else one for one in plan]
        elif change.kind == "step_skip":
            skipped: StepRecord = {"status": "skipped"}
            plan = [{**one, **skipped} if (one["id"], one["status"]) == (step_id, "open") else one for one in plan]
        elif change.kind == "step_order":
            places = {str(id_): place for place, id_ in enumerate(change.data.get("ids", ()))}
            plan.sort(key=lambda one: places.get(one["id"], len(places)))
    return plan


def open_step(step_id: str, step: SubQuestion, needs: list[str], by: StepBy) -> StepRecord:
    return {
        "id": step_id,
        "sub_question": step.text,
        "justification": step.justification,
        "tool": step.tool,
        "keywords": list(step.keywords),
        "section": step.section,
        "query": step.query,
        "needs": needs,
        "status": "open",
        "by": by,
    }


def _edit_step(step: StepRecord, data: Mapping[str, Any]) -> StepRecord:
    text = _sub_question(data) or step["sub_question"]
    if step["status"] != "open" or (text == step["sub_question"] and data.get("tool") in (None, step["tool"])):
        return step
    tool: Tool = "web" if data.get("tool", step["tool"]) == "web" else "library"
    return {**step, "sub_question": text, "tool": tool, "query": "", "justification": "", "by": "person"}


def _sub_question(data: Mapping[str, Any]) -> str:
    return " ".join(str(data.get("sub_question", "")).split())[:_MAX_CHARACTERS]
