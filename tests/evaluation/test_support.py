"""Statements checked against passages and references, with verdicts that the test defines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from rag.checking.verifier import Claim, ClaimJudgement
from rag.errors import ModelError
from rag.evaluation import support
from rag.evaluation.support import CitedStatement
from rag.types import Answer, CheckedBy, Citation, Passage, Statement, Verdict
from tests.support.answering import BRIDGE, VOLCANO, passage


def make_verifier(*true: tuple[str, tuple[int, ...]]) -> support.Supports:
    """Return a verifier that supports these statements, each by at least these passages, and nothing else."""

    def supports(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
        return [
            "supported"
            if any(one.statement == text and set(by) <= set(one.cited) for text, by in true)
            else "unsupported"
            for one in claims
        ]

    return supports


PASSAGES = [passage(1), passage(2, BRIDGE), passage(3, "Nothing.")]


def test_faithfulness_strict_and_lenient() -> None:
    verdicts: list[Verdict | None] = ["supported", "partly", "unsupported", "supported", None]
    assert support.share_supported(verdicts) == 2 / 4
    assert support.share_supported(verdicts, 0.5) == 2.5 / 4
    assert support.share_supported([None]) is support.share_supported([]) is None


def test_shown_verdicts_are_reused_and_others_requested() -> None:
    shown = [CitedStatement("a", (), "supported"), CitedStatement("b", (), "partly")]
    assert support.faithfulness(shown, PASSAGES, make_verifier()) == {"faithfulness": 0.5, "faithfulness_lenient": 0.75}
    bare = [CitedStatement("a"), CitedStatement("b")]
    assert support.faithfulness(bare, PASSAGES, make_verifier(("a", (1,))))["faithfulness"] == 0.5
    assert support.faithfulness([], PASSAGES, make_verifier())["faithfulness"] is None


def test_answer_correctness() -> None:
    """Two statements, one right; the reference has three, one of which is in the answer: TP 1, FP 1, FN 2."""
    reference = "The bridge opened in 1932. It carries eight lanes. Two railway lines cross it."
    true = make_verifier(("It opened in 1932.", (1,)), ("The bridge opened in 1932.", (1,)))
    factual = support.factual_f1(["It opened in 1932.", "It is red."], reference, true)
    assert factual == pytest.approx(1 / (1 + 3 / 2))
    assert support.correctness(factual, 0.8) == pytest.approx(0.75 * 0.4 + 0.25 * 0.8)
    assert support.factual_f1(["It is red."], reference, make_verifier()) == 0.0
    assert support.correctness(factual, None) is support.correctness(None, 0.8) is None


def test_noise_sensitivity_in_both_modes() -> None:
    """Of four statements three are wrong: one from a relevant passage, one from an irrelevant one, one from none."""
    true = make_verifier(("right", (1,)), ("misled", (1,)), ("misled", (2,)), ("noisy", (3,)))

    def supports(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
        if passages[0].id == "reference":
            return ["supported" if one.statement == "right" else "unsupported" for one in claims]
        return list(true(claims, passages))

    said = ["right", "misled", "noisy", "invented"]
    found = support.noise_sensitivity(said, "the truth", PASSAGES, [True, False, False], supports)
    assert found == {"noise_sensitivity": 1 / 4, "noise_sensitivity_irrelevant": 1 / 4}


def test_citations_as_alce_counts() -> None:
    said = [
        CitedStatement("needs both", (1, 2)),  # both citations are needed
        CitedStatement("one is idle", (1, 3)),  # 1 supports it, 3 is not needed
        CitedStatement("false", (2,)),
        CitedStatement("bare"),
    ]
    true = make_verifier(("needs both", (1, 2)), ("one is idle", (1,)))
    assert support.citations(said, PASSAGES, true) == {"citation_precision": 3 / 5, "citation_recall": 2 / 4}
    assert support.citations([], PASSAGES, true) == {"citation_precision": None, "citation_recall": None}


def test_an_answer_is_read_as_it_was_checked_or_by_its_marks() -> None:
    quoted = Citation(1, "https://example.org/2", "hash2", "Page 2", BRIDGE[:30], 100, 130)
    text = "It opened in 1932.[1] It is red."
    checked = (Statement(0, 18, "supported", (1,)), Statement(22, 32, "unsupported"))
    answer = Answer("When?", "fast", "answered", text, (quoted,), tuple(PASSAGES), statements=checked)
    assert support.split_answer(answer) == [
        CitedStatement("It opened in 1932.", (2,), "supported"),
        CitedStatement("It is red.", (), "unsupported"),
    ]
    plain = Answer("When?", "fast", "answered", text, (quoted,), tuple(PASSAGES))
    assert support.split_answer(plain) == [CitedStatement("It opened in 1932.", (2,)), CitedStatement("It is red.")]


def test_rules_judge_without_a_model() -> None:
    claims = [Claim(0, "Mount Aso erupted in 1953.", (1,)), Claim(1, "Mount Aso erupted in 1953.", (2,))]
    assert support.by_rules(claims, [passage(1, VOLCANO), passage(2, BRIDGE)]) == ["supported", "unsupported"]


@dataclass
class LimitedVerifier:
    """A verifier that judges up to `max_claims` claims per request; with 0 it fails."""

    max_claims: int
    verifier_kind: CheckedBy = "model"
    asked: list[int] = field(default_factory=list)

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
        self.asked.append(len(claims))
        if not self.max_claims:
            raise ModelError("chat_unreachable", address="nowhere")
        return [ClaimJudgement("partly")] * min(self.max_claims, len(claims))


@pytest.mark.parametrize(("max_claims", "judged"), [(9, 3), (1, 1), (0, 0)])
def test_claims_without_a_verdict_are_not_judged(max_claims: int, judged: int) -> None:
    claims = [Claim(place, "Mount Aso erupted.", (1,)) for place in range(3)]
    found = support.by_verifier(LimitedVerifier(max_claims), 16_000)(claims, PASSAGES)
    assert list(found) == ["partly"] * judged + [None] * (3 - judged)
