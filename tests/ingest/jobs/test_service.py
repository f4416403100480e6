"""Background imports: they outlive their caller, can be stopped and changed, and resume after a restart."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest

from rag.errors import ModelError, StoreError
from rag.ingest.jobs import service
from rag.ingest.jobs.service import Jobs
from rag.ingest.jobs.steps import new_item, to_payload
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import file_sources, web_source
from rag.reading.parser import READING_VERSION
from rag.store.sql.database import Database
from rag.store.sql.job_table import Job, NewItem
from rag.types import IngestResult, Notice
from tests.ingest.jobs.conftest import MakeJobs, Stuck, failing_once, reasons, records, statuses, wait_for_job
from tests.support.page_server import PageServer, Reply, generated_page


def test_a_job_runs_to_its_end(jobs: Jobs, database: Database) -> None:
    sources = [*records(3), *file_sources("note.md", b"# Note\n\nA note."), web_source("http://10.0.0.1/")]
    job = wait_for_job(jobs, jobs.submit(sources, library="main"))
    assert job.state == "done"
    assert statuses(job) == ["added"] * 4 + ["failed"]
    assert (job.done, job.total, job.counts) == (5, 5, {"added": 4, "failed": 1})
    assert all(item.stage == "done" and item.attempts == 1 for item in job.items)
    assert all(item.started_at <= item.finished_at for item in job.items)
    assert [one.id for one in jobs.jobs("main")] == [job.id]
    assert [database.items.payload(job.id, item.position) is None for item in job.items] == [True] * 4 + [False]


def test_a_person_has_so_many_jobs_and_another_has_theirs(make_jobs: MakeJobs, ingestor: Ingestor) -> None:
    stuck = Stuck(ingestor)
    jobs = make_jobs(stuck, per_owner=2)
    mine = [jobs.submit(records(1), library="main", owner="ann") for _ in range(2)]
    jobs.pause(mine[1])
    for submit in (
        lambda: jobs.submit(records(1), library="main", owner="ann"),
        lambda: jobs.submit_files([("a.md", b"# A")], library="main", owner="ann"),
        lambda: jobs.submit_site("https://a.example/", "crawl", library="main", owner="ann"),
        lambda: jobs.recheck("main", owner="ann"),
    ):
        with pytest.raises(StoreError, match="2 of your imports"):
            submit()
    assert len(jobs.jobs("main")) == 2
    others = [jobs.submit(records(1), library="main", owner=owner) for owner in ("bob", "", "", "")]
    jobs.cancel(mine[1])
    jobs.submit(records(1), library="main", owner="ann")
    assert len(jobs.jobs("main")) == 2 + len(others) + 1
    stuck.go.set()


def test_pages_under_way_at_the_end_of_a_process_are_begun_again(make_jobs: MakeJobs, database: Database) -> None:
    job_id = database.jobs.create("main", "", [new_item(records(1)[0])])
    database.items.start_attempt(job_id, 0)
    database.items.set_stage(job_id, 0, "embedding")
    jobs = make_jobs()
    jobs.start()
    job = wait_for_job(jobs, job_id)
    assert (statuses(job), job.items[0].attempts) == (["added"], 2)


def test_a_page_that_was_in_before_the_kill_counts_as_added(
    make_jobs: MakeJobs, database: Database, page_server: PageServer
) -> None:
    first = make_jobs()
    url = page_server.url("/article")
    job_id = first.submit([web_source(url)], library="main")
    wait_for_job(first, job_id)
    with database.transaction() as db:  # the state if the process ends between the two writes
        db.execute("UPDATE job_items SET result = NULL, status = '', stage = 'storing', payload = ?", (_web(url),))
        db.execute("UPDATE jobs SET state = 'running'")
    again = make_jobs()
    again.start()
    job = wait_for_job(again, job_id)
    assert reasons(job) == ["page_added"]
    assert job.items[0].result is not None
    assert job.items[0].result.chunks > 0
    assert page_server.count("/article") == 1


def test_a_superseded_page_is_removed_even_after_a_kill(
    make_jobs: MakeJobs,
    ingestor: Ingestor,
    database: Database,
    page_server: PageServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = page_server.url("/article")
    body = generated_page(3)
    head = f'<link rel="canonical" href="{page}">'
    page_server.add("/article", body)
    twin = page_server.add("/amp/article", body.replace("</head>", f"{head}</head>"))
    first = make_jobs()
    wait_for_job(first, first.submit([web_source(twin)], library="main"))
    with monkeypatch.context() as cut:
        cut.setattr(ingestor, "remove_twins", lambda page: None)
        job_id = first.submit([web_source(page)], library="main")
        assert reasons(wait_for_job(first, job_id)) == ["canonical_first"]
    assert ingestor.library.page_count() == 2
    with database.transaction() as db:
        db.execute(
            "UPDATE job_items SET result = NULL, status = '', payload = ? WHERE job_id = ?", (_web(page), job_id)
        )
        db.execute("UPDATE jobs SET state = 'running' WHERE id = ?", (job_id,))
    again = make_jobs()
    again.start()
    assert reasons(wait_for_job(again, job_id)) == ["page_added"]
    assert [one.url for one in ingestor.library.pages()] == [page]


def test_a_stopped_job_keeps_what_is_in(make_jobs: MakeJobs, ingestor: Ingestor) -> None:
    stuck = Stuck(ingestor)
    jobs = make_jobs(stuck)
    job_id = jobs.submit(records(3), library="main")
    stuck.asked.wait(60)
    jobs.cancel(job_id)
    job = jobs.job(job_id)
    assert (job.state, set(statuses(job))) == ("cancelled", {"skipped"})
    stuck.go.set()
    other = wait_for_job(jobs, jobs.submit(records(1), library="main"))
    assert statuses(other) == ["added"]
    assert ingestor.library.page_count() == 1


def test_a_kill_while_a_job_is_cancelled_leaves_no_page_open(make_jobs: MakeJobs, database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a", payload={})])
    database.jobs.set_state(job_id, "cancelled")
    jobs = make_jobs()
    jobs.start()
    assert reasons(jobs.job(job_id)) == ["cancelled"]


def test_a_paused_job_begins_nothing_until_it_is_resumed(
    make_jobs: MakeJobs, ingestor: Ingestor, database: Database
) -> None:
    stuck = Stuck(ingestor)
    jobs = make_jobs(stuck)
    job_id = jobs.submit(records(2), library="main")
    stuck.asked.wait(60)
    jobs.pause(job_id)
    stuck.go.set()
    wait_for_job(jobs, jobs.submit(records(4)[2:], library="main"))
    assert (jobs.job(job_id).state, statuses(jobs.job(job_id))) == ("paused", ["", ""])
    again = make_jobs()
    again.start()
    assert again.job(job_id).state == "paused"
    again.resume(job_id)
    assert statuses(wait_for_job(again, job_id)) == ["added", "added"]


@pytest.mark.parametrize(
    ("act", "meanwhile", "state"),
    [
        ("pause", "done", "done"),
        ("pause", "cancelled", "cancelled"),
        ("pause", "running", "paused"),
        ("resume", "cancelled", "cancelled"),
        ("resume", "done", "done"),
        ("resume", "paused", "running"),
        ("cancel", "done", "done"),
        ("cancel", "paused", "cancelled"),
    ],
)
def test_what_happens_to_a_job_between_look_and_write_stays(
    jobs: Jobs, database: Database, monkeypatch: pytest.MonkeyPatch, act: str, meanwhile: str, state: str
) -> None:
    jobs._worker.close()
    job_id = jobs.submit(records(1), library="main")
    database.jobs.set_state(job_id, "paused" if act == "resume" else "running")
    known = jobs._find_job

    def overtaken(asked: str) -> Job:
        job = known(asked)
        database.jobs.set_state(asked, meanwhile)  # type: ignore[arg-type]
        return job

    monkeypatch.setattr(jobs, "_find_job", overtaken)
    getattr(jobs, act)(job_id)
    assert database.jobs.state(job_id) == state


def test_a_file_that_failed_can_be_tried_again(make_jobs: MakeJobs, ingestor: Ingestor) -> None:
    jobs = make_jobs(failing_once(ingestor, ModelError("package_missing", package="none")))
    job_id = jobs.submit([*file_sources("note.md", b"# Note\n\nA note.")], library="main")
    job = wait_for_job(jobs, job_id)
    assert reasons(job) == ["package_missing"]
    assert job.notice is not None
    assert jobs.retry_failed(job_id) == job_id
    job = wait_for_job(jobs, job_id)
    assert (statuses(job), job.notice) == (["added"], None)


def test_files_that_nothing_came_of_are_read_again_by_newer_rules(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, ingestor: Ingestor
) -> None:
    files = [("note.md", b"# Note\n\nA note of the harbour."), ("empty.md", b" \n"), ("torn.pdf", b"%PDF-1.4 torn")]
    job_id = jobs.submit_files(files, library="main")
    assert sorted(statuses(wait_for_job(jobs, job_id))) == ["added", "failed", "failed"]
    assert (jobs.count_unread_files("main"), jobs.reread_files("main")) == (0, [])
    monkeypatch.setattr(service, "READING_VERSION", READING_VERSION + 1)
    assert (jobs.count_unread_files("main"), jobs.count_unread_files("other")) == (2, 0)
    assert jobs.reread_files("main") == [job_id]
    assert [item.attempts for item in wait_for_job(jobs, job_id).items] == [1, 2, 2]
    assert jobs.count_unread_files("main") == 0


BROKEN = "武汉长江大桥于一九五五年九月动工，一九五七年十月建成通车。".encode().decode("gb18030", "ignore")


def held_job(jobs: Jobs, page_server: PageServer) -> str:
    url = page_server.add("/broken", f"<html><head><title>Menu</title></head><body><p>{BROKEN * 8}</p></body></html>")
    job_id = jobs.submit([web_source(url)], library="main")
    (item,) = wait_for_job(jobs, job_id).items
    assert item.result is not None
    assert (item.result.status, item.result.notice.code) == ("held", "gate_mojibake")
    assert "add_anyway" in item.result.choices
    return job_id


def test_a_page_that_was_held_back_can_be_added_anyway(jobs: Jobs, page_server: PageServer) -> None:
    job_id = held_job(jobs, page_server)
    jobs.decide(job_id, 0, "add_anyway")
    job = wait_for_job(jobs, job_id)
    assert (job.state, statuses(job), job.items[0].decision) == ("done", ["added"], "add_anyway")
    with pytest.raises(StoreError, match="No longer possible"):
        jobs.decide(job_id, 0, "add_anyway")


def test_a_page_that_was_held_back_can_be_left_out(jobs: Jobs, page_server: PageServer, ingestor: Ingestor) -> None:
    job_id = held_job(jobs, page_server)
    with pytest.raises(StoreError, match="No longer possible"):  # a decision that is not offered
        jobs.decide(job_id, 0, "keep_both")
    with pytest.raises(StoreError, match="no such page"):
        jobs.decide(job_id, 9, "skip")
    jobs.decide(job_id, 0, "skip")
    job = jobs.job(job_id)
    assert (job.state, reasons(job), job.counts) == ("done", ["left_alone"], {"skipped": 1})
    assert ingestor.library.page_count() == 0


def test_a_removed_job_is_gone_with_its_items(jobs: Jobs, database: Database) -> None:
    job = wait_for_job(jobs, jobs.submit(records(2), library="main"))
    jobs.retry_failed(job.id)
    assert jobs.job(job.id).finished_at == job.finished_at, "there was nothing to retry"
    jobs.delete(job.id)
    assert jobs.jobs("main") == []
    assert database.items.items(job.id) == []
    for ask in (jobs.job, jobs.pause, jobs.resume, jobs.cancel, jobs.retry_failed, jobs.delete):
        with pytest.raises(StoreError, match="no longer exists"):
            ask(job.id)


def test_a_job_carries_its_chunker_over_a_restart(make_jobs: MakeJobs, ingestor: Ingestor) -> None:
    text = "# Log\n\n" + "The keeper of tower {n} writes the hour into the log. " * 40
    first, stuck = make_jobs(), Stuck(ingestor)
    job_id = make_jobs(stuck).submit(records(1, text), library="main", chunker="parent")
    stuck.asked.wait(60)
    first.start()
    job = wait_for_job(first, job_id)
    stuck.go.set()
    assert job.options["chunker"] == "parent"
    assert job.items[0].result is not None
    assert any(chunk.parent for chunk in ingestor.library.chunks(job.items[0].result.url_hash))


def test_uploaded_files_carry_a_chosen_chunker(jobs: Jobs) -> None:
    job_id = jobs.submit_files([("a.md", b"# A")], library="main", chunker="parent")
    assert jobs.job(job_id).options["chunker"] == "parent"


def test_a_job_tells_its_rate_and_the_time_left(make_jobs: MakeJobs, page_server: PageServer) -> None:
    moment = [100.0]
    go = threading.Event()
    slow = page_server.add_reply("/slow-one", lambda: _after(go))
    jobs = make_jobs(clock=lambda: moment[0])
    job_id = jobs.submit([*records(4), web_source(slow)], library="main")
    wait_for_job(jobs, job_id, lambda job: job.done == 4 and bool(job.current))
    assert jobs.job(job_id).rate is None
    moment[0] += 12.0
    job = jobs.job(job_id)
    assert (job.rate, job.seconds_left) == (20.0, 3.0)
    assert [item.source for item in job.current] == [slow]
    go.set()
    assert wait_for_job(jobs, job_id).seconds_left is None


def test_ten_thousand_items_are_listed_in_no_time(jobs: Jobs, database: Database) -> None:
    row = IngestResult("s", "u", "h", "added", Notice("page_added", {"chunks": 1, "title": "t"}))
    for number in range(4):
        items = [NewItem(str(n), result=replace(row, source=str(n))) for n in range(10_000 if number else 10)]
        database.jobs.set_state(database.jobs.create("main", "", items), "done")
    began = time.perf_counter()
    listed = jobs.jobs("main")
    spent = time.perf_counter() - began
    assert [job.counts for job in listed] == [{"added": 10_000}] * 3 + [{"added": 10}]
    assert spent < 1.0  # reading the items takes several times as long
    assert [item.position for item in jobs.items(listed[0].id, 9_000, 2)] == [9_000, 9_001]


def _after(go: threading.Event) -> Reply:
    go.wait(60)
    return Reply(generated_page(99).encode())


def _web(url: str) -> str:
    return json.dumps(to_payload(web_source(url)))
