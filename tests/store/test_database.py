"""The database of jobs, conversations and more, in a file and in Postgres: tables, versions, and concurrency."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from rag.errors import ConfigError, StoreError, StoreUnavailableError
from rag.locales import say
from rag.store.sql import database as module
from rag.store.sql.database import Database
from rag.store.sql.job_table import NewItem
from rag.store.sql.schema import VERSION
from rag.types import IngestResult, Notice
from tests.store.support import save_turn
from tests.support import postgres

RESULT = IngestResult("s1", "https://a.example/1", "h1", "failed", Notice("timeout", {"s": 30}), 3, 1.5)


def columns(place: Path | str) -> dict[str, set[str]]:
    """Return the names of the columns of each table."""
    found: dict[str, set[str]] = {}
    if isinstance(place, str):
        with psycopg.connect(place) as connection:
            named = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            for table, column in connection.execute(named).fetchall():
                found.setdefault(table, set()).add(column)
        return {table: names - {"rowid"} for table, names in found.items()}
    file = sqlite3.connect(place)
    for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        found[table] = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
    file.close()
    return found


def test_every_table_has_library_and_owner(database: Database, database_location: Path | str) -> None:
    tables = columns(database_location)
    assert {"jobs", "job_items", "schedules", "conversations", "turns", "feedback"} <= set(tables)
    neither = {"library", "owner"}
    everybodys = {"summaries": {"owner"}, "pagelight_version": neither, "host_slots": neither}
    for table, names in tables.items():
        assert {"library", "owner"} - names <= everybodys.get(table, set())


def test_both_databases_have_the_same_columns(tmp_path: Path, postgres_url: str) -> None:
    Database(tmp_path / "app.db").close()
    in_postgres = columns(postgres_url)
    del in_postgres["pagelight_version"]
    assert columns(tmp_path / "app.db") == in_postgres


def test_the_file_keeps_a_log_and_a_version(tmp_path: Path) -> None:
    Database(tmp_path / "data" / "app.db").close()
    file = sqlite3.connect(tmp_path / "data" / "app.db")
    assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert file.execute("PRAGMA user_version").fetchone() == (VERSION,)
    file.close()


def test_rows_that_refer_to_a_job_go_with_it_and_no_others_come(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")])
    database.jobs.delete(job_id)
    assert database.items.items(job_id) == []
    with pytest.raises(StoreError, match=r"(?i)foreign key"), database.transaction() as db:
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


def test_many_threads_add_to_a_job_at_once(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    with ThreadPoolExecutor(8) as pool:
        added = pool.map(lambda n: database.items.append(job_id, [NewItem(f"{n}-{at}") for at in range(5)]), range(20))
        assert list(added) == [5] * 20
    assert [item.position for item in database.items.items(job_id)] == list(range(100))


def test_texts_that_postgres_has_no_place_for_are_kept_without_them(database: Database) -> None:
    turn_id = database.conversations.begin_turn("c", "main", "", "a\0b", extra={"note": "c\0d", "path": "\\u0000"})
    database.conversations.finish_turn(turn_id, {"text": "50 % ?", "citations": []}, {"more": {"x": None, "y": [1]}})
    (turn,) = database.conversations.turns("c")
    assert turn.question in ("a\0b", "a\ufffdb") and turn.answer["text"] == "50 % ?"
    assert turn.extra["note"] in ("c\0d", "c\ufffdd")
    assert (turn.extra["path"], turn.extra["more"]) == ("\\u0000", {"y": [1]})


def test_six_processes_may_open_an_empty_database_at_once(tmp_path: Path, postgres_server: str) -> None:
    with ExitStack() as stack:
        places: list[Path | str] = [tmp_path / f"{number}.db" for number in range(20)]
        places += [stack.enter_context(postgres.empty_database(postgres_server)) for _ in range(20)]
        assert postgres.open_at_once(places, processes=6) == [0] * 6
        for place in places:
            database = Database(place)
            assert len(database.jobs.jobs("main")) == 6
            database.close()


def _set_version(place: Path | str, version: int) -> None:
    if isinstance(place, str):
        with psycopg.connect(place) as connection:
            connection.execute("UPDATE pagelight_version SET version = %s", (version,))
    else:
        file = sqlite3.connect(place)
        file.execute(f"PRAGMA user_version = {version}")
        file.close()


@pytest.mark.parametrize(("version", "said"), [(VERSION + 1, "newer version"), (VERSION - 1, "older version")])
def test_a_database_of_another_version_is_left_alone(
    database: Database, database_location: Path | str, version: int, said: str
) -> None:
    database.close()
    _set_version(database_location, version)
    with pytest.raises(StoreError, match=said):
        Database(database_location)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_text("this is not a database, and long enough to be looked at " * 20)
    with pytest.raises(StoreError, match="Can't use"):
        Database(path)


def test_a_server_that_is_away_is_one_sentence_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        Database(f"postgresql://ann:hidden@/pages?host={tmp_path}")
    assert str(tmp_path) in str(caught.value) and "hidden" not in str(caught.value)
    assert "没有响应" in say(caught.value.notice, "zh")


def test_connections_that_the_server_closed_are_replaced(postgres_url: str, postgres_server: str) -> None:
    database = Database(postgres_url)
    job_id = database.jobs.create("main", "")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        name = urlsplit(postgres_url).path[1:]
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
    assert database.jobs.job(job_id) is not None
    database.close()


def test_without_its_packages_postgres_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="make install-postgres"):
        Database("postgresql://db/pages")
