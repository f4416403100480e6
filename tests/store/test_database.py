"""The file under the data folder: its tables, its versions, and who may use it at once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag.errors import StoreError
from rag.store.sql.database import Database
from rag.store.sql.job_table import NewItem
from rag.store.sql.schema import VERSIONS
from rag.types import IngestResult
from tests.store.support import save_turn

ROOT = Path(__file__).resolve().parents[2]
RESULT = IngestResult("s1", "https://a.example/1", "h1", "failed", "timeout", "Took too long.", 3, 1.5, {"s": 30})
OLD_RESULT = (
    '{"source": "s1", "url": "https://a.example/1", "url_hash": "h1", "status": "added", "reason": "page_added",'
    ' "message": "Added.", "chunks": 3, "seconds": 1.5, "params": {}}'
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "data" / "app.db")
    yield database
    database.close()


def test_every_table_has_library_and_owner(database: Database) -> None:
    file = sqlite3.connect(database.path)
    tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert {"jobs", "job_items", "schedules", "conversations", "turns", "feedback"} <= set(tables)
    for table in tables:
        columns = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
        assert {"library", "owner"} - columns <= ({"owner"} if table == "summaries" else set())  # of pages: everybody's
    assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert file.execute("PRAGMA user_version").fetchone() == (len(VERSIONS),)
    file.close()


def test_everything_is_there_after_reopening(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")])
    database.close()
    again = Database(database.path)
    assert again.jobs.job(job_id) is not None
    again.close()


def old_file(path: Path) -> None:
    """A file of the first version with a finished and a running job, and an answer."""
    file = sqlite3.connect(path)
    file.executescript(f"{VERSIONS[0]} PRAGMA user_version = 1;")
    file.executemany(
        "INSERT INTO jobs VALUES (?, 'main', 'li', ?, ?, '{}')",
        [("j1", "2026-01-01", "done"), ("j2", "2026-01-02", "running")],
    )
    file.executemany(
        "INSERT INTO job_items VALUES (?, 'main', 'li', ?, ?, ?, ?, ?)",
        [
            ("j1", 0, "s1", "done", None, OLD_RESULT),
            ("j1", 1, "s1", "done", None, OLD_RESULT),
            ("j2", 0, "note.md", "reading", '{"name": "note.md", "url": "file:///note.md", "data": "Tg=="}', None),
        ],
    )
    file.execute("INSERT INTO conversations VALUES ('c1', 'main', 'li', 'q', 't', 't')")
    file.execute("INSERT INTO turns VALUES ('t1', 'c1', 'main', 'li', 't', '{}')")
    file.commit()
    file.close()


def test_a_file_of_the_first_version_keeps_all_it_holds(tmp_path: Path) -> None:
    old_file(tmp_path / "app.db")
    database = Database(tmp_path / "app.db")
    done, running = (database.jobs.job(one) for one in ("j1", "j2"))
    assert done is not None
    assert running is not None
    assert (done.state, done.kind, done.title, done.counts) == ("done", "pages", "s1", {"added": 2})
    assert [item.result.chunks for item in database.items.items("j1") if item.result] == [3, 3]
    assert database.jobs.running() == ["j2"]
    assert (running.title, running.counts) == ("note.md", {"": 1})
    assert [item.url for item in database.items.open("j2")] == ["file:///note.md"]
    assert len(database.conversations.turns("c1")) == 1
    database.close()


def test_rows_that_refer_to_a_job_go_with_it_and_no_others_come(tmp_path: Path) -> None:
    old_file(tmp_path / "app.db")
    database = Database(tmp_path / "app.db")
    database.jobs.delete("j1")
    assert database.items.items("j1") == []
    with pytest.raises(StoreError, match="FOREIGN KEY"), database.transaction() as db:
        db.execute(
            "INSERT INTO job_items (job_id, library, owner, position, source, stage)"
            " VALUES ('none', 'main', '', 0, 's', 'waiting')"
        )
    database.close()


def test_a_transaction_inside_another_is_undone_with_it(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")])
    with pytest.raises(RuntimeError), database.transaction():
        database.jobs.set_state(job_id, "paused")
        raise RuntimeError("before its end")
    assert database.jobs.state(job_id) == "running"


def test_many_threads_write_at_once(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem(str(n)) for n in range(80)])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: database.items.finish(job_id, n, RESULT), range(80)))
        list(pool.map(lambda n: save_turn(database.conversations, "c", "main", "", {"n": n}), range(80)))
    assert all(item.result == RESULT for item in database.items.items(job_id))
    assert sorted(turn.answer["n"] for turn in database.conversations.turns("c")) == list(range(80))


@pytest.mark.parametrize("old", [False, True])
def test_two_processes_may_open_the_file_at_once(tmp_path: Path, old: bool) -> None:
    path = tmp_path / "app.db"
    if old:
        old_file(path)
    program = (
        "import sys; from pathlib import Path; from rag.store.sql.database import Database;"
        "Database(Path(sys.argv[1])).jobs.create('main', '')"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT) for _ in range(2)]
    assert [child.wait(60) for child in children] == [0, 0]
    database = Database(path)
    assert len(database.jobs.jobs("main")) == (4 if old else 2)
    database.close()


def test_a_file_of_a_newer_program_is_left_alone(database: Database) -> None:
    database.close()
    file = sqlite3.connect(database.path)
    file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreError, match="newer version"):
        Database(database.path)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_text("this is not a database, and long enough to be looked at " * 20)
    with pytest.raises(StoreError, match="Can't use"):
        Database(path)
