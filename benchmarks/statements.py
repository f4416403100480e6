"""Detection of statements that their passages do not support, on human labels.

    python -m benchmarks.statements [SET …] [--data FOLDER] [--limit N] [--judge 0.95]

A set is a file of cases, {"id", "passages", "text", "bad", "spans"}: `spans` are the wrong parts of `text`, which is
judged sentence by sentence, or as a whole if they are null. The dragon-* sets are built here from questions with known
evidence: the reference answer with its own pages, and with another page of the set. The checkers are the rules, a small
rule (words in the best three sentences, numbers anywhere), the local model in VERIFIER_MODEL, and, for the connected
model, a simulated judge that is right in a given share of its verdicts: alone, and overruled by code. For each overrule
the table counts the judge's verdicts that it makes right, and wrong; for that of verbatim quotes, which is active, the
effect of removing it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import intervals
from benchmarks.datasets import load, sample_evenly
from benchmarks.report import table
from benchmarks.words import words_of
from rag.background import BACKGROUND
from rag.checking.citations import Check
from rag.checking.rules import EvidenceIndex, ParsedClaim, lacks_clause, lacks_number
from rag.checking.statements import extract_claim
from rag.checking.verifier import RANK, Claim, ClaimJudgement, LocalVerifier, Verifier
from rag.config import load_settings
from rag.models.cross_encoders import LazySupportModel
from rag.text import split_sentences
from rag.types import CheckedBy, Passage, Verdict

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_GENERATED_SETS = ("dragon-law-en", "dragon-law-zh", "dragon-finance-en", "dragon-finance-zh")
_SENTENCE = re.compile(r"[^.!?。！？；\n]+(?:[.!?](?=\S)[^.!?。！？；\n]*)*[.!?。！？；]*")

Case = dict[str, Any]
Row = tuple[int, int, Verdict, float]
"""Start and end of the judged text, the verdict, and its score."""
Checker = Callable[[Case], list[Row]]
Overrule = Callable[[ParsedClaim, Sequence[EvidenceIndex]], bool]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a case: its label, the checker's score (by verdict, then confidence), and whether it is flagged."""

    case: str
    wrong: bool
    score: float
    flagged: bool


class SimulatedJudge:
    """A simulated chat model: it knows the labels of a case, and errs in a share of its verdicts."""

    verifier_kind: CheckedBy = "model"

    def __init__(self, case: Case, check: Check, right: float) -> None:
        self._case, self._check, self._right = case, check, right

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
        return [ClaimJudgement("unsupported" if self._finds_wrong(claim) else "supported") for claim in claims]

    def _finds_wrong(self, claim: Claim) -> bool:
        sentence = self._check.scored_statements[claim.place].sentence
        chance = random.Random(f"{self._case['id']} {claim.place}").random()
        return _is_wrong(self._case, sentence.start, sentence.stop) == (chance < self._right)


def run(limit: int | None = None, right: float = 0.95) -> list[tuple[str, str]]:
    """Return a title and a Markdown table for each set; nothing without sets."""
    return [(f"{name}, {len(cases)} cases", _table(cases, right)) for name, cases in find_cases(DATA, (), limit)]


def find_cases(data: Path, names: Sequence[str], limit: int | None) -> Iterator[tuple[str, list[Case]]]:
    """Yield the sets below `data` by name, or all of them, each with up to `limit` cases."""
    for path in sorted((data / "statements").glob("*.jsonl")):
        if not names or path.stem in names:
            yield path.stem, sample_evenly([json.loads(line) for line in path.open(encoding="utf-8")], limit)
    for name in _GENERATED_SETS:
        if (data / name).exists() and (not names or name in names):
            yield name, _make_cases(data / name, min(150, limit or 150))


def _make_cases(folder: Path, limit: int) -> list[Case]:
    """Return answers with their own pages, and with another one."""
    data, chance = load(folder), random.Random(1)
    texts = {page["url"]: page["text"] for page in data.pages}
    answerable = [q for q in data.questions if q["evidence"] and len(q["answers"][0]) > 25]
    cases = []
    for question in chance.sample(answerable, min(len(answerable), limit)):
        own_urls = sorted({one["url"] for one in question["evidence"]})
        other_url = chance.choice([url for url in texts if url not in own_urls])
        for bad, urls in ((0, own_urls), (1, [other_url])):
            passages = [texts[url] for url in urls]
            case = {"id": f"{question['id']}-{bad}", "passages": passages, "text": question["answers"][0]}
            cases.append({**case, "bad": bad, "spans": None})
    return cases


def rules(case: Case) -> list[Row]:
    """Return the app's findings without a model."""
    return _rows(_make_check(case))


def judge(case: Case, right: float = 0.95, overrule: Overrule | None = None, of_all: bool = False) -> list[Row]:
    """Return the app's findings with a simulated model; with `of_all` it also judges verbatim quotes."""
    check = _make_check(case)
    for entry in check.scored_statements if of_all else ():
        entry.finding = replace(entry.finding, reason="")
    asyncio.run(check.consult(SimulatedJudge(case, check, right), "", 16_000))
    return _rows(check, overrule, [EvidenceIndex([t[a:b] for a, b in split_sentences(t)]) for t in case["passages"]])


def by_verifier(verifier: Verifier, case: Case) -> list[Row]:
    """Return the app's findings with a verifier. Raises ModelError."""
    check = _make_check(case)
    BACKGROUND.wait(check.consult(verifier, "", 16_000))
    return _rows(check)


def measure(cases: Iterable[Case], checker: Checker) -> list[Unit]:
    """Return a checker's verdict on each labelled unit."""
    return [one for case in cases for one in _judge_units(case, checker(case))]


def _table(cases: Sequence[Case], right: float) -> str:
    checkers: dict[str, Checker] = {"small rule": small_rule, "rules": rules}
    if name := load_settings(None).verifier_model:
        local = LocalVerifier(LazySupportModel(name))
        checkers[f"local model {name}"] = partial(by_verifier, local)
    judge_name = f"judge, {right:.0%} right"
    checkers[judge_name] = partial(judge, right=right)
    checkers["… also asked about verbatim quotes"] = partial(judge, right=right, of_all=True)
    checkers |= {f"… {name}": partial(judge, right=right, overrule=rule) for name, rule in OVERRULES.items()}
    head = ["", "AUROC", "balanced", "false alarms", "recall", "verdicts turned right", "wrong", "ms per statement"]
    rows, judge_units = [], list[Unit]()
    for name, checker in checkers.items():
        units, ms = _measure_time(cases, checker)
        judge_units = units if name == judge_name else judge_units
        turned_counts = _count_turned(judge_units, units) if name.startswith("…") else ["", ""]
        rows.append([name, *_figures(units), *turned_counts, f"{ms:.2f}"])
    return table(head, rows)


def _measure_time(cases: Sequence[Case], checker: Checker) -> tuple[list[Unit], float]:
    """Return the judged units, and processor milliseconds per statement."""
    began, units, statements = time.process_time(), list[Unit](), 0
    for case in cases:
        rows = checker(case)
        statements += len(rows)
        units += _judge_units(case, rows)
    return units, 1000 * (time.process_time() - began) / max(1, statements)


def _figures(units: Sequence[Unit]) -> list[str]:
    weights = intervals.bootstrap_weights([one.case for one in units])
    wrong, flagged = [one.wrong for one in units], [one.flagged for one in units]
    figures = (
        intervals.auroc(weights, wrong, [one.score for one in units]),
        intervals.mean_recall(weights, wrong, flagged),
        *(intervals.mean(weights * np.array([one.wrong is side for one in units]), flagged) for side in (False, True)),
    )
    return [str(intervals.estimate(one)) for one in figures]


def _count_turned(judge_units: Sequence[Unit], overruled: Sequence[Unit]) -> list[str]:
    """Return how many verdicts an overrule makes right, and how many wrong."""
    changed = [after for before, after in zip(judge_units, overruled, strict=True) if before.flagged != after.flagged]
    return [str(sum((after.wrong == after.flagged) is side for after in changed)) for side in (True, False)]


def _judge_units(case: Case, rows: Sequence[Row]) -> list[Unit]:
    name = str(case["id"])
    if case["spans"] is None:
        return [Unit(name, bool(case["bad"]), *_worst_row(rows))]
    units = [m.span() for m in _SENTENCE.finditer(case["text"]) if words_of(m.group())[0]]
    hits = ([row for row in rows if _overlap(case["text"], *row[:2], *unit)] for unit in units)
    return [Unit(name, _is_wrong(case, *unit), *_worst_row(near)) for unit, near in zip(units, hits, strict=True)]


def _worst_row(rows: Sequence[Row]) -> tuple[float, bool]:
    worth = min((RANK[verdict] + score for *_, verdict, score in rows), default=3.0)
    return worth, any(verdict != "supported" for _, _, verdict, _ in rows)


def _is_wrong(case: Case, start: int, end: int) -> bool:
    spans = case["spans"]
    return bool(case["bad"]) if spans is None else any(_overlap(case["text"], a, b, start, end) for a, b in spans)


def _overlap(text: str, start: int, end: int, first: int, last: int) -> bool:
    return bool(text[max(start, first) : min(end, last)].strip())


def _make_check(case: Case) -> Check:
    passages = [Passage(str(n), "", str(n), "", "", "", (), t, 0, len(t)) for n, t in enumerate(case["passages"], 1)]
    return Check(case["text"], passages, find_passages=lambda _: range(1, len(passages) + 1))


def _rows(check: Check, overrule: Overrule | None = None, evidence: Sequence[EvidenceIndex] = ()) -> list[Row]:
    rows: list[Row] = []
    for entry in check.scored_statements:
        sentence, finding = entry.sentence, entry.finding
        if entry.is_counted:
            is_overruled = (
                overrule and entry.by == "model" and overrule(ParsedClaim(extract_claim(sentence.bare)), evidence)
            )
            result: tuple[Verdict, float] = ("unsupported", 0.0) if is_overruled else (finding.verdict, finding.score)
            rows.append((sentence.start, sentence.stop, *result))
    return rows


def _lacks_clause(statement: ParsedClaim, evidence: Sequence[EvidenceIndex]) -> bool:
    """Return whether a clause of two or more content words has none in the evidence."""
    clauses: dict[int, list[bool]] = {}
    for term in statement.terms:
        clauses.setdefault(term.clause, []).append(any(source.places(term) for source in evidence))
    return any(len(flags) > 1 and not any(flags) for flags in clauses.values())


OVERRULES: dict[str, Overrule] = {
    "overruled if a number is missing": lacks_number,
    "overruled if a whole clause is missing": _lacks_clause,
    "overruled if a clause was added": lacks_clause,
}


def small_rule(case: Case) -> list[Row]:
    """Flag a sentence if fewer than half of its words are in the best three sentences, or a number is in none."""
    sentences = [words_of(m.group())[0] for text in case["passages"] for m in _SENTENCE.finditer(text)]
    windows = [set().union(*sentences[i : i + 3]) for i in range(len(sentences))] or [set[str]()]
    everything = set().union(*sentences) if sentences else set[str]()
    rows: list[Row] = []
    for match in _SENTENCE.finditer(case["text"]):
        words, numbers = words_of(match.group())
        if words:
            share = max(len(words & window) for window in windows) / len(words)
            has_numbers = numbers <= everything
            verdict: Verdict = "supported" if share >= 0.5 and has_numbers else "unsupported"
            rows.append((*match.span(), verdict, share * (1.0 if has_numbers else 0.5)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--judge", type=float, default=0.95, help="the share of its verdicts that are right")
    options = parser.parse_args()
    for name, cases in find_cases(options.data, options.sets, options.limit):
        print(f"### {name}, {len(cases)} cases\n\n{_table(cases, options.judge)}\n", flush=True)


if __name__ == "__main__":
    main()
