"""The worker: job order and speed, retries of transient errors, and faults that cost no more than they must."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rag.errors import FetchError, StoreError
from rag.ingest.jobs.service import Jobs
from rag.ingest.jobs.worker import WINDOW, JobSpeed
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Limits, Source, web_source
from rag.locales import say
from rag.store.sql.database import Database
from tests.ingest.jobs.conftest import MakeJobs, reasons, records, statuses, wait_for_job
from tests.support.page_server import PageServer, Reply, generated_page
from tests.support.waiting import until


def test_the_speed_is_that_of_late() -> None:
    now = [1000.0]
    speed = JobSpeed(lambda: now[0])
    rates = []
    for _ in range(30):
        now[0] += 1.0
        speed.count_item()
        rates.append(speed.rate())
    assert rates == [None, None, *[60.0] * 28], "too few tell nothing"
    now[0] += WINDOW - 10
    assert speed.rate() == 11.0  # everything done in the last minute, including its first second
    now[0] += 20
    assert speed.rate() is None


def test_a_short_job_does_not_wait_for_a_long_one(
    make_jobs: MakeJobs, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    settle = ingestor.store_all

    def slow(*args: Any, **options: Any) -> Any:
        begun.set()
        go.wait(60)
        return settle(*args, **options)

    monkeypatch.setattr(ingestor, "store_all", slow)
    jobs = make_jobs(limits=Limits(readers=2, ahead=4))
    long_one = jobs.submit(records(60), library="main")
    begun.wait(60)
    short_one = jobs.submit(records(61)[60:], library="main")
    go.set()
    (only,) = wait_for_job(jobs, short_one).items
    whole = wait_for_job(jobs, long_one)
    assert whole.counts == {"added": 60}
    assert sum(item.finished_at < only.finished_at for item in whole.items) <= 12  # those that were read ahead


def test_each_person_has_a_turn_however_many_jobs_they_have(
    make_jobs: MakeJobs, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = threading.Event()
    read = ingestor.read

    def waits(*args: Any, **options: Any) -> Any:
        submitted.wait(60)
        return read(*args, **options)

    monkeypatch.setattr(ingestor, "read", waits)
    jobs = make_jobs(limits=Limits(readers=1, ahead=1))
    many = [jobs.submit(records(10 * n + 10)[10 * n :], library="main", owner="a") for n in range(5)]
    few = jobs.submit(records(60)[50:], library="main", owner="b")
    submitted.set()
    last = max(item.finished_at for item in wait_for_job(jobs, few).items)
    theirs = [item for job_id in many for item in wait_for_job(jobs, job_id).items]
    assert sum(item.finished_at < last for item in theirs) <= 15


def test_the_work_of_a_worker_whose_job_was_taken_over_is_not_counted(
    jobs: Jobs, ingestor: Ingestor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = ingestor.store_all

    def taken_over(given: Sequence[Any]) -> Any:
        monkeypatch.setattr(ingestor, "store_all", settle)
        database.jobs.acquire_leases("another", lambda worker: False)
        return settle(given)

    monkeypatch.setattr(ingestor, "store_all", taken_over)
    job_id = jobs.submit(records(3), library="main")
    until(lambda: database.rows("SELECT worker FROM jobs")[0]["worker"] == "another")
    time.sleep(0.2)
    assert statuses(jobs.job(job_id)) == [""] * 3 and jobs.job(job_id).state == "running"
    database.jobs.release("another")
    jobs.start()
    assert len(wait_for_job(jobs, job_id).items) == 3


class Silence:
    """Reads in which hosts of `.silent` never answer; `asked` records the addresses."""

    def __init__(self, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.silent = True
        self._read = ingestor.read
        monkeypatch.setattr(ingestor, "read", self.read)

    def read(self, source: Source, *args: Any, **options: Any) -> Any:
        self.asked.append(source.url)
        if self.silent and ".silent" in source.url:
            time.sleep(0.05)  # longer than it takes to record the timeout
            raise FetchError("timeout", url=source.url, seconds=30)
        return self._read(source, *args, **options)


def test_pages_of_an_unresponsive_host_can_be_retried(
    jobs: Jobs, ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = Silence(ingestor, monkeypatch)
    others = [page_server.add(f"/{n}", generated_page(n)) for n in range(3)]
    urls = [f"http://a.silent/{n}" for n in range(50)] + others
    job_id = jobs.submit([web_source(url) for url in urls], library="main")
    job = wait_for_job(jobs, job_id)
    assert job.counts == {"failed": 50, "added": 3}
    told = [item.result for item in job.items if item.result and item.result.notice.code == "host_silent"]
    assert len(told) > 30 and len(silence.asked) < 25
    assert "a.silent" in say(told[0].notice, "en")
    silence.silent = False
    jobs.retry_failed(job_id)
    wait_for_job(jobs, job_id)
    assert {f"http://a.silent/{n}" for n in range(50)} <= {*silence.asked}


def test_a_host_that_answers_in_between_goes_on(
    make_jobs: MakeJobs, ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = Silence(ingestor, monkeypatch)
    host = page_server.url("")
    urls = [f"{host}/{n}{'.silent' if n % 3 else ''}" for n in range(20)]
    jobs = make_jobs(limits=Limits(readers=1, ahead=1))  # each response arrives before the next page is requested
    job = wait_for_job(jobs, jobs.submit([web_source(url) for url in urls], library="main"))
    assert "host_silent" not in reasons(job)
    assert {*silence.asked} == {*urls}


def test_a_job_that_nothing_answers_pauses_and_goes_on_when_resumed(
    jobs: Jobs, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = Silence(ingestor, monkeypatch)
    job_id = jobs.submit([web_source(f"http://h{n}.silent/") for n in range(60)], library="main")
    job = wait_for_job(jobs, job_id, lambda job: job.state == "paused" and not job.current)
    assert job.notice is not None and job.notice.code == "timeouts_stopped_job"
    assert job.counts[""] > 20
    silence.silent = False
    jobs.resume(job_id)
    assert wait_for_job(jobs, job_id).total == 60


def test_what_may_pass_is_tried_three_times_and_what_cannot_once(jobs: Jobs, page_server: PageServer) -> None:
    answers = iter([429, 503])

    def reply() -> Reply:
        return Reply(generated_page(3).encode(), status=next(answers, 200), headers={"Retry-After": "0"})

    page_server.add_reply("/shaky", reply)
    paths = ["/shaky", "/broken", "/missing"]
    job = wait_for_job(jobs, jobs.submit([web_source(page_server.url(path)) for path in paths], library="main"))
    assert reasons(job) == ["page_added", "http_error", "http_error"]
    assert [page_server.count(path) for path in paths] == [3, 3, 1]
    assert job.items[0].attempts == 3


def test_a_page_that_waits_for_another_try_holds_up_no_other(
    jobs: Jobs, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.ingest.sources.delay_before", None)  # the worker imports it under its own name
    monkeypatch.setattr("rag.ingest.jobs.worker.delay_before", lambda error, tries: 3600.0)
    job_id = jobs.submit([web_source(page_server.url("/broken")), *records(3)], library="main")
    job = wait_for_job(jobs, job_id, lambda job: job.done == 3 and job.items[0].stage == "waiting")
    assert statuses(job) == ["", "added", "added", "added"]
    jobs.cancel(job_id)
    assert reasons(jobs.job(job_id))[0] == "cancelled"


def test_a_fault_of_ours_costs_one_page(
    jobs: Jobs, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settle = ingestor.store_all

    def broken(given: Sequence[Any]) -> Any:
        if any(one.loaded.page.title == "P1" for one in given):
            raise RuntimeError("a bug")
        return settle(given)

    monkeypatch.setattr(ingestor, "store_all", broken)
    job = wait_for_job(jobs, jobs.submit(records(3), library="main"))
    assert sorted(reasons(job)) == ["page_added", "page_added", "unexpected"]
    assert "Could not import" in caplog.text and "a bug" in caplog.text


def test_a_job_that_cannot_begin_ends_and_the_others_go_on(
    make_jobs: MakeJobs, ingestor: Ingestor, caplog: pytest.LogCaptureFixture
) -> None:
    def open_ingestor(library: str) -> Ingestor:
        if library == "broken":
            raise RuntimeError("a bug")
        return ingestor

    jobs = make_jobs(open_ingestor)
    ids = [jobs.submit(records(1), library=library) for library in ("broken", "main")]
    assert [reasons(wait_for_job(jobs, job_id)) for job_id in ids] == [["unexpected"], ["page_added"]]
    assert f"import {ids[0]} could not start" in caplog.text


def test_a_database_that_is_down_pauses_the_job(
    make_jobs: MakeJobs, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = ingestor.store_all

    def down(given: Sequence[Any]) -> list[StoreError]:
        return [StoreError("store_disk_full", path="/data") for _ in given]

    monkeypatch.setattr(ingestor, "store_all", down)
    jobs = make_jobs()
    job_id = jobs.submit(records(40), library="main")
    job = wait_for_job(jobs, job_id, lambda job: job.state != "running" and job.counts.get("failed", 0) > 2)
    assert job.state == "paused"
    assert job.notice is not None
    assert job.notice.code == "store_stopped_job"
    assert job.counts["failed"] == 3
    monkeypatch.setattr(ingestor, "store_all", settle)
    jobs.resume(job_id)
    wait_for_job(jobs, job_id)
    jobs.retry_failed(job_id)
    assert wait_for_job(jobs, job_id).counts == {"added": 40}


def test_a_database_that_is_down_brings_no_cancelled_job_back(
    make_jobs: MakeJobs, ingestor: Ingestor, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = make_jobs(limits=Limits(readers=1, ahead=1))

    def down(given: Sequence[Any]) -> list[StoreError]:
        for job_id in (job.id for job in database.jobs.jobs("main")):
            if database.items.counts([job_id])[job_id].get("failed", 0) == 2:
                database.jobs.set_state(job_id, "cancelled")  # while the third page is in progress
        return [StoreError("store_disk_full", path="/data") for _ in given]

    monkeypatch.setattr(ingestor, "store_all", down)
    job = wait_for_job(jobs, jobs.submit(records(6), library="main"))
    jobs.close()
    assert jobs.job(job.id).state == "cancelled"


def test_reading_goes_on_while_a_page_is_taken_in(
    make_jobs: MakeJobs, ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = threading.Event()
    settle = ingestor.store_all

    def waits_for_the_next(*args: Any, **options: Any) -> Any:
        assert fetched.wait(60), "the second page was not read while the first was taken in"
        return settle(*args, **options)

    def second() -> Reply:
        fetched.set()
        return Reply(generated_page(2).encode())

    monkeypatch.setattr(ingestor, "store_all", waits_for_the_next)
    jobs = make_jobs(limits=Limits(readers=1))
    sources = [*records(1), web_source(page_server.add_reply("/second", second))]
    assert statuses(wait_for_job(jobs, jobs.submit(sources, library="main"))) == ["added", "added"]


def test_closing_stops_after_the_page_in_hand(
    make_jobs: MakeJobs, ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun = threading.Event()
    settle = ingestor.store_all

    def slow(*args: Any, **options: Any) -> Any:
        begun.set()
        return settle(*args, **options)

    monkeypatch.setattr(ingestor, "store_all", slow)
    jobs = make_jobs()
    job_id = jobs.submit(records(200), library="main")
    begun.wait(60)
    jobs.close()
    before = jobs.job(job_id)
    assert before.state == "running"
    assert before.counts["added"] == ingestor.library.page_count() < 200
    again = make_jobs()
    again.start()
    assert wait_for_job(again, job_id).counts == {"added": 200}
