"""The sample pages answer their questions, and none of their boilerplate is read as content."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from rag.reading.charset import decode
from rag.reading.extract import extract_html
from rag.reading.parser import ExtractedDocument

pytestmark = pytest.mark.weights

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PAGES: list[dict[str, Any]] = json.loads((EXAMPLES / "pages.json").read_text(encoding="utf-8"))
QUESTIONS: list[dict[str, Any]] = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))
SURROUNDINGS = ("Cookie", "cookie", "Was this page helpful", "Privacy", "访客身份", "热门推荐", "网站地图")


def extracted(page: dict[str, Any]) -> ExtractedDocument:
    body = (EXAMPLES / page["file"]).read_bytes()
    return extract_html(decode(body, None), page["url"])


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {page["url"]: extracted(page).text for page in PAGES}


def test_the_list_names_every_file() -> None:
    assert sorted(page["file"] for page in PAGES) == sorted(path.name for path in EXAMPLES.glob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["file"])
def test_a_page_is_read_right(page: dict[str, Any]) -> None:
    found = extracted(page)
    assert found.title.startswith(page["title"])
    assert found.language.split("-")[0] == page["lang"]
    assert found.canonical == page["url"]
    assert len(found.text) > 1_000
    assert found.text.count("\n#") >= 4, "its headings survive"
    assert not [phrase for phrase in SURROUNDINGS if phrase in found.text]


def test_tables_and_code_survive(texts: dict[str, str]) -> None:
    assert "13 至 20 公里" in texts["https://docs.example.com/city/zh/metro-fares"]
    assert "skiff status" in texts["https://docs.example.com/skiff/handbook"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_the_pages_named_hold_the_answer(question: dict[str, Any], texts: dict[str, str]) -> None:
    if not question["answers"]:
        assert question["pages"] == []
        return
    for spellings in question["answers"]:
        holders = [url for url in question["pages"] if any(spelling in texts[url] for spelling in spellings)]
        assert holders, f"none of {question['pages']} says any of {spellings}"


def test_the_demo_answers_eight_questions_rightly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make demo` runs this. The user's settings don't affect it."""
    monkeypatch.setenv("LLM_MODEL", "openai:none")
    demo = runpy.run_path(str(EXAMPLES.parent / "scripts" / "demo.py"))
    assert demo["main"]() == 0
    *blocks, last = capsys.readouterr().out.split("\n? ")[1:]
    assert len(blocks) == 7 and all("https://docs.example.com/" in block for block in blocks)
    assert "https://docs.example.com/" not in last and "not_in_pages" in last
