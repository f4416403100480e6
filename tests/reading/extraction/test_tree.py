"""The tree of pages with omitted tags."""

from __future__ import annotations

from rag.reading.extract import extract_html


def test_a_page_without_a_body_tag_is_read_whole() -> None:
    text = "The next page goes on as if nothing was."
    page = f"<!doctype html><title>Good</title><article><h1>Good</h1><p>{text}</p></article>"
    found = extract_html(page, "https://a.example/")
    assert found.title == "Good"
    assert text in found.text
