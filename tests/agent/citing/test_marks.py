from __future__ import annotations

import time

import pytest

from rag.agent.citing.marks import cut, find_marks

TEXTS = ["The interval [1, 2] is closed.", "See section 4 (1).", "Other text."]


@pytest.mark.parametrize(
    ("mark", "numbers"),
    [
        ("[1]", (1,)),
        ("[ 1 ]", (1,)),
        ("［1］", (1,)),
        ("[１]", (1,)),
        ("【1】", (1,)),
        ("〔1〕", (1,)),
        ("[[1]]", (1,)),
        ("([1])", (1,)),
        ("（[1]）", (1,)),
        ("(see [1])", (1,)),
        (r"\[1\]", (1,)),
        ("[#1]", (1,)),
        ("[^1]", (1,)),
        ("[Passage 1]", (1,)),
        ("[passages 1 and 2]", (1, 2)),
        ("[Source: 2]", (2,)),
        ("[ref 1]", (1,)),
        ("[来源1]", (1,)),
        ("【段落 2】", (2,)),
        ("[资料1、2]", (1, 2)),
        ("【1†source】", (1,)),
        ("【2†L10-L12】", (2,)),
        ("[1, 2]", (1, 2)),
        ("[1，3]", (1, 3)),
        ("[1, 2, and 3]", (1, 2, 3)),
        ("[1-3]", (1, 2, 3)),
        ("[1–2]", (1, 2)),
        ("[1~2]", (1, 2)),
        ("[1][2]", (1, 2)),
        ("[1] [2]", (1, 2)),
        ("[1],[2]", (1, 2)),
        ("[1]、[2]", (1, 2)),
        ("[1] and [2]", (1, 2)),
        ("(1)", (1,)),
        ("（1）", (1,)),
        ("(1)(2)", (1, 2)),
        ("(1, 2)", (1, 2)),
        ("(Passage 1)", (1,)),
        ("（来源2）", (2,)),
        ("<sup>1</sup>", (1,)),
        ("<sup>[1]</sup>", (1,)),
        ("[7]", (7,)),
        ("[2, 9]", (2, 9)),
        ("[0]", (0,)),
    ],
)
def test_forms_of_a_mark(mark: str, numbers: tuple[int, ...]) -> None:
    text = f"The bridge was opened in 1932 {mark}."
    marks = find_marks(text, TEXTS)
    assert tuple(number for one in marks for number in one.numbers) == numbers
    assert cut(text, marks, 0, len(text)) == "The bridge was opened in 1932."


@pytest.mark.parametrize(
    "text",
    [
        "Values lie in the range [0, 1].",
        "It is scaled to [0,1] first.",
        "The interval [10, 20] is open.",
        "The interval [1, 2] is closed.",
        "取值在区间[0, 100]内。",
        "The pattern [0-9]+ matches digits.",
        "Use [1-9] for digits.",
        "Take the slice a[1:2].",
        "He said so [sic] in [2021].",
        "`sys.argv[1]` and `[2]`",
        "```\nx[1] = [2]\n```\n",
        "(1) Open the lid. (2) Close the lid.",
        "There are two ways: (1) by bus and (2) by train.",
        "See section 4 (1).",
        "It follows from equation (2).",
        "The result is f(1).",
        "It has ten seats (12).",
        "根据第五条第二款（3）。",
    ],
)
def test_brackets_that_are_no_marks(text: str) -> None:
    assert find_marks(text, TEXTS) == []


def test_round_brackets_are_text_where_square_ones_are_marks() -> None:
    marks = find_marks("It opened in May (1). It closed in June [2].", TEXTS)
    assert [mark.numbers for mark in marks] == [(2,)]


@pytest.mark.parametrize("unit", ["[", "[1", "[1,", "[a](", "(1) ", "<sup>[", "【1†", "[1] ", "[passage ", " "])
def test_a_reply_that_loops_is_read_quickly(unit: str) -> None:
    before = time.process_time()
    find_marks(unit * (40_000 // len(unit)), TEXTS)
    assert time.process_time() - before < 1.0
