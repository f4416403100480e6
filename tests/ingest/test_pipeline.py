"""From sources to a stored library, many at once: added, unchanged, updated, and refused pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag.ingest.batch import ingest_all
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Source, file_sources, path_sources, record_sources, unique_sources, web_source
from rag.locales import say
from rag.types import IngestResult
from tests.support.hashed_model import HashedModel
from tests.support.page_server import PageServer, Reply, generated_page
from tests.support.pdf_files import PICTURE, lines, make_pdf

PARAGRAPH = "The harbour bridge was opened in 1932 and carries eight lanes of traffic over the bay. "
PAGE = "<html><head><title>{title}</title></head><body><article><h1>{title}</h1><p>{text}</p></article></body></html>"


def html(title: str, text: str = PARAGRAPH * 8) -> str:
    return PAGE.format(title=title, text=text)


def run(ingestor: Ingestor, *sources: Source, force: bool = False) -> list[IngestResult]:
    rows = dict(ingest_all(ingestor, sources, force=force))
    return [rows[i] for i in range(len(sources))]


def test_a_page_is_fetched_read_and_stored_once(ingestor: Ingestor, page_server: PageServer) -> None:
    url = page_server.add("/bridge", html("Bridge"))
    (row,) = run(ingestor, web_source(url))
    assert (row.status, row.notice.code) == ("added", "page_added")
    page = ingestor.library.page(row.url_hash)
    assert page is not None
    assert (page.title, page.language, page.chunks) == ("Bridge", "en", row.chunks)
    for chunk in ingestor.library.chunks(row.url_hash):
        assert chunk.text == page.text[chunk.start : chunk.end]
    (row,) = run(ingestor, web_source(url + "?utm_source=x#part"))
    assert (row.status, row.notice.code) == ("unchanged", "already_here")
    assert page_server.count("/bridge") == 1


def test_pages_of_a_file_that_cannot_be_read_are_named(ingestor: Ingestor) -> None:
    scan, page = "q 612 0 0 792 0 0 cm /P1 Do Q", lines(60, 700, "The harbour bridge carries eight lanes of traffic.")
    body = make_pdf(page, scan, scan, page, scan, objects=[PICTURE], resources="/XObject<</P1 4 0 R>>")
    (row,) = run(ingestor, *file_sources("bridge.pdf", body))
    assert (row.status, row.notice.code) == ("added", "page_in_part")
    assert "3 pages not read (2-3, 5)" in say(row.notice, "en")


def test_what_may_pass_is_tried_again(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.ingest.sources._DELAYS", (0.01, 0.02))
    answers = iter([500, 429])
    url = page_server.add_reply("/shaky", lambda: Reply(generated_page(3).encode(), status=next(answers, 200)))
    (row,) = run(ingestor, web_source(url))
    assert (row.status, page_server.count("/shaky")) == ("added", 3)


def test_a_fault_of_ours_costs_one_source(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = ingestor.read

    def faulty(source: Source, *rest: Any, **more: Any) -> Any:
        if source.url.endswith("/1"):
            raise RuntimeError("boom")
        return read(source, *rest, **more)

    monkeypatch.setattr(ingestor, "read", faulty)
    rows = run(ingestor, *(web_source(page_server.url(f"/page/{number}")) for number in range(3)))
    assert [row.notice.code for row in rows] == ["page_added", "unexpected", "page_added"]
    assert "Could not import" in caplog.text and "boom" in caplog.text


def test_a_row_of_text_has_a_language_or_what_its_words_say(ingestor: Ingestor) -> None:
    languages = {"de-AT": "de", "pt_BR": "pt", "x" * 900: "en", "\x1b[2J": "en", "<b>": "en"}
    text = "The lighthouse was built in 1910 and it is white."
    rows = [{"url": f"https://a.example/{n}", "lang": tag, "text": text} for n, tag in enumerate(languages)]
    run(ingestor, *record_sources(map(json.dumps, rows), "rows"))
    found = {page.url: page.language for page in ingestor.library.pages()}
    assert found == {f"https://a.example/{n}": language for n, language in enumerate(languages.values())}


def test_a_forced_import_encodes_only_changes(ingestor: Ingestor, page_server: PageServer, model: HashedModel) -> None:
    parts = [f"<h2>Part {n}</h2><p>{f'Topic number {n} is described here at length. ' * 18}</p>" for n in range(6)]
    url = page_server.add("/long", html("Long", "".join(parts)))
    run(ingestor, web_source(url))
    assert run(ingestor, web_source(url), force=True)[0].status == "unchanged"
    before = len(model.encoded)
    parts[3] = f"<h2>Part 3</h2><p>{'Everything is different in this part now. ' * 18}</p>"
    page_server.add("/long", html("Long", "".join(parts)))
    (row,) = run(ingestor, web_source(url), force=True)
    assert row.status == "updated"
    assert 0 < len(model.encoded) - before < before
    texts = [chunk.text for chunk in ingestor.library.chunks(row.url_hash)]
    assert any("Everything is different" in text for text in texts)
    assert not any("Topic number 3 " in text for text in texts)


def test_one_bad_source_does_not_stop_the_others(ingestor: Ingestor, page_server: PageServer) -> None:
    good = page_server.add("/bridge", html("Bridge"))
    rows = run(
        ingestor,
        web_source("http://192.168.1.1/"),
        web_source(page_server.url("/missing")),
        web_source(good),
        web_source(good + "#again"),
        *file_sources("picture.gif", b"GIF89a"),
        *file_sources("notes.txt", b"%PDF-1.7 not a text"),
    )
    assert [(row.status, row.notice.code) for row in rows] == [
        ("failed", "blocked"),
        ("failed", "http_error"),
        ("added", "page_added"),
        ("duplicate", "same_address"),
        ("failed", "file_type"),
        ("failed", "pdf_broken"),
    ]
    assert page_server.count("/bridge") == 1
    assert all(say(row.notice, "en") for row in rows)
    assert ingestor.library.page_count() == 1


HARBOUR = b"# Report 2023\n\nIn 2023 the harbour earned 41 million crowns from berths and cranes.\n"
CHOIR = b"# Budget of the choir\n\nThe choir of the parish spends nine hundred crowns on new robes this spring.\n"
ROSES = b"# Roses\n\nRoses are watered in the evening, never at noon, and cut back in March by the gardener.\n"


def test_a_message_about_a_file_has_its_name(ingestor: Ingestor) -> None:
    names = {"b 2.md": HARBOUR, "a.md": HARBOUR, "docs/my notes.txt": b""}
    rows = [row for name, data in names.items() for row in run(ingestor, *file_sources(name, data))]
    messages = ["Same text as “Report 2023” (b 2.md), already saved.", "docs/my notes.txt: no text found."]
    assert [say(row.notice, "en") for row in rows[1:]] == messages


class TestUploadsOfOneName:
    def upload(self, ingestor: Ingestor, *texts: bytes) -> list[tuple[str, str]]:
        rows = run(ingestor, *unique_sources(source for text in texts for source in file_sources("report.md", text)))
        pages = [ingestor.library.page(row.url_hash) for row in rows]
        return [(row.notice.code, page.url if page else "") for row, page in zip(rows, pages, strict=True)]

    def test_another_document_is_kept_beside_the_first(self, ingestor: Ingestor) -> None:
        address = "file:///report.md"
        assert self.upload(ingestor, HARBOUR) == [("page_added", address)]
        (row,) = run(ingestor, *file_sources("report.md", CHOIR))
        assert row.notice.code == "page_added_beside" and "“Report 2023”" in say(row.notice, "en")
        assert self.upload(ingestor, CHOIR) == [("page_unchanged", f"{address}?2")]
        assert {page.title for page in ingestor.library.pages()} == {"Report 2023", "Budget of the choir"}

    def test_the_next_text_of_a_document_takes_its_place(self, ingestor: Ingestor) -> None:
        self.upload(ingestor, HARBOUR, CHOIR)
        later = CHOIR.replace(b"nine", b"eight")
        assert self.upload(ingestor, later) == [("page_updated", "file:///report.md?2")]
        assert self.upload(ingestor, HARBOUR.replace(b"41", b"42")) == [("page_updated", "file:///report.md")]

    def test_many_at_once_find_their_documents(self, ingestor: Ingestor) -> None:
        self.upload(ingestor, HARBOUR)
        found = self.upload(ingestor, ROSES, CHOIR)
        assert sorted(url for _, url in found) == ["file:///report.md?2", "file:///report.md?3"]
        assert ingestor.library.page_count() == 3

    def test_a_file_of_this_machine_is_known_by_its_path(self, ingestor: Ingestor, tmp_path: Path) -> None:
        file = tmp_path / "report.md"
        for text, reason in ((HARBOUR, "page_added"), (CHOIR, "page_updated")):
            file.write_bytes(text)
            assert run(ingestor, *path_sources(str(file)))[0].notice.code == reason


def test_an_imported_text_is_stored_unchanged(ingestor: Ingestor) -> None:
    text = "  One line.\r\n\n\n二\u200b行。\t"
    (row,) = run(
        ingestor, Source("x", "https://x.example/", "import", record={"url": "https://x.example/", "text": text})
    )
    page = ingestor.library.page(row.url_hash)
    assert page is not None
    assert page.text == text


def test_a_broken_line_is_reported_and_the_rest_goes_in(ingestor: Ingestor) -> None:
    lines = [
        '{"url": "https://a.example/", "title": "A", "text": "First page text."}',
        "{broken",
        '{"title": "no url", "text": "x"}',
        "",
        '{"url": "https://b.example/", "title": "B", "markdown": "# Heading\\n\\nSecond page text."}',
        '{"url": "https://c.example/", "title": "C", "html": "<p>Third page text.</p>"}',
    ]
    rows = run(ingestor, *record_sources(lines, "pages.jsonl"))
    assert [row.status for row in rows] == ["added", "failed", "failed", "added", "added"]
    assert rows[1].source == "pages.jsonl:2"
    assert "pages.jsonl, line 2" in say(rows[1].notice, "en")


def test_a_page_of_too_many_chunks_is_refused(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = page_server.add("/long", html("Long", f"<p>{PARAGRAPH * 12}</p>" * 4))
    monkeypatch.setattr("rag.ingest.pipeline.MAX_CHUNKS", 1)
    (row,) = run(ingestor, web_source(url))
    assert (row.status, row.notice.code, row.notice.params["limit"]) == ("failed", "too_many_chunks", 1)
    assert ingestor.library.page_count() == 0
