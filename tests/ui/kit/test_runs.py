import pytest

from rag.types import Answer, Event, Step
from rag.ui.kit.runs import LiveRun, describe_step, step_lines, step_name


def test_events_fold_into_steps_and_text() -> None:
    live = LiveRun()
    live.absorb([Event(0, "step", {"node": "retrieve", "state": "started"})])
    assert live.current == "retrieve"
    live.absorb(
        [
            Event(1, "step", {"node": "retrieve", "state": "finished", "ms": 12.5, "detail": {"new": 3}}),
            Event(2, "token", "Every "),
            Event(3, "token", "four hours."),
        ]
    )
    assert live.current == ""
    assert live.steps == [Step("retrieve", 12.5, {"new": 3})]
    assert live.text == "Every four hours."
    assert live.next_seq == 4


def test_a_reset_discards_the_text_so_far() -> None:
    live = LiveRun()
    live.absorb([Event(0, "token", "wrong"), Event(1, "reset", ""), Event(2, "token", "right")])
    assert live.text == "right"


def test_events_seen_before_count_once() -> None:
    live = LiveRun()
    events = [Event(0, "token", "a"), Event(1, "token", "b")]
    live.absorb(events)
    live.absorb(events)
    assert live.text == "ab"


def test_the_answer_ends_it() -> None:
    live, answer = LiveRun(), Answer("q", "fast", "answered", "a")
    live.absorb([Event(0, "answer", answer)])
    assert live.answer is answer


def test_what_a_nested_graph_writes_is_no_part_of_the_answer() -> None:
    live = LiveRun()
    live.absorb(
        [
            Event(0, "token", "A draft.", ("draft",)),
            Event(1, "step", {"node": "judge", "state": "finished", "ms": 1.0}, ("draft",)),
            Event(2, "token", "The answer.", ()),
        ]
    )
    assert (live.text, [step.node for step in live.steps]) == ("The answer.", ["judge"])


def test_a_tree_is_as_it_was_told_last() -> None:
    live = LiveRun()
    told = {"used": {"calls": 1}, "most": {"calls": 24}}
    live.absorb([Event(0, "tree", {"rows": [{"node": "n1"}], **told}), Event(1, "tree", {"rows": [], **told})])
    assert (live.tree, live.usage, live.limits) == ([], {"calls": 1}, {"calls": 24})


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
