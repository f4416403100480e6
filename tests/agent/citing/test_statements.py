from __future__ import annotations

import pytest

from rag.agent.citing.statements import find_statements, is_statement


@pytest.mark.parametrize(
    "text",
    [
        "## Results",
        "**Results:**",
        "In summary:",
        "总之：",
        "以下是要点：",
        "What does it mean?",
        "这意味着什么？",
        "---",
        "The passages do not mention its height.",
        "段落中没有提到它的高度。",
        "See",
        "…",
        "Yes.",
    ],
)
def test_what_states_nothing(text: str) -> None:
    assert not is_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "It opened in 1932.",
        "1932",
        "Paris.",
        "杭州。",
        "- Mount Aso erupted",
        "桥于一九三二年通车。",
        "It costs: 30 dollars.",
    ],
)
def test_what_states_something(text: str) -> None:
    assert is_statement(text)


def test_marks_belong_to_the_sentence_before_them() -> None:
    found = find_statements("It was so [1]. Then it rained.[2][3] 后来下雨了【1，4】。")
    assert [(one.bare, one.marks) for one in found] == [
        ("It was so.", (1,)),
        ("Then it rained.", (2, 3)),
        ("后来下雨了。", (1, 4)),
    ]


def test_tables_state_in_their_rows_and_code_states_nothing() -> None:
    text = "| Name | Opened |\n| --- | --- |\n| Bridge | 1932 |\n\n```\nprint(1953)\n```\n"
    assert [one.bare for one in find_statements(text) if one.checked] == ["| Bridge | 1932 |"]
