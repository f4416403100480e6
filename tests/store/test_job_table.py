"""Jobs: states, counts, and lists."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rag.errors import StoreError
from rag.store.sql import job_table
from rag.store.sql.database import Database
from rag.store.sql.job_table import JobItem, JobState, NewItem
from rag.types import IngestResult, Notice

ADDED = IngestResult("s", "https://a.example/1", "h1", "added", Notice("page_added", {"chunks": 3}), 3, 1.5)
FAILED = replace(ADDED, status="failed", notice=Notice("timeout", {"s": 30}))
HELD = replace(ADDED, status="held", notice=Notice("gate_short"), preview="So short.", choices=("add_anyway", "skip"))


def alive(worker: str) -> bool:
    return bool(worker)


def skipped(item: JobItem) -> IngestResult:
    return replace(ADDED, source=item.source, status="skipped", notice=Notice("cancelled"))


def test_an_item_moves_through_its_stages(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "li", [NewItem("s0"), NewItem("s1"), NewItem("s1")])
    items.start_attempt(job_id, 1)
    items.set_stage(job_id, 1, "embedding")
    assert items.finish(job_id, 2, HELD)
    stored = items.items(job_id)
    assert [item.stage for item in stored] == ["waiting", "embedding", "done"]
    assert [item.result for item in stored] == [None, None, HELD]
    assert [item.attempts for item in stored] == [0, 1, 0]
    assert stored[1].started_at
    assert stored[2].finished_at
    assert [item.position for item in items.current_items(job_id)] == [1]


def test_a_later_attempt_leaves_the_time_of_the_first(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = database.jobs.create("main", "li", [NewItem("s0")])
    for moment in ("first", "second"):
        monkeypatch.setattr(job_table, "now", lambda moment=moment: moment)
        database.items.start_attempt(job_id, 0)
    (item,) = database.items.items(job_id)
    assert (item.started_at, item.attempts) == ("first", 2)


def test_an_item_has_one_result(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "", [NewItem("a")])
    assert items.finish(job_id, 0, ADDED)
    assert not items.finish(job_id, 0, FAILED)
    items.set_stage(job_id, 0, "embedding")
    (item,) = items.items(job_id)
    assert (item.result, item.stage) == (ADDED, "done")


def test_what_was_found_is_added_once(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "", [NewItem("a", url_hash="ha")])
    new = [NewItem(name, url_hash=f"h{name}", depth=1, parent=0) for name in "abc"]
    assert items.append(job_id, new) == 2
    assert items.append(job_id, new) == 0
    assert items.append(job_id, [NewItem("x"), NewItem("x")]) == 2
    assert [(item.position, item.source, item.depth, item.parent) for item in items.items(job_id)] == [
        (0, "a", 0, None),
        (1, "b", 1, 0),
        (2, "c", 1, 0),
        (3, "x", 0, None),
        (4, "x", 0, None),
    ]


def test_nothing_is_added_to_a_job_that_was_cancelled_or_removed(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    database.jobs.set_state(job_id, "cancelled")
    assert database.items.append(job_id, [NewItem("a")]) == 0
    database.jobs.delete(job_id)
    assert database.items.append(job_id, [NewItem("a")]) == 0


def test_what_may_be_tried_again_keeps_what_it_was_made_from(database: Database) -> None:
    items = database.items
    given = [NewItem(str(n), payload={"name": str(n)}, data=b"\x00body") for n in range(3)]
    job_id = database.jobs.create("main", "", given)
    for position, row in enumerate((ADDED, FAILED, HELD)):
        items.finish(job_id, position, row)
    assert items.payload(job_id, 0) is None
    assert [items.payload(job_id, position) for position in (1, 2)] == [
        ({"name": "1"}, b"\x00body"),
        ({"name": "2"}, b"\x00body"),
    ]
    items.replace(job_id, 2, skipped(items.items(job_id)[2]))
    assert items.payload(job_id, 2) is None
    assert items.counts([job_id])[job_id] == {"added": 1, "failed": 1, "skipped": 1}


def test_failed_items_wait_again_and_remember_their_attempts(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "", [NewItem("a"), NewItem("b")])
    for position, row in enumerate((ADDED, FAILED)):
        items.start_attempt(job_id, position)
        items.finish(job_id, position, row)
    assert items.requeue_failed(job_id) == 1
    (item,) = items.open_items(job_id)
    assert (item.source, item.stage, item.attempts, item.started_at) == ("b", "waiting", 1, "")


def test_a_decision_goes_with_the_item(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a", payload={"name": "a"})])
    database.items.finish(job_id, 0, HELD)
    database.items.requeue(job_id, 0, "add_anyway")
    (item,) = database.items.open_items(job_id)
    assert (item.decision, item.result) == ("add_anyway", None)


def test_open_items_are_skipped_but_for_the_one_in_hand(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "", [NewItem(name) for name in "abc"])
    items.finish(job_id, 0, ADDED)
    assert items.finish_open(job_id, skipped, {1}) == 1
    assert [item.result.status if item.result else "" for item in items.items(job_id)] == ["added", "", "skipped"]


def test_items_are_paged_and_chosen_by_status(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "", [NewItem(str(n)) for n in range(10)])
    for position in range(0, 10, 2):
        items.finish(job_id, position, FAILED if position == 4 else ADDED)
    assert [item.position for item in items.items(job_id, 2, 3)] == [2, 3, 4]
    assert [item.position for item in items.items(job_id, 1, 2, ["added"])] == [2, 6]
    assert [item.position for item in items.items(job_id, statuses=["", "failed"])] == [1, 3, 4, 5, 7, 9]
    assert items.counts([job_id, "none"]) == {job_id: {"": 5, "added": 4, "failed": 1}, "none": {}}
    assert items.counts([]) == {}


def test_only_items_of_jobs_that_go_on_are_wanted(database: Database) -> None:
    items = database.items
    job_id = database.jobs.create("main", "", [NewItem("a"), NewItem("b")])
    items.finish(job_id, 0, ADDED)
    assert items.find_open(job_id, 0) is None
    assert items.find_open(job_id, 1) is not None
    database.jobs.set_state(job_id, "cancelled")
    assert items.find_open(job_id, 1) is None


def test_a_job_is_what_was_asked_for(database: Database) -> None:
    given = [NewItem("s0"), NewItem("s1")]
    job_id = database.jobs.create("main", "li", given, kind="feed", title="News", options={"force": True})
    job = database.jobs.job(job_id)
    assert job is not None
    assert (job.library, job.owner, job.state, job.kind, job.title) == ("main", "li", "running", "feed", "News")
    assert (job.options, job.counts, job.total, job.done) == ({"force": True}, {"": 2}, 2, 0)
    database.items.finish(job_id, 1, ADDED)
    job = database.jobs.job(job_id)
    assert job is not None
    assert (job.counts, job.total, job.done) == ({"": 1, "added": 1}, 2, 1)
    assert database.jobs.job("unknown") is None


def test_jobs_are_listed_by_library_and_running_ones_found(database: Database) -> None:
    assert not database.jobs.has_running()
    ids = [database.jobs.create("main", "", [NewItem(str(n))]) for n in range(5)]
    other = database.jobs.create("other", "")
    for job_id, state in zip(ids, ("cancelled", "running", "done", "running", "paused"), strict=True):
        database.jobs.set_state(job_id, state)
    assert [job.id for job in database.jobs.jobs("main", limit=3)] == ids[:1:-1]
    assert [job.id for job in database.jobs.jobs("main", limit=3, offset=3)] == ids[1::-1]
    assert [job.id for job in database.jobs.jobs("other")] == [other]
    assert database.jobs.has_running()
    assert list(database.jobs.acquire_leases("a", alive)) == [ids[1], ids[3], other]


def test_a_state_that_does_not_exist_is_refused(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    with pytest.raises(StoreError, match=r"(?i)check constraint"):
        database.jobs.set_state(job_id, "lost")  # type: ignore[arg-type]
    assert database.jobs.state(job_id) == "running"


@pytest.mark.parametrize(
    ("of", "changed"), [((), True), (["running"], True), (["paused", "running"], True), (["paused", "done"], False)]
)
def test_a_state_is_changed_only_from_those_that_are_named(
    database: Database, of: list[JobState], changed: bool
) -> None:
    job_id = database.jobs.create("main", "")
    assert database.jobs.set_state(job_id, "cancelled", from_states=of) == changed
    assert database.jobs.state(job_id) == ("cancelled" if changed else "running")
    assert not database.jobs.set_state("unknown", "done")


def test_a_job_is_done_once_nothing_is_left(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")], discovery="waiting")
    assert not database.jobs.end_if_done(job_id)
    database.items.finish(job_id, 0, ADDED)
    assert not database.jobs.end_if_done(job_id)
    database.jobs.set_discovery(job_id, "failed", Notice("feed_missing", {"url": "x"}))
    assert database.jobs.end_if_done(job_id)
    job = database.jobs.job(job_id)
    assert job is not None
    assert (job.state, job.discovery, job.notice) == ("done", "failed", Notice("feed_missing", {"url": "x"}))
    assert job.finished_at > job.created_at
    assert not database.jobs.end_if_done(job_id)


def test_a_paused_job_is_not_done(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    database.jobs.set_state(job_id, "paused", Notice("nothing_to_recheck"))
    assert not database.jobs.end_if_done(job_id)
    assert database.jobs.state(job_id) == "paused"


def test_cancelled_jobs_with_open_items_are_found(database: Database) -> None:
    ids = [database.jobs.create("main", "", [NewItem("a")]) for _ in range(3)]
    database.items.finish(ids[0], 0, ADDED)
    for job_id in ids[:2]:
        database.jobs.set_state(job_id, "cancelled")
    assert database.jobs.cancelled_with_open_items() == [ids[1]]


def test_a_running_job_has_one_worker(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    assert database.jobs.acquire_leases("a", alive) == {job_id: 1} == database.jobs.acquire_leases("a", alive)
    assert database.jobs.acquire_leases("b", alive) == {}
    database.jobs.release("a")
    assert database.jobs.acquire_leases("b", alive) == {job_id: 2}
    assert not database.jobs.renew_lease(job_id, 1) and database.jobs.renew_lease(job_id, 2)


def test_a_job_is_taken_over_at_the_end_of_its_lease_and_no_sooner(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_table, "LEASE", 0.0)
    job_id = database.jobs.create("main", "")
    assert database.jobs.acquire_leases("slow", alive) == {job_id: 1}
    monkeypatch.setattr(job_table, "LEASE", 30.0)
    database.jobs.renew_leases("slow")
    assert database.jobs.acquire_leases("other", alive) == {}
    monkeypatch.setattr(job_table, "LEASE", -1.0)
    database.jobs.renew_leases("slow")
    assert database.jobs.acquire_leases("slow", alive) == {job_id: 1}  # nobody took it
    assert database.jobs.acquire_leases("other", alive) == {job_id: 2}
    assert database.jobs.acquire_leases("slow", lambda worker: True) == {job_id: 3}


def test_a_worker_that_is_known_to_be_gone_loses_its_jobs_at_once(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    assert database.jobs.acquire_leases("gone", alive) == {job_id: 1}
    assert database.jobs.acquire_leases("b", lambda worker: worker != "gone") == {job_id: 2}


def test_one_of_many_workers_takes_a_job(database: Database) -> None:
    ids = [database.jobs.create("main", "") for _ in range(5)]
    with ThreadPoolExecutor(8) as pool:
        taken = [*pool.map(lambda n: database.jobs.acquire_leases(f"w{n}", alive), range(8))]
    assert sorted(job_id for leases in taken for job_id in leases) == sorted(ids)
    assert {token for leases in taken for token in leases.values()} == {1}
