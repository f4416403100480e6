"""Each quality mechanism compared with its simplest rival, on every available set.

    python -m benchmarks.gate [MECHANISM …] [--sets A,B] [--data FOLDER] [--limit N] [--publish]

A mechanism stays only if it beats its simplest rival on two kinds of data that it wasn't developed on. `make eval` runs
all of them, and writes a table for each into docs/quality.md. A missing set is skipped and listed; a failure on a set
costs its rows, not the run, and the command then exits with 1. Up to `--limit` questions per set are asked, evenly
spread. Intervals come from 1,000 resamplings of questions, conversations, cases or pages.
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

from benchmarks import (
    datasets,
    extraction,
    followups,
    intervals,
    joined_questions,
    machine,
    natural_questions,
    quoted,
    report,
    statements,
)
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.extraction_fit import fit_folds
from benchmarks.extraction_labels import read_examples, read_page, read_truth
from benchmarks.extraction_score import keeps_answers, word_f1
from benchmarks.intervals import Figures
from benchmarks.measured_app import ImportedSet, MeasuredApp, ask, import_set, measured_app
from benchmarks.plain_search import PlainSearch, pieces_of
from benchmarks.reader_questions import HELD_OUT, answers_by_page, load_held_out
from benchmarks.samples import find_sets
from rag.retrieval.context import combine_odds
from rag.retrieval.retriever import K
from rag.retrieval.strategies import DEFAULT_STRATEGY
from rag.text import terms

PAGE = report.ROOT / "docs" / "quality.md"
COMMAND = "make eval: {}"
LIMIT = 450
SAMPLES = "examples"
"""The set of the sample pages, used if there is no other."""
FOLDS = 5
RESEARCHED = 60
"""Maximum number of messages that are asked in research mode too."""


@dataclass(frozen=True)
class Row:
    """One figure on one set, ours and each rival's; `higher` says which direction is better."""

    set: str
    figure: str
    units: int
    ours: Figures
    rivals: Mapping[str, Figures]
    higher: bool = True

    @property
    def best(self) -> Figures:
        """The best rival."""
        return max(self.rivals.values(), key=lambda one: one[0] if self.higher else -one[0])


class Bench:
    """The sets, and one app with a separate library for each of them."""

    def __init__(self, app: MeasuredApp, folder: Path, limit: int) -> None:
        self.app, self.folder, self.limit = app, folder, limit
        self._libraries: dict[tuple[str, str], ImportedSet] = {}

    def data(self, name: str, variant: str = "") -> Dataset:
        """Return a set with some of its questions, evenly spread."""
        data = load_held_out(self.folder) if name == HELD_OUT else datasets.load(self.folder / name)
        data = datasets.variant(data, variant) if variant else data
        return replace(data, questions=datasets.sample_evenly(data.questions, self.limit))

    def library(self, name: str, variant: str = "") -> ImportedSet:
        """Return the set's pages as a library, imported on first use."""
        if (name, variant) not in self._libraries:
            library = f"set-{len(self._libraries)}"
            self._libraries[name, variant] = import_set(self.app, self.data(name, variant), "semantic", library)
        return self._libraries[name, variant]


def retrieval(bench: Bench, name: str) -> Iterator[Row]:
    data = bench.data(name)
    answerable = [row for row in data.questions if row["evidence"]]
    plain = PlainSearch(pieces_of(data.pages), bench.app.models.embedding)
    hits_by_way = {
        "": ask(bench.app, replace(data, questions=answerable), bench.library(name), DEFAULT_STRATEGY, K).hits,
        "600 characters by BM25": {str(row["id"]): plain.by_words(row["question"]) for row in answerable},
        "by BM25 and vectors": {str(row["id"]): plain.by_fusion(row["question"]) for row in answerable},
    }
    weights = intervals.bootstrap_weights(range(len(answerable)))
    scores = {one: [datasets.score([row], hits) for row in answerable] for one, hits in hits_by_way.items()}
    for figure in ("recall@4000", "all@4000"):
        means = {one: intervals.mean(weights, [row[figure] for row in rows]) for one, rows in scores.items()}
        yield Row(name, figure, len(answerable), means.pop(""), means)


def follow_ups(bench: Bench, name: str) -> Iterator[Row]:
    for talk in followups.find_talks(bench.folder, bench.limit, [name]):
        scores = followups.measure(bench.app, bench.library(name).library, talk)
        weights = intervals.bootstrap_weights([talk.group(row) for row in talk.data.questions])
        means = {way: intervals.mean(weights, [row["hit@5"] for row in rows]) for way, rows in scores.items()}
        rewritten = [means.pop(way) for way in followups.REWRITTEN if way in means]
        units = len(talk.data.questions)
        yield Row(talk.title, "hit@5", units, means.pop(followups.OURS), means)
        if rewritten:
            question_only, with_history = rewritten
            yield Row(f"{talk.title}, rewritten", "hit@5", units, with_history, {"the question alone": question_only})


def checks(bench: Bench, name: str) -> Iterator[Row]:
    for title, cases in statements.find_cases(bench.folder, [name.removeprefix("statements/")], bench.limit):
        checkers = {"": statements.rules, "small rule": statements.small_rule, "judge": statements.judge}
        runs = {one: statements.measure(cases, checker) for one, checker in checkers.items()}
        weights = intervals.bootstrap_weights([one.case for one in runs[""]])
        wrong = [one.wrong for one in runs[""]]
        order = {k: intervals.auroc(weights, wrong, [one.score for one in units]) for k, units in runs.items()}
        rates = {k: intervals.mean_recall(weights, wrong, [one.flagged for one in units]) for k, units in runs.items()}
        yield Row(title, "AUROC", len(wrong), order[""], {"small rule": order["small rule"]})
        yield Row(title, "balanced accuracy", len(wrong), rates[""], {"small rule": rates["small rule"]})
        yield Row(
            title, "balanced accuracy, with a model", len(wrong), rates["judge"], {"small rule": rates["small rule"]}
        )


def quoted_answers(bench: Bench, name: str) -> Iterator[Row]:
    data = bench.data(name)
    data = replace(data, questions=[row for row in data.questions if not datasets.is_trained_on(row)])
    ours = quoted.by_app(bench.app, bench.library(name).library, data)
    plain = quoted.by_words(data, bench.app)
    for figure, values, higher in (
        ("contains the answer", lambda one: [] if one.contains_answer is None else [one.contains_answer], True),
        ("sentences in the evidence", lambda one: one.in_evidence, True),
        ("sentences", lambda one: [one.sentences], False),
    ):
        our_pairs, their_pairs = ([(n, v) for n, one in enumerate(side) for v in values(one)] for side in (ours, plain))
        if their_pairs and 2 * len({n for n, _ in our_pairs}) > len(ours):  # too few short answers in a long set
            means = [_mean_by_question(pairs, len(ours)) for pairs in (our_pairs, their_pairs)]
            yield Row(name, figure, len(our_pairs), means[0], {"two sentences by BM25": means[1]}, higher)


def _mean_by_question(pairs: Sequence[tuple[int, float]], questions: int) -> Figures:
    weights = intervals.bootstrap_weights(range(questions))[:, [question for question, _ in pairs]]
    return intervals.mean(weights, [value for _, value in pairs])


def natural_answers(bench: Bench, name: str) -> Iterator[Row]:
    data = bench.data(name)
    replies = natural_questions.by_app(bench.app, bench.library(name).library, data)
    answerable, missing = ([one for one in replies if (one.contains_answer is None) is no] for no in (False, True))
    nearest = dict(zip(("nearest sentence", "nearest two"), natural_questions.by_nearest(bench.app, data), strict=True))
    for languages in (None, *sorted({one.languages for one in answerable})):
        own = [place for place, one in enumerate(answerable) if languages in (None, one.languages)]
        weights, label = intervals.bootstrap_weights(range(len(own))), f"{name} {languages}" if languages else name
        rivals = {one: intervals.mean(weights, [flags[place] for place in own]) for one, flags in nearest.items()}
        for figure, values in (
            ("first quote contains the answer", [one.first_contains_answer for one in answerable]),
            ("quotes contain the answer", [one.contains_answer for one in answerable]),
        ):
            first = {"nearest sentence": rivals["nearest sentence"]}
            others = first if figure.startswith("first") else rivals
            yield Row(label, figure, len(own), intervals.mean(weights, [values[place] for place in own]), others)
    weights = intervals.bootstrap_weights(range(len(answerable)))
    quotes = intervals.mean(weights, [one.sentences for one in answerable])
    yield Row(name, "sentences", len(answerable), quotes, {"two": np.full_like(quotes, 2.0)}, higher=False)
    answered = intervals.mean(weights, [one.answered for one in answerable])
    untrue = intervals.mean(intervals.bootstrap_weights(range(len(missing))), [one.answered for one in missing])
    yield Row(name, "answerable questions answered", len(answerable), answered, {"unanswerable ones": untrue})


def joined_answers(bench: Bench, name: str) -> Iterator[Row]:
    rows = datasets.sample_evenly(joined_questions.pairs(datasets.load(bench.folder / name).questions), bench.limit)
    replies = joined_questions.measure(bench.app, bench.library(name).library, rows)
    weights = intervals.bootstrap_weights(range(len(rows)))
    for figure, values, higher in (
        ("answers in the quotes", lambda one: one.contained / 2, True),
        ("both answers", lambda one: one.contained == 2, True),
        ("quotes", lambda one: one.quotes, False),
    ):
        means = {way: intervals.mean(weights, [values(one) for one in side]) for way, side in replies.items()}
        yield Row(name, figure, len(rows), means.pop(joined_questions.OURS), means, higher)
    yield _joined_research(bench, name, datasets.sample_evenly(rows, RESEARCHED))


def _joined_research(bench: Bench, name: str, rows: Sequence[joined_questions.Pair]) -> Row:
    replies = joined_questions.measure_research(bench.app, bench.library(name).library, rows)
    weights = intervals.bootstrap_weights(range(len(rows)))
    means = {way: intervals.mean(weights, [one.contained == 2 for one in side]) for way, side in replies.items()}
    return Row(name, "both answers, research mode", len(rows), means.pop(joined_questions.OURS), means)


def answerability(bench: Bench, name: str) -> Iterator[Row]:
    name, _, variant = name.partition(" ")
    data = bench.data(name, variant)
    missing = [not row["evidence"] for row in data.questions]
    run = ask(bench.app, data, bench.library(name, variant), DEFAULT_STRATEGY, K)
    scores = {
        "": [run.answerable[str(row["id"])] for row in data.questions],
        "share of words in a passage": [_overlap(row["question"], run.hits[str(row["id"])]) for row in data.questions],
    }
    weights = intervals.bootstrap_weights(range(len(missing)))
    figures = {one: intervals.auroc(weights, missing, values) for one, values in scores.items()}
    figures["chance"] = np.full(len(weights), 0.5)
    yield Row(f"{name} {variant}".strip(), "AUROC", len(missing), figures.pop(""), figures)
    if variant:
        yield _with_reader(bench, name, variant, data, run.answerable)


def _with_reader(bench: Bench, name: str, variant: str, data: Dataset, search_scores: Mapping[str, float]) -> Row:
    """Return a row of the questions that the reader was not trained on: AUROC with and without its scores."""
    trained = {row["id"] for row in datasets.load(bench.folder / name).questions if datasets.is_trained_on(row)}
    rows = [row for row in data.questions if row["id"] not in trained]
    library = bench.library(name, variant).library
    passages_by_row = [bench.app.search(row["question"], library=library).passages for row in rows]
    quoter = bench.app.quoter(library)
    odds = [
        quoter.answer_probability(row["question"], passages)
        for row, passages in zip(rows, passages_by_row, strict=True)
    ]
    scores = [search_scores[str(row["id"])] for row in rows]
    missing = [not row["evidence"] for row in rows]
    weights = intervals.bootstrap_weights(range(len(rows)))
    ours, alone = (intervals.auroc(weights, missing, one) for one in (list(map(combine_odds, odds, scores)), scores))
    return Row(f"{name} {variant}", "AUROC, sentences read too", len(rows), ours, {"search alone": alone})


def _overlap(question: str, passages: Sequence[str]) -> float:
    question_terms = set(terms(question))
    return max((len(question_terms & set(terms(one))) for one in passages), default=0) / max(1, len(question_terms))


def main_text(bench: Bench, name: str) -> Iterator[Row]:
    """Yield rows of all pages, then of each kind; each page is judged by a fit on those of other sites."""
    truth = read_truth(folder for one in name.split() if (folder := bench.folder / one).is_dir())
    forests = fit_folds(list(read_examples(truth)), FOLDS)
    rows = datasets.sample_evenly(truth, bench.limit)
    questions = answers_by_page(bench.folder)
    scores: dict[str, list[float]] = {"": [], "trafilatura": []}
    kept: dict[str, list[float]] = {"": [], "trafilatura": []}
    for row in rows:
        body, url = read_page(row), row["url"]
        texts = {
            "": extraction.read_ours(body, url, forests.get(row["id"])),
            "trafilatura": extraction.read_trafilatura(body, url),
        }
        for one, text in texts.items():
            scores[one].append(word_f1(text, row["text"]))
            kept[one] += keeps_answers(text, questions.get(row["id"], ()))
    asked = [row for row in rows for _ in questions.get(row["id"], ())]
    for figure, units, values in (("F1 of words", rows, scores), ("answers in the text", asked, kept)):
        kinds, sites = np.array([row["type"] for row in units]), np.array([row["site"] for row in units])
        for kind in (None, *sorted(set(kinds))):
            indices = np.flatnonzero((kinds == kind) | (kind is None))
            weights = intervals.bootstrap_weights(list(sites[indices]))
            means = {one: intervals.mean(weights, np.array(column)[indices]) for one, column in values.items()}
            yield Row(kind or "all pages", figure, len(indices), means.pop(""), means)


@dataclass(frozen=True)
class Mechanism:
    """A measurement with its sets and its rivals; `description` is the text above the table."""

    title: str
    description: str
    measure: Callable[[Bench, str], Iterable[Row]]
    sets: Sequence[str]


_DRAGON = ("dragon-finance-en", "dragon-finance-zh", "dragon-law-en", "dragon-law-zh")
_PAGES = ("xquad-en", "xquad-zh", "chroma", *_DRAGON, "hotpot", "musique", SAMPLES)

MECHANISMS: Mapping[str, Mechanism] = {
    "retrieval": Mechanism(
        "Retrieval",
        "The share of the evidence in the first 4,000 characters of the results, and of the questions with all of"
        " it in there. Rivals: sentences up to 600 characters (300 in Chinese) with their page's title, by BM25, and"
        " by BM25 fused with the built-in model's vectors.",
        retrieval,
        _PAGES,
    ),
    "followups": Mechanism(
        "Follow-up questions, without a chat model",
        "How often a passage with the evidence is among the first five, if the app also searches with the earlier"
        " questions. Changes of subject and a person's rewrites show what that costs a complete question.",
        follow_ups,
        ("cast", "xquad-zh", "xquad-en"),
    ),
    "checks": Mechanism(
        "Checked statements",
        "Detection of unsupported statements by rules. The truth is people's labels; for dragon, people's answers"
        " with their own pages (supported) and with another page. The rival flags a sentence with fewer than half of"
        " its words in the best three sentences, or a number that is in none. The judging model is scripted: it is"
        " right in 95 of 100 verdicts.",
        checks,
        ("statements/ragtruth-qa", "statements/ocnli", *_DRAGON),
    ),
    "quoted": Mechanism(
        "Quoted answers, without a chat model",
        "How often the quotes contain people's answer, the share of their sentences that are in the evidence, and"
        " the number of sentences. Rival: the two sentences that BM25 ranks first. Of xquad, only the half that"
        " nothing was trained on.",
        quoted_answers,
        ("xquad-en", "xquad-zh", "dragon-finance-en", "dragon-finance-zh", SAMPLES),
    ),
    "natural": Mechanism(
        "Questions in people's own words, without a chat model",
        "Questions that don't repeat the page's words, about real pages, in English, Chinese and across the two,"
        " with the app's defaults. Rivals: the sentences of all pages nearest to the question by the built-in model,"
        " each encoded after its page's title. Three in seven held-out questions are near misses, worded as those that"
        " their page answers.",
        natural_answers,
        ("natural", HELD_OUT),
    ),
    "joined": Mechanism(
        "Two questions in one message, without a chat model",
        "Consecutive questions about one page, joined by a comma or by question marks: the share of their answers in"
        " the quotes, and how often both are. Each question is quoted separately; the rivals take the message as one,"
        " with the quotes that are then selected, and with as many as ours. In research mode, each question is a step."
        " Of xquad, only the half that nothing was trained on.",
        joined_answers,
        ("natural", "xquad-en", "xquad-zh"),
    ),
    "answerable": Mechanism(
        "Unanswerable questions",
        "How well the score of a search separates questions that the pages answer from others: about judgements"
        " that don't say what is asked; with every second page, or paragraph of each page, removed; about reports"
        " without every second line, by name about two companies and about each alone. Rivals: the share of the"
        " question's words in one passage, and chance. Then with the model that reads the sentences too; of xquad,"
        " only the half that nothing was trained on.",
        answerability,
        (
            "dragon-law-en",
            "dragon-law-zh",
            *(f"xquad-{language} unanswerable{part}" for part in ("", "-paragraphs") for language in ("en", "zh")),
            *(f"dragon-finance-{language} unanswerable-named" for language in ("en", "zh")),
        ),
    ),
    "extraction": Mechanism(
        "Main text of a page",
        "F1 over words against hand-checked text, and the share of the answer reader's questions whose answer is in the"
        " text with most of its sentence; each page judged by a classifier fitted to the pages of other sites. Rival:"
        " trafilatura with its defaults. See [decision 8](decisions/0008-reading.md).",
        main_text,
        ("wcxb aeb",),
    ),
}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder = options.data if datasets.find_folders(options.data, []) else find_sets(options.data, [])[0].parent
    failed = False
    with measured_app() as app:
        bench = Bench(app, folder, options.limit)
        for name in options.mechanisms or MECHANISMS:
            markdown, has_failed = _section(bench, name, options.sets)
            failed = failed or has_failed
            print(f"## {MECHANISMS[name].title}\n\n{markdown}\n", flush=True)
            if options.publish:
                scope = f" of {', '.join(options.sets)}" if options.sets else " per set"
                limits = f"up to {options.limit} questions, cases or pages{scope}, no chat model"
                report.publish(PAGE, COMMAND.format(name), {**machine.describe(()), "limits": limits}, markdown)
    return int(failed)


def _section(bench: Bench, name: str, only: Sequence[str]) -> tuple[str, bool]:
    """Return a mechanism's table with what was skipped, and whether anything failed."""
    mechanism = MECHANISMS[name]
    rows, skipped, has_failed = list[Row](), list[str](), False
    for set_name in mechanism.sets:
        folder_name = set_name.split(" ")[0]
        if only and folder_name not in only:
            continue
        if not _has_set(bench.folder, folder_name):
            if set_name != SAMPLES:
                skipped.append(f"{set_name}: missing")
            continue
        began = time.perf_counter()
        try:
            rows += mechanism.measure(bench, set_name)
        except Exception as error:  # noqa: BLE001 - the edge of one set
            traceback.print_exc()
            skipped.append(f"{set_name}: {type(error).__name__}")
            has_failed = True
        print(f"{name}, {set_name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    parts = [mechanism.description, as_table(rows) if rows else "", "Skipped: " + "; ".join(skipped) if skipped else ""]
    return "\n\n".join(part for part in parts if part), has_failed


def _has_set(folder: Path, name: str) -> bool:
    if name == HELD_OUT:
        return all((folder / one).is_dir() for one in ("wcxb", "aeb", "xquad-zh"))
    return (folder / name).is_dir() or (folder / f"{name}.jsonl").is_file()


def as_table(rows: Sequence[Row]) -> str:
    """Return a table with the gain over the best rival, and the number of rows in which it is significant."""
    rivals = list(dict.fromkeys(rival for row in rows for rival in row.rivals))
    lines, signs = [], []
    for row in rows:
        gain = intervals.estimate(row.ours - row.best if row.higher else row.best - row.ours)
        rival_cells = [str(intervals.estimate(row.rivals[one])) if one in row.rivals else "" for one in rivals]
        cells = [f"{row.set}, {row.figure}", str(row.units), str(intervals.estimate(row.ours)), *rival_cells]
        lines.append([*cells, format(gain, "+")])
        signs.append((gain.low > 0) - (gain.high < 0))
    head = ["", "units", "Pagelight", *rivals, "gain over the best rival"]
    summary = f"Better in {signs.count(1)} rows, worse in {signs.count(-1)}, not significant in {signs.count(0)}."
    return f"{report.table(head, lines)}\n\n{summary}"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mechanisms", nargs="*", type=_mechanism, metavar="MECHANISM")
    parser.add_argument("--sets", type=lambda names: names.split(","), default=[], metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help=f"questions per set (default {LIMIT})")
    parser.add_argument("--publish", action="store_true", help="write the tables into docs/quality.md")
    return parser.parse_args(arguments)


def _mechanism(name: str) -> str:
    if name not in MECHANISMS:
        raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(MECHANISMS)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
