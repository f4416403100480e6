"""Re-checks of a stored page: unchanged, changed, failing, gone, back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag.errors import FetchError
from rag.ingest.diff import page_diff
from rag.ingest.pipeline import GONE_AFTER, Ingestor, find_repeats, mark_missing
from rag.ingest.sources import file_sources, web_source
from rag.locales import say
from rag.reading.parser import READING_VERSION
from rag.types import Decision, IngestResult, Notice, Page, because
from rag.web.urls import url_hash
from tests.ingest.test_duplicates import html
from tests.store.test_duplicates import english
from tests.support.hashed_model import HashedModel
from tests.support.page_server import PageServer, Reply
from tests.support.storing import store_page


def page_of(ingestor: Ingestor, url: str) -> Page:
    page = ingestor.library.page(url_hash(url))
    assert page is not None
    return page


def look(ingestor: Ingestor, url: str, decision: Decision = "") -> IngestResult:
    """Read the page, as a re-check if it is stored."""
    known = ingestor.library.resolve([url_hash(url)]).get(url_hash(url))
    return store_page(ingestor, ingestor.read(web_source(url), known=known), decision=decision)


def test_a_page_remembers_what_its_server_sent_with_it(ingestor: Ingestor, page_server: PageServer) -> None:
    headers = {"ETag": '"one"', "Last-Modified": "Tue, 05 Mar 2024 10:00:00 GMT"}
    url = page_server.add("/a", html(english(1)), headers=headers)
    look(ingestor, url)
    page = page_of(ingestor, url)
    assert (page.etag, page.last_modified) == ('"one"', "Tue, 05 Mar 2024 10:00:00 GMT")
    assert page.checked_at
    assert (page.status, page.failures, page.version) == ("active", 0, 1)


def conditional(page_server: PageServer, path: str, body: str, etag: str) -> str:
    """Serve `body`, or 304 to a request with its ETag."""

    def reply() -> Reply:
        _, headers = page_server.requests[-1]
        if headers.get("if-none-match") == etag:
            return Reply(status=304, headers={"ETag": etag})
        return Reply(body.encode(), headers={"ETag": etag})

    return page_server.add_reply(path, reply)


def test_a_change_behind_a_page_that_refreshes_is_seen(ingestor: Ingestor, page_server: PageServer) -> None:
    url = conditional(page_server, "/old", "<meta http-equiv=refresh content='0; url=/new'>", '"one"')
    conditional(page_server, "/new", html(english(1)), '"one"')
    assert look(ingestor, url).status == "added"
    assert look(ingestor, url).status == "unchanged"
    conditional(page_server, "/new", html(english(2)), '"two"')
    assert look(ingestor, url).status == "updated"


def test_an_unchanged_page_is_not_sent_again(ingestor: Ingestor, page_server: PageServer) -> None:
    url = conditional(page_server, "/a", html(english(1)), '"one"')
    look(ingestor, url)
    before = page_of(ingestor, url)
    row = look(ingestor, url)
    after = page_of(ingestor, url)
    assert (row.status, row.notice.code, row.chunks) == ("unchanged", "not_modified", before.chunks)
    assert after.checked_at > before.checked_at
    assert (after.generation, after.updated_at, after.etag) == (before.generation, before.updated_at, '"one"')


def test_a_page_that_was_read_by_older_rules_is_read_again(ingestor: Ingestor, page_server: PageServer) -> None:
    url = conditional(page_server, "/a", html(english(1)), '"one"')
    look(ingestor, url)
    assert page_of(ingestor, url).reading == READING_VERSION
    ingestor.library.update_record(replace(page_of(ingestor, url), reading=READING_VERSION - 1))
    assert look(ingestor, url).notice.code == "page_unchanged"
    assert look(ingestor, url).notice.code == "not_modified"


def test_the_text_decides_where_a_tag_lies(ingestor: Ingestor, page_server: PageServer) -> None:
    url = conditional(page_server, "/a", html(english(1)), '"one"')
    look(ingestor, url)
    conditional(page_server, "/a", html(english(1)), '"two"')
    row = look(ingestor, url)
    assert (row.status, row.notice.code) == ("unchanged", "page_unchanged")
    assert page_of(ingestor, url).etag == '"two"'
    assert len(ingestor.library.versions(url_hash(url))) == 1


def test_a_changed_page_keeps_its_old_text(ingestor: Ingestor, page_server: PageServer, model: HashedModel) -> None:
    parts = english(1, 60).split("\n\n")
    url = page_server.add("/a", html("\n\n".join(parts)))
    look(ingestor, url)
    encoded, chunks = len(model.encoded), page_of(ingestor, url).chunks
    parts[4] = "This paragraph is new and says something else altogether."
    page_server.add("/a", html("\n\n".join(parts)))
    row = look(ingestor, url)
    assert (row.status, row.notice.code) == ("updated", "page_updated")
    old, new = ingestor.library.versions(url_hash(url))
    changed = [piece for piece in page_diff(old.text, new.text) if piece.kind != "same"]
    assert [piece.kind for piece in changed] == ["removed", "added"]
    assert changed[1].text.strip() == parts[4]
    assert 0 < len(model.encoded) - encoded <= max(2, chunks // 3)


def test_a_page_that_fails_again_and_again_counts_as_gone(ingestor: Ingestor, page_server: PageServer) -> None:
    url = page_server.add("/a", html(english(1)))
    look(ingestor, url)
    page_server.add("/a", "<h1>Error</h1>", status=500)
    rows = [look(ingestor, url) for _ in range(GONE_AFTER)]
    assert [row.status for row in rows] == ["failed"] * (GONE_AFTER - 1) + ["gone"]
    assert [row.notice.code for row in rows] == ["page_missed"] * (GONE_AFTER - 1) + ["page_lost"]
    assert "{" not in "".join(say(row.notice, "en") for row in rows)
    assert page_of(ingestor, url).status == "gone"
    assert look(ingestor, url).status == "gone"


def failed(code: str, cause: str = "", **params: object) -> FetchError:
    why = because(cause, **params) if cause else {}
    return FetchError(code, **{"url": "https://x.example/", "host": "x.example", "seconds": 9, **params, **why})


JUDGEMENTS = [
    (failed("unresolved"), "active", "gone"),
    (failed("timeout"), "active", "gone"),
    (failed("unreachable", "refused", host="x.example"), "active", "gone"),
    (failed("unreachable", "broken_off", host="x.example"), "active", "gone"),
    (failed("http_error", "server_fault", status=503), "gone", "gone"),
    (failed("http_error", "forbidden", status=403), "gone", "gone"),
    (failed("empty", "nothing_to_read"), "gone", "gone"),
    (failed("unreadable", "corrupt"), "gone", "gone"),
    (failed("unreadable", "parse_timeout", seconds=20), "active", "active"),
    (failed("unreadable", "reader_missing"), "active", "active"),
    (failed("cancelled"), "active", "active"),
]


def test_only_what_a_site_has_said_counts_against_its_page(ingestor: Ingestor, page_server: PageServer) -> None:
    url = page_server.add("/a", html(english(1)))
    look(ingestor, url)
    before = page_of(ingestor, url)
    for error, *expected in JUDGEMENTS:
        for is_online, page_status in zip((False, True), expected, strict=True):
            ingestor.library.update_record(before)
            for _ in range(GONE_AFTER):
                status, notice = mark_missing(ingestor.library, page_of(ingestor, url), error, online=is_online)
                assert status in ("failed", "gone")
                assert all("{" not in say(notice, language) for language in ("en", "zh"))
            assert page_of(ingestor, url).status == page_status, (error, is_online)


@pytest.mark.parametrize(("status", "changed"), [(404, False), (410, True)])
def test_a_page_that_is_gone_and_back(ingestor: Ingestor, page_server: PageServer, status: int, changed: bool) -> None:
    url = page_server.add("/a", html(english(1)))
    look(ingestor, url)
    page_server.add("/a", "<h1>Gone</h1>", status=status)
    row = look(ingestor, url)
    assert (row.status, row.notice.code) == ("gone", "page_gone") and str(status) in say(row.notice, "en")
    assert page_of(ingestor, url).status == "gone"
    assert ingestor.library.chunks(url_hash(url))
    ingestor.library.set_excluded([url_hash(url)], True)
    page_server.add("/a", html(english(2 if changed else 1)))
    row = look(ingestor, url)
    assert (row.status, row.notice.code) == (("updated", "page_updated") if changed else ("unchanged", "page_back"))
    page = page_of(ingestor, url)
    assert (page.status, page.failures, page.version) == ("active", 0, 2 if changed else 1)
    assert ingestor.library.excluded_pages() == set()


def test_what_this_program_refuses_is_no_fault_of_the_page(ingestor: Ingestor, page_server: PageServer) -> None:
    url = page_server.add("/a", html(english(1)))
    look(ingestor, url)
    page_server.add("/a", status=302, headers={"Location": "http://169.254.169.254/"})
    for _ in range(GONE_AFTER + 1):
        assert (look(ingestor, url).status, look(ingestor, url).notice.code) == ("failed", "blocked")
    assert page_of(ingestor, url).failures == 0


def test_a_wall_in_a_page_s_place_is_held_back(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = page_server.add("/a", html(english(1)))
    look(ingestor, url)
    wall = Notice("page_unchanged")
    monkeypatch.setattr("rag.ingest.pipeline.check_quality", lambda *_, **__: wall)
    assert look(ingestor, url).status == "unchanged"  # the stored text was judged before
    page_server.add("/a", html("Please log in to go on."))
    row = look(ingestor, url)
    assert (row.status, row.choices) == ("held", ("add_anyway", "skip"))
    assert "Please log in" in row.preview
    assert page_of(ingestor, url).text.count("Please log in") == 0
    assert look(ingestor, url, "add_anyway").status == "updated"


def stored_pair(ingestor: Ingestor, page_server: PageServer) -> tuple[str, str]:
    """Store an article and the home page; return their addresses."""
    article, home = (page_server.add(path, html(english(n))) for n, path in enumerate(("/article", "/home")))
    assert [look(ingestor, url).status for url in (article, home)] == ["added", "added"]
    return article, home


@pytest.mark.parametrize("status", [301, 302])
def test_a_page_that_leads_to_another_stored_one_counts_as_gone(
    ingestor: Ingestor, page_server: PageServer, status: int
) -> None:
    article, home = stored_pair(ingestor, page_server)
    page_server.add("/article", status=status, headers={"Location": "/home"})
    row = look(ingestor, article)
    assert (row.status, row.notice.code, row.notice.params["other"]) == ("gone", "now_elsewhere", home)
    assert row.choices == ("add_anyway", "skip")
    assert all(home in say(row.notice, language) for language in ("en", "zh"))
    page = page_of(ingestor, article)
    assert (page.status, page.version, page.aliases) == ("gone", 1, ())
    assert english(0).split("\n\n")[0] in page.text
    assert look(ingestor, article).notice.code == "now_elsewhere"
    page_server.add("/article", html(english(0)))
    assert look(ingestor, article).notice.code == "page_back"
    assert page_of(ingestor, article).status == "active"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [("", "", "now_same_text"), ("Seen on 5 March 2024.\n\n", "Seen on 6 April 2025.\n\n", "now_near_text")],
)
def test_a_page_that_shows_the_text_of_another_waits_for_a_decision(
    ingestor: Ingestor, page_server: PageServer, before: str, after: str, reason: str
) -> None:
    article = page_server.add("/article", html(english(1)))
    home = page_server.add("/home", html(before + english(2)))
    for url in (article, home):
        look(ingestor, url)
    page_server.add("/article", html(after + english(2)))
    row = look(ingestor, article)
    assert (row.status, row.notice.code, row.notice.params["other"]) == ("held", reason, home)
    assert all("{" not in say(row.notice, language) for language in ("en", "zh"))
    assert (page_of(ingestor, article).version, page_of(ingestor, article).status) == (1, "active")
    assert look(ingestor, article, "skip").status == "skipped"
    assert look(ingestor, article, "add_anyway").status == "updated"
    assert look(ingestor, article).status == "unchanged"
    page_server.add("/home", html(english(3)))
    page_server.add("/article", html(english(3)))
    assert [look(ingestor, url).status for url in (home, article)] == ["updated", "updated"]


def test_a_refresh_through_an_alias_updates_the_page(ingestor: Ingestor, page_server: PageServer) -> None:
    main = page_server.add("/main", html(english(1)))
    old = page_server.add("/old", status=301, headers={"Location": "/main"})
    look(ingestor, main)
    store_page(ingestor, ingestor.read(web_source(old)))
    page_server.add("/main", html(english(2)))
    row = look(ingestor, old)
    assert (row.status, row.url_hash) == ("updated", url_hash(main))
    assert {page.url for page in ingestor.library.pages()} == {main}


def test_a_page_that_was_removed_meanwhile_does_not_come_back(ingestor: Ingestor, page_server: PageServer) -> None:
    url = page_server.add("/a", html(english(1)))
    look(ingestor, url)
    page_server.add("/a", html(english(2)))
    read = ingestor.read(web_source(url), known=page_of(ingestor, url))
    ingestor.library.remove([url_hash(url)])
    row = store_page(ingestor, read)
    assert (row.status, row.notice.code) == ("skipped", "page_removed")
    assert ingestor.library.page_count() == 0


def test_an_alias_found_while_a_page_was_read_is_not_lost(ingestor: Ingestor, page_server: PageServer) -> None:
    main = conditional(page_server, "/main", html(english(1)), '"one"')
    old = page_server.add("/old", status=301, headers={"Location": "/main"})
    look(ingestor, main)
    read = ingestor.read(web_source(main), known=page_of(ingestor, main))
    assert read.not_modified
    store_page(ingestor, ingestor.read(web_source(old)))
    store_page(ingestor, read)
    assert page_of(ingestor, main).aliases == (old,)


def test_a_source_that_repeats_an_earlier_address_names_it() -> None:
    sources = [
        web_source("https://a.example/?utm_source=x"),
        web_source("not an address"),
        web_source("https://a.example/"),
        web_source("not an address"),
        *file_sources("a.txt", b"one"),
        *file_sources("a.txt", b"two"),
        *file_sources("a.txt", b"one"),
    ]
    rows = [(key, row) for _, key, row in find_repeats(sources)]
    assert [row and (row.status, row.notice.code, row.notice.params["first"]) for _, row in rows] == [
        None,
        None,
        ("duplicate", "same_address", "https://a.example/?utm_source=x"),
        None,
        None,
        None,
        ("duplicate", "same_address", "a.txt"),
    ]
    assert [key for key, _ in rows if not key] == ["", ""]
    assert rows[0][0] == rows[2][0] == url_hash("https://a.example/")
