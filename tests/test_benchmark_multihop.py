"""Planned searches are measured on the sample pages, beside one search and gold sub-questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import multihop, report, samples
from benchmarks.datasets import Dataset
from benchmarks.multihop import Asked, planned, rows_of
from rag.models.sparse import SparseEncoder
from rag.reasoning.hops import RulePlanner
from rag.types import Passage
from tests.support.answering import passage
from tests.support.hashed_model import HashedBuiltin


def test_it_runs_on_the_sample_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (report, samples):
        monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr("rag.app.models.load_embedding_model", lambda name, **more: HashedBuiltin())
    given = ["--data", str(tmp_path / "none"), "--sets", "examples", "--limit", "5", "--json"]
    assert multihop.main(given) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["way"] for row in rows] == ["one search", "at most 3", "at most 6"]
    assert [row["questions"] for row in rows] == [5, 5, 5]
    assert 1.0 == rows[0]["searches"] < rows[1]["searches"] <= 3.0
    assert rows[1]["searches"] <= rows[2]["searches"] <= 6.0
    assert "| at most 3 |" in (tmp_path / "multihop.md").read_text(encoding="utf-8")


def test_no_more_is_searched_for_than_may_be() -> None:
    found = [passage(1, "Ada Lindqvist built the bridge with Eugenius Birch.", title="Bridge")]
    then = [passage(2, "Ada Lindqvist was born in Skagen.", title="Ada Lindqvist")]

    def search(query: str) -> Sequence[Passage]:
        return then if "Ada" in query else found

    planner = RulePlanner(SparseEncoder(), lambda terms: dict.fromkeys(terms, 1.0))
    asked = planned(planner, search, "Where was the builder of the bridge born?", 6)
    assert [query.split()[0] for query in asked] == ["Where", "Ada", "Eugenius", "Skagen"]
    assert planned(planner, search, asked[0], 2) == asked[:2]


def test_kinds_are_told_apart_and_gains_are_paired() -> None:
    questions = [{"id": "a", "kind": "bridge"}, {"id": "b", "kind": "comparison"}]
    found = {"one search": [Asked(1, 0.0), Asked(1, 1.0)], "at most 3": [Asked(3, 1.0), Asked(1, 1.0)]}
    rows = {(row["set"], row["way"]): row for row in rows_of(Dataset("set", [], questions), found)}
    assert str(rows["set", "at most 3"]["ahead of one search"]).startswith("+0.500 ")
    assert str(rows["set, bridge", "at most 3"]["ahead of one search"]).startswith("+1.000 ")
    assert rows["set, comparison", "at most 3"]["searches"] == 1.0
