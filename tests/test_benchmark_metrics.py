"""The benchmark of metrics: both sides get the same data, and differences are detected; without ragas itself."""

from __future__ import annotations

import json

import pytest

from benchmarks import metrics
from benchmarks.metrics import RankedQuestion
from rag.checking.verifier import Claim
from rag.evaluation.support import passage_of, statements_of
from tests.support.chat_protocol import Request


@pytest.fixture(scope="module")
def drawn() -> tuple[list[metrics.RandomCase], metrics.ScriptedJudge]:
    return metrics.draw_cases(6)


def told(table: metrics.ScriptedJudge, form: str, **given: object) -> dict[str, object]:
    """Return the table's reply to a prompt in ragas's format."""
    prompt = f"JSON Schema:\n{json.dumps({'title': form})}Do …\ninput: {json.dumps(given, indent=4)}\nOutput: "
    found: dict[str, object] = json.loads(
        table.reply(Request("", {}, {"messages": [{"role": "user", "content": prompt}]})).text
    )
    return found


def test_both_sides_are_given_the_same_verdicts(drawn: tuple[list[metrics.RandomCase], metrics.ScriptedJudge]) -> None:
    cases, table = drawn
    for one in cases:
        said, text = statements_of(one.answer.text), one.answer.passages[0].text
        ours = table.supports([Claim(n, each, (1,)) for n, each in enumerate(said)], [passage_of(text)])
        theirs = told(table, "NLIStatementOutput", context=text, statements=said)["statements"]
        assert isinstance(theirs, list)
        assert [each["verdict"] for each in theirs] == [int(verdict == "supported") for verdict in ours]
        useful = told(table, "ContextPrecisionOutput", question=one.case.question, context=text, answer="")
        assert useful["verdict"] == int(text in one.case.quotes)
        assert metrics.ours(one, table)["faithfulness"] is not None


def test_a_difference_is_seen() -> None:
    equal = metrics._row("m", [(0.5, 0.5), (None, float("nan"))], 1e-9)
    other = metrics._row("m", [(0.5, 0.5), (0.5, 0.6), (None, 0.5)], 1e-9)
    assert (equal["other"], other["other"]) == (0, 2)


def test_rankings_as_trec_eval_takes_them() -> None:
    """The second passage covers nothing new, the third two quotes at once, and one quote is missed."""
    ranked = RankedQuestion("q", [{0}, {0}, {1, 2}], [1.0, 3.0, 2.0, 2.0])
    assert [worth for *_, worth in ranked.qrels(graded=True)] == [1, 0, 3, 2]
    assert [worth for *_, worth in ranked.qrels(graded=False)] == [1, 1, 1, 1]
    assert not ranked.is_apart
    assert RankedQuestion("q", [{0}, {0}, {1}], [1.0, 3.0, 2.0]).is_apart
