"""The state of a run in progress, built from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rag.types import Answer, Event, Step, Wait


@dataclass(slots=True)
class LiveRun:
    """The state of a run before event number `next_seq`.

    `current` is the active node, or empty. `standalone` is the follow-up as a standalone question. `plan` has the steps
    of a planned run, `tree` the rows of Explore mode, `usage` and `limits` numbers by unit, `requests` those
    to the user, `route` the route of the message. `answer` is set once the run has ended.
    """

    next_seq: int = 0
    steps: list[Step] = field(default_factory=list)
    current: str = ""
    text: str = ""
    standalone: str = ""
    plan: list[dict[str, Any]] = field(default_factory=list)
    tree: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    requests: tuple[Wait, ...] = ()
    route: dict[str, Any] = field(default_factory=dict)
    answer: Answer | None = None

    def absorb(self, events: Iterable[Event]) -> None:
        """Apply `events` in order, skipping those already applied.

        Of a nested graph only steps are applied: its text is not part of the answer.
        """
        for event in events:
            if event.seq >= self.next_seq:
                self.next_seq = event.seq + 1
                if not event.path or event.kind == "step":
                    self._apply(event.kind, event.data)

    def _apply(self, kind: str, data: Any) -> None:
        match kind:
            case "token":
                self.text += data
            case "standalone":
                self.standalone = str(data)
            case "reset":
                self.text = ""
            case "plan":
                steps = {step["id"]: step for step in self.plan}
                for step in data["steps"]:
                    steps[step["id"]] = {**steps.get(step["id"], {}), **step}
                self.plan, self.usage, self.limits = list(steps.values()), dict(data["used"]), dict(data["most"])
                self.requests = ()
            case "tree":
                self.tree, self.usage, self.limits = list(data["rows"]), dict(data["used"]), dict(data["most"])
            case "route":
                self.route = dict(data)
            case "waiting":
                self.requests = tuple(data)
            case "answer":
                self.answer, self.current = data, ""
            case "step":
                node = str(data.get("node", ""))
                started = data.get("state") == "started"
                self.current = node if started else ""
                if not started:
                    self.steps.append(Step(node, float(data.get("ms", 0.0)), data.get("detail") or {}))
