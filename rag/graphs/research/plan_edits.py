"""A person's changes to a plan, before and during a run: add, edit, skip and reorder steps.

Only steps that have not started can change. All changes of a run are applied at each dispatch, so each must give the
same result every time: an added step brings its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rag.graphs.research.state import StepRecord
from rag.reasoning.research import Tool
from rag.store.sql.conversation_table import Change

FINISH: Final = "finish"
_LONGEST: Final = 400


def apply_changes(steps: Sequence[StepRecord], changes: Sequence[Change]) -> list[StepRecord]:
    """Apply the person's changes to the plan, ignoring those that are invalid, such as to a finished step."""
    plan = list(steps)
    for change in changes:
        step_id = str(change.data.get("id", ""))
        if change.kind == "step_add":
            plan = _add_step(plan, step_id, change.data)
        elif change.kind == "step_edit":
            plan = [_edit_step(one, change.data) if one["id"] == step_id else one for one in plan]
        elif change.kind == "step_skip":
            plan = [{**one, "status": "skipped"} if _is_open(one, step_id) else one for one in plan]
        elif change.kind == "step_order":
            places = {str(id_): place for place, id_ in enumerate(change.data.get("ids", ()))}
            plan.sort(key=lambda one: places.get(one["id"], len(places)))
    return plan


def wants_finish(changes: Sequence[Change]) -> bool:
    return any(change.kind == FINISH for change in changes)


def _is_open(step: StepRecord, step_id: str) -> bool:
    return step["id"] == step_id and step["status"] == "open"


def _add_step(plan: list[StepRecord], step_id: str, data: Mapping[str, Any]) -> list[StepRecord]:
    text = _text(data)
    if not (step_id and text) or any(one["id"] == step_id for one in plan):
        return plan
    added: StepRecord = {
        "id": step_id,
        "sub_question": text,
        "justification": "",
        "tool": "web" if data.get("tool") == "web" else "library",
        "keywords": [],
        "section": "",
        "needs": [],
        "status": "open",
        "by": "person",
    }
    return [*plan, added]


def _edit_step(step: StepRecord, data: Mapping[str, Any]) -> StepRecord:
    text = _text(data) or step["sub_question"]
    if step["status"] != "open" or (text == step["sub_question"] and data.get("tool") in (None, step["tool"])):
        return step
    tool: Tool = "web" if data.get("tool", step["tool"]) == "web" else "library"
    return {**step, "sub_question": text, "tool": tool, "justification": "", "by": "person"}


def _text(data: Mapping[str, Any]) -> str:
    return " ".join(str(data.get("sub_question", "")).split())[:_LONGEST]
