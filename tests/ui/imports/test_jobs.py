from collections import Counter
from typing import Any

import pytest

from rag.ingest.jobs.service import JobView
from rag.store.sql.job_table import JobItem
from rag.types import Decision, IngestResult, IngestStatus, Notice
from rag.ui.imports.jobs import OUTCOME_ORDER, choices_of, row_markdown, slices
from rag.ui.kit.job_progress import job_summary, time_left

URL = "https://example.org/a"


def job(*items: JobItem, **fields: Any) -> JobView:
    counts = Counter(one.result.status if one.result else "" for one in items)
    return JobView("j", "main", "", "2026-03-05T09:30:00+00:00", "running", {}, counts=counts, **fields)


def item(status: IngestStatus, reason: str = "timeout", **params: object) -> JobItem:
    return JobItem(0, URL, "done", IngestResult(URL, URL, "0" * 32, status, Notice(reason, params)), URL)


JOB = job()


def test_a_row_moves_through_its_stages() -> None:
    row = row_markdown(JOB, JobItem(0, URL, "chunking", None, URL), "", "en")
    assert ":primary[●●●]:gray[○○○]" in row
    assert "Splitting" in row
    assert row.endswith("example.org/a")


def test_a_failure_says_why_in_the_readers_language() -> None:
    failed = item("failed", url=URL, seconds=30)
    assert "within 30 seconds" in row_markdown(JOB, failed, "", "en")
    assert "30 秒" in row_markdown(JOB, failed, "", "zh")


def test_a_failure_has_its_address_once() -> None:
    failed = item("failed", url="https://example.org/a", seconds=30)
    assert row_markdown(JOB, failed, "", "en").count("example.org/a") == 1
    assert "example.org/a" in row_markdown(JOB, item("failed", url="another", seconds=30), "", "en")


@pytest.mark.parametrize("source", ["![x](https://evil.example/x.png).md", "https://e.example/:smile:/$x$"])
def test_a_source_is_outside_text(source: str) -> None:
    for title in ("", source):
        row = row_markdown(JOB, JobItem(0, source, "waiting", None, source), title, "en")
        assert "![" not in row
        assert ":smile:" not in row


def test_a_row_is_one_line_under_the_title_of_its_page() -> None:
    for status, reason in (("added", "page_added"), ("failed", "timeout"), ("held", "no_text")):
        one = item(status, reason, url=URL, seconds=3)
        row = row_markdown(JOB, one, "How *lamps* are wound", "en")
        assert "How \\*lamps\\* are wound" in row and "\n" not in row
    assert "example.org/a" in row_markdown(JOB, item("added", "page_added"), "", "en")


@pytest.mark.parametrize(("kind", "told"), [("pages", "Already saved"), ("recheck", "Unchanged")])
def test_a_page_that_was_not_fetched_is_not_called_unchanged(kind: str, told: str) -> None:
    known = item("unchanged", "already_here", added="2026-01-02")
    made = job(known, kind=kind)
    assert told in row_markdown(made, known, "", "en")
    assert job_summary(made, "en") == f"1 {told.lower()}"


def test_the_summary_counts_what_ended() -> None:
    made = job(item("failed"), item("added"), item("added"), JobItem(3, "https://example.org/b", "waiting", None))
    assert job_summary(made, "en") == "2 added · 1 failed"
    assert job_summary(JOB, "zh") == "暂无"


def test_the_summary_of_a_bulk_import_counts_pages() -> None:
    made = job(item("added"), item("failed"), bulk=1, pages={"added": 500, "held": 0, "failed": 1})
    assert job_summary(made, "en") == "500 added · 1 failed"


@pytest.mark.parametrize("limit", [1, 4, 7, 100])
def test_slices_are_the_rows_in_their_order_each_once(limit: int) -> None:
    counts = {"added": 9, "failed": 3, "": 4, "duplicate": 2}
    everything = [(status, n) for status in OUTCOME_ORDER for n in range(counts.get(status, 0))]
    found = []
    for offset in range(0, len(everything), limit):
        part = [
            (s, n)
            for s, first, taken in slices(counts, OUTCOME_ORDER, offset, limit)
            for n in range(first, first + taken)
        ]
        assert len(part) <= limit
        found += part
    assert found == everything
    assert found[0] == ("failed", 0)


@pytest.mark.parametrize(
    ("seconds", "words"), [(3, "5 s"), (44, "45 s"), (55, "1 min"), (260, "4 min"), (5400, "1.5 h")]
)
def test_the_time_left_is_as_exact_as_an_estimate_can_be(seconds: float, words: str) -> None:
    assert words in time_left(seconds, "en")


def choices(status: IngestStatus, source: str, *offered: Decision) -> list[Decision]:
    result = IngestResult(source, source, "", status, Notice("timeout"), choices=offered)
    return choices_of(JobItem(0, source, "done", result, source), result)


def test_what_the_result_offers_comes_in_one_order() -> None:
    offered = choices("duplicate", "https://a.example/", "skip", "refresh", "keep_both")
    assert offered == ["refresh", "keep_both", "skip"]
    assert choices("held", "https://a.example/", "skip", "add_anyway") == ["add_anyway", "skip"]


def test_another_try_is_offered_where_it_can_help() -> None:
    assert choices("failed", "https://a.example/") == ["retry"]
    assert choices("failed", "broken.pdf") == []
    assert choices("added", "https://a.example/") == []
