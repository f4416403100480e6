"""A run in progress: its events folded into the steps and the text so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag.types import Answer, Step, Wait

if TYPE_CHECKING:
    from rag.types import Event


@dataclass(slots=True)
class LiveRun:
    """The state of a run before event number `next_seq`.

    `current` is the active node, or empty. `standalone` is a follow-up as understood. `plan` has the steps of a mode
    that plans, `tree` the rows of Explore mode, `used` and `most` the usage and its limits, `waits` the requests to a
    person, `route` the route of the message. `answer` is set once the run has ended.
    """

    next_seq: int = 0
    steps: list[Step] = field(default_factory=list)
    current: str = ""
    text: str = ""
    standalone: str = ""
    plan: list[dict[str, Any]] = field(default_factory=list)
    tree: list[dict[str, Any]] = field(default_factory=list)
    used: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()
    route: dict[str, Any] = field(default_factory=dict)
    answer: Answer | None = None

    def absorb(self, events: Iterable[Event]) -> None:
        """Apply `events` in order; those that were applied before are skipped.

        Text of a nested graph is not part of the answer; its steps are shown.
        """
        for event in events:
            if event.seq >= self.next_seq:
                self.next_seq = event.seq + 1
                if not event.path or event.kind == "step":
                    self._apply(event.kind, event.data)

    def _apply(self, kind: str, data: Any) -> None:
        if kind == "token":
            self.text += data
        elif kind == "standalone":
            self.standalone = str(data)
        elif kind == "reset":
            self.text = ""
        elif kind == "plan":
            self._apply_plan(data)
        elif kind == "tree":
            self.tree, self.used, self.most = list(data["rows"]), dict(data["used"]), dict(data["most"])
        elif kind == "route":
            self.route = dict(data)
        elif kind == "waiting":
            self.waits = tuple(data)
        elif kind == "answer":
            self.answer, self.current = data, ""
        elif kind == "step":
            self._apply_step(data)

    def _apply_plan(self, data: Mapping[str, Any]) -> None:
        steps = {step["id"]: step for step in self.plan}
        for step in data["steps"]:
            steps[step["id"]] = {**steps.get(step["id"], {}), **step}
        self.plan, self.used, self.most = list(steps.values()), dict(data["used"]), dict(data["most"])
        self.waits = ()

    def _apply_step(self, data: Mapping[str, Any]) -> None:
        node = str(data.get("node", ""))
        if data.get("state") == "started":
            self.current = node
            return
        self.current = ""
        self.steps.append(Step(node, float(data.get("ms", 0.0)), data.get("detail") or {}))
