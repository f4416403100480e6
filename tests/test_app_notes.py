"""An answer saved as a note: a page of the library that no answer uses until a user includes it."""

from __future__ import annotations

import pytest

from rag.app import App
from rag.errors import RagError
from rag.types import Citation
from tests.store.support import save_turn

OIL = "The lamp of Grey Point burns colza oil."


def test_an_answer_saved_as_a_page_is_excluded_from_answers(app: App) -> None:
    cited = Citation(1, "https://grey.example/oil", "0" * 32, "Grey Point", OIL, 0, len(OIL))
    answer = {"question": "Which oil?", "mode": "fast", "outcome": "answered", "text": f"{OIL} [1]"}
    answer["citations"] = [{name: getattr(cited, name) for name in Citation.__slots__}]  # type: ignore[assignment]
    turn = save_turn(app._database.conversations, "c1", "main", "ann", answer)
    page = app.save_note(turn, library="main", owner="ann")
    stored = app.page("main", page.url_hash)
    assert stored is not None and (stored.source, stored.title) == ("note", "Which oil?")
    assert OIL in stored.text and "Grey Point" in stored.text
    assert page.url_hash in app.library("main").excluded_pages()
    assert not app.search("Which oil?", library="main").passages
    app.library("main").set_excluded([page.url_hash], False)
    again = app.save_note(turn, library="main", owner="ann")
    assert again.url_hash == page.url_hash and not app.library("main").excluded_pages(), "it stays as it was chosen"
    assert [one.url_hash for one in app.search("Which oil?", library="main").passages] == [page.url_hash]
    with pytest.raises(RagError):
        app.save_note(turn, library="main", owner="bob")
