"""`check`: statements against the passages of cases, and a text against the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag.cli import main
from rag.commands import questions
from rag.errors import ModelError
from tests.support.chat_server import ChatServer, Reply, Request

PAGE = "The bridge was opened in 1932. It carries eight lanes of traffic."
TEXT = "The bridge was opened in 1932. 它有八条车道。\n\n## Cost\n\nPenguins guard it at night 🐧. Is it so?"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    first = {"id": "a", "passages": [PAGE, "x"], "text": TEXT, "bad": 1}
    rows = [first, {"id": 2, "passages": [], "text": "Rain falls today."}]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_sentence_has_a_row_and_no_library_is_opened(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path / "data"), "check", "--json", "--cases", str(cases)]) == 0
    first, second = printed(capsys)
    assert not (tmp_path / "data").exists()
    assert [row["id"] for row in (first, second)] == ["a", "2"]
    said = {TEXT[row["start"] : row["end"]]: row for row in first["statements"]}
    assert list(said) == [
        "The bridge was opened in 1932.", "它有八条车道。", "## Cost", "Penguins guard it at night 🐧.", "Is it so?",
    ]  # fmt: skip
    verdicts = [row["verdict"] for row in said.values()]
    assert verdicts == ["supported", "partly", "supported", "unsupported", "supported"]
    assert all(0 <= row["score"] <= 1 and row["by"] == "rules" for row in said.values())
    assert second["statements"][0]["verdict"] == "unsupported"


def test_a_connected_model_judges_what_is_not_verbatim(
    cases: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def judge(request: Request) -> Reply:
        asked.append(request.last)
        return Reply(json.dumps({"verdicts": [{"number": 1, "verdict": "supported"}]}))

    with ChatServer(judge) as server:
        monkeypatch.setenv("LLM_BASE_URL", server.base_url)
        monkeypatch.setenv("LLM_MODEL", "test")
        assert main(["check", "--json", "--cases", str(cases)]) == 0
    by = [(row["by"], row["verdict"]) for row in printed(capsys)[0]["statements"]]
    assert by[:2] == [("rules", "supported"), ("model", "supported")]
    assert "1. 它有八条车道。" in asked[0] and "1932." in asked[0] and "1. The bridge" not in asked[0]


def test_who_comes_after_the_first_that_answers_is_not_asked(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Stub:
        verifier_kind = "model"

        def __init__(self, name: str) -> None:
            self._name = name

        async def verify(self, claims: list[Any], passages: list[Any], question: str = "") -> list[None]:
            asked.append(self._name)
            if self._name == "away":
                raise ModelError("chat_timeout")
            return [None] * len(claims)

    monkeypatch.setattr(questions, "verifiers_of", lambda settings: [Stub("away"), Stub("there"), Stub("beyond")])
    assert main(["check", "--json", "--cases", str(cases)]) == 0
    assert asked == ["away", "there"]


def test_the_chat_model_checks_one_case_after_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They use one connection, which belongs to the event loop that opened it."""
    rows = [{"id": n, "passages": [PAGE], "text": "Penguins guard it at night."} for n in range(4)]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    verdicts = json.dumps({"verdicts": [{"number": 1, "verdict": "partly"}]})
    with ChatServer(lambda _: verdicts) as server:
        monkeypatch.setenv("LLM_BASE_URL", server.base_url)
        monkeypatch.setenv("LLM_MODEL", "test")
        assert main(["check", "--json", "--cases", str(tmp_path / "many.jsonl")]) == 0
    found = [row["statements"][0] for row in printed(capsys)]
    assert [(one["by"], one["verdict"]) for one in found] == [("model", "partly")] * 4


def test_a_line_that_is_no_case_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a"}')
    assert main(["check", "--cases", str(tmp_path / "x.jsonl")]) == 1
    assert ", line 1: not a case" in capsys.readouterr().err


def test_a_text_of_ones_own_is_held_against_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = {"url": "https://a.example/bridge", "title": "Bridge", "lang": "en", "text": PAGE}
    (tmp_path / "pages.jsonl").write_text(json.dumps(page))
    data = ["--data-dir", str(tmp_path / "data")]
    assert main([*data, "import", str(tmp_path / "pages.jsonl")]) == 0
    (tmp_path / "mine.md").write_text("The bridge was opened in 1932. It is guarded by penguins.")
    capsys.readouterr()
    assert main([*data, "check", "--json", str(tmp_path / "mine.md")]) == 0
    (row,) = printed(capsys)
    assert [one["verdict"] for one in row["statements"]] == ["supported", "unsupported"]
    assert row["statements"][0]["sources"] == [
        {"url": "https://a.example/bridge", "quote": "The bridge was opened in 1932."}
    ]
