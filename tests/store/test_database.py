"""Jobs, conversations and feedback in SQLite."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag.errors import StoreError
from rag.store.database import Database
from rag.types import IngestResult

ROOT = Path(__file__).resolve().parents[2]
RESULT = IngestResult("s1", "https://a.example/1", "h1", "failed", "timeout", "Took too long.", 3, 1.5, {"s": 30})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "data" / "app.db")
    yield database
    database.close()


def test_a_job_moves_through_its_stages(database: Database) -> None:
    job_id = database.create_job("main", "li", ["s0", "s1", "s1"], {"force": True})
    job = database.job(job_id)
    assert job is not None
    assert (job.library, job.owner, job.state, job.options) == ("main", "li", "running", {"force": True})
    assert [(item.position, item.source, item.stage, item.result) for item in job.items] == [
        (0, "s0", "waiting", None),
        (1, "s1", "waiting", None),
        (2, "s1", "waiting", None),
    ]
    database.update_item(job_id, 1, stage="embedding")
    database.update_item(job_id, 2, stage="done", result=RESULT)
    database.set_job_state(job_id, "done")
    job = database.job(job_id)
    assert job is not None
    assert [item.stage for item in job.items] == ["waiting", "embedding", "done"]
    assert job.items[2].result == RESULT
    assert job.state == "done"
    assert database.job("unknown") is None


def test_jobs_are_listed_by_library_and_unfinished_ones_found(database: Database) -> None:
    ids = [database.create_job("main", "", [str(n)]) for n in range(4)]
    other = database.create_job("other", "", [])
    database.set_job_state(ids[0], "cancelled")
    database.set_job_state(ids[2], "done")
    assert [job.id for job in database.jobs("main", limit=3)] == ids[:0:-1]
    assert [job.id for job in database.jobs("other")] == [other]
    assert [job.id for job in database.unfinished_jobs()] == [ids[1], ids[3], other]


def test_a_state_that_does_not_exist_is_refused(database: Database) -> None:
    job_id = database.create_job("main", "", [])
    with pytest.raises(StoreError, match="CHECK constraint"):
        database.set_job_state(job_id, "lost")  # type: ignore[arg-type]
    job = database.job(job_id)
    assert job is not None
    assert job.state == "running"


def test_turns_come_back_in_order(database: Database) -> None:
    for number in range(3):
        database.save_turn("c1", "main", "li", {"question": f"q{number}", "text": "答案"})
    database.save_turn("c2", "main", "li", {"question": "other"})
    turns = database.turns("c1")
    assert [turn.answer["question"] for turn in turns] == ["q0", "q1", "q2"]
    assert turns[0].answer["text"] == "答案"
    assert database.turns("none") == []


def test_feedback_is_kept_with_its_data(database: Database) -> None:
    turn = database.save_turn("c1", "main", "li", {"question": "q"})
    database.save_feedback(turn, "main", "li", rating=-1, data={"reason": "wrong page"})
    (said,) = database.feedback("main")
    assert (said["turn_id"], said["rating"], said["data"]) == (turn, -1, {"reason": "wrong page"})
    assert database.feedback("other") == []


def test_every_table_has_library_and_owner(database: Database) -> None:
    file = sqlite3.connect(database.path)
    tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert set(tables) == {"jobs", "job_items", "conversations", "turns", "feedback"}
    for table in tables:
        columns = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
        assert {"library", "owner"} <= columns
    assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert file.execute("PRAGMA user_version").fetchone() == (1,)
    file.close()


def test_everything_is_there_after_reopening(database: Database) -> None:
    job_id = database.create_job("main", "", ["a"])
    database.close()
    again = Database(database.path)
    assert again.job(job_id) is not None
    again.close()


def test_many_threads_write_at_once(database: Database) -> None:
    job_id = database.create_job("main", "", [str(n) for n in range(80)])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: database.update_item(job_id, n, stage="done", result=RESULT), range(80)))
        list(pool.map(lambda n: database.save_turn("c", "main", "", {"n": n}), range(80)))
    job = database.job(job_id)
    assert job is not None
    assert all(item.result == RESULT for item in job.items)
    assert sorted(turn.answer["n"] for turn in database.turns("c")) == list(range(80))


def test_two_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from rag.store.database import Database;"
        "Database(Path(sys.argv[1])).create_job('main', '', ['x'])"
    )
    path = tmp_path / "app.db"
    children = [subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    database = Database(path)
    assert len(database.jobs("main")) == 3
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
    with pytest.raises(StoreError, match="cannot be used"):
        Database(path)
