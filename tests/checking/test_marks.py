from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from rag.checking.statements import (
    code_spans,
    find_addresses,
    find_marks,
    normalise_marks,
    remove_links,
    remove_marks,
    wrap_code,
)

TEXTS = ["The interval [1, 2] is closed.", "See section 4 (1).", "Other text."]
PAGES = ["The first argument is `sys.argv[1]`, the rows are `rows[2]`.", "In Hangzhou[3] tea is grown.", "Other."]
LINKED = [
    "The API is at https://api.example.com/v1 and needs a key. See www.foo.org.",
    "Docs: [here](https://docs.example.com/a_(b)). 访问https://zh.example.com/下载页面。",
]
HELD = find_addresses(LINKED)


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
    assert remove_marks(text, marks, 0, len(text)) == "The bridge was opened in 1932."


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
        f"It seats many ({len(TEXTS) + 1}).",
        "根据第五条第二款（3）。",
    ],
)
def test_brackets_that_are_no_marks(text: str) -> None:
    assert find_marks(text, TEXTS) == []


def test_round_brackets_are_text_where_square_ones_are_marks() -> None:
    marks = find_marks("It opened in May (1). It closed in June [2].", TEXTS)
    assert [mark.numbers for mark in marks] == [(2,)]


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
    assert wrap_code(text, PAGES) == marked


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
    assert wrap_code(text, PAGES) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("At https://api.example.com/v1.", "At `https://api.example.com/v1`."),
        ("At <https://api.example.com/v1>.", "At `https://api.example.com/v1`."),
        ("At **https://api.example.com/v1/**", "At **`https://api.example.com/v1/`**"),
        ("At (https://api.example.com/v1), yes", "At (`https://api.example.com/v1`), yes"),
        ("地址是https://api.example.com/v1。", "地址是`https://api.example.com/v1`。"),
        ("访问https://api.example.com/v1获取", "访问`https://api.example.com/v1`获取"),
        ("访问https://zh.example.com/下载页面。", "访问`https://zh.example.com/下载页面`。"),
        ("See www.foo.org!", "See `www.foo.org`!"),
        ("https://docs.example.com/a_(b)", "`https://docs.example.com/a_(b)`"),
        ("[https://api.example.com/v1](https://api.example.com/v1)", "`https://api.example.com/v1`"),
        ("[the API](https://api.example.com/v1)", "the API (`https://api.example.com/v1`)"),
        ("run `curl https://else.example/x`", "run `curl https://else.example/x`"),
        ("```\ncurl https://else.example/x\n[a](b)\n```", "```\ncurl https://else.example/x\n[a](b)\n```"),
    ],
)
def test_addresses_of_the_pages_stay_as_code(text: str, shown: str) -> None:
    assert remove_links(text, HELD) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("At https://evil.example/x now", "At now"),
        ("At https://api.example.com now", "At now"),
        ("At https://api.example.com/v1/more.", "At."),
        ("At https://evil.example/?u=https://api.example.com/v1 now", "At now"),
        ("Look (https://evil.example).", "Look."),
        ("看https://evil.example/x。", "看。"),
        ("<https://evil.example>", ""),
        ("www.evil.example", ""),
        ('[click](https://evil.example "t")', "click"),
        ("[click](javascript:alert(1))", "click"),
        ("![x](https://api.example.com/v1)", "x"),
        ("[![x](https://evil.example/x.png)](https://evil.example)", "x"),
        ("[`x`](https://evil.example)", "`x`"),
        ("ht<https://evil.example>tps://evil.example/y", ""),
        ("[1](https://evil.example)", "[1]"),
        ("[[1]](https://evil.example)", "[1]"),
        ("[Passage 2](#x)", "[Passage 2]"),
    ],
)
def test_addresses_of_its_own_and_targets_go(text: str, shown: str) -> None:
    assert remove_links(text, HELD).strip() == shown


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("It opened in May [Doc 2].", "It opened in May[2]."),
        ("It opened in May [文档2]。", "It opened in May[2]。"),
        ("It opened in May [ID:1].", "It opened in May[1]."),
        ("It opened in May [passage-1].", "It opened in May[1]."),
        ("It opened in May [Passage 1: The pool].", "It opened in May[1]."),
        ("It opened in May [the pool].", "It opened in May[1]."),
        ("It opened in May [2, The lake].", "It opened in May[2]."),
        ("It opened in May [1:2].", "It opened in May[1]."),
        ("It opened in May [^2^].", "It opened in May[2]."),
        ("It opened in May ^[2].", "It opened in May[2]."),
        ("It opened in May [1a].", "It opened in May[1]."),
        ("It opened in May <cite>1, 2</cite>.", "It opened in May[1][2]."),
        ("It opened in May {1}.", "It opened in May[1]."),
        ("It opened in May <2>.", "It opened in May[2]."),
        ("It opened in May ##1$$.", "It opened in May[1]."),
        ("It opened in May ².", "It opened in May[2]."),
        ("It opened in May [Doc 7].", "It opened in May [Doc 7]."),
        ("It opened in May [sic].", "It opened in May [sic]."),
        ("See [Table 2] of the plan.", "See [Table 2] of the plan."),
        ("It has 40 m² and {1} is a set of one.", "It has 40 m² and {1} is a set of one."),
        ("`row[id:1]` and f{1} stay.", "`row[id:1]` and f{1} stay."),
        ("It opened in May [1, 2] (see [3]).", "It opened in May [1, 2] (see [3])."),
    ],
)
def test_marks_of_other_shapes(written: str, plain: str) -> None:
    texts = ["The pool opened in May. Its sizes are in table 2.", "The lake is deep."]
    assert normalise_marks(written, texts, ["The pool", "The lake"]) == plain


LOOPS: list[tuple[Callable[[str], object], list[str]]] = [
    (
        lambda text: find_marks(text, TEXTS),
        ["[", "[1", "[1,", "[a](", "(1) ", "<sup>[", "【1†", "[1] ", "[passage ", " "],
    ),
    (
        lambda text: remove_links(text, HELD),
        ["[", "[a](", "![a](", "http://", "https://a.b ", "(https://a.b", "<http", "`", "` `` "],
    ),
    (lambda text: normalise_marks(text, ["a"], ["b"]), ["[", "[a ", "{1", "<1", "[Doc ", "^[", "##1", "[a b: "]),
]


@pytest.mark.parametrize(("read", "unit"), [(read, unit) for read, units in LOOPS for unit in units])
def test_a_reply_that_loops_is_read_quickly(read: Callable[[str], object], unit: str) -> None:
    before = time.process_time()
    read(unit * (40_000 // len(unit)))
    assert time.process_time() - before < 1.0
