"""Whole pages of several libraries, and their stored summaries."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rag.retrieval.retriever import PageReader
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import open_library
from rag.store.sql.database import Database
from rag.store.values import Filters
from tests.store.support import DIMENSION, MODEL, draft


def test_a_page_in_several_libraries_belongs_to_the_first(tmp_path: Path) -> None:
    with closing(EdgeClient(tmp_path / "qdrant")) as client, closing(Database(tmp_path / "app.sqlite3")) as database:
        one, two = (open_library(client, name, MODEL, DIMENSION) for name in ("one", "two"))
        both, own = draft("both").commit(one), draft("own").commit(two)
        draft("both", version=1).commit(two)
        aside = draft("aside").commit(two)
        two.set_excluded([aside.url_hash], True)
        pages = PageReader([one, two], Filters(), database.summaries)
        assert {page.url_hash for page in pages.list_pages()} == {both.url_hash, own.url_hash}
        read = pages.read(both.url_hash)
        assert read and "version 0" in read.text
        assert {passage.library for passage in pages.passages(own.url_hash)} == {"two"}
        pages.save_summary(own, "en", "rules", {"citations": [{"n": 1, "library": ""}]})
        alone = PageReader([two], Filters(), database.summaries).find_summary(own, "en")
        several = pages.find_summary(own, "en", "rules")
        assert alone and several
        assert [kept["citations"][0]["library"] for kept in (alone, several)] == ["", "two"]
        assert PageReader([one], Filters(), database.summaries).find_summary(own, "en") is None
