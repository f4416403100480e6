"""A deleted library: restorable for a day, then nothing of it remains."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

from rag.app import App
from rag.ingest.sources import web_source
from rag.store.qdrant.records import LIBRARIES, RESTORE_PERIOD, library_id
from rag.store.sql.evaluation_table import StoredRow
from tests.store.support import save_turn
from tests.support.apps import finish


def filled(app: App) -> str:
    """Fill a library with a conversation, feedback, a schedule and a job that has not started; return its name."""
    name = app.libraries.create("My Notes")
    turn = save_turn(app._database.conversations, "c1", name, "ann", {"question": "How long?", "text": "Four hours."})
    app._database.feedback.save(turn, name, "ann", rating=1)
    save_turn(app._database.conversations, "c2", "main", "ann", {"question": "Why?", "text": "Because."})
    app.imports.schedules.set(name, every_hours=24)
    app._database.jobs.create(name, "ann", title="a")
    set_id = app._database.cases.add_set(name, "ann", "set")
    app._database.cases.put(set_id, [("q", {"question": "Why?"})])
    run_id = app._database.evaluations.create(name, "ann", "run", set_id, [], 1, {})
    app._database.evaluations.set_state(run_id, "paused", ["running"])
    app._database.evaluations.add_row(run_id, StoredRow("fast", "q", {}, {}))
    app._database.labels.add(name, "ann", [("l", "supported", {})])
    return name


def rows(app: App, library: str) -> dict[str, int]:
    tables = ("conversations", "turns", "feedback", "schedules", "jobs")
    tables += ("evaluation_sets", "evaluation_cases", "evaluation_runs", "evaluation_rows", "evaluation_labels")
    return {
        table: app._database.rows(f"SELECT count(*) FROM {table} WHERE library = ?", library)[0][0] for table in tables
    }


def a_day_passes(app: App, name: str) -> None:
    moment = datetime.now(UTC) - RESTORE_PERIOD - timedelta(seconds=1)
    app._client.set_payload(LIBRARIES, {"removed_at": moment.isoformat()}, [library_id(name)])


def test_all_of_it_comes_back(app: App) -> None:
    name = filled(app)
    before = rows(app, name)
    app.remove_library(name)
    app.tidy()
    assert not app.libraries.has(name)
    assert [info.display_name for info in app.libraries.removed_libraries()] == ["My Notes"]
    app.libraries.restore(name)
    assert app.libraries.title(name) == "My Notes"
    assert rows(app, name) == before
    assert [one.id for one in app.conversations.conversations(name, "ann")] == ["c1"]
    assert [job.state for job in app.imports.jobs.jobs(name)] == ["paused"]  # nothing continued unseen


def test_removed_data_is_gone_after_a_day_even_after_a_restart(app: App) -> None:
    name = filled(app)
    app.remove_library(name)
    a_day_passes(app, name)
    assert app.libraries.removed_libraries() == []
    app.close()
    with closing(App(app.settings)) as later:
        assert sum(rows(later, name).values()) > 0
        later._upkeep.start()
        later._upkeep.close()  # waits for the first round
        assert not any(rows(later, name).values())
        assert not any(name in one.name for one in later._client.get_collections().collections)
        assert [one.id for one in later.conversations.conversations("main", "ann")] == ["c2"]


def test_a_removed_library_is_not_looked_at_again_on_schedule(app: App) -> None:
    name = filled(app)
    schedule = app.imports.schedules.schedules(name)[0].schedule
    with app._database.transaction() as db:
        db.execute("UPDATE schedules SET next_at = '2025-01-01T00:00:00.000000Z'")
    app.remove_library(name)
    assert app.imports.schedules.start_due() == []
    app.libraries.restore(name)
    (kept,) = app.imports.schedules.schedules(name)
    assert kept.schedule.id == schedule.id
    assert kept.schedule.next_at > "2026"


def test_an_import_into_a_removed_library_says_so(app: App) -> None:
    name = filled(app)
    app.remove_library(name)
    job_id = app.imports.jobs.submit([web_source("https://a.example/")], library=name)
    finish(app, job_id)
    notice = app.imports.jobs.job(job_id).notice
    assert notice is not None and notice.code == "library_removed"
