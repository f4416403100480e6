from __future__ import annotations

import pytest

from rag.agent.citing.code import code_spans, with_code_marked

PAGES = ["The first argument is `sys.argv[1]`, the rows are `rows[2]`.", "In Hangzhou[3] tea is grown.", "Other."]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a `b` c ``d`e`` f", ["`b`", "``d`e``"]),
        ("a\n```\nx `y\n```\nb `c`", ["```\nx `y\n```", "`c`"]),
        ("~~~\nnever closed", ["~~~\nnever closed"]),
        ("one ` alone", []),
        ("a ` b\n\nc ` d", []),
        ("````", ["````"]),
        ("````` a", ["````` a"]),
    ],
)
def test_where_code_stands(text: str, code: list[str]) -> None:
    assert [text[start:end] for start, end in code_spans(text)] == code


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("x = items[0]", "x = `items[0]`"),
        ("first = items[1]", "first = `items[1]`"),
        ("names[2] = 'x'", "`names[2]` = 'x'"),
        ("Use sys.argv[1] here.", "Use `sys.argv[1]` here."),
        ("It is sys.argv[1].", "It is `sys.argv[1]`."),
        ("The rows[2] are new.", "The `rows[2]` are new."),
        ("Read my_list[2] first.", "Read `my_list[2]` first."),
        ("Call handlers[key](event) then.", "Call `handlers[key](event)` then."),
        ("data[1].name is set", "`data[1].name` is set"),
        ("矩阵grid[0][1]的值", "矩阵`grid[0][1]`的值"),
    ],
)
def test_what_is_plainly_code_is_marked_as_such(text: str, marked: str) -> None:
    assert with_code_marked(text, PAGES) == marked


@pytest.mark.parametrize(
    "text",
    [
        "It was opened in spring[1].",
        "It runs on Node.js[1] and JavaScript[2].",
        "Tea grows in Hangzhou[3].",
        "Set it in max_connections[1].",
        "它支持Python[1]。",
        "See[here](https://evil.example/x).",
        "It is 1932[1].",
        "An arr[i] in text",
        "`items[0]`",
        "```\nitems[0]\n```",
    ],
)
def test_words_with_marks_are_no_code(text: str) -> None:
    assert with_code_marked(text, PAGES) == text
