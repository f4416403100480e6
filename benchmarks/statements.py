"""How well statements that their passages do not bear out are told, on people's labels.

    python -m benchmarks.statements [SET …] [--data FOLDER] [--limit N] [--judge 0.95]

A set is a file of cases, {"id", "passages", "text", "bad", "spans"}: `spans` are the wrong parts of `text`, and its
sentences are judged; where they are null the text as a whole is. The sets dragon-* are made here of questions with
known evidence: the answer that people gave, beside the pages it was given from, and beside another page of the set.
Beside the rules stand the small rule (words in the best three sentences, numbers anywhere), the local model where
VERIFIER_MODEL names one, and a judge that knows the labels and is right in a given share of its verdicts, in the place
of the connected model: alone, and overruled by code. Intervals are of 1,000 resamplings of the cases.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import load
from benchmarks.report import table
from rag.agent.citing.citations import Check, Weighed
from rag.agent.citing.local import LocalVerifier
from rag.agent.citing.rules import Evidence, Said, missing_clause, missing_numbers
from rag.agent.citing.statements import what_it_says
from rag.agent.citing.verifier import RANK, Claim, Judgement, Verifier
from rag.config import load_settings
from rag.models.verifier import LateSupportModel
from rag.text import split_sentences
from rag.types import CheckedBy, Passage

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_MADE = ("dragon-law-en", "dragon-law-zh", "dragon-finance-en", "dragon-finance-zh")
_SENTENCE = re.compile(r"[^.!?。！？；\n]+(?:[.!?](?=\S)[^.!?。！？；\n]*)*[.!?。！？；]*")
_RESAMPLED = 1_000

Case = dict[str, Any]
Row = tuple[int, int, float, bool]
"""Start and end of what was judged, its score, and whether it was flagged."""
Checker = Callable[[Case], list[Row]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One unit of a case: whether people call it wrong, how well it scored, and whether it was flagged."""

    wrong: bool
    score: float
    flagged: bool


class Judge:
    """Stands for a chat model: knows what people say of a case, and errs in a share of its verdicts."""

    checks_by: CheckedBy = "model"

    def __init__(self, case: Case, check: Check, right: float) -> None:
        self._case, self._check, self._right = case, check, right
        self._chance = random.Random(str(case["id"]))

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[Judgement | None]:
        return [Judgement("unsupported" if self._says_wrong(claim) else "supported") for claim in claims]

    def _says_wrong(self, claim: Claim) -> bool:
        stated = self._check.weighed[claim.place].stated
        return _is_wrong(self._case, stated.start, stated.stop) == (self._chance.random() < self._right)


def run(limit: int | None = None, right: float = 0.95) -> list[tuple[str, str]]:
    """For each set its title and a table in Markdown; nothing where there are no sets."""
    return [(f"{name}, {len(cases)} cases", _table(cases, right)) for name, cases in _sets(DATA, (), limit)]


def _sets(data: Path, wanted: Sequence[str], limit: int | None) -> Iterator[tuple[str, list[Case]]]:
    for path in sorted((data / "statements").glob("*.jsonl")):
        if not wanted or path.stem in wanted:
            yield path.stem, [json.loads(line) for line in path.open(encoding="utf-8")][:limit]
    for name in _MADE:
        if (data / name).exists() and (not wanted or name in wanted):
            yield name, _made(data / name, limit or 150)


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


def _table(cases: Sequence[Case], right: float) -> str:
    checkers: dict[str, Checker] = {"small rule": small_rule, "rules": lambda case: _checked(case, None, right)}
    if name := load_settings(None).verifier_model:
        local = LocalVerifier(LateSupportModel(name))
        checkers[f"local model {name}"] = lambda case: _checked(case, local, right)
    judged = f"judge, {right:.0%} right"
    checkers[judged] = lambda case: _checked(case, Judge, right)
    checkers["… overruled where a number stands nowhere"] = lambda case: _checked(case, Judge, right, missing_numbers)
    checkers["… overruled where of a clause nothing does"] = lambda case: _checked(case, Judge, right, _bare_clause)
    checkers["… overruled where a clause was added"] = lambda case: _checked(case, Judge, right, missing_clause)
    head = ["", "AUROC", "balanced", "false alarms", "recall", "ms a statement"]
    return table(head, [[name, *_cells(cases, checker)] for name, checker in checkers.items()])


def _cells(cases: Sequence[Case], checker: Checker) -> list[str]:
    began, counted = time.process_time(), 0
    units = []
    for case in cases:
        rows = checker(case)
        counted += len(rows)
        units.append(_judged(case, rows))
    ms = 1000 * (time.process_time() - began) / max(1, counted)
    chance = random.Random(1)
    samples = [_figures(chance.choices(units, k=len(units))) for _ in range(_RESAMPLED)]
    return [*(_with_interval(*values) for values in zip(_figures(units), *samples, strict=True)), f"{ms:.2f}"]


def _with_interval(value: float, *samples: float) -> str:
    ranked = sorted(samples)
    return f"{value:.3f} ({ranked[len(ranked) // 40]:.2f}–{ranked[-len(ranked) // 40]:.2f})"


def _figures(units: Sequence[Sequence[Judged]]) -> tuple[float, float, float, float]:
    """AUROC, balanced accuracy, false alarms, recall."""
    ones = [one for unit in units for one in unit]
    wrong, fine = [one for one in ones if one.wrong], [one for one in ones if not one.wrong]
    recall = sum(one.flagged for one in wrong) / max(1, len(wrong))
    alarms = sum(one.flagged for one in fine) / max(1, len(fine))
    return auroc(wrong, fine), (recall + 1 - alarms) / 2, alarms, recall


def auroc(wrong: Sequence[Judged], fine: Sequence[Judged]) -> float:
    """How often a wrong one scores below a right one; verdicts come before scores."""
    ranked = sorted((not one.flagged, one.score, one.wrong) for one in (*wrong, *fine))
    below = ties = 0.0
    total, at = 0, 0
    while at < len(ranked):
        same = at
        while same < len(ranked) and ranked[same][:2] == ranked[at][:2]:
            same += 1
        good = sum(not one[2] for one in ranked[at:same])
        bad = same - at - good
        below, ties, total, at = below + total * good, ties + bad * good / 2, total + bad, same
    return (below + ties) / max(1, len(wrong) * len(fine))


def _judged(case: Case, rows: Sequence[Row]) -> list[Judged]:
    if case["spans"] is None:
        return [Judged(bool(case["bad"]), *_worst(rows))]
    units = [m.span() for m in _SENTENCE.finditer(case["text"]) if re.search(r"\w", m.group())]
    met = ([row for row in rows if _meet(case["text"], *row[:2], *unit)] for unit in units)
    return [Judged(_is_wrong(case, *unit), *_worst(some)) for unit, some in zip(units, met, strict=True)]


def _worst(rows: Sequence[Row]) -> tuple[float, bool]:
    return min(
        ((score, flagged) for *_, score, flagged in rows), key=lambda one: (not one[1], one[0]), default=(1, False)
    )


def _is_wrong(case: Case, start: int, end: int) -> bool:
    spans = case["spans"]
    return bool(case["bad"]) if spans is None else any(_meet(case["text"], a, b, start, end) for a, b in spans)


def _meet(text: str, start: int, end: int, first: int, last: int) -> bool:
    return bool(text[max(start, first) : min(end, last)].strip())


def _checked(
    case: Case,
    verifier: Verifier | type[Judge] | None,
    right: float,
    overrule: Callable[[Said, Sequence[Evidence]], bool] | None = None,
) -> list[Row]:
    passages = [Passage(str(n), "", str(n), "", "", "", (), t, 0, len(t)) for n, t in enumerate(case["passages"], 1)]
    check = Check(case["text"], passages, rests_on=lambda _: range(1, len(passages) + 1))
    if verifier is not None:
        asked = verifier(case, check, right) if isinstance(verifier, type) else verifier
        asyncio.run(check.consult(asked, "", 16_000))
    evidence = [Evidence([t[a:b] for a, b in split_sentences(t)]) for t in case["passages"]] if overrule else []
    return [_row(weighed, overrule, evidence) for weighed in check.weighed if weighed.counts]


def _row(weighed: Weighed, overrule: Callable[[Said, Sequence[Evidence]], bool] | None, named: list[Evidence]) -> Row:
    stated, finding = weighed.stated, weighed.finding
    if overrule and weighed.by == "model" and overrule(Said(what_it_says(stated.bare)), named):
        return stated.start, stated.stop, 0.0, True
    return stated.start, stated.stop, finding.score, RANK[finding.verdict] < RANK["supported"]


def _bare_clause(said: Said, named: Sequence[Evidence]) -> bool:
    """Whether of a clause of two content words or more none stands anywhere."""
    clauses: dict[int, list[bool]] = {}
    for term in said.terms:
        clauses.setdefault(term.clause, []).append(any(one.places(term) for one in named))
    return any(len(found) > 1 and not any(found) for found in clauses.values())


_STOP = frozenset(
    """a an the of in on at to for from by with and or but as is are was were be been being it its this that these
    those he she his her they their there which who whom whose what when where while also not no can could may might
    will would should do does did has have had than then so such into about over under after before during between more
    most other some any all each both only very i you we our your my me us if because however according based given
    """.split()
)
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[A-Za-z][A-Za-z'’-]*|[\u4e00-\u9fff]+")
_ENDINGS = ("ing", "ed", "ies", "es", "s", "ly")


def small_rule(case: Case) -> list[Row]:
    """Flags a sentence when fewer than half of its words stand in the best three sentences, or a number in none."""
    sentences = [_words(m.group()) for text in case["passages"] for m in _SENTENCE.finditer(text)]
    windows = [set().union(*sentences[i : i + 3]) for i in range(len(sentences))] or [set[str]()]
    everything = set().union(*sentences) if sentences else set[str]()
    rows = []
    for match in _SENTENCE.finditer(case["text"]):
        if words := _words(match.group()):
            near = max(len(words & window) for window in windows) / len(words)
            missing = any(word[0].isdigit() for word in words - everything)
            rows.append((*match.span(), near * (0.5 if missing else 1.0), near < 0.5 or missing))
    return rows


def _words(text: str) -> set[str]:
    found: set[str] = set()
    for token in _TOKEN.findall(text):
        if token[0].isdigit():
            found.add(token.replace(",", "").rstrip("."))
        elif token[0] >= "\u4e00":
            found.update([token[i : i + 2] for i in range(len(token) - 1)] or [token])
        elif (low := re.sub(r"['’]s$", "", token.lower())) not in _STOP and len(low) > 1:
            ended = (low[: -len(e)] for e in _ENDINGS if low.endswith(e) and len(low) - len(e) >= 3)
            found.add(next(ended, low))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--judge", type=float, default=0.95, help="the share of its verdicts that are right")
    options = parser.parse_args()
    for name, cases in _sets(options.data, options.sets, options.limit):
        print(f"### {name}, {len(cases)} cases\n\n{_table(cases, options.judge)}\n", flush=True)


if __name__ == "__main__":
    main()
