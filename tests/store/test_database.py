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
from rag.store.sql.sqlite_file import VERSION
from rag.types import IngestResult
from tests.store.support import save_turn

ROOT = Path(__file__).resolve().parents[2]
RESULT = IngestResult("s1", "https://a.example/1", "h1", "failed", "timeout", "Took too long.", 3, 1.5, {"s": 30})


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
    assert file.execute("PRAGMA user_version").fetchone() == (VERSION,)
    file.close()


def test_everything_is_there_after_reopening(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")])
    database.close()
    again = Database(database.path)
    assert again.jobs.job(job_id) is not None
    again.close()


def test_rows_that_refer_to_a_job_go_with_it_and_no_others_come(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")])
    database.jobs.delete(job_id)
    assert database.items.items(job_id) == []
    with pytest.raises(StoreError, match="FOREIGN KEY"), database.transaction() as db:
        db.execute(
            "INSERT INTO job_items (job_id, library, owner, position, source, stage)"
            " VALUES ('none', 'main', '', 0, 's', 'waiting')"
        )


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


def test_two_processes_may_open_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    program = (
        "import sys; from pathlib import Path; from rag.store.sql.database import Database;"
        "Database(Path(sys.argv[1])).jobs.create('main', '')"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT) for _ in range(2)]
    assert [child.wait(60) for child in children] == [0, 0]
    database = Database(path)
    assert len(database.jobs.jobs("main")) == 2
    database.close()


@pytest.mark.parametrize(("version", "said"), [(VERSION + 1, "newer version"), (VERSION - 1, "Export the libraries")])
def test_a_file_of_another_version_is_left_alone(database: Database, version: int, said: str) -> None:
    database.close()
    file = sqlite3.connect(database.path)
    file.execute(f"PRAGMA user_version = {version}")
    file.close()
    with pytest.raises(StoreError, match=said):
        Database(database.path)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_text("this is not a database, and long enough to be looked at " * 20)
    with pytest.raises(StoreError, match="Can't use"):
        Database(path)
