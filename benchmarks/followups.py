"""Follow-up questions without a chat model: ways to search compared, and quotes with and without the question before.

    python -m benchmarks.followups [--data FOLDER] [--limit N]

English: CAsT 2021, human conversations, each question with a manual rewrite. Chinese: successive questions about a page
of xquad-zh, without the words that the previous one contains. Both: complete questions after questions about another
page, to show what irrelevant history costs a search.
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
from benchmarks.intervals import format_mean
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.quoted import in_evidence
from benchmarks.report import table
from rag.retrieval import strategies

Row = dict[str, Any]
Ask = Callable[[MeasuredApp, str, Row], list[str]]
NAMES = ("cast", "xquad-zh", "xquad-en")
EARLIER = 3
_SHORTEST = 2  # characters of a shared run that a follow-up omits


@dataclass(frozen=True)
class Set:
    """Questions with their history, all about the pages of one library; `group` is the unit of resampling."""

    title: str
    data: Dataset
    group: Callable[[Row], str]


def run(limit: int | None = None, folder: Path = DEFAULT_FOLDER) -> str:
    """Return the tables: hit@5, MRR and recall@4000 of each way on each set, and ours minus it, with 95% intervals."""
    parts = []
    with measured_app() as app:
        for number, one in enumerate(find_talks(folder, limit)):
            library = f"talk-{number}"
            import_set(app, one.data, "semantic", library)
            tables = f"{_search_table(app, library, one)}\n\n{_quote_table(app, library, one)}"
            parts.append(f"### {one.title}, {len(one.data.questions)} questions\n\n{tables}")
    return "\n\n".join(parts)


def _search_table(app: MeasuredApp, library: str, one: Set) -> str:
    groups = [one.group(row) for row in one.data.questions]
    by_way = measure(app, library, one)
    ours = by_way[OURS]
    rows = []
    for name, scores in by_way.items():
        cells = [format_mean([row[key] for row in scores], groups) for key in ("hit@5", "MRR", "recall@4000")]
        lead = [our_row["hit@5"] - their_row["hit@5"] for our_row, their_row in zip(ours, scores, strict=True)]
        rows.append([name, *cells, "" if name == OURS else format_mean(lead, groups, signed=True)])
    return table(["searched for", "hit@5", "MRR", "recall@4000", "hit@5, ours minus this"], rows)


def _quote_table(app: MeasuredApp, library: str, one: Set) -> str:
    """Return a table of how often any quote, and the first one, is in the evidence, from our search's passages."""
    groups, quoter = [one.group(row) for row in one.data.questions], app.quoter(library)
    scores: dict[str, list[tuple[float, float]]] = {"the question alone": [], "the previous question before it": []}
    for row in one.data.questions:
        before, question = _history(row), row["question"]
        passages = app.search(question, library=library, earlier_questions=before, k=10).passages
        for way, text in zip(scores, (question, f"{before[-1]} {question}"), strict=True):
            hits = in_evidence(row, [sentence.unit.text for sentence in quoter.select(text, passages)])
            scores[way].append((float(any(hits)), float(bool(hits) and hits[0])))
    ours = scores["the question alone"]
    rows = []
    for way, pairs in scores.items():
        cells = [format_mean([pair[at] for pair in pairs], groups) for at in (0, 1)]
        lead = [our_pair[1] - their_pair[1] for our_pair, their_pair in zip(ours, pairs, strict=True)]
        rows.append([way, *cells, "" if pairs is ours else format_mean(lead, groups, signed=True)])
    return table(["quoted by", "a quote in the evidence", "the first quote", "the first, ours minus this"], rows)


def measure(app: MeasuredApp, library: str, one: Set) -> dict[str, list[Mapping[str, float]]]:
    """Return the scores of each question, for each way to search."""
    rewritten = REWRITTEN if all("rewrite" in row for row in one.data.questions) else {}
    ways = (WAYS | rewritten).items()
    return {name: [_score(row, ask(app, library, row)) for row in one.data.questions] for name, ask in ways}


def _score(row: Row, hits: list[str]) -> Mapping[str, float]:
    scores = datasets.score([row], {str(row["id"]): hits})
    return {**scores, "hit@5": float(scores["MRR"] >= 1 / 5)}


def _search(app: MeasuredApp, library: str, question: str, before: Sequence[str] = ()) -> list[str]:
    result = app.search(question, library=library, earlier_questions=before, k=10)
    return [passage.text for passage in result.passages]


def _history(row: Row) -> list[str]:
    return [exchange["question"] for exchange in row["history"]]


@contextmanager
def _half_weight() -> Iterator[None]:
    """Give earlier words half weight, decaying by 0.7 per turn, in the keyword search only."""

    def weigh(before: Sequence[str], _: int) -> list[tuple[str, float]]:
        return [(earlier, 0.5 * 0.7**turn) for turn, earlier in enumerate(reversed(before))]

    with (
        patch.object(strategies, "_weights_of", weigh),
        patch.object(strategies, "dense_query", lambda text, before, model, sparse: model.encode_query(text)),
    ):
        yield


def _with_earlier_words(app: MeasuredApp, library: str, row: Row) -> list[str]:
    with _half_weight():
        return _search(app, library, row["question"], _history(row))


OURS = "the question, with those before it"
WAYS: dict[str, Ask] = {
    OURS: lambda app, library, row: _search(app, library, row["question"], _history(row)),
    "the question alone": lambda app, library, row: _search(app, library, row["question"]),
    "earlier words at half weight": _with_earlier_words,
    "the previous question before it": lambda app, library, row: _search(
        app, library, f"{_history(row)[-1]} {row['question']}"
    ),
}
REWRITTEN: dict[str, Ask] = {
    "a person's rewrite": lambda app, library, row: _search(app, library, row["rewrite"]),
    "the rewrite, with those before it": lambda app, library, row: _search(app, library, row["rewrite"], _history(row)),
}


def find_talks(folder: Path, limit: int | None, names: Sequence[str] = NAMES) -> Iterator[Set]:
    """Yield the sets of follow-ups derived from those in `folder`."""
    for path in datasets.find_folders(folder, names):
        if path.name == "cast":
            yield Set("CAsT 2021", datasets.load(path, limit), lambda row: str(row["id"]).rsplit("-", 1)[0])
            continue
        data = datasets.load(path)
        if path.name == "xquad-zh":
            follow_ups = _sample(list(_elide(data.questions)), limit)
            yield Set("Chinese follow-ups made of xquad-zh", replace(data, questions=follow_ups), _page)
        changes = _sample(list(_after_another_page(data.questions)), limit)
        yield Set(f"{path.name}, a change of subject", replace(data, questions=changes), _page)


def _page(row: Row) -> str:
    return str(row["evidence"][0]["url"])


def _sample(rows: list[Row], limit: int | None) -> list[Row]:
    """Return up to 250 rows, evenly spread, since successive questions are similar."""
    count = min(250, limit or 250)
    return rows[:: max(1, len(rows) // count)][:count]


def _elide(questions: Sequence[Row]) -> Iterator[Row]:
    """Yield each question after one about the same page, without the runs of 2 or more characters they share."""
    for place in range(1, len(questions)):
        row, previous = questions[place], questions[max(0, place - EARLIER) : place]
        previous = [one for one in previous if _page(one) == _page(row)]
        if previous and (elided := _remove_shared(row["question"], previous[-1]["question"])) != row["question"]:
            yield {**row, "question": elided, "history": [{"question": one["question"]} for one in previous]}


def _remove_shared(question: str, earlier: str) -> str:
    text, place = "", 0
    while place < len(question):
        end = place
        while end < len(question) and question[end].isalnum() and question[place : end + 1] in earlier:
            end += 1
        text += "" if end - place >= _SHORTEST else question[place : max(end, place + 1)]
        place = max(end, place + 1)
    return text


def _after_another_page(questions: Sequence[Row]) -> Iterator[Row]:
    """Yield each question with a history of three questions from half a set away, about other pages."""
    half = len(questions) // 2
    for place, row in enumerate(questions):
        earlier = [questions[(place + half + turn) % len(questions)] for turn in range(EARLIER)]
        if _page(row) not in map(_page, earlier):
            yield {**row, "history": [{"question": one["question"]} for one in earlier]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="the folder of the sets")
    parser.add_argument("--limit", type=int, default=None, help="maximum number of questions per set")
    options = parser.parse_args()
    print(run(options.limit, options.data))


if __name__ == "__main__":
    main()
