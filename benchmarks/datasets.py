"""Sets of pages and questions: `pages.jsonl` and `questions.jsonl` in a folder.

pages      {"url", "title", "lang", "text"}
questions  {"id", "question", "lang", "answers": [text], "evidence": [{"url", "quote"}]}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rag.evaluation.evidence import BUDGETS, character_recall, coverings, has_all, reciprocal_rank, squash

T = TypeVar("T")

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
_OTHER_LANGUAGE = {"-en": "-zh", "-zh": "-en"}


@dataclass(frozen=True)
class Dataset:
    """Pages and questions; `folder` is where they were read from."""

    name: str
    pages: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    folder: Path = Path()


def load(folder: Path, limit: int | None = None) -> Dataset:
    """Read a set; `limit` keeps its first questions alone."""
    return Dataset(folder.name, _rows(folder / "pages.jsonl"), _rows(folder / "questions.jsonl")[:limit], folder)


def write(data: Dataset, folder: Path) -> None:
    """Write a set as the two files that `load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("pages", data.pages), ("questions", data.questions)):
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def find(folder: Path, names: Sequence[str]) -> list[Path]:
    """The sets below `folder` by name and in that order, or all that are there."""
    found = {path.parent.name: path.parent for path in sorted(folder.glob("*/questions.jsonl"))}
    return [found[name] for name in names or found if name in found]


def spread(rows: Sequence[T], limit: int | None) -> list[T]:
    """At most `limit` of the rows, evenly spread."""
    few = limit is not None and limit < len(rows)
    return [rows[place * len(rows) // limit] for place in range(limit)] if few and limit else list(rows)


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def is_trained_on(row: Mapping[str, Any]) -> bool:
    """Return whether a question of xquad is about a paragraph that `benchmarks.answer_reader` trains on."""
    url = row["evidence"][0]["url"] if row.get("evidence") else ""
    if not url.startswith(("https://xquad-en.", "https://xquad-zh.")):
        return False
    digest = hashlib.md5(url.rpartition("/")[2].encode(), usedforsecurity=False).hexdigest()
    return int(digest, 16) % 2 == 0


def score(questions: Sequence[Mapping[str, Any]], hits: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Means over the questions that have evidence; `hits` are texts in rank order by question id.

    recall@N: share of the evidence's characters in the first N characters of the hits' texts.
    all@4000: share of questions all of whose quotes stand there, each at nine tenths.
    MRR: 1 / rank of the first of ten hits that covers half of a quote. hit@1: that rank is 1.
    """
    rows = [_score_one(q, hits.get(str(q["id"]), [])) for q in questions if q["evidence"]]
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def _score_one(question: Mapping[str, Any], texts: Sequence[str]) -> dict[str, float]:
    quotes = [evidence["quote"] for evidence in question["evidence"]]
    rank = reciprocal_rank(list(map(bool, coverings(quotes, texts[:10]))))
    return {
        **{f"recall@{budget}": character_recall(quotes, texts, budget) for budget in BUDGETS},
        "all@4000": has_all(quotes, texts, 4000),
        "MRR": rank,
        "hit@1": float(rank == 1),
    }


# Variants


def variant(data: Dataset, name: str) -> Dataset:
    """The set changed in the way of VARIANTS that `name` says. Raises ValueError when it cannot be."""
    return VARIANTS[name](data)


def _cross_language(data: Dataset) -> Dataset:
    """This set's pages, asked in the words of its sister: xquad-en's questions of xquad-zh's pages."""
    ending = data.name[-3:]
    sister = data.folder.parent / f"{data.name[:-3]}{_OTHER_LANGUAGE.get(ending, '')}" / "questions.jsonl"
    if ending not in _OTHER_LANGUAGE or not sister.is_file():
        raise ValueError(f"{data.name} has no sister set in the other language")
    asked = {row["id"]: row for row in _rows(sister)}
    questions = [
        {**question, "question": asked[question["id"]]["question"], "lang": asked[question["id"]]["lang"]}
        for question in data.questions
        if question["id"] in asked
    ]
    return replace(data, name=f"{data.name} cross-language", questions=questions)


def _without_pages(data: Dataset) -> Dataset:
    """Every second page left out."""
    return _answerable(replace(data, name=f"{data.name} unanswerable", pages=data.pages[::2]), data.questions)


def _without_paragraphs(data: Dataset) -> Dataset:
    """Every second paragraph of each page left out, or line where it has none: what is asked of it may not be there."""
    ends = ["\n\n" if "\n\n" in page["text"] else "\n" for page in data.pages]
    texts = [end.join(page["text"].split(end)[::2]) for end, page in zip(ends, data.pages, strict=True)]
    pages = [{**page, "text": text} for page, text in zip(data.pages, texts, strict=True)]
    return _answerable(replace(data, name=f"{data.name} unanswerable-paragraphs", pages=pages), data.questions)


def _one_of_two(data: Dataset) -> Dataset:
    """Every second paragraph left out, and what is asked of two pages by their titles asked of each of them as well.

    So a score is told from one that counts pages or names.
    """
    titles = {page["url"]: page["title"] for page in data.pages}
    rows = []
    for question in data.questions:
        urls = {one["url"] for one in question["evidence"]}
        named = [url for url in sorted(urls) if titles[url] in question["question"]]
        for url, other in zip(named, named[::-1], strict=True) if len(named) == len(urls) == 2 else ():
            asked = question["question"].replace(titles[other], "")
            evidence = [one for one in question["evidence"] if one["url"] == url]
            rows.append({**question, "id": f"{question['id']} {url}", "question": asked, "evidence": evidence})
    left = _without_paragraphs(replace(data, questions=[*data.questions, *rows]))
    return replace(left, name=f"{data.name} unanswerable-named")


def _answerable(data: Dataset, questions: Sequence[Mapping[str, Any]]) -> Dataset:
    """Mark each question with `answerable`: all of its evidence is there, or none; others are left out."""
    texts = {page["url"]: squash(page["text"]) for page in data.pages}
    rows = []
    for question in questions:
        held = [squash(one["quote"]) in texts.get(one["url"], "") for one in question["evidence"]]
        if held and (all(held) or not any(held)):
            evidence = question["evidence"] if held[0] else []
            rows.append({**question, "evidence": evidence, "answerable": held[0]})
    return replace(data, questions=rows)


VARIANTS: dict[str, Callable[[Dataset], Dataset]] = {
    "cross-language": _cross_language,
    "unanswerable": _without_pages,
    "unanswerable-paragraphs": _without_paragraphs,
    "unanswerable-named": _one_of_two,
}


def separation(answerable: Sequence[float], unanswerable: Sequence[float]) -> dict[str, float]:
    """How well a score tells the two apart: its AUROC, and the share of unanswerable questions below the
    threshold that refuses one answerable question in twenty (`refused@5%`). Empty without both kinds."""
    if not answerable or not unanswerable:
        return {}
    threshold = sorted(answerable)[int(0.05 * len(answerable))]
    wins = sum((a > u) + 0.5 * (a == u) for a in answerable for u in unanswerable)
    return {
        "AUROC": wins / (len(answerable) * len(unanswerable)),
        "refused@5%": sum(u < threshold for u in unanswerable) / len(unanswerable),
    }
