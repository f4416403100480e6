"""Many sources at once, as the command line imports them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag.ingest.batch import ingest_all
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Source, file_sources, web_source
from tests.support.page_server import PageServer, Reply, generated_page


@pytest.fixture(autouse=True)
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.ingest.sources._DELAYS", (0.01, 0.02))


def test_each_source_has_one_row(ingestor: Ingestor, page_server: PageServer) -> None:
    urls = [page_server.url(f"/page/{number}") for number in range(6)]
    urls += [urls[0] + "#again", page_server.url("/missing"), "http://10.0.0.1/"]
    rows = list(ingest_all(ingestor, [web_source(url) for url in urls]))
    assert sorted(position for position, _ in rows) == list(range(9))
    by_place = dict(rows)
    assert [by_place[place].status for place in range(9)] == ["added"] * 6 + ["duplicate", "failed", "failed"]


def test_what_may_pass_is_tried_again(ingestor: Ingestor, page_server: PageServer) -> None:
    answers = iter([500, 429])
    url = page_server.add_reply("/shaky", lambda: Reply(generated_page(3).encode(), status=next(answers, 200)))
    ((_, row),) = ingest_all(ingestor, [web_source(url)])
    assert (row.status, page_server.count("/shaky")) == ("added", 3)


def test_a_page_that_is_known_by_another_address_is_left_alone(ingestor: Ingestor, page_server: PageServer) -> None:
    page_server.add("/old", status=301, headers={"Location": "/article"})
    for path in ("/article", "/old"):
        list(ingest_all(ingestor, [web_source(page_server.url(path))]))
    ((_, row),) = ingest_all(ingestor, [web_source(page_server.url("/old"))])
    assert (row.status, row.reason) == ("duplicate", "alias_address")


def test_a_fault_of_ours_costs_one_source(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = ingestor.read

    def faulty(source: Source, *rest: Any, **more: Any) -> Any:
        if source.url.endswith("/1"):
            raise RuntimeError("boom")
        return read(source, *rest, **more)

    monkeypatch.setattr(ingestor, "read", faulty)
    rows = dict(ingest_all(ingestor, [web_source(page_server.url(f"/page/{number}")) for number in range(3)]))
    assert [(rows[place].status, rows[place].reason) for place in range(3)] == [
        ("added", "page_added"),
        ("failed", "unexpected"),
        ("added", "page_added"),
    ]
    assert "Could not import" in caplog.text and "boom" in caplog.text


@pytest.mark.parametrize("wait", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "9" * 5000, "soon"])
def test_a_server_that_asks_for_what_cannot_be(ingestor: Ingestor, page_server: PageServer, wait: str) -> None:
    page_server.add("/busy", status=503, headers={"Retry-After": wait})
    sources = [web_source(page_server.url(path)) for path in ("/busy", "/article")]
    assert [row.status for _, row in sorted(ingest_all(ingestor, sources))] == ["failed", "added"]


def test_files_of_one_name_are_two_pages(ingestor: Ingestor) -> None:
    texts = ["The first report is about bridges. " * 20, "Quite another one, on cooking onions. " * 20]
    sources = [source for text in (*texts, texts[0]) for source in file_sources("report.txt", text.encode())]
    rows = dict(ingest_all(ingestor, sources))
    assert [(rows[place].status, rows[place].url) for place in range(3)] == [
        ("added", "file:///report.txt"),
        ("added", "file:///report.txt?2"),
        ("duplicate", "file:///report.txt"),
    ]
    assert [row.status for _, row in sorted(ingest_all(ingestor, sources))] == ["unchanged", "unchanged", "duplicate"]


def test_a_name_cannot_pass_for_another_row(ingestor: Ingestor) -> None:
    name = "a.txt\nadded      https://b.example/  \x1b[2JAdded with 9 passages.txt"
    ((_, row),) = ingest_all(ingestor, file_sources(name, b"The lighthouse was built in 1910."))
    assert row.status == "added"
    assert row.source == "a.txt added https://b.example/ [2JAdded with 9 passages.txt"


@pytest.mark.parametrize(
    ("tag", "language"), [("de-AT", "de"), ("pt_BR", "pt"), ("x" * 900, "en"), ("\x1b[2J", "en"), ("<b>", "en")]
)
def test_a_row_of_text_has_a_language_or_what_its_words_say(ingestor: Ingestor, tag: str, language: str) -> None:
    row = {"url": "https://a.example/", "lang": tag, "text": "The lighthouse was built in 1910 and it is white."}
    list(ingest_all(ingestor, file_sources("rows.jsonl", json.dumps(row).encode())))
    assert [page.language for page in ingestor.library.pages()] == [language]
