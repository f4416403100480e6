from typing import Any

import pytest

from rag.types import Answer, Event, EventKind, Step
from rag.ui.kit.live_run import LiveRun
from rag.ui.kit.runs import describe_step, step_lines, step_name

TREE = {"used": {"calls": 1}, "most": {"calls": 24}}
ANSWER = Answer("q", "fast", "answered", "a")
STEP = {"node": "retrieve", "state": "finished", "ms": 12.5, "detail": {"new": 3}}


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([("step", {"node": "retrieve", "state": "started"})], {"current": "retrieve", "steps": []}),
        (
            [
                ("step", {"node": "retrieve", "state": "started"}),
                ("step", STEP),
                ("token", "Every "),
                ("token", "four."),
            ],
            {"current": "", "steps": [Step("retrieve", 12.5, {"new": 3})], "text": "Every four.", "next_seq": 4},
        ),
        ([("token", "wrong"), ("reset", ""), ("token", "right")], {"text": "right"}),
        ([("answer", ANSWER)], {"answer": ANSWER}),
        (
            [("tree", {"rows": [{"node": "n1"}], **TREE}), ("tree", {"rows": [], **TREE})],
            {"tree": [], "usage": {"calls": 1}, "limits": {"calls": 24}},
        ),
    ],
)
def test_events_fold_into_a_state_each_once(events: list[tuple[EventKind, Any]], state: dict[str, Any]) -> None:
    live, numbered = LiveRun(), [Event(place, kind, data) for place, (kind, data) in enumerate(events)]
    live.absorb(numbered)
    live.absorb(numbered)
    assert {name: getattr(live, name) for name in state} == state


def test_what_a_nested_graph_writes_is_no_part_of_the_answer() -> None:
    live = LiveRun()
    judged = {"node": "judge", "state": "finished", "ms": 1.0}
    draft = [Event(0, "token", "A draft.", ("draft",)), Event(1, "step", judged, ("draft",))]
    live.absorb([*draft, Event(2, "token", "The answer.", ())])
    assert (live.text, [step.node for step in live.steps]) == ("The answer.", ["judge"])


@pytest.mark.parametrize(
    ("step", "english"),
    [
        (Step("retrieve", 1, {"queries": ["lamp"], "passages": 1}), "“lamp” · 1 passage"),
        (Step("grade", 1, {"decision": "graded", "relevant": 2, "of": 10}), "2 of 10 passages are relevant"),
        (Step("rewrite", 1, {"decision": "rewritten", "query": "light"}), "“light”"),
        (Step("generate", 1, {"decision": "answered"}), "Answered from the passages"),
        (Step("agent", 1, {"decision": "no_such_code"}), ""),
        (Step("plan", 1, {}), ""),
    ],
)
def test_a_step_says_what_it_decided(step: Step, english: str) -> None:
    assert describe_step(step, "en") == english


def test_a_query_is_outside_text() -> None:
    told = describe_step(Step("retrieve", 1, {"queries": ["![x](https://evil.example) :smile:"]}), "en")
    assert "![" not in told
    assert "https://" not in told


def test_a_line_is_one_paragraph_whatever_a_query_holds_and_ends_in_what_the_step_cost() -> None:
    steps = [
        Step("enter", 1, {}),
        Step("retrieve", 85, {"queries": ["a\n\n# b"], "passages": 1}),
        Step("plan", 1400, {}),
    ]
    found, planned = step_lines(steps, "en")
    assert "\n" not in found
    assert found.endswith(":gray[85 ms]")
    assert planned.endswith(f"{step_name('plan', 'en')} :gray[1.4 s]")


def test_nodes_to_come_show_their_own_name() -> None:
    assert step_name("retrieve", "zh") == "检索网页"
    assert step_name("web_search", "en") == r"web\_search"
