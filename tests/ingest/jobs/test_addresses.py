"""Pasted addresses: an invalid one fails alone, and two files of the same name are two pages."""

from __future__ import annotations

import json

import pytest

from rag.ingest.discovery import SiteKind
from rag.ingest.jobs.service import Jobs
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import file_sources, record_sources, web_source
from rag.web.urls import url_hash
from tests.ingest.jobs.conftest import reasons, statuses, wait_for_job
from tests.support.page_server import PageServer

BAD = ["http://[::1/x", "https://a\u2100b.com/", "http://[abc]/", "http://a]b/"]


def test_an_address_that_cannot_be_one_fails_alone(jobs: Jobs, page_server: PageServer) -> None:
    given = [BAD[0], page_server.url("/article"), *BAD[1:]]
    job = wait_for_job(jobs, jobs.submit([web_source(url) for url in given], library="main"))
    assert statuses(job) == ["failed", "added", "failed", "failed", "failed"]
    assert {one.result.reason for one in job.items if one.result and one.result.status == "failed"} == {"blocked"}


def test_a_row_of_a_file_whose_address_cannot_be_one_fails_alone(jobs: Jobs) -> None:
    rows = [json.dumps({"url": url, "text": f"A text of page {url}."}) for url in (*BAD, "https://a.example/1")]
    job = wait_for_job(jobs, jobs.submit(list(record_sources(rows, "rows.jsonl")), library="main"))
    assert reasons(job) == ["record_address"] * 4 + ["page_added"]


@pytest.mark.parametrize("kind", ["sitemap", "crawl", "feed"])
@pytest.mark.parametrize("start", BAD)
def test_a_site_at_an_address_that_cannot_be_one(jobs: Jobs, start: str, kind: SiteKind) -> None:
    job = wait_for_job(jobs, jobs.submit_site(start, kind, library="main"))
    assert job.notice is not None and job.notice.code == "blocked"


def test_half_a_character_is_stored_as_a_replacement(jobs: Jobs, ingestor: Ingestor) -> None:
    row = '{"url": "https://a.example/1", "title": "A \\ud83d title", "%s": "A text \\udc00 of words."}'
    rows = [row.replace("/1", f"/{key}") % key for key in ("text", "html", "markdown")]
    job = wait_for_job(jobs, jobs.submit(list(record_sources(rows, "rows.jsonl")), library="main"))
    assert statuses(job) == ["added"] * 3
    page = ingestor.library.page(url_hash("https://a.example/text"))
    assert page is not None and (page.title, page.text) == ("A \ufffd title", "A text \ufffd of words.")


def test_files_of_one_name_are_two_pages(jobs: Jobs) -> None:
    files = [
        b"# One\n\nThe first is about bridges.",
        b"# Two\n\nQuite another, on onions.",
        b"# One\n\nThe first is about bridges.",
    ]
    job = wait_for_job(
        jobs, jobs.submit([one for data in files for one in file_sources("index.md", data)], library="main")
    )
    assert reasons(job) == ["page_added", "page_added", "same_address"]
    assert [item.url for item in job.items][:2] == ["file:///index.md", "file:///index.md?2"]
