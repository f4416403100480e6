"""Each mechanism of quality beside its simplest rival, on every set at hand: does it earn its lines?

    python -m benchmarks.gate [MECHANISM …] [--sets A,B] [--data FOLDER] [--limit N] [--publish]

A mechanism stays while it beats its simplest rival on two kinds of data that it was not made with. `make eval` runs
all, and writes a table for each into docs/quality.md. A set that is not there is skipped and named; what fails on a
set costs its rows, not the run, and the command then ends with 1. At most `--limit` questions of a set are asked,
evenly spread. Intervals are of 1,000 resamplings of questions, conversations, cases or pages.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import datasets, extraction, followups, intervals, machine, natural, quoted, report, statements
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.extraction_fit import held_out
from benchmarks.extraction_labels import read_examples, read_page, read_truth
from benchmarks.extraction_score import word_f1
from benchmarks.intervals import Figures
from benchmarks.ours import Imported, MeasuredApp, ask, measured_app, take_in
from benchmarks.plain import PlainSearch, pieces_of
from benchmarks.samples import find_sets
from rag.retrieval.answerable import combine_odds
from rag.retrieval.retriever import K
from rag.retrieval.strategies import DEFAULT_STRATEGY
from rag.text import terms

PAGE = report.ROOT / "docs" / "quality.md"
COMMAND = "make eval: {}"
LIMIT = 450
SAMPLES = "examples"
"""The set of the sample pages, which stands in where there is no other."""
FOLDS = 5


@dataclass(frozen=True)
class Row:
    """One figure on one set, of ours and of each rival; `higher` says which way is better."""

    set: str
    figure: str
    units: int
    ours: Figures
    rivals: Mapping[str, Figures]
    higher: bool = True

    @property
    def best(self) -> Figures:
        """Of the rivals."""
        return max(self.rivals.values(), key=lambda one: one[0] if self.higher else -one[0])


class Bench:
    """What the mechanisms are measured with: the sets, and one app that has each of them in a library of its own."""

    def __init__(self, app: MeasuredApp, folder: Path, limit: int) -> None:
        self.app, self.folder, self.limit = app, folder, limit
        self._libraries: dict[tuple[str, str], Imported] = {}

    def data(self, name: str, variant: str = "") -> Dataset:
        """A set with some of its questions, evenly spread."""
        data = datasets.load(self.folder / name)
        data = datasets.variant(data, variant) if variant else data
        return replace(data, questions=datasets.spread(data.questions, self.limit))

    def library(self, name: str, variant: str = "") -> Imported:
        """The set's pages, imported when they are first asked for."""
        if (name, variant) not in self._libraries:
            library = f"set-{len(self._libraries)}"
            self._libraries[name, variant] = take_in(self.app, self.data(name, variant), "semantic", library)
        return self._libraries[name, variant]


def retrieval(bench: Bench, name: str) -> Iterator[Row]:
    data = bench.data(name)
    asked = [row for row in data.questions if row["evidence"]]
    plain = PlainSearch(pieces_of(data.pages), bench.app.models.embedding)
    found = {
        "": ask(bench.app, replace(data, questions=asked), bench.library(name), DEFAULT_STRATEGY, K).hits,
        "600 characters by BM25": {str(row["id"]): plain.by_words(row["question"]) for row in asked},
        "by BM25 and vectors": {str(row["id"]): plain.fused(row["question"]) for row in asked},
    }
    weights = intervals.draws(range(len(asked)))
    scores = {one: [datasets.score([row], hits) for row in asked] for one, hits in found.items()}
    for figure in ("recall@4000", "all@4000"):
        means = {one: intervals.mean(weights, [row[figure] for row in rows]) for one, rows in scores.items()}
        yield Row(name, figure, len(asked), means.pop(""), means)


def follow_ups(bench: Bench, name: str) -> Iterator[Row]:
    for one in followups.find_talks(bench.folder, bench.limit, [name]):
        scores = followups.measure(bench.app, bench.library(name).library, one)
        weights = intervals.draws([one.group(row) for row in one.data.questions])
        means = {way: intervals.mean(weights, [row["hit@5"] for row in rows]) for way, rows in scores.items()}
        rewritten = [means.pop(way) for way in followups.REWRITTEN if way in means]
        units = len(one.data.questions)
        yield Row(one.title, "hit@5", units, means.pop(followups.OURS), means)
        if rewritten:
            alone, with_history = rewritten
            yield Row(f"{one.title}, rewritten", "hit@5", units, with_history, {"the question alone": alone})


def checks(bench: Bench, name: str) -> Iterator[Row]:
    for title, cases in statements.find_cases(bench.folder, [name.removeprefix("statements/")], bench.limit):
        checkers = {"": statements.rules, "small rule": statements.small_rule, "judge": statements.judge}
        found = {one: statements.measure(cases, checker) for one, checker in checkers.items()}
        weights = intervals.draws([one.case for one in found[""]])
        wrong = [one.wrong for one in found[""]]
        order = {k: intervals.auroc(weights, wrong, [one.worth for one in units]) for k, units in found.items()}
        told = {k: intervals.balanced(weights, wrong, [one.flagged for one in units]) for k, units in found.items()}
        yield Row(title, "AUROC", len(wrong), order[""], {"small rule": order["small rule"]})
        yield Row(title, "balanced accuracy", len(wrong), told[""], {"small rule": told["small rule"]})
        yield Row(title, "the same, a model judging", len(wrong), told["judge"], {"small rule": told["small rule"]})


def quoted_answers(bench: Bench, name: str) -> Iterator[Row]:
    data = bench.data(name)
    data = replace(data, questions=[row for row in data.questions if not datasets.is_trained_on(row)])
    ours = quoted.by_app(bench.app, bench.library(name).library, data)
    plain = quoted.by_words(data, bench.app)
    for figure, of, higher in (
        ("holds the answer", lambda one: [] if one.holds is None else [one.holds], True),
        ("sentences in the evidence", lambda one: one.in_evidence, True),
        ("sentences", lambda one: [one.sentences], False),
    ):
        own, other = ([(n, v) for n, one in enumerate(found) for v in of(one)] for found in (ours, plain))
        if other and 2 * len({n for n, _ in own}) > len(ours):  # few short answers tell nothing of a set of long ones
            means = [_mean_by_question(pairs, len(ours)) for pairs in (own, other)]
            yield Row(name, figure, len(own), means[0], {"two sentences by BM25": means[1]}, higher)


def _mean_by_question(pairs: Sequence[tuple[int, float]], questions: int) -> Figures:
    weights = intervals.draws(range(questions))[:, [question for question, _ in pairs]]
    return intervals.mean(weights, [value for _, value in pairs])


def natural_questions(bench: Bench, name: str) -> Iterator[Row]:
    data = bench.data(name)
    replies = natural.by_app(bench.app, bench.library(name).library, data)
    there, missing = ([one for one in replies if (one.holds is None) is no] for no in (False, True))
    nearest = {f"the nearest {n}": natural.by_nearest(bench.app, data, n) for n in (1, 2)}
    for languages in (None, *sorted({one.languages for one in there})):
        own = [place for place, one in enumerate(there) if languages in (None, one.languages)]
        weights, label = intervals.draws(range(len(own))), f"{name} {languages}" if languages else name
        rivals = {one: intervals.mean(weights, [held[place] for place in own]) for one, held in nearest.items()}
        for figure, values in (
            ("the first quote holds the answer", [one.first_holds for one in there]),
            ("the quotes hold the answer", [one.holds for one in there]),
        ):
            first = {"the nearest 1": rivals["the nearest 1"]}
            of = first if figure.startswith("the first") else rivals
            yield Row(label, figure, len(own), intervals.mean(weights, [values[place] for place in own]), of)
        recall = intervals.mean(weights, [there[place].recall for place in own])
        yield Row(label, "evidence within 4,000 characters", len(own), recall, {"none": np.zeros_like(recall)})
    weights = intervals.draws(range(len(there)))
    quotes = intervals.mean(weights, [one.sentences for one in there])
    yield Row(name, "sentences", len(there), quotes, {"two": np.full_like(quotes, 2.0)}, higher=False)
    answered = intervals.mean(weights, [one.answered for one in there])
    untrue = intervals.mean(intervals.draws(range(len(missing))), [one.answered for one in missing])
    yield Row(name, "answered where it is there", len(there), answered, {"answered where it is not": untrue})


def is_it_there(bench: Bench, name: str) -> Iterator[Row]:
    name, _, variant = name.partition(" ")
    data = bench.data(name, variant)
    missing = [not row["evidence"] for row in data.questions]
    run = ask(bench.app, data, bench.library(name, variant), DEFAULT_STRATEGY, K)
    scores = {
        "": [run.answerable[str(row["id"])] for row in data.questions],
        "share of words in a passage": [_held(row["question"], run.hits[str(row["id"])]) for row in data.questions],
    }
    weights = intervals.draws(range(len(missing)))
    found = {one: intervals.auroc(weights, missing, values) for one, values in scores.items()}
    found["chance"] = np.full(len(weights), 0.5)
    yield Row(f"{name} {variant}".strip(), "AUROC", len(missing), found.pop(""), found)
    if variant:
        yield _read_too(bench, name, variant, data, run.answerable)


def _read_too(bench: Bench, name: str, variant: str, data: Dataset, searched: Mapping[str, float]) -> Row:
    """The same of the questions that the reader was not trained on, with what it says of their sentences."""
    seen = {row["id"] for row in datasets.load(bench.folder / name).questions if datasets.is_trained_on(row)}
    rows = [row for row in data.questions if row["id"] not in seen]
    library = bench.library(name, variant).library
    found = [bench.app.search(row["question"], library=library).passages for row in rows]
    quoter = bench.app.quoter(library)
    read = [quoter.answers(row["question"], passages) for row, passages in zip(rows, found, strict=True)]
    likely = [searched[str(row["id"])] for row in rows]
    missing = [not row["evidence"] for row in rows]
    weights = intervals.draws(range(len(rows)))
    ours, alone = (intervals.auroc(weights, missing, one) for one in (list(map(combine_odds, read, likely)), likely))
    return Row(f"{name} {variant}", "AUROC, the sentences read too", len(rows), ours, {"the search alone": alone})


def _held(question: str, passages: Sequence[str]) -> float:
    asked = set(terms(question))
    return max((len(asked & set(terms(one))) for one in passages), default=0) / max(1, len(asked))


def main_text(bench: Bench, name: str) -> Iterator[Row]:
    """All pages of the sets, then each kind; a page is judged by what was fitted to those of other sites."""
    truth = read_truth(folder for one in name.split() if (folder := bench.folder / one).is_dir())
    forests = held_out(list(read_examples(truth)), FOLDS)
    rows = datasets.spread(truth, bench.limit)
    scores: dict[str, list[float]] = {"": [], "trafilatura": []}
    for row in rows:
        body, url = read_page(row), row["url"]
        scores[""].append(word_f1(extraction.read_ours(body, url, forests.get(row["id"])), row["text"]))
        scores["trafilatura"].append(word_f1(extraction.read_trafilatura(body, url), row["text"]))
    kinds, sites = np.array([row["type"] for row in rows]), np.array([row["site"] for row in rows])
    for kind in (None, *sorted(set(kinds))):
        own = np.flatnonzero((kinds == kind) | (kind is None))
        weights = intervals.draws(list(sites[own]))
        means = {one: intervals.mean(weights, np.array(values)[own]) for one, values in scores.items()}
        yield Row(kind or "all pages", "F1 of words", len(own), means.pop(""), means)


@dataclass(frozen=True)
class Mechanism:
    """What is measured on which sets, and what its rivals are; `told` explains the table."""

    title: str
    told: str
    measure: Callable[[Bench, str], Iterable[Row]]
    sets: Sequence[str]


_DRAGON = ("dragon-finance-en", "dragon-finance-zh", "dragon-law-en", "dragon-law-zh")
_PAGES = ("xquad-en", "xquad-zh", "chroma", *_DRAGON, "hotpot", "musique", SAMPLES)

MECHANISMS: Mapping[str, Mechanism] = {
    "retrieval": Mechanism(
        "What is found",
        "The share of the evidence that stands in the first 4,000 characters of what is found, and the share of the"
        " questions all of whose evidence does. Rivals: sentences up to 600 characters, 300 in Chinese, with their"
        " page's title, by BM25, and by BM25 fused with the built-in model's vectors.",
        retrieval,
        _PAGES,
    ),
    "followups": Mechanism(
        "Questions of a conversation, no chat model asked",
        "How often a passage with the evidence is among the first five, the app searching with the questions before"
        " it. Changes of subject and a person's rewrites show what that costs a question which is complete.",
        follow_ups,
        ("cast", "xquad-zh", "xquad-en"),
    ),
    "checks": Mechanism(
        "Checked statements",
        "Statements that their passages do not bear out, told by rules; by people's labels, and for the dragon sets"
        " the answers that people gave, beside their own pages and beside another. The rival flags a sentence when"
        " fewer than half of its words stand in the best three sentences, or a number in none. The model that judges"
        " is scripted: it knows the labels, and is right in 95 of 100 verdicts.",
        checks,
        ("statements/ragtruth-qa", "statements/ocnli", *_DRAGON),
    ),
    "quoted": Mechanism(
        "Quoted answers, no chat model asked",
        "How often the quotes hold the answer that people gave, which share of their sentences stands in the evidence,"
        " and how many there are. Rival: the two sentences that BM25 ranks first. Of xquad only the half that"
        " nothing was trained on.",
        quoted_answers,
        ("xquad-en", "xquad-zh", "dragon-finance-en", "dragon-finance-zh", SAMPLES),
    ),
    "natural": Mechanism(
        "Questions in people's own words, no chat model asked",
        "Questions that do not repeat the page's words, over real pages, in English, Chinese and across the two, with"
        " the defaults that people get. Rivals: the sentences of all pages that are nearest to the question by the"
        " built-in model, each read after its page's title.",
        natural_questions,
        ("natural",),
    ),
    "answerable": Mechanism(
        "Is it there?",
        "How well the score of a search tells questions that the pages answer from those that they do not: judgements"
        " that do not tell what is asked, and every second page, or paragraph of each page, left out; reports without"
        " every second line, asked by name about two companies and about each of them. Rivals: the share of the"
        " question's words that stand in one passage, and chance. Quotes are judged by what is read in the sentences,"
        " too; of xquad that half only which nothing was trained on.",
        is_it_there,
        (
            "dragon-law-en",
            "dragon-law-zh",
            *(f"xquad-{language} unanswerable{part}" for part in ("", "-paragraphs") for language in ("en", "zh")),
            *(f"dragon-finance-{language} unanswerable-named" for language in ("en", "zh")),
        ),
    ),
    "extraction": Mechanism(
        "The main text of a page",
        "F1 over words, against text that people checked, of pages that the judge of blocks was not fitted to: each is"
        " judged by a fit on the pages of other sites, in five parts. Rival: trafilatura with its defaults. See"
        " [decision 8](decisions/0008-reading.md).",
        main_text,
        ("wcxb aeb",),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder = options.data if datasets.find(options.data, []) else find_sets(options.data, [])[0].parent
    failed = False
    with measured_app() as app:
        bench = Bench(app, folder, options.limit)
        for name in options.mechanisms or MECHANISMS:
            markdown, broken = _section(bench, name, options.sets)
            failed = failed or broken
            print(f"## {MECHANISMS[name].title}\n\n{markdown}\n", flush=True)
            if options.publish:
                some = f" of {', '.join(options.sets)} alone" if options.sets else " of a set"
                limits = f"at most {options.limit} questions, cases or pages{some}, no chat model"
                report.publish(PAGE, COMMAND.format(name), {**machine.describe(()), "limits": limits}, markdown)
    return int(failed)


def _section(bench: Bench, name: str, only: Sequence[str]) -> tuple[str, bool]:
    """A mechanism's table with what was left out, and whether anything broke."""
    mechanism = MECHANISMS[name]
    rows, left_out, broken = list[Row](), list[str](), False
    for one in mechanism.sets:
        own_name = one.split(" ")[0]
        if only and own_name not in only:
            continue
        if not _is_there(bench.folder, own_name):
            if one != SAMPLES:
                left_out.append(f"{one}: not there")
            continue
        began = time.perf_counter()
        try:
            rows += mechanism.measure(bench, one)
        except Exception as error:  # noqa: BLE001 - the edge of one set
            traceback.print_exc()
            left_out.append(f"{one}: {type(error).__name__}")
            broken = True
        print(f"{name}, {one}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    parts = [mechanism.told, as_table(rows) if rows else "", "Left out: " + "; ".join(left_out) if left_out else ""]
    return "\n\n".join(part for part in parts if part), broken


def _is_there(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.jsonl").is_file()


def as_table(rows: Sequence[Row]) -> str:
    """With how much ours is ahead of the best rival, and in how many rows for certain."""
    rivals = list(dict.fromkeys(rival for row in rows for rival in row.rivals))
    lines, sides = [], []
    for row in rows:
        ahead = intervals.estimate(row.ours - row.best if row.higher else row.best - row.ours)
        others = [str(intervals.estimate(row.rivals[one])) if one in row.rivals else "" for one in rivals]
        known = [f"{row.set}, {row.figure}", str(row.units), str(intervals.estimate(row.ours)), *others]
        lines.append([*known, format(ahead, "+")])
        sides.append((ahead.low > 0) - (ahead.high < 0))
    head = ["", "units", "Pagelight", *rivals, "ahead of the best of them"]
    counted = f"Ahead in {sides.count(1)} rows, behind in {sides.count(-1)}, neither for certain in {sides.count(0)}."
    return f"{report.table(head, lines)}\n\n{counted}"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mechanisms", nargs="*", type=_mechanism, metavar="MECHANISM")
    parser.add_argument("--sets", type=lambda names: names.split(","), default=[], metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help=f"questions of a set (default {LIMIT})")
    parser.add_argument("--publish", action="store_true", help="write the tables into docs/quality.md")
    return parser.parse_args(arguments)


def _mechanism(name: str) -> str:
    if name not in MECHANISMS:
        raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(MECHANISMS)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
