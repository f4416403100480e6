import pytest

from rag.types import Step
from rag.ui.kit.trace import describe, step_name


@pytest.mark.parametrize(
    ("step", "english"),
    [
        (Step("retrieve", 1, {"queries": ["lamp"], "passages": 1}), "“lamp” · 1 passage"),
        (Step("grade", 1, {"decision": "graded", "relevant": 2, "of": 10}), "2 of 10 passages bear on the question"),
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


def test_nodes_to_come_show_their_own_name() -> None:
    assert step_name("retrieve", "zh") == "检索网页"
    assert step_name("web_search", "en") == r"web\_search"
