from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rag.checking.citations import Check, check
from rag.checking.statements import MAX_CHARS
from rag.checking.verifier import Claim, ClaimJudgement
from rag.types import CheckedBy, Citation, Passage, Verdict
from tests.support.answering import BRIDGE, TEA, VOLCANO, passage

PASSAGES = [passage(1, VOLCANO), passage(2, BRIDGE), passage(3, TEA)]


def cite(text: str, passages: Sequence[Passage]) -> tuple[str, tuple[Citation, ...]]:
    """Return the checked text and its citations, by rules only."""
    checked = check(text, passages)
    return checked.text, checked.citations


@pytest.mark.parametrize(
    ("written", "text", "quotes"),
    [
        (
            "It was opened in 1932. [2] Mount Aso erupted in 1953. [1]",
            "It was opened in 1932.[1] Mount Aso erupted in 1953.[2]",
            [(2, "The bridge was opened in 1932."), (1, "Mount Aso erupted in 1953.")],
        ),
        (
            "龙井茶产于杭州[3]。炒制需要十道手法。[3]",
            "龙井茶产于杭州。[1]炒制需要十道手法。[2]",
            [(3, "龙井茶产于杭州。"), (3, "炒制需要十道手法。")],
        ),
        (  # a list keeps its shape
            "- Mount Aso erupted in 1953 [1]\n- The bridge was opened in 1932 [2]\n",
            "- Mount Aso erupted in 1953[1]\n- The bridge was opened in 1932[2]",
            [(1, "Mount Aso erupted in 1953."), (2, "The bridge was opened in 1932.")],
        ),
        ("", "", []),
    ],
)
def test_marks_become_quotes_numbered_in_order(written: str, text: str, quotes: list[tuple[int, str]]) -> None:
    shown, citations = cite(written, PASSAGES)
    assert shown == text
    assert [(one.url, one.quote) for one in citations] == [(PASSAGES[n - 1].url, quote) for n, quote in quotes]


def test_quotes_stand_where_they_say() -> None:
    _, citations = cite("The town of Aso lies inside it. [1]", PASSAGES)
    (citation,) = citations
    start = citation.start - PASSAGES[0].start
    assert VOLCANO[start : start + len(citation.quote)] == citation.quote == "The town of Aso lies inside it."


@pytest.mark.parametrize("mark", ["[2]", "[ 2 ]", "【2】", "[^2]", "[2, 9]", "[2][9]", " [2]"])
def test_spellings_of_a_mark(mark: str) -> None:
    text, citations = cite(f"The bridge was opened in 1932{mark}.", PASSAGES)
    assert text == "The bridge was opened in 1932.[1]"
    assert len(citations) == 1


@pytest.mark.parametrize("mark", ["[0]", "[2]", "[4]", "[99]"])
@pytest.mark.parametrize("passages", [PASSAGES, []])
def test_marks_of_no_passage_that_supports_it_are_dropped(mark: str, passages: list[Passage]) -> None:
    assert cite(f"Bananas are yellow {mark}.", passages) == ("Bananas are yellow.", ())


def test_an_unmarked_statement_gets_the_passage_that_supports_it() -> None:
    text, citations = cite("It carries eight lanes of traffic and two railway lines.", PASSAGES)
    assert text.endswith("[1]")
    assert citations[0].url == PASSAGES[1].url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "It was opened in 1932 [2]. The tower is red. It was opened in 1932 [2].",
            "It was opened in 1932.[1] The tower is red.",
        ),
        ("The bridge was opened in 1932. The bridge was opened in 1932 [2].", "The bridge was opened in 1932.[1]"),
        ("大桥于一九三二年正式通车。大桥于一九三二年正式通车。[2]", "大桥于一九三二年正式通车。[1]"),
        ("Open at 9.\nOpen at 9.", "Open at 9.\nOpen at 9."),
    ],
)
def test_a_sentence_is_said_once(text: str, expected: str) -> None:
    assert cite(text, PASSAGES)[0] == expected


def test_across_languages_the_mark_is_believed() -> None:
    _, citations = cite("这座桥于一九三二年通车。[2]", PASSAGES)
    assert citations[0].url == PASSAGES[1].url


def test_links_and_images_lose_their_targets() -> None:
    text, _ = cite("See [here](https://evil.example/?q=1) ![x](http://evil.example/x.png).", PASSAGES)
    assert "evil" not in text
    assert text.startswith("See here")


def test_one_quote_has_one_number() -> None:
    text, citations = cite("Opened in 1932. [2]\n\nThe bridge was opened in 1932. [2]", PASSAGES)
    assert text.count("[1]") == 2
    assert len(citations) == 1


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("Use `sys.argv[1]` to read the first argument.", "Use `sys.argv[1]` to read the first argument."),
        ("Values lie in the range [0, 1] after scaling.", "Values lie in the range [0, 1] after scaling."),
        ("Run `git clone https://x.example/a/b` first.", "Run `git clone https://x.example/a/b` first."),
        ("Call `handlers[key](event)` at the end.", "Call `handlers[key](event)` at the end."),
        (
            "```python\nx = items[0]\nget('https://x.example')\n```\nThat prints the first item",
            "It prints the first item.",
        ),
    ],
)
def test_code_and_brackets_come_through(text: str, page: str) -> None:
    shown, citations = cite(f"{text} [1]", [passage(1, page)])
    assert shown == f"{text}[1]"
    assert len(citations) == 1


def test_code_without_its_signs_gets_them_back() -> None:
    page = "The script name is `sys.argv[0]` and the first argument is `sys.argv[1]`."
    assert cite(f"{page.replace('`', '')} [1]", [passage(1, page)])[0] == f"{page}[1]"


def test_an_address_of_the_page_is_the_answer() -> None:
    page = "The API of the service is at https://api.example.com/v1 and needs a key."
    text, _ = cite("The API is at https://api.example.com/v1. [1] More is at https://evil.example.", [passage(1, page)])
    assert text == "The API is at `https://api.example.com/v1`.[1] More is at."


@pytest.mark.parametrize(
    ("text", "page", "verdict"),
    [
        ("No, it does not include breakfast [1].", "The room price does not include breakfast.", "supported"),
        ("Yes, it includes breakfast [1].", "The room price does not include breakfast.", "partly"),
        ("No, you cannot enter the tower [1].", "No, you cannot enter the tower.", "supported"),
        ("**The limit is 30 days.** [1]", "The limit is 30 days.", "supported"),
        ("**The limit is 45 days.** [1]", "The limit is 30 days.", "unsupported"),
        ("2. The limit is 30 days [1]", "The limit is 30 days.", "supported"),
        ("The article does not cover damage by water [1].", "The article does not cover damage by water.", "supported"),
    ],
)
def test_denials_and_lines_in_bold_are_checked(text: str, page: str, verdict: str) -> None:
    (statement,) = check(text, [passage(1, page)]).statements
    assert statement.verdict == verdict


@pytest.mark.parametrize(
    "text", ["The pages do not mention the price [1].", "I hope this helps.", "无法确定。", "## Overview [1]"]
)
def test_remarks_that_nothing_bears_out_are_no_statements(text: str) -> None:
    checked = check(text, PASSAGES)
    assert checked.statements == ()
    assert checked.citations == ()


class Says:
    """A verifier that gives the same verdict on every claim."""

    verifier_kind: CheckedBy = "model"

    def __init__(self, verdict: Verdict) -> None:
        self._said = ClaimJudgement(verdict)

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
        return [self._said for _ in claims]


def test_what_only_leads_on_counts_where_a_model_finds_it_untrue() -> None:
    text = "The town of Aso lies inside these ancient walls:"
    assert check(text, PASSAGES).statements == ()
    for verdict, counted in (("supported", []), ("unsupported", ["unsupported"])):
        asked = Check(text, PASSAGES)
        asyncio.run(asked.consult(Says(verdict), "", 16_000))  # type: ignore[arg-type]
        assert [one.verdict for one in asked.result().statements] == counted


def test_quotes_that_bear_it_out_together_are_worth_less_than_one() -> None:
    halves = [passage(1, "The bridge was opened in 1932."), passage(2, "The bridge carries eight lanes.")]
    text = "The bridge was opened in 1932 and carries eight lanes."
    (together,) = check(f"{text} [1][2]", halves).statements
    (alone,) = check(f"{text} [1]", [passage(1, "The bridge, opened in 1932, carries eight lanes.")]).statements
    assert together.verdict == alone.verdict == "supported"
    assert together.score < alone.score


def test_a_row_of_a_table_ends_behind_its_mark() -> None:
    checked = check("| Name | Opened |\n| --- | --- |\n| The bridge | 1932 [2] |", PASSAGES)
    (row,) = checked.statements
    assert checked.text[row.start : row.end] == "| The bridge | 1932 [1] |"


def test_of_a_statement_without_end_nobody_is_asked() -> None:
    for length, asked in ((MAX_CHARS, 1), (MAX_CHARS + 1, 0)):
        assert len(Check("The bridge carries " + "x" * (length - 20) + ".", PASSAGES).claims()) == asked
