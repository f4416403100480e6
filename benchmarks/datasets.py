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

from rag.evaluation.metrics import BUDGETS, character_recall, covered_quotes, has_all, reciprocal_rank
from rag.evaluation.support import normalise_text

T = TypeVar("T")

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
_OTHER_LANGUAGE = {"-en": "-zh", "-zh": "-en"}


@dataclass(frozen=True)
class Dataset:
    """Pages and questions; `folder` is the place they were read from."""

    name: str
    pages: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    folder: Path = Path()


def load(folder: Path, limit: int | None = None) -> Dataset:
    """Read a set; with `limit`, only its first questions."""
    return Dataset(folder.name, _rows(folder / "pages.jsonl"), _rows(folder / "questions.jsonl")[:limit], folder)


def write(data: Dataset, folder: Path) -> None:
    """Write a set as the two files that `load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("pages", data.pages), ("questions", data.questions)):
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def find_folders(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the sets below `folder` by name and in that order, or all of them."""
    folders = {path.parent.name: path.parent for path in sorted(folder.glob("*/questions.jsonl"))}
    return [folders[name] for name in names or folders if name in folders]


def sample_evenly(rows: Sequence[T], limit: int | None) -> list[T]:
    """Return up to `limit` of the rows, evenly spread."""
    is_subset = limit is not None and limit < len(rows)
    return [rows[place * len(rows) // limit] for place in range(limit)] if is_subset and limit else list(rows)


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
    """Return means over the questions with evidence; `hits` are texts in rank order by question id.

    recall@N: share of the evidence's characters in the first N characters of the hits' texts. all@4000: share of
    questions all of whose quotes are in there, each at nine tenths. MRR: 1 / rank of the first of ten hits that covers
    half of a quote. hit@1: that rank is 1.
    """
    rows = [_score_one(q, hits.get(str(q["id"]), [])) for q in questions if q["evidence"]]
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def _score_one(question: Mapping[str, Any], texts: Sequence[str]) -> dict[str, float]:
    quotes = [evidence["quote"] for evidence in question["evidence"]]
    rank = reciprocal_rank(list(map(bool, covered_quotes(quotes, texts[:10]))))
    return {
        **{f"recall@{budget}": character_recall(quotes, texts, budget) for budget in BUDGETS},
        "all@4000": has_all(quotes, texts, 4000),
        "MRR": rank,
        "hit@1": float(rank == 1),
    }


# Variants


def variant(data: Dataset, name: str) -> Dataset:
    """Return the variant `name` of a set, one of VARIANTS. Raises ValueError if there is none."""
    return VARIANTS[name](data)


def _cross_language(data: Dataset) -> Dataset:
    """Return this set's pages with its sister's questions: xquad-en's questions about xquad-zh's pages."""
    ending = data.name[-3:]
    sister = data.folder.parent / f"{data.name[:-3]}{_OTHER_LANGUAGE.get(ending, '')}" / "questions.jsonl"
    if ending not in _OTHER_LANGUAGE or not sister.is_file():
        raise ValueError(f"{data.name} has no sister set in the other language")
    sister_rows = {row["id"]: row for row in _rows(sister)}
    questions = [
        {**question, "question": sister_rows[question["id"]]["question"], "lang": sister_rows[question["id"]]["lang"]}
        for question in data.questions
        if question["id"] in sister_rows
    ]
    return replace(data, name=f"{data.name} cross-language", questions=questions)


def _without_pages(data: Dataset) -> Dataset:
    """Remove every second page."""
    return _mark_answerable(replace(data, name=f"{data.name} unanswerable", pages=data.pages[::2]), data.questions)


def _without_paragraphs(data: Dataset) -> Dataset:
    """Remove every second paragraph of each page, or every second line; some questions lose their answer."""
    ends = ["\n\n" if "\n\n" in page["text"] else "\n" for page in data.pages]
    texts = [end.join(page["text"].split(end)[::2]) for end, page in zip(ends, data.pages, strict=True)]
    pages = [{**page, "text": text} for page, text in zip(data.pages, texts, strict=True)]
    return _mark_answerable(replace(data, name=f"{data.name} unanswerable-paragraphs", pages=pages), data.questions)


def _with_single_pages(data: Dataset) -> Dataset:
    """Remove every second paragraph, and also ask questions that name two pages about each page alone.

    This separates a good score from one that counts pages or names.
    """
    titles = {page["url"]: page["title"] for page in data.pages}
    rows = []
    for question in data.questions:
        urls = {one["url"] for one in question["evidence"]}
        mentioned = [url for url in sorted(urls) if titles[url] in question["question"]]
        for url, other in zip(mentioned, mentioned[::-1], strict=True) if len(mentioned) == len(urls) == 2 else ():
            text = question["question"].replace(titles[other], "")
            evidence = [one for one in question["evidence"] if one["url"] == url]
            rows.append({**question, "id": f"{question['id']} {url}", "question": text, "evidence": evidence})
    remaining = _without_paragraphs(replace(data, questions=[*data.questions, *rows]))
    return replace(remaining, name=f"{data.name} unanswerable-named")


def _mark_answerable(data: Dataset, questions: Sequence[Mapping[str, Any]]) -> Dataset:
    """Mark each question as `answerable` if all its evidence remains, not if none does; drop the others."""
    texts = {page["url"]: normalise_text(page["text"]) for page in data.pages}
    rows = []
    for question in questions:
        flags = [normalise_text(one["quote"]) in texts.get(one["url"], "") for one in question["evidence"]]
        if flags and (all(flags) or not any(flags)):
            evidence = question["evidence"] if flags[0] else []
            rows.append({**question, "evidence": evidence, "answerable": flags[0]})
    return replace(data, questions=rows)


VARIANTS: dict[str, Callable[[Dataset], Dataset]] = {
    "cross-language": _cross_language,
    "unanswerable": _without_pages,
    "unanswerable-paragraphs": _without_paragraphs,
    "unanswerable-named": _with_single_pages,
}


def separation(answerable: Sequence[float], unanswerable: Sequence[float]) -> dict[str, float]:
    """Return the AUROC of a score, and the share of unanswerable questions below the threshold that refuses one
    answerable question in twenty (`refused@5%`). Empty without both kinds."""
    if not answerable or not unanswerable:
        return {}
    threshold = sorted(answerable)[int(0.05 * len(answerable))]
    wins = sum((a > u) + 0.5 * (a == u) for a in answerable for u in unanswerable)
    return {
        "AUROC": wins / (len(answerable) * len(unanswerable)),
        "refused@5%": sum(u < threshold for u in unanswerable) / len(unanswerable),
    }
