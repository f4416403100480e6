"""How well statements that their passages do not bear out are told, on people's labels.

    python -m benchmarks.statements [SET …] [--data FOLDER] [--limit N] [--judge 0.95]

A set is a file of cases, {"id", "passages", "text", "bad", "spans"}: `spans` are the wrong parts of `text`, and its
sentences are judged; where they are null the text as a whole is. The sets dragon-* are made here of questions with
known evidence: the answer that people gave, beside the pages it was given from, and beside another page of the set.
Beside the rules stand the small rule (words in the best three sentences, numbers anywhere), the local model where
VERIFIER_MODEL names one, and a judge that knows the labels and is right in a given share of its verdicts, in the place
of the connected model: alone, and overruled by code. For each overrule it is told how many of the judge's verdicts it
turns right, and how many wrong; for that of verbatim quotes, which stands, what its absence does.
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
from benchmarks.datasets import load, spread
from benchmarks.report import table
from benchmarks.words import words_of
from rag.background import BACKGROUND
from rag.checking.citations import Check
from rag.checking.rules import Evidence, ParsedClaim, lacks_clause, lacks_number
from rag.checking.statements import extract_claim
from rag.checking.verifier import RANK, Claim, Judgement, LocalVerifier, Verifier
from rag.config import load_settings
from rag.models.verifier import LateSupportModel
from rag.text import split_sentences
from rag.types import CheckedBy, Passage, Verdict

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_MADE = ("dragon-law-en", "dragon-law-zh", "dragon-finance-en", "dragon-finance-zh")
_SENTENCE = re.compile(r"[^.!?。！？；\n]+(?:[.!?](?=\S)[^.!?。！？；\n]*)*[.!?。！？；]*")

Case = dict[str, Any]
Row = tuple[int, int, Verdict, float]
"""Start and end of what was judged, what was found, and its score."""
Checker = Callable[[Case], list[Row]]
Overrule = Callable[[ParsedClaim, Sequence[Evidence]], bool]


@dataclass(frozen=True, slots=True)
class Judged:
    """A unit of a case: whether people call it wrong, what it was found worth (the verdict first), and if flagged."""

    case: str
    wrong: bool
    worth: float
    flagged: bool


class Judge:
    """Stands for a chat model: knows what people say of a case, and errs in a share of its verdicts."""

    checks_by: CheckedBy = "model"

    def __init__(self, case: Case, check: Check, right: float) -> None:
        self._case, self._check, self._right = case, check, right

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[Judgement | None]:
        return [Judgement("unsupported" if self._says_wrong(claim) else "supported") for claim in claims]

    def _says_wrong(self, claim: Claim) -> bool:
        stated = self._check.scored_statements[claim.place].stated
        chance = random.Random(f"{self._case['id']} {claim.place}").random()
        return _is_wrong(self._case, stated.start, stated.stop) == (chance < self._right)


def run(limit: int | None = None, right: float = 0.95) -> list[tuple[str, str]]:
    """For each set its title and a table in Markdown; nothing where there are no sets."""
    return [(f"{name}, {len(cases)} cases", _table(cases, right)) for name, cases in find_cases(DATA, (), limit)]


def find_cases(data: Path, wanted: Sequence[str], limit: int | None) -> Iterator[tuple[str, list[Case]]]:
    """The sets below `data` by name, or all that are there, each with at most `limit` cases."""
    for path in sorted((data / "statements").glob("*.jsonl")):
        if not wanted or path.stem in wanted:
            yield path.stem, spread([json.loads(line) for line in path.open(encoding="utf-8")], limit)
    for name in _MADE:
        if (data / name).exists() and (not wanted or name in wanted):
            yield name, _made(data / name, min(150, limit or 150))


def _made(folder: Path, limit: int) -> list[Case]:
    """Answers beside the pages that they are of, and beside another one."""
    data, chance = load(folder), random.Random(1)
    texts = {page["url"]: page["text"] for page in data.pages}
    asked = [q for q in data.questions if q["evidence"] and len(q["answers"][0]) > 25]
    cases = []
    for question in chance.sample(asked, min(len(asked), limit)):
        own = sorted({one["url"] for one in question["evidence"]})
        other = chance.choice([url for url in texts if url not in own])
        for bad, urls in ((0, own), (1, [other])):
            passages = [texts[url] for url in urls]
            case = {"id": f"{question['id']}-{bad}", "passages": passages, "text": question["answers"][0]}
            cases.append({**case, "bad": bad, "spans": None})
    return cases


def rules(case: Case) -> list[Row]:
    """What the app finds without a model."""
    return _rows(_check(case))


def judge(case: Case, right: float = 0.95, overrule: Overrule | None = None, of_all: bool = False) -> list[Row]:
    """What the app finds where a model answers that is right in a share of its verdicts; `of_all`: also of quotes."""
    check = _check(case)
    for weighed in check.scored_statements if of_all else ():
        weighed.finding = replace(weighed.finding, reason="")
    asyncio.run(check.consult(Judge(case, check, right), "", 16_000))
    return _rows(check, overrule, [Evidence([t[a:b] for a, b in split_sentences(t)]) for t in case["passages"]])


def by_verifier(verifier: Verifier, case: Case) -> list[Row]:
    """What the app finds where a verifier answers. Raises ModelError."""
    check = _check(case)
    BACKGROUND.wait(check.consult(verifier, "", 16_000))
    return _rows(check)


def measure(cases: Iterable[Case], checker: Checker) -> list[Judged]:
    """What a checker makes of each unit that people judged."""
    return [one for case in cases for one in _judged(case, checker(case))]


def _table(cases: Sequence[Case], right: float) -> str:
    checkers: dict[str, Checker] = {"small rule": small_rule, "rules": rules}
    if name := load_settings(None).verifier_model:
        local = LocalVerifier(LateSupportModel(name))
        checkers[f"local model {name}"] = partial(by_verifier, local)
    judged = f"judge, {right:.0%} right"
    checkers[judged] = partial(judge, right=right)
    checkers["… asked about verbatim quotes, too"] = partial(judge, right=right, of_all=True)
    checkers |= {f"… {name}": partial(judge, right=right, overrule=one) for name, one in OVERRULES.items()}
    head = ["", "AUROC", "balanced", "false alarms", "recall", "verdicts turned right", "wrong", "ms a statement"]
    rows, alone = [], list[Judged]()
    for name, checker in checkers.items():
        found, ms = _timed(cases, checker)
        alone = found if name == judged else alone
        turned = _turned(alone, found) if name.startswith("…") else ["", ""]
        rows.append([name, *_figures(found), *turned, f"{ms:.2f}"])
    return table(head, rows)


def _timed(cases: Sequence[Case], checker: Checker) -> tuple[list[Judged], float]:
    """With the processor's milliseconds a statement."""
    began, units, statements = time.process_time(), list[Judged](), 0
    for case in cases:
        rows = checker(case)
        statements += len(rows)
        units += _judged(case, rows)
    return units, 1000 * (time.process_time() - began) / max(1, statements)


def _figures(units: Sequence[Judged]) -> list[str]:
    weights = intervals.draws([one.case for one in units])
    wrong, flagged = [one.wrong for one in units], [one.flagged for one in units]
    figures = (
        intervals.auroc(weights, wrong, [one.worth for one in units]),
        intervals.balanced(weights, wrong, flagged),
        *(intervals.mean(weights * np.array([one.wrong is side for one in units]), flagged) for side in (False, True)),
    )
    return [str(intervals.estimate(one)) for one in figures]


def _turned(alone: Sequence[Judged], overruled: Sequence[Judged]) -> list[str]:
    """How many verdicts an overrule makes right, and how many wrong."""
    turned = [two for one, two in zip(alone, overruled, strict=True) if one.flagged != two.flagged]
    return [str(sum((two.wrong == two.flagged) is side for two in turned)) for side in (True, False)]


def _judged(case: Case, rows: Sequence[Row]) -> list[Judged]:
    name = str(case["id"])
    if case["spans"] is None:
        return [Judged(name, bool(case["bad"]), *_worst(rows))]
    units = [m.span() for m in _SENTENCE.finditer(case["text"]) if words_of(m.group())[0]]
    met = ([row for row in rows if _meet(case["text"], *row[:2], *unit)] for unit in units)
    return [Judged(name, _is_wrong(case, *unit), *_worst(some)) for unit, some in zip(units, met, strict=True)]


def _worst(rows: Sequence[Row]) -> tuple[float, bool]:
    worth = min((RANK[verdict] + score for *_, verdict, score in rows), default=3.0)
    return worth, any(verdict != "supported" for _, _, verdict, _ in rows)


def _is_wrong(case: Case, start: int, end: int) -> bool:
    spans = case["spans"]
    return bool(case["bad"]) if spans is None else any(_meet(case["text"], a, b, start, end) for a, b in spans)


def _meet(text: str, start: int, end: int, first: int, last: int) -> bool:
    return bool(text[max(start, first) : min(end, last)].strip())


def _check(case: Case) -> Check:
    passages = [Passage(str(n), "", str(n), "", "", "", (), t, 0, len(t)) for n, t in enumerate(case["passages"], 1)]
    return Check(case["text"], passages, rests_on=lambda _: range(1, len(passages) + 1))


def _rows(check: Check, overrule: Overrule | None = None, named: Sequence[Evidence] = ()) -> list[Row]:
    rows: list[Row] = []
    for weighed in check.scored_statements:
        stated, finding = weighed.stated, weighed.finding
        if weighed.counts:
            over = overrule and weighed.by == "model" and overrule(ParsedClaim(extract_claim(stated.bare)), named)
            said: tuple[Verdict, float] = ("unsupported", 0.0) if over else (finding.verdict, finding.score)
            rows.append((stated.start, stated.stop, *said))
    return rows


def _bare_clause(said: ParsedClaim, named: Sequence[Evidence]) -> bool:
    """Whether of a clause of two content words or more none stands anywhere."""
    clauses: dict[int, list[bool]] = {}
    for term in said.terms:
        clauses.setdefault(term.clause, []).append(any(one.places(term) for one in named))
    return any(len(found) > 1 and not any(found) for found in clauses.values())


OVERRULES: dict[str, Overrule] = {
    "overruled where a number stands nowhere": lacks_number,
    "overruled where of a clause nothing does": _bare_clause,
    "overruled where a clause was added": lacks_clause,
}


def small_rule(case: Case) -> list[Row]:
    """Flags a sentence when fewer than half of its words stand in the best three sentences, or a number in none."""
    sentences = [words_of(m.group())[0] for text in case["passages"] for m in _SENTENCE.finditer(text)]
    windows = [set().union(*sentences[i : i + 3]) for i in range(len(sentences))] or [set[str]()]
    everything = set().union(*sentences) if sentences else set[str]()
    rows: list[Row] = []
    for match in _SENTENCE.finditer(case["text"]):
        words, numbers = words_of(match.group())
        if words:
            near = max(len(words & window) for window in windows) / len(words)
            stand = numbers <= everything
            verdict: Verdict = "supported" if near >= 0.5 and stand else "unsupported"
            rows.append((*match.span(), verdict, near * (1.0 if stand else 0.5)))
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
