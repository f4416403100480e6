"""Joined questions: pairs about one page, in the punctuation of their language."""

from __future__ import annotations

from typing import Any

from benchmarks.joined_questions import pairs


def row(question: str, page: str, language: str = "en", answers: tuple[str, ...] = ("yes",)) -> dict[str, Any]:
    evidence = [{"url": page, "quote": "Yes."}] if answers else []
    return {"question": question, "lang": language, "answers": list(answers), "evidence": evidence}


def test_questions_about_a_page_are_joined_in_pairs() -> None:
    rows = [row(text, page) for page in "ab" for text in ("How wide is it?", "Who built it?", "Is it red?")]
    rows += [row("多宽？", "c", "zh"), row("谁建的？", "c", "zh"), row("Is it old?", "a", answers=())]
    assert [message for message, *_ in pairs(rows)] == [
        "How wide is it, and who built it?",
        "How wide is it? Who built it?",
        "多宽，谁建的？",
    ]
