"""Scope and strategy as options of `search` and `ask`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag.cli import main

PAGES = [
    {
        "url": "https://one.example/bridge",
        "title": "Bridge",
        "lang": "en",
        "markdown": "## History\n\nThe harbour bridge was opened in 1932.\n\n## Use\n\nThe harbour bridge has lanes.",
    },
    {
        "url": "https://two.example/ferry",
        "title": "Ferry",
        "lang": "de",
        "text": "The harbour bridge has a ferry beside it.",
    },
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with two pages."""
    base = tmp_path_factory.mktemp("cli")
    (base / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES), encoding="utf-8")
    assert main(["--data-dir", str(base / "data"), "import", str(base / "pages.jsonl")]) == 0
    return base


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RAG_DATA_DIR", "RAG_LIBRARY", "QDRANT_URL", "EMBEDDING_MODEL", "LLM_MODEL", "STRATEGY"):
        monkeypatch.delenv(name, raising=False)


def rows(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> list[Any]:
    capsys.readouterr()
    assert main(["--data-dir", str(folder / "data"), *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_question_of_a_file_is_searched_for_with_its_history(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [{"question": "Where is the ferry?", "answer": "Beside the bridge."}, {"question": "Thanks!", "answer": ""}]
    asked = [{"id": "alone", "question": "When?"}, {"id": "after", "question": "When?", "history": said}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    how = ("--json", "--strategy", "keyword", "--questions", str(tmp_path / "q.jsonl"))
    _, after = rows(capsys, folder, "search", *how)
    assert (after["question"], after["hits"][0]["title"]) == ("When?", "Ferry")


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        ([], {"Bridge", "Ferry"}),
        (["--page", "https://one.example/bridge#top"], {"Bridge"}),
        (["--page", "https://one.example/bridge", "--page", "https://two.example/ferry"], {"Bridge", "Ferry"}),
        (["--site", "two.example"], {"Ferry"}),
        (["--language", "en"], {"Bridge"}),
        (["--heading", "History"], {"Bridge"}),
        (["--heading", "No such"], set()),
        (["--since", "2026-01-01"], {"Bridge", "Ferry"}),
        (["--until", "2020-01-01"], set()),
    ],
)
def test_where_to_search(
    capsys: pytest.CaptureFixture[str], folder: Path, options: list[str], titles: set[str]
) -> None:
    (row,) = rows(capsys, folder, "search", "--json", *options, "harbour bridge")
    assert {hit["title"] for hit in row["hits"]} == titles


def test_a_heading_confines_to_its_section(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (row,) = rows(capsys, folder, "search", "--json", "--heading", "History", "harbour bridge")
    assert all("History" in hit["section"] for hit in row["hits"])


@pytest.mark.parametrize("strategy", ["hyde", "multi_query", "rerank", "auto", "keyword"])
def test_how_to_search(capsys: pytest.CaptureFixture[str], folder: Path, strategy: str) -> None:
    (row,) = rows(capsys, folder, "search", "--json", "--strategy", strategy, "When was the harbour bridge opened?")
    assert row["hits"][0]["title"] == "Bridge"


def test_asking_keeps_to_them_too(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    asked = ["ask", "--json", "--site", "two.example", "--strategy", "rerank", "What does the harbour bridge have?"]
    (row,) = rows(capsys, folder, *asked)
    assert {citation["title"] for citation in row["citations"]} == {"Ferry"}


def test_the_setting_chooses(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATEGY", "keyword")
    (row,) = rows(capsys, folder, "search", "--json", "--explain", "harbour bridge")
    assert row["strategy"] == "keyword"


@pytest.mark.parametrize("option", [["--since", "soon"], ["--until", "2026-13-01"], ["--strategy", "clever"]])
def test_a_wrong_choice_is_wrong_usage(folder: Path, option: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--data-dir", str(folder / "data"), "search", *option, "bridge"])
    assert caught.value.code == 2
