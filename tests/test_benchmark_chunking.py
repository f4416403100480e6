"""The chunking benchmark runs on the sample pages, locates LangChain's chunks, and can find faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import chunking
from benchmarks.chunking import Piece, System, ends_inside, measure
from benchmarks.datasets import Dataset
from rag.ingest.chunking import CHUNKERS
from tests.support.hashed_model import HashedModel

TEXT = "One sentence stands here. Another  one\nfollows it.\n\n黄山位于安徽省南部。莲花峰是主峰。"


def piece(end: int) -> Piece:
    return Piece(TEXT[:end], end, TEXT[:end])


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "load_embedding_model", lambda name: HashedModel())


def test_it_runs_on_the_sample_pages(results_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert chunking.main(["--data", str(results_folder / "none"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["system"] for row in rows][: len(CHUNKERS)] == list(CHUNKERS)
    ours = rows[: len(CHUNKERS)]
    assert all(row["over"] == 0 and row["inside"] <= 0.02 and 1 <= row["work"] <= 1.5 for row in ours)
    peer = next(row for row in rows if row["system"] == "*SemanticChunker*")
    assert peer["work"] > 2
    assert "| semantic |" in (results_folder / "chunking.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("upto", "inside"),
    [("here.", False), ("Another", True), ("one", False), ("it.", False), ("南部。", False), ("莲花峰", True)],
)
def test_ends(upto: str, inside: bool) -> None:
    end = TEXT.index(upto) + len(upto) if upto != "one" else TEXT.index("one\n") + 3
    assert ends_inside(TEXT, piece(end)) is inside


def test_chunks_with_other_white_space_are_found_again() -> None:
    chunks = ["One sentence stands here. Another one", "Another one follows it. 黄山位于安徽省南部。", "莲花峰是主峰。"]
    found = chunking._locate(TEXT, lambda text: chunks)
    assert [TEXT[: one.end].split()[-1][-3:] for one in found] == ["one", "南部。", "主峰。"]


def test_sizes_and_tokens_are_counted() -> None:
    data = Dataset("tiny", [{"url": "u", "title": "T", "text": TEXT}], [])
    end = TEXT.index("Another")
    row = measure(data, System("x", 50, lambda page: [piece(end - 1), Piece(TEXT[end:], len(TEXT), TEXT[end:])]))
    assert (row["chunks"], row["over"], row["inside"]) == (2, 0.5, 0.0)
    assert row["work"] == row["encoded"] == 1.0
    twice = measure(data, System("x", None, lambda page: [Piece(TEXT, len(TEXT), TEXT + TEXT)]))
    assert twice["encoded"] == 2.0
    assert twice["over"] is None
