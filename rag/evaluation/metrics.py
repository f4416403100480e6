"""Metrics: the values of each answered question, the evidence that a search found, and the figures of a run.

Evidence is quotes from pages. A passage is relevant to the question if it covers at least half of a quote.

Values are numbers by name; None means not judged, because there was no evidence, statement or judge. Figures exclude
such questions.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import log2
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from rag.checking.rules import occurs_in, read_terms
from rag.evaluation import statistics
from rag.evaluation.cases import Case
from rag.evaluation.judge import ModelJudge
from rag.evaluation.statistics import Figures, Weights
from rag.evaluation.support import (
    Encode,
    Supports,
    by_rules,
    check_all,
    citations,
    correctness,
    factual_f1,
    faithfulness,
    noise_sensitivity,
    normalise_text,
    share_supported,
    split_answer,
    statements_of,
)
from rag.text import is_chinese, lazy_regex, strip_citations
from rag.types import Answer

BUDGETS: Final = (2000, 4000, 8000)
"""The values of N in recall@N: how many characters from the start of the results are searched for evidence."""
FULL_COVERAGE: Final = 0.9
HALF_COVERAGE: Final = 0.5
_SHINGLE: Final = 12


def quote_coverage(quote: str, body: str) -> float:
    """Return the share of the quote's characters in runs of twelve that are also in `body`; both must be normalised."""
    if not quote or quote in body:
        return 1.0
    n = min(_SHINGLE, len(quote))
    seen = bytearray(len(quote))
    for i in range(len(quote) - n + 1):
        if quote[i : i + n] in body:
            seen[i : i + n] = b"\x01" * n
    return sum(seen) / len(quote)


def join_start(texts: Sequence[str], max_chars: int) -> str:
    """Return the first `max_chars` characters of the texts, normalised and joined: a quote may span two of them."""
    parts = []
    for text in texts:
        parts.append(normalise_text(text[: max(0, max_chars)]))
        max_chars -= len(text)
    return "".join(parts)


def character_recall(quotes: Sequence[str], texts: Sequence[str], max_chars: int) -> float:
    """Return recall@N: the share of the quotes' characters in the first N characters of the texts."""
    body, bare = join_start(texts, max_chars), [normalise_text(quote) for quote in quotes]
    return sum(quote_coverage(quote, body) * len(quote) for quote in bare) / max(1, sum(map(len, bare)))


def has_all(quotes: Sequence[str], texts: Sequence[str], max_chars: int) -> float:
    """Return all@N: 1 if the first N characters cover at least 90 % of each quote, else 0."""
    body = join_start(texts, max_chars)
    return float(all(quote_coverage(normalise_text(quote), body) >= FULL_COVERAGE for quote in quotes))


def context_recall(quotes: Sequence[str], texts: Sequence[str]) -> float:
    """Return RAGAS's context recall, by evidence: the share of quotes that the texts cover to at least 90 %."""
    body = join_start(texts, sum(map(len, texts)))
    return sum(quote_coverage(normalise_text(quote), body) >= FULL_COVERAGE for quote in quotes) / len(quotes)


def covered_quotes(quotes: Sequence[str], texts: Sequence[str]) -> list[set[int]]:
    """Return, for each text in rank order, the indexes of the quotes that it covers at least by half."""
    bodies, bare = [normalise_text(text) for text in texts], [normalise_text(quote) for quote in quotes]
    return [
        {place for place, quote in enumerate(bare) if quote_coverage(quote, body) >= HALF_COVERAGE} for body in bodies
    ]


# Ranking metrics


def hit(relevant: Sequence[bool], k: int) -> float:
    return float(any(relevant[:k]))


def reciprocal_rank(relevant: Sequence[bool], k: int = 10) -> float:
    """Return 1 / rank of the first relevant result among the first k; 0 for none."""
    return next((1 / rank for rank, is_relevant in enumerate(relevant[:k], 1) if is_relevant), 0.0)


def precision(relevant: Sequence[bool], k: int) -> float:
    """Return precision@k; missing results count as irrelevant."""
    return sum(relevant[:k]) / k


def recall(covers: Sequence[set[int]], quotes: int, k: int) -> float:
    """Return the share of the quotes that the first k results cover."""
    return len(set().union(*covers[:k])) / quotes


def average_precision(relevant: Sequence[bool]) -> float:
    """Return RAGAS's context precision: the mean of the precision at each relevant rank; 0 if there is none."""
    ranks = [rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant]
    return sum(place / rank for place, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def ndcg(gains: Sequence[float], ideal: Sequence[float], k: int = 10) -> float:
    """Return nDCG@k (Järvelin and Kekäläinen 2002) with linear gain, as in trec_eval.

    `ideal` are all possible gains, in any order.
    """
    best = _discount(sorted(ideal, reverse=True)[:k])
    return _discount(gains[:k]) / best if best else 0.0


def _discount(gains: Sequence[float]) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(gains, 1))


def grade_hits(covers: Sequence[set[int]], grades: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the gain of each passage, and all possible gains, for `ndcg`.

    A passage gains the highest grade of the quotes that it is the first to cover. Quotes that one passage covers count
    as one document, each uncovered quote as a missed one.
    """
    gains, seen = list[float](), set[int]()
    for covered in covers:
        gains.append(max((grades[place] for place in covered - seen), default=0.0))
        seen |= covered
    misses = [grade for place, grade in enumerate(grades) if place not in seen]
    return gains, [*gains, *misses]


_ARTICLES: Final = lazy_regex(r"\b(?:a|an|the)\b")
_TOKEN: Final = lazy_regex("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\W_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def tokens(text: str, chinese: bool) -> list[str]:
    """Return the tokens for comparing answers: lower case, without punctuation and, unless `chinese`, articles."""
    folded = unicodedata.normalize("NFKC", text).lower()
    if chinese:
        return _TOKEN.findall(folded)
    bare = "".join(sign for sign in folded if not unicodedata.category(sign).startswith(("P", "S")))
    return _ARTICLES.sub(" ", bare).split()


def exact_match(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """Return EM: 1 if the answer equals one of the gold answers, else 0."""
    text, *others = (("" if chinese else " ").join(tokens(one, chinese)) for one in (answer, *golds))
    return float(text in others)


def token_f1(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """Return the best F1 of the tokens, 2PR / (P + R), over the gold answers."""
    candidate, best = tokens(answer, chinese), 0.0
    for gold in (tokens(text, chinese) for text in golds):
        shared = _longest_run(candidate, gold) if chinese else (Counter(candidate) & Counter(gold)).total()
        size = len(candidate) + len(gold)
        best = max(best, 2 * shared / size if candidate and gold else float(candidate == gold))
    return best


def contains(answer: str, golds: Sequence[str], chinese: bool) -> float:
    """Return 1 if a gold answer is in the answer, in whole words and with the same values, else 0."""
    text, *others = (answer, *golds) if chinese else (_ARTICLES.sub(" ", one) for one in (answer, *golds))
    return float(any(occurs_in(gold, text) for gold in others))


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    best, previous = 0, [0] * (len(second) + 1)
    for token in first:
        row = [0, *(previous[index] + 1 if token == match else 0 for index, match in enumerate(second))]
        best, previous = max(best, max(row)), row
    return best


Values = Mapping[str, float | None]
Columns = Mapping[str, NDArray[np.float64]]
"""Arrays with one value per question, by name; NaN if not judged."""
Mask = NDArray[np.bool_]
Better = Literal["higher", "lower", ""]


# Figures of a run


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a run, computed by `figure` from `columns`, the values of each question. `better` is the better
    direction, "" if there is none. A `binary` metric is 0 or 1 for each question."""

    name: str
    better: Better = "higher"
    binary: bool = False
    columns: tuple[str, ...] = ()
    figure: Callable[..., Figures] = statistics.mean

    @property
    def needs(self) -> tuple[str, ...]:
        return self.columns or (self.name,)

    def mask(self, columns: Columns) -> Mask:
        """Return a mask of the questions with all required values."""
        return np.asarray(np.all([~np.isnan(columns[name]) for name in self.needs], axis=0))

    def compute(self, weights: Weights, columns: Columns, mask: Mask) -> Figures:
        sample = weights if mask.all() else weights[:, mask]  # copying takes longer than the computation
        return self.figure(sample, *(columns[name][mask] for name in self.needs))


def _ratio(weights: Weights, part: NDArray[np.float64], whole: NDArray[np.float64]) -> Figures:
    return statistics.share(weights @ (part * whole), weights @ whole)


_ROWS: Final = (
    *(Metric(f"recall@{budget}") for budget in BUDGETS),
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
    Metric("refusal_precision", columns=("unanswerable", "refused"), figure=_ratio),
    Metric("refusal_recall", columns=("refused", "unanswerable"), figure=_ratio),
    Metric("answerable_auroc", columns=("unanswerable", "answerable"), figure=statistics.auroc),
    *(Metric(f"judged_{name}") for name in ("faithfulness", "relevance", "completeness")),
    *(Metric(f"derived_{name}", "") for name in ("faithfulness", "relevance", "completeness")),
    *(Metric(name, "") for name in ("question_answer_cosine", "mean_similarity", "max_similarity", "coverage")),
    Metric("failed", "lower", binary=True),
    *(Metric(name, "lower") for name in ("calls", "tokens", "money", "searches")),
    *(
        Metric(f"{name}_p{percent}", "lower", columns=(name,), figure=partial(statistics.quantile, q=percent / 100))
        for percent in (50, 95)
        for name in ("first_token", "seconds")
    ),
)
METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _ROWS}
JUDGE_METRICS: Final = frozenset(
    """judged_faithfulness judged_relevance judged_completeness answer_relevancy faithfulness faithfulness_lenient
    derived_faithfulness citation_precision citation_recall answer_correctness noise_sensitivity
    noise_sensitivity_irrelevant""".split()
)
"""Metrics that depend on the chat model if it judges the run."""


def columns_of(rows: Sequence[Values]) -> Columns:
    """Return the values of the questions by name, in order of the rows."""
    names = dict.fromkeys(name for metric in _ROWS for name in metric.needs)
    return {name: np.array([row.get(name) for row in rows], dtype=float) for name in names}  # None becomes NaN


# Values of an answered question


@dataclass(frozen=True, slots=True)
class Judges:
    """Judges of answers: `supports` checks statements against texts, `encode` compares meanings."""

    supports: Supports = by_rules
    encode: Encode | None = None
    judge: ModelJudge | None = None


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """An answer and its time to first token in seconds; None if it had no tokens."""

    answer: Answer
    first_token: float | None = None


def scores(case: Case, timed_answer: TimedAnswer, judges: Judges) -> dict[str, float | None]:
    """Return all values of one answered question. Blocks for up to a second, or longer if a model judges."""
    answer = timed_answer.answer
    values = {
        **_evidence_values(case, answer),
        **_verdict_values(case, answer),
        **_support_values(case, answer, judges.supports),
        **_vector_values(case, answer, judges.encode),
        "failed": float(answer.outcome == "failed"),
        "calls": float(answer.model_calls),
        "tokens": float(answer.usage.tokens_in + answer.usage.tokens_out),
        "money": answer.usage.money,
        "searches": float(len(answer.searches)),
        "first_token": timed_answer.first_token,
        "seconds": answer.seconds,
        **(judges.judge.scores(case, answer, judges.encode) if judges.judge else {}),
    }
    values["answer_correctness"] = correctness(values.pop("factual_f1"), values.pop("reference_cosine"))
    shares = {
        "faithfulness": values.get("faithfulness"),
        "relevance": _question_coverage(case.question, answer) if answer.text else None,
        "completeness": values.get("context_recall"),
    }
    # from 1 to 5, like a judge's, but without a model
    derived = {f"derived_{name}": None if share is None else 1 + 4 * share for name, share in shares.items()}
    return {**values, **derived}


def _evidence_values(case: Case, answer: Answer) -> dict[str, float | None]:
    quotes, texts = case.quotes, [passage.text for passage in answer.passages]
    if not quotes:
        return {}
    covers = covered_quotes(quotes, texts)
    relevant = [bool(places) for places in covers]
    gains, ideal = grade_hits(covers, [item.grade for item in case.evidence])
    return {
        **{f"recall@{budget}": character_recall(quotes, texts, budget) for budget in BUDGETS},
        "all@4000": has_all(quotes, texts, 4000),
        "hit@1": hit(relevant, 1),
        "hit@5": hit(relevant, 5),
        "MRR@10": reciprocal_rank(relevant, 10),
        "nDCG@10": ndcg(gains, ideal, 10),
        "precision@5": precision(relevant, 5),
        "recall@5": recall(covers, len(quotes), 5),
        "context_precision": average_precision(relevant),
        "context_recall": context_recall(quotes, texts),
    }


def _verdict_values(case: Case, answer: Answer) -> dict[str, float | None]:
    """Compare an answer with the reference answers, and its refusal with whether the pages have the answer."""
    values: dict[str, float | None] = {}
    if case.answers:
        golds = strip_citations(answer.text), case.answers, is_chinese(case.question)
        values |= {"exact_match": exact_match(*golds), "token_f1": token_f1(*golds), "contains": contains(*golds)}
    if case.answerable is not None and answer.outcome != "failed":
        is_refusal, is_unanswerable = answer.outcome == "not_in_pages", not case.answerable
        values |= {
            "refused": float(is_refusal),
            "unanswerable": float(is_unanswerable),
            "answerable": answer.answerable,
            "refusal_right": float(is_refusal == is_unanswerable),
        }
    return values


def _support_values(case: Case, answer: Answer, supports: Supports) -> dict[str, float | None]:
    """Check the statements of an answer; those of small talk and refusals are not checked."""
    statements = split_answer(answer) if answer.outcome in ("answered", "caveat") else []
    texts = [statement.text for statement in statements]
    reference = case.reference
    values: dict[str, float | None] = {"factual_f1": factual_f1(texts, reference, supports) if texts else None}
    if statements:
        values |= faithfulness(statements, answer.passages, supports) | citations(statements, answer.passages, supports)
    if statements and case.evidence:
        covers = covered_quotes(case.quotes, [passage.text for passage in answer.passages])
        truth = reference or " ".join(case.quotes)
        values |= noise_sensitivity(texts, truth, answer.passages, [bool(places) for places in covers], supports)
    if reference and not case.evidence and answer.passages:
        values["context_recall"] = share_supported(check_all(statements_of(reference), answer.passages, supports))
    return values


def _vector_values(case: Case, answer: Answer, encode: Encode | None) -> dict[str, float | None]:
    """Return cosines of question, answer, reference and passages; coverage is 1 minus the mean cosine of passages."""
    text = strip_citations(answer.text)
    reference = case.reference if text else ""
    texts = [*(passage.text for passage in answer.passages), *filter(None, [text, reference])]
    vectors = encode(case.question, texts) if encode and texts else None
    if vectors is None:
        return {"reference_cosine": None}
    question, passages, last = vectors[0], vectors[1 : 1 + len(answer.passages)], vectors[-1]
    similarities = passages @ question
    pairs = [float(passages[i] @ passages[j]) for i, j in combinations(range(len(passages)), 2)]
    return {
        "question_answer_cosine": float(vectors[1 + len(passages)] @ question) if text else None,
        "reference_cosine": float(vectors[-2] @ last) if reference else None,
        "mean_similarity": float(similarities.mean()) if len(similarities) else None,
        "max_similarity": float(similarities.max()) if len(similarities) else None,
        "coverage": 1 - sum(pairs) / len(pairs) if pairs else None,
    }


def _question_coverage(question: str, answer: Answer) -> float | None:
    """Return the share of a question's content words that are in the answer or in the headings of its citations."""
    question_keys = {term.key for term in read_terms(question).terms}
    heads = [part for citation in answer.citations for part in (citation.title, *citation.section)]
    answer_keys = {term.key for text in (answer.text, *heads) for term in read_terms(text).terms}
    return len(question_keys & answer_keys) / len(question_keys) if question_keys else None
