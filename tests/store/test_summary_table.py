"""Summaries in the database: of one text of a page, bounded, and gone with their page and library."""

from __future__ import annotations

import pytest

from rag.store.sql import summary_table
from rag.store.sql.database import Database


def test_a_summary_is_of_one_text_in_one_language_by_one_writer(database: Database) -> None:
    table = database.summaries
    table.save("main", "page", "text1", "en", "rules", {"text": "By rules."})
    table.save("main", "page", "text1", "en", "model", {"text": "By a model."})
    assert [table.find("main", "page", "text1", "en", by) is not None for by in ("rules", "model", "", "other")] == [
        *(True, True, True, False)
    ]
    assert table.find("main", "page", "text1", "zh") is None
    newest = table.find("main", "page", "text1", "en")
    assert newest and (newest["author"], newest["data"]) == ("model", {"text": "By a model."})
    table.save("main", "page", "text2", "en", "rules", {"text": "Of the new text."})
    assert table.find("main", "page", "text1", "en") is None


def test_the_oldest_give_way_and_all_go_with_their_page_or_library(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.summaries
    monkeypatch.setattr(summary_table, "MAX_SUMMARIES", 3)
    for n in range(5):
        table.save("main" if n < 4 else "other", f"page{n}", "text", "en", "rules", {"n": n})
    assert [bool(table.find("main", f"page{n}", "text", "en")) for n in range(4)] == [False, False, True, True]
    table.forget("main", ["page2"])
    assert table.find("main", "page2", "text", "en") is None
    database.forget_library("main")
    assert table.find("main", "page3", "text", "en") is None
    assert table.find("other", "page4", "text", "en")
