"""Do questions of a conversation find what they mean? Each way to search for them without a chat model, side by side.
And is the right sentence quoted from the same passages, with and without the question before?

    python -m benchmarks.followups [--data FOLDER] [--limit N]

English: CAsT 2021, conversations of people, each question beside a person's rewrite. Chinese: successive questions
about a page of xquad-zh, without the words that the one before has said already. And questions that are complete,
after questions about another page: what a search loses when nothing earlier bears on it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import datasets
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.intervals import told
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.quoted import in_evidence
from benchmarks.report import table
from rag.retrieval import followup_query
from rag.retrieval.strategies import base

Row = dict[str, Any]
Ask = Callable[[MeasuredApp, str, Row], list[str]]
NAMES = ("cast", "xquad-zh", "xquad-en")
EARLIER = 3
_SHORTEST = 2  # characters of a run that a question leaves out because the one before it has it


@dataclass(frozen=True)
class Set:
    """Questions with what was said before, all answered by the pages of one library; `group` is drawn together."""

    title: str
    data: Dataset
    group: Callable[[Row], str]


def run(limit: int | None = None, folder: Path = DEFAULT_FOLDER) -> str:
    """The tables: hit@5, MRR and recall@4000 of each way on each set, with 95 % intervals, and ours less the others."""
    parts = []
    with measured_app() as app:
        for number, one in enumerate(find_talks(folder, limit)):
            library = f"talk-{number}"
            take_in(app, one.data, "semantic", library)
            tables = f"{_measured(app, library, one)}\n\n{_quoted(app, library, one)}"
            parts.append(f"### {one.title}, {len(one.data.questions)} questions\n\n{tables}")
    return "\n\n".join(parts)


def _measured(app: MeasuredApp, library: str, one: Set) -> str:
    groups = [one.group(row) for row in one.data.questions]
    found = measure(app, library, one)
    ours = found[OURS]
    rows = []
    for name, scores in found.items():
        cells = [told([row[key] for row in scores], groups) for key in ("hit@5", "MRR", "recall@4000")]
        less = [own["hit@5"] - other["hit@5"] for own, other in zip(ours, scores, strict=True)]
        rows.append([name, *cells, "" if name == OURS else told(less, groups, signed=True)])
    return table(["searched for", "hit@5", "MRR", "recall@4000", "hit@5, ours less this"], rows)


def _quoted(app: MeasuredApp, library: str, one: Set) -> str:
    """Whether quotes, and the first of them, stand in the evidence: from the passages that our search finds."""
    groups, quoter = [one.group(row) for row in one.data.questions], app.quoter(library)
    scores: dict[str, list[tuple[float, float]]] = {"the question alone": [], "the previous question before it": []}
    for row in one.data.questions:
        before, question = _before(row), row["question"]
        passages = app.search(question, library=library, before=before, k=10).passages
        for way, asked in zip(scores, (question, f"{before[-1]} {question}"), strict=True):
            hits = in_evidence(row, [sentence.quoted.text for sentence in quoter.select(asked, passages)])
            scores[way].append((float(any(hits)), float(bool(hits) and hits[0])))
    ours = scores["the question alone"]
    rows = []
    for way, found in scores.items():
        cells = [told([pair[at] for pair in found], groups) for at in (0, 1)]
        less = [own[1] - other[1] for own, other in zip(ours, found, strict=True)]
        rows.append([way, *cells, "" if found is ours else told(less, groups, signed=True)])
    return table(["quoted by", "a quote in the evidence", "the first quote", "the first, ours less this"], rows)


def measure(app: MeasuredApp, library: str, one: Set) -> dict[str, list[Mapping[str, float]]]:
    """The scores of each question, by the way to search for it."""
    rewritten = REWRITTEN if all("rewrite" in row for row in one.data.questions) else {}
    ways = (WAYS | rewritten).items()
    return {name: [_scored(row, ask(app, library, row)) for row in one.data.questions] for name, ask in ways}


def _scored(row: Row, hits: list[str]) -> Mapping[str, float]:
    scores = datasets.score([row], {str(row["id"]): hits})
    return {**scores, "hit@5": float(scores["MRR"] >= 1 / 5)}


def _search(app: MeasuredApp, library: str, question: str, before: Sequence[str] = ()) -> list[str]:
    found = app.search(question, library=library, before=before, k=10)
    return [passage.text for passage in found.passages]


def _before(row: Row) -> list[str]:
    return [one["question"] for one in row["history"]]


@contextmanager
def _half_weight() -> Iterator[None]:
    """Earlier words at half weight, fading by .7 a turn, in the keywords alone."""

    def weighed(before: Sequence[str], _: int) -> list[tuple[str, float]]:
        return [(earlier, 0.5 * 0.7**turn) for turn, earlier in enumerate(reversed(before))]

    with (
        patch.object(followup_query, "_weights_of", weighed),
        patch.object(base, "dense_query", lambda text, before, model, sparse: model.encode_query(text)),
    ):
        yield


def _with_earlier_words(app: MeasuredApp, library: str, row: Row) -> list[str]:
    with _half_weight():
        return _search(app, library, row["question"], _before(row))


OURS = "the question, with those before it"
WAYS: dict[str, Ask] = {
    OURS: lambda app, library, row: _search(app, library, row["question"], _before(row)),
    "the question alone": lambda app, library, row: _search(app, library, row["question"]),
    "earlier words at half weight": _with_earlier_words,
    "the previous question before it": lambda app, library, row: _search(
        app, library, f"{_before(row)[-1]} {row['question']}"
    ),
}
REWRITTEN: dict[str, Ask] = {
    "a person's rewrite": lambda app, library, row: _search(app, library, row["rewrite"]),
    "the rewrite, with those before it": lambda app, library, row: _search(app, library, row["rewrite"], _before(row)),
}


def find_talks(folder: Path, limit: int | None, wanted: Sequence[str] = NAMES) -> Iterator[Set]:
    """The sets that can be made of those of NAMES that stand in `folder`."""
    for path in datasets.find(folder, wanted):
        if path.name == "cast":
            yield Set("CAsT 2021", datasets.load(path, limit), lambda row: str(row["id"]).rsplit("-", 1)[0])
            continue
        data = datasets.load(path)
        if path.name == "xquad-zh":
            elided = _sample(list(_elided(data.questions)), limit)
            yield Set("Chinese follow-ups made of xquad-zh", replace(data, questions=elided), _page)
        other = _sample(list(_after_another_page(data.questions)), limit)
        yield Set(f"{path.name}, a change of subject", replace(data, questions=other), _page)


def _page(row: Row) -> str:
    return str(row["evidence"][0]["url"])


def _sample(rows: list[Row], limit: int | None) -> list[Row]:
    """Evenly spread, at most 250: a question and the one after it are much alike."""
    wanted = min(250, limit or 250)
    return rows[:: max(1, len(rows) // wanted)][:wanted]


def _elided(questions: Sequence[Row]) -> Iterator[Row]:
    """Each question after another about the same page, without the runs of two characters or more that both have."""
    for place in range(1, len(questions)):
        row, earlier = questions[place], questions[max(0, place - EARLIER) : place]
        earlier = [one for one in earlier if _page(one) == _page(row)]
        if earlier and (short := _without(row["question"], earlier[-1]["question"])) != row["question"]:
            yield {**row, "question": short, "history": [{"question": one["question"]} for one in earlier]}


def _without(question: str, said: str) -> str:
    kept, place = "", 0
    while place < len(question):
        end = place
        while end < len(question) and question[end].isalnum() and question[place : end + 1] in said:
            end += 1
        kept += "" if end - place >= _SHORTEST else question[place : max(end, place + 1)]
        place = max(end, place + 1)
    return kept


def _after_another_page(questions: Sequence[Row]) -> Iterator[Row]:
    """Each question after the three that stand half of the set before it."""
    half = len(questions) // 2
    for place, row in enumerate(questions):
        earlier = [questions[(place + half + turn) % len(questions)] for turn in range(EARLIER)]
        if _page(row) not in map(_page, earlier):
            yield {**row, "history": [{"question": one["question"]} for one in earlier]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the folder of the sets")
    parser.add_argument("--limit", type=int, default=None, help="at most so many questions of a set")
    options = parser.parse_args()
    print(run(options.limit, options.data))


if __name__ == "__main__":
    main()
