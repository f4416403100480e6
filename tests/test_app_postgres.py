"""The app with a Postgres database: jobs, conversations, checkpoints and notes are there after a restart."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from rag.app import Question
from rag.ingest.sources import Source
from tests.support.apps import finish, open_app

PAGE = "The Berlin office opens at eight in the morning. The Paris office opens at nine in the morning."
OPENS = "When does the Paris office open in the morning?"


def test_everything_is_there_for_the_next_app(tmp_path: Path, postgres_url: str) -> None:
    with closing(open_app(tmp_path, database_url=postgres_url)) as app:
        source = Source("offices.md", "file:///offices.md", "file", data=PAGE.encode())
        job = app.imports.jobs.submit([source], library="main")
        assert [result.status for result in finish(app, job)] == ["added"]
        app.converse(Question("Remember that I like tea", ("main",)), owner="ann", person="ann")
        first = app.converse(Question(OPENS, ("main",)), owner="ann", person="ann")
        app.wait(first.run_id, 30)
    assert not list(tmp_path.glob("*.sqlite3"))
    with psycopg.connect(postgres_url) as connection:
        counted = connection.execute("SELECT count(*) FROM checkpoints WHERE checkpoint_ns = ''").fetchone()
        assert counted == (1,)
    with closing(open_app(tmp_path, database_url=postgres_url)) as again:
        assert again.imports.jobs.job(job).done == 1
        turn = again.conversations.turn(first.turn_id, "ann")
        assert turn.answer is not None and "nine in the morning" in turn.answer.text
        assert [note.text for note in again.memory.notes("ann")] == ["I like tea"]
        again.conversations.delete(first.conversation_id, "ann")
        assert again.conversations.conversations("main", "ann")[0].id != first.conversation_id
