"""The metrics of `rag.evaluation` compared case by case with the packages that define them.

    python -m benchmarks.metrics [--cases 100] [--set hotpot] [--data FOLDER] [--limit N] [--publish]

ragas runs in a separate environment and asks a chat model over HTTP. Here that model is a table, drawn at random: which
texts support which statements, and which questions an answer answers. Ours use the same table, statements and vectors.
The texts are sentences of the sample pages, in both languages. ir-measures (trec_eval) scores the search results of a
set, with random grades. Rankings in which a passage covers two quotes at once are excluded from R@5: our unit is a
quote, and trec_eval's a document. The export in RAGAS's columns is read and written by ragas's data set class, and read
back here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks import datasets, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.measured_app import ask, import_set, measured_app
from benchmarks.peers.environment import METRICS, pinned, python
from benchmarks.samples import find_sets, samples
from rag.checking.verifier import Claim
from rag.evaluation import metrics
from rag.evaluation.cases import Case, Evidence, RagasAnswer, read_cases, write_cases
from rag.evaluation.judge import AnswerRating, ModelJudge
from rag.evaluation.metrics import Judges, TimedAnswer, scores
from rag.evaluation.support import factual_f1, normalise_text, passage_of, statements_of
from rag.prompts.texts import PromptTexts
from rag.retrieval.strategies import DEFAULT_STRATEGY
from rag.text import split_sentences, weigh
from rag.types import Answer, Passage, Verdict
from tests.support.chat_server import ChatServer, Reply, Request

PAGE = report.ROOT / "docs" / "evaluation.md"
COMMAND = "python -m benchmarks.metrics"
_K = 10
_EQUAL = 1e-9
_ROUNDED = {"factual_f1": 0.005 + 1e-9}
"""ragas rounds it to two places."""


@dataclass(frozen=True)
class RandomCase:
    """A random case with an answer, and the questions that the judge derives from the answer."""

    case: Case
    answer: Answer
    questions: tuple[str, ...]
    noncommittal: bool

    @property
    def row(self) -> dict[str, Any]:
        """The row in ragas's format."""
        texts = [passage.text for passage in self.answer.passages]
        columns = {"user_input": self.case.question, "response": self.answer.text, "reference": self.case.reference}
        return {"id": self.case.id, **columns, "retrieved_contexts": texts}


class ScriptedJudge:
    """The judge for both sides: `verdicts` by statement and text, ignoring white space."""

    def __init__(self, verdicts: Mapping[tuple[str, str], Verdict], drawn: Sequence[RandomCase]) -> None:
        self._verdicts = verdicts
        self._by_question = {one.case.question: one for one in drawn}
        self._by_answer = {one.answer.text: cycle(one.questions) for one in drawn}
        self._noncommittal = {one.answer.text: one.noncommittal for one in drawn}

    def supports(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
        """Implement `rag.evaluation.support.Supports`."""
        texts = (normalise_text("\n".join(passages[n - 1].text for n in claim.cited)) for claim in claims)
        return [
            self._verdicts[normalise_text(claim.statement), text] for claim, text in zip(claims, texts, strict=True)
        ]

    def reply(self, request: Request) -> Reply:
        """Reply to ragas: fill the schema in its prompt."""
        schema, _ = json.JSONDecoder().raw_decode(request.last.partition("JSON Schema:\n")[2])
        inputs = json.loads(request.last.rpartition("\ninput: ")[2].rpartition("\nOutput:")[0])
        return Reply(json.dumps(self._fill(schema["title"], inputs)))

    def _fill(self, form: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        match form:
            case "StatementGeneratorOutput":
                return {"statements": statements_of(inputs.get("answer") or inputs["text"])}
            case "ClaimDecompositionOutput":
                return {"claims": statements_of(inputs["response"])}
            case "NLIStatementOutput" | "StatementFaithfulnessOutput":
                return {"statements": self._judge(inputs["statements"], inputs["context"], "verdict")}
            case "ContextRecallOutput":
                statements = statements_of(inputs["answer"])
                return {"classifications": self._judge(statements, inputs["context"], "attributed")}
            case "ContextPrecisionOutput":
                useful = inputs["context"] in self._by_question[inputs["question"]].case.quotes
                return {"reason": "given", "verdict": int(useful)}
            case "ClassificationWithReason":
                return self._classify(self._by_question[inputs["question"]], inputs["answer"], inputs["ground_truth"])
            case "AnswerRelevanceOutput":
                response = inputs["response"]
                return {"question": next(self._by_answer[response]), "noncommittal": int(self._noncommittal[response])}
        raise ValueError(form)

    def _judge(self, statements: Sequence[str], text: str, name: str) -> list[dict[str, Any]]:
        return [{"statement": one, "reason": "given", name: int(self._supports(one, text))} for one in statements]

    def _classify(self, drawn: RandomCase, texts: Sequence[str], wanted: Sequence[str]) -> dict[str, Any]:
        true = {one: self._supports(one, drawn.case.reference) for one in texts}
        missed = [one for one in wanted if not self._supports(one, drawn.answer.text)]
        kinds = {"TP": [one for one in texts if true[one]], "FP": [one for one in texts if not true[one]], "FN": missed}
        return {kind: [{"statement": one, "reason": "given"} for one in own] for kind, own in kinds.items()}

    def _supports(self, statement: str, text: str) -> bool:
        return self._verdicts[normalise_text(statement), normalise_text(text)] == "supported"


# Cases and their verdicts


def draw_cases(count: int, seed: int = 0) -> tuple[list[RandomCase], ScriptedJudge]:
    """Return `count` cases of random sentences with random verdicts, half in each language."""
    chance, verdicts = random.Random(seed), dict[tuple[str, str], Verdict]()
    pools = {"en": list[str](), "zh": list[str]()}
    for page in samples().pages:
        pools[page["lang"]] += _sentences(page["text"])
    drawn = [_draw_case(str(n), pools["zh" if n % 2 else "en"], chance, verdicts) for n in range(count)]
    return drawn, ScriptedJudge(verdicts, drawn)


def _sentences(text: str) -> Iterator[str]:
    """Yield sentences that are one statement, not in a list, and long enough for a reference."""
    for start, end in split_sentences(text):
        sentence = " ".join(text[start:end].split())
        if weigh(sentence) >= 40 and sentence[0].isalnum() and statements_of(sentence) == [sentence]:
            yield sentence


def _draw_case(
    name: str, pool: Sequence[str], chance: random.Random, verdicts: dict[tuple[str, str], Verdict]
) -> RandomCase:
    """Draw a case; a passage is useful if it supports a statement of the reference, as noise sensitivity requires."""
    sizes = [chance.randint(1, 4), chance.randint(1, 4), *(chance.randint(1, 2) for _ in range(chance.randint(1, 5)))]
    while True:
        sentences = iter(chance.sample(pool, sum(sizes) + 4))
        reply, reference, *texts = (" ".join(next(sentences) for _ in range(size)) for size in sizes)
        if all(" ".join(statements_of(text)) == text for text in (reply, reference)):  # nothing but statements
            break
    for statement in {*statements_of(reply), *statements_of(reference)}:
        for text in (reply, reference, *texts, "\n".join(texts)):
            verdict: Verdict = chance.choice(("supported", "supported", "partly", "unsupported", "unsupported"))
            verdicts.setdefault((normalise_text(statement), normalise_text(text)), verdict)
    needed = statements_of(reference)
    useful = [
        one for one in texts if any(verdicts[normalise_text(s), normalise_text(one)] == "supported" for s in needed)
    ]
    quotes = tuple(Evidence("", one) for one in useful or [next(sentences)])  # no useful one: use another
    case = Case(name, f"{name}: {next(sentences)}", answers=(reference,), evidence=quotes, tags=("drawn",))
    passages = tuple(passage_of(text, str(n)) for n, text in enumerate(texts))
    answer = Answer(case.question, "fast", "answered", reply, passages=passages)
    return RandomCase(case, answer, tuple(f"{n}: {reply}?" for n in range(3)), crc32(reply.encode()) % 5 == 0)


def random_vector(text: str) -> list[float]:
    """Return a random vector for each text, always the same, not of unit length."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return [float(one) for one in np.random.default_rng(seed).normal(size=16)]


def _encode(question: str, texts: Sequence[str]) -> NDArray[np.float32]:
    vectors = np.array([random_vector(one) for one in [question, *texts]])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def ours(drawn: RandomCase, table: ScriptedJudge) -> dict[str, float | None]:
    """Return our values of the metrics that ragas has."""

    points: Any = {"faithfulness": 1, "relevance": 1, "completeness": 1, "reason": ""}
    quote, generated = drawn.answer.passages[0].text, list(drawn.questions)
    judgement = AnswerRating(**points, quote=quote, questions=generated, noncommittal=drawn.noncommittal)
    judges = Judges(table.supports, _encode, ModelJudge(lambda *_: judgement, PromptTexts()))
    values = scores(drawn.case, TimedAnswer(drawn.answer), judges)
    bare = scores(replace(drawn.case, evidence=()), TimedAnswer(drawn.answer), judges)
    factual = factual_f1(statements_of(drawn.answer.text), drawn.case.reference, table.supports)
    return {**values, "context_recall": bare["context_recall"], "factual_f1": factual}


# Rankings


@dataclass(frozen=True)
class RankedQuestion:
    """The results for a question: the quotes that each passage covers, and the grade of each quote."""

    question: str
    covers: list[set[int]]
    grades: list[float]

    @property
    def is_apart(self) -> bool:
        """True if no passage is the first to cover two quotes."""
        _, worth = metrics.grade_hits(self.covers, self.grades)
        return len([one for one in worth if one]) == len(self.grades)

    def qrels(self, graded: bool) -> list[tuple[str, str, int]]:
        """Return qrels for trec_eval: each passage by its rank, and a document for each uncovered quote."""
        gains, all_gains = metrics.grade_hits(self.covers, self.grades)
        flags = [float(bool(one)) for one in self.covers]
        worth = all_gains if graded else [*flags, *(1.0 for _ in all_gains[len(gains) :])]
        return [(self.question, str(n), int(one)) for n, one in enumerate(worth)]

    @property
    def run(self) -> list[tuple[str, str, float]]:
        return [(self.question, str(n), float(-n)) for n in range(len(self.covers))]

    @property
    def ours(self) -> dict[str, float]:
        relevant = [bool(one) for one in self.covers]
        gains, ideal = metrics.grade_hits(self.covers, self.grades)
        return {
            "Success@1": metrics.hit(relevant, 1),
            "Success@5": metrics.hit(relevant, 5),
            "RR@10": metrics.reciprocal_rank(relevant, 10),
            "P@5": metrics.precision(relevant, 5),
            "nDCG@10": metrics.ndcg(gains, ideal, 10),
            "R@5": metrics.recall(self.covers, len(self.grades), 5),
        }


def rank(data: Dataset) -> list[RankedQuestion]:
    """Return the app's results for the questions of a set, ten passages each, with random grades from 1 to 3."""
    chance = random.Random(1)
    with measured_app() as app:
        hits = ask(app, data, import_set(app, data, "semantic", "set"), DEFAULT_STRATEGY, _K).hits
    quotes = {str(row["id"]): [one["quote"] for one in row["evidence"]] for row in data.questions}
    return [
        RankedQuestion(
            name, metrics.covered_quotes(quotes[name], texts), [float(chance.randint(1, 3)) for _ in quotes[name]]
        )
        for name, texts in hits.items()
    ]


# Both sides


def measure(
    drawn: Sequence[RandomCase], table: ScriptedJudge, ranked: Sequence[RankedQuestion]
) -> Iterator[dict[str, Any]]:
    """Yield both sides' values of each metric, by case. Raises RuntimeError if the packages are missing or fail."""
    with TemporaryDirectory() as name, ChatServer(table.reply) as server:
        folder = Path(name)
        _write(folder, drawn, ranked)
        command = [str(python(METRICS)), "-W", "ignore", "-m", "benchmarks.peers.published", name, server.base_url]
        process = subprocess.run(command, cwd=report.ROOT, capture_output=True, text=True, check=False)
        if process.returncode:
            raise RuntimeError((process.stderr.strip() or "no output").splitlines()[-1])
        theirs = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        exported, back = ((folder / f"{one}.jsonl").read_text("utf-8").splitlines() for one in ("exported", "back"))
    our_values = {one.case.id: ours(one, table) for one in drawn}
    for metric in next(iter(theirs["answers"].values())):
        pairs = [(our_values[case][metric], their_values[metric]) for case, their_values in theirs["answers"].items()]
        yield _row(f"ragas {metric}", pairs, _ROUNDED.get(metric, _EQUAL))
    for metric in ranked[0].ours:
        their_values = theirs["rankings"]["graded" if metric in ("nDCG@10", "R@5") else "flagged"][metric]
        pairs = [(one.ours[metric], their_values[one.question]) for one in ranked if metric != "R@5" or one.is_apart]
        yield _row(f"ir-measures {metric}", pairs, _EQUAL)
    matches = [_is_same(*lines) for lines in zip([one.case for one in drawn], exported, back, strict=True)]
    yield _row("ragas's columns, out and in", [(1.0, float(one)) for one in matches], 0)


def _write(folder: Path, drawn: Sequence[RandomCase], ranked: Sequence[RankedQuestion]) -> None:
    cases = [one.case for one in drawn]
    answered = {one.case.id: RagasAnswer(one.answer.text, one.row["retrieved_contexts"]) for one in drawn}
    embedded = {text for one in drawn for text in (one.row["user_input"], one.answer.text, one.case.reference)}
    embedded |= {text for one in drawn for text in one.questions}
    run = [row for one in ranked for row in one.run]
    rankings = {
        name: {"qrels": [row for one in ranked for row in one.qrels(name == "graded")], "run": run}
        for name in ("graded", "flagged")
    }
    files = {
        "cases.jsonl": "".join(json.dumps(one.row) + "\n" for one in drawn),
        "exported.jsonl": write_cases(cases, "ragas", answered),
        "vectors.json": json.dumps({text: random_vector(text) for text in embedded}),
        "rankings.json": json.dumps(rankings),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _is_same(case: Case, exported: str, back: str) -> bool:
    """Return whether a case survives the round trip through ragas, except for id and tags."""
    columns = {name: value for name, value in json.loads(exported).items() if name not in ("id", "tags")}
    (read_back,) = read_cases(back, "back")
    restored = replace(read_back, id=case.id, language=case.language, tags=case.tags, answerable=case.answerable)
    return columns == json.loads(back) and restored == case


def _row(name: str, pairs: Sequence[tuple[float | None, float]], within: float) -> dict[str, Any]:
    """Compare both sides; a missing value equals only a missing value."""
    both = np.array([(np.nan if one is None else one, theirs) for one, theirs in pairs], dtype=float)
    apart = np.where(np.isnan(both).all(axis=1), 0, np.nan_to_num(abs(both[:, 0] - both[:, 1]), nan=np.inf))
    means = [float(one) for one in np.nanmean(both, axis=0)]
    theirs = int((apart > within).sum())
    return {"name": name, "n": len(pairs), "means": means, "apart": float(apart.max()), "other": theirs}


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table with a row for each metric."""
    head = ["", "cases", "ours, mean", "theirs, mean", "largest difference", "cases that differ"]
    lines = (
        [row["name"], row["n"], *(f"{mean:.4f}" for mean in row["means"]), f"{row['apart']:.1e}", row["other"]]
        for row in rows
    )
    return report.table(head, [list(map(str, row)) for row in lines])


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if any metric differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--set", default="hotpot")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--limit", type=int, help="maximum number of questions")
    parser.add_argument("--publish", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    (folder,) = find_sets(options.data, [options.set])[:1] or find_sets(options.data, ["examples"])[:1]
    data = datasets.load(folder)
    data = replace(data, questions=datasets.sample_evenly([q for q in data.questions if q["evidence"]], options.limit))
    rows = list(measure(*draw_cases(options.cases), rank(data)))
    table = table_of(rows)
    versions = pinned(METRICS.requirements)
    packages = {name: versions[name] for name in ("ragas", "ir-measures")}
    limits = f"{options.cases} random cases; {len(data.questions)} questions of {data.name}"
    facts = {**machine.describe(()), "limits": limits, **packages}
    report.save("metrics", facts, rows, table)
    if options.publish:
        report.publish(PAGE, COMMAND, facts, table)
    print(table)
    return int(any(row["other"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
