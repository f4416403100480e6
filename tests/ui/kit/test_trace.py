import pytest

from rag.types import Step
from rag.ui.kit.trace import describe, step_lines, step_name


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
    assert describe(step, "en") == english


def test_a_query_is_outside_text() -> None:
    told = describe(Step("retrieve", 1, {"queries": ["![x](https://evil.example) :smile:"]}), "en")
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
