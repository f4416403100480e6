"""Undo restores deleted pages with their texts, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.errors import StoreError
from tests.support.apps import add_files, finish, open_app

NOTE = "Opening hours of the harbour office\n\nThe office is open from six in the morning until midnight.\n"


def test_undo_restores_the_texts_of_deleted_pages(tmp_path: Path) -> None:
    app = open_app(tmp_path)
    add_files(app, ("hours.txt", NOTE))
    (page,) = app.library("main").pages()
    assert page.title == "Opening hours of the harbour office"  # the title of a text file is its first line
    token = app.deletions.record("main", [page.url_hash])
    app.remove_pages("main", [page.url_hash])
    assert app.library("main").pages() == []
    finish(app, app.deletions.undo(token))
    again = app.page("main", page.url_hash)
    assert again and (again.text, again.title, again.source) == (NOTE.strip(), page.title, "file")
    assert app.library("main").chunks(page.url_hash)
    with pytest.raises(StoreError, match="no longer be undone"):
        app.deletions.undo(token)
    app.close()
