"""The benchmark of main text: sites of pages, cross-validation, and its report."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import extraction, extraction_fit
from benchmarks.extraction_labels import Example, read_examples, read_truth
from benchmarks.extraction_score import keeps_answers
from rag.reading.extraction.features import Forest

TEXT = "The ferry to the island runs twice a day, and four times a day in summer. It takes bicycles and dogs. " * 5
ADDRESSES = ("https://a.example.com/1", "https://b.example.com/2", "https://example.org/3", "https://example.net/4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a set of four pages of three sites, the last of which states its address in the page only."""
    (tmp_path / "html").mkdir()
    rows = []
    for i, url in enumerate(ADDRESSES):
        head = f"<html><head><link rel=canonical href={url}></head>"
        page = f"{head}<body><article><p>{TEXT}</p></article><footer>Site map</footer></body></html>"
        (tmp_path / "html" / f"{i}.html.gz").write_bytes(gzip.compress(page.encode()))
        row = {"id": str(i), "url": url, "type": "article", "text": TEXT, "with": ["ferry"], "without": ["Site map"]}
        rows.append({name: value for name, value in row.items() if name != "url" or i < 3})
    (tmp_path / "truth.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


def test_pages_of_one_registered_domain_are_of_one_site(folder: Path) -> None:
    assert [row["site"] for row in read_truth([folder])] == ["example.com", "example.com", "example.org", "example.net"]


def test_no_page_is_judged_by_its_own_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: dict[int, set[str]] = {}

    def fit(examples: Sequence[Example]) -> Forest:
        forest = Forest(float(len(fitted)), [])
        fitted[len(fitted)] = {example.row["site"] for example in examples}
        return forest

    monkeypatch.setattr(extraction_fit, "fit", fit)
    examples = list(read_examples(read_truth([folder])))
    forests = extraction_fit.fit_folds(examples, 2)
    assert all(e.row["site"] not in fitted[int(forests[e.row["id"]].start)] for e in examples)
    assert all(fitted.values())


def test_each_kind_is_compared_with_trafilatura(folder: Path) -> None:
    truth = read_truth([folder])
    found = extraction.measure(truth, {"3": Forest(-9.0, [])})  # for which all blocks are alike
    assert found["ours"]["pages"]["0"] == found["trafilatura"]["pages"]["0"] == 1.0 > found["ours"]["pages"]["3"]
    lines = extraction.report(truth, found)
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| all", "| article"]
    assert "pages per second: ours " in lines[-1]


def test_an_answer_counts_with_most_of_its_sentence() -> None:
    text = "The ferry leaves at 9:30 every day but Monday. Tickets: 4 €"
    answers = [
        ("9:30", "The ferry leaves at 9:30 every day but Monday."),
        ("9:30", "A train leaves at 9:30 from the old station."),
        ("5 €", "Tickets: 5 €"),
        ("4 €", "Tickets: 4 €"),
    ]
    assert keeps_answers(text, answers) == [True, False, False, True]
