"""The metrics: what each answered question is worth, and what a run is worth by its questions.

A question's values are plain numbers by name, None for what could not be judged: there was no evidence, or no
statement, or nothing that could judge. Such questions are left out of a figure, and counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from rag.checking.terms import read, stands_in
from rag.evaluation import evidence, statistics
from rag.evaluation.cases import Case
from rag.evaluation.statistics import Figures, Weights
from rag.evaluation.support import (
    Supports,
    against,
    by_rules,
    citations,
    correctness,
    factual_f1,
    faithfulness,
    noise_sensitivity,
    said_in,
    share_supported,
    statements_of,
)
from rag.text import is_chinese, unmarked
from rag.types import Answer

if TYPE_CHECKING:
    from rag.evaluation.judge import ModelJudge

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_TOKEN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def tokens(text: str, chinese: bool) -> list[str]:
    """What two answers are compared by: no case, no punctuation, and in English no articles."""
    folded = unicodedata.normalize("NFKC", text).lower()
    if chinese:
        return _TOKEN.findall(folded)
    bare = "".join(sign for sign in folded if not unicodedata.category(sign).startswith(("P", "S")))
    return _ARTICLES.sub(" ", bare).split()


def exact_match(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """EM: 1 where the answer is one of the golds."""
    said = _joined(answer, chinese)
    return float(any(_joined(gold, chinese) == said for gold in golds))


def token_f1(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """The best 2PR / (P + R) over the golds."""
    said = tokens(answer, chinese)
    return max((_f1(said, tokens(gold, chinese), chinese) for gold in golds), default=0.0)


def contains(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """1 where one of the golds stands in the answer, in whole words and with the same values."""
    said, others = (answer, golds) if chinese else (_bare(answer), map(_bare, golds))
    return float(any(stands_in(gold, said) for gold in others))


def _bare(text: str) -> str:
    """English without articles."""
    return _ARTICLES.sub(" ", text)


def _joined(text: str, chinese: bool) -> str:
    return ("" if chinese else " ").join(tokens(text, chinese))


def _f1(said: Sequence[str], gold: Sequence[str], chinese: bool) -> float:
    shared = _longest_run(said, gold) if chinese else (Counter(said) & Counter(gold)).total()
    if not said or not gold:
        return float(said == gold)
    return 2 * shared / (len(said) + len(gold))


def _longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest run of tokens that stands in both."""
    best, before = 0, [0] * (len(other) + 1)
    for token in one:
        row = [0, *(before[at] + 1 if token == their else 0 for at, their in enumerate(other))]
        best, before = max(best, max(row)), row
    return best


Values = Mapping[str, float | None]
Columns = Mapping[str, NDArray[np.float64]]
"""A value of each question, by name; not a number where it was not judged."""
Which = NDArray[np.bool_]
Encode = Callable[[str, Sequence[str]], NDArray[np.float32] | None]
"""Returns L2-normalised vectors of a question and of texts, (1 + texts, d); None if the model can't read them."""
Better = Literal["higher", "lower", ""]


# What a run is worth


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run. `columns` are the values that it takes of each question, `better` says which way is better:
    "" for what only describes. A `binary` one is 0 or 1 for each question."""

    name: str
    better: Better = "higher"
    binary: bool = False
    columns: tuple[str, ...] = ()
    figure: Callable[..., Figures] = statistics.mean

    @property
    def needs(self) -> tuple[str, ...]:
        return self.columns or (self.name,)

    def judged(self, columns: Columns) -> Which:
        """Which questions have all that it takes."""
        return np.asarray(np.all([~np.isnan(columns[name]) for name in self.needs], axis=0))

    def of(self, weights: Weights, columns: Columns, which: Which) -> Figures:
        drawn = weights if which.all() else weights[:, which]  # a copy of so much takes longer than the figure
        return self.figure(drawn, *(columns[name][which] for name in self.needs))


def _part(weights: Weights, part: NDArray[np.float64], whole: NDArray[np.float64]) -> Figures:
    return statistics.share(weights @ (part * whole), weights @ whole)


def _p50(weights: Weights, values: NDArray[np.float64]) -> Figures:
    return statistics.quantile(weights, values, 0.5)


def _p95(weights: Weights, values: NDArray[np.float64]) -> Figures:
    return statistics.quantile(weights, values, 0.95)


_ROWS: Final = (
    *(Metric(f"recall@{room}") for room in evidence.BUDGETS),
    Metric("all@4000", binary=True),
    Metric("hit@1", binary=True),
    Metric("hit@5", binary=True),
    *(Metric(name) for name in ("MRR@10", "nDCG@10", "precision@5", "recall@5", "context_precision")),
    *(Metric(name) for name in ("context_recall", "faithfulness", "faithfulness_lenient")),
    *(Metric(name) for name in ("citation_precision", "citation_recall", "answer_correctness")),
    Metric("noise_sensitivity", "lower"),
    Metric("noise_sensitivity_irrelevant", "lower"),
    Metric("exact_match", binary=True),
    Metric("token_f1"),
    Metric("contains", binary=True),
    Metric("answer_relevancy"),
    Metric("refusal_right", binary=True),
    Metric("refusal_precision", columns=("unanswerable", "refused"), figure=_part),
    Metric("refusal_recall", columns=("refused", "unanswerable"), figure=_part),
    Metric("answerable_auroc", columns=("unanswerable", "answerable"), figure=statistics.auroc),
    *(Metric(f"judged_{name}") for name in ("faithfulness", "relevance", "completeness")),
    *(Metric(f"derived_{name}", "") for name in ("faithfulness", "relevance", "completeness")),
    *(Metric(name, "") for name in ("question_answer_cosine", "mean_similarity", "max_similarity", "coverage")),
    Metric("failed", "lower", binary=True),
    *(Metric(name, "lower") for name in ("calls", "tokens", "money", "searches")),
    *(Metric(f"{name}_p50", "lower", columns=(name,), figure=_p50) for name in ("first_token", "seconds")),
    *(Metric(f"{name}_p95", "lower", columns=(name,), figure=_p95) for name in ("first_token", "seconds")),
)
METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _ROWS}
BY_JUDGE: Final = frozenset(
    """judged_faithfulness judged_relevance judged_completeness answer_relevancy faithfulness faithfulness_lenient
    derived_faithfulness citation_precision citation_recall answer_correctness noise_sensitivity
    noise_sensitivity_irrelevant""".split()
)
"""What rests on the chat model's word in a run that it judges."""


def columns_of(rows: Sequence[Values]) -> Columns:
    """The values of the questions, in their order."""
    names = dict.fromkeys(name for metric in _ROWS for name in metric.needs)
    return {name: np.array([_number(row.get(name)) for row in rows], dtype=float) for name in names}


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


# What an answered question is worth


@dataclass(frozen=True, slots=True)
class Tools:
    """What judges: `supports` holds statements against texts, `encode` compares meanings."""

    supports: Supports = by_rules
    encode: Encode | None = None
    judge: ModelJudge | None = None


@dataclass(frozen=True, slots=True)
class Timed:
    """An answer, and after how many seconds its first piece came; None for one that never came."""

    answer: Answer
    first_token: float | None = None


def scores(case: Case, timed: Timed, tools: Tools) -> dict[str, float | None]:
    """All values of one answered question. Blocks: a second at most, where no model judges."""
    answer = timed.answer
    found = {
        **_of_evidence(case, answer),
        **_of_wording(case, answer),
        **_of_support(case, answer, tools.supports),
        **_of_vectors(case, answer, tools.encode),
        **_of_refusal(case, answer),
        **_of_cost(timed),
        **(tools.judge.scores(case, answer, tools.encode) if tools.judge else {}),
    }
    found["answer_correctness"] = correctness(found.pop("factual_f1"), found.pop("reference_cosine"))
    return {**found, **_derived(case, answer, found)}


def _of_evidence(case: Case, answer: Answer) -> dict[str, float | None]:
    quotes, texts = case.quotes, [passage.text for passage in answer.passages]
    if not quotes:
        return {}
    covers = evidence.coverings(quotes, texts)
    relevant = [bool(one) for one in covers]
    gains, ideal = evidence.grade_hits(covers, [one.grade for one in case.evidence])
    return {
        **{f"recall@{room}": evidence.character_recall(quotes, texts, room) for room in evidence.BUDGETS},
        "all@4000": evidence.holds_all(quotes, texts, 4000),
        "hit@1": evidence.hit(relevant, 1),
        "hit@5": evidence.hit(relevant, 5),
        "MRR@10": evidence.reciprocal_rank(relevant, 10),
        "nDCG@10": evidence.ndcg(gains, ideal, 10),
        "precision@5": evidence.precision(relevant, 5),
        "recall@5": evidence.recall(covers, len(quotes), 5),
        "context_precision": evidence.average_precision(relevant),
        "context_recall": evidence.context_recall(quotes, texts),
    }


def _of_wording(case: Case, answer: Answer) -> dict[str, float | None]:
    if not case.answers:
        return {}
    said = unmarked(answer.text)
    how = case.answers, is_chinese(case.question)
    return {
        "exact_match": exact_match(said, *how),
        "token_f1": token_f1(said, *how),
        "contains": contains(said, *how),
    }


def _of_support(case: Case, answer: Answer, supports: Supports) -> dict[str, float | None]:
    """What an answer from the passages says; small talk and refusals say nothing that could be held against them."""
    said = said_in(answer) if answer.outcome in ("answered", "caveat") else []
    bare = [one.text for one in said]
    reference = case.reference
    found: dict[str, float | None] = {"factual_f1": factual_f1(bare, reference, supports) if bare else None}
    if said:
        found |= faithfulness(said, answer.passages, supports) | citations(said, answer.passages, supports)
    if said and case.evidence:
        covers = evidence.coverings(case.quotes, [passage.text for passage in answer.passages])
        truth = reference or " ".join(case.quotes)
        found |= noise_sensitivity(bare, truth, answer.passages, [bool(one) for one in covers], supports)
    if reference and not case.evidence and answer.passages:
        found["context_recall"] = share_supported(against(statements_of(reference), answer.passages, supports))
    return found


def _of_vectors(case: Case, answer: Answer, encode: Encode | None) -> dict[str, float | None]:
    """The mean and the highest cosine of question and passage; coverage: 1 less the passages' mean cosine."""
    said, reference = unmarked(answer.text), case.reference if answer.text else ""
    texts = [*(one.text for one in answer.passages), *filter(None, [said, reference])]
    vectors = encode(case.question, texts) if encode and texts else None
    if vectors is None:
        return {"reference_cosine": None}
    question, passages, last = vectors[0], vectors[1 : 1 + len(answer.passages)], vectors[-1]
    near = passages @ question
    pairs = [float(passages[one] @ passages[other]) for one, other in combinations(range(len(passages)), 2)]
    return {
        "question_answer_cosine": float(vectors[1 + len(passages)] @ question) if said else None,
        "reference_cosine": float(vectors[-2] @ last) if reference else None,
        "mean_similarity": float(near.mean()) if len(near) else None,
        "max_similarity": float(near.max()) if len(near) else None,
        "coverage": 1 - sum(pairs) / len(pairs) if pairs else None,
    }


def _of_refusal(case: Case, answer: Answer) -> dict[str, float | None]:
    if case.answerable is None or answer.outcome == "failed":
        return {}
    refused, unanswerable = answer.outcome == "not_in_pages", not case.answerable
    return {
        "refused": float(refused),
        "unanswerable": float(unanswerable),
        "answerable": answer.answerable,
        "refusal_right": float(refused == unanswerable),
    }


def _of_cost(timed: Timed) -> dict[str, float | None]:
    answer = timed.answer
    return {
        "failed": float(answer.outcome == "failed"),
        "calls": float(answer.model_calls),
        "tokens": float(answer.usage.tokens_in + answer.usage.tokens_out),
        "money": answer.usage.money,
        "searches": float(len(answer.searches)),
        "first_token": timed.first_token,
        "seconds": answer.seconds,
    }


def _derived(case: Case, answer: Answer, found: Values) -> dict[str, float | None]:
    """1 to 5 without a model: faithfulness, the share of what is asked that is spoken of, context recall."""
    shares = {
        "faithfulness": found.get("faithfulness"),
        "relevance": _spoken_of(case.question, answer) if answer.text else None,
        "completeness": found.get("context_recall"),
    }
    return {f"derived_{name}": None if one is None else 1 + 4 * one for name, one in shares.items()}


def _spoken_of(question: str, answer: Answer) -> float | None:
    """The share of a question's content words that stand in the answer, or head what it quotes."""
    asked = {term.key for term in read(question).terms}
    heads = [part for one in answer.citations for part in (one.title, *one.section)]
    said = {term.key for text in (answer.text, *heads) for term in read(text).terms}
    return len(asked & said) / len(asked) if asked else None
