"""Duplicate pages, under other addresses or in nearly the same words: how they are reported, and the user's choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rag.errors import RagError, StoreError
from rag.ingest.batch import _store, ingest_all
from rag.ingest.duplicates import (
    StoreRequest,
    check_canonical,
    claim_of,
    find_duplicate,
    independent_groups,
    twin_addresses,
    with_alias,
)
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import LoadedPage, Source, file_sources, record_sources, web_source
from rag.locales import say
from rag.store.qdrant.library import Library, open_library
from rag.store.values import NewChunks
from rag.types import Decision, IngestResult, Page
from rag.web.urls import url_hash, url_key
from tests.ingest.jobs.conftest import records
from tests.store.test_duplicates import english
from tests.support.page_server import PageServer
from tests.support.storing import store_page

HTML = "<html><head><title>{title}</title>{head}</head><body><article><h1>{title}</h1>{body}</article></body></html>"


def html(text: str, title: str = "Harbour", head: str = "") -> str:
    body = "".join(f"<p>{part}</p>" for part in text.split("\n\n"))
    return HTML.format(title=title, head=head, body=body)


def canonical(url: str) -> str:
    return f'<link rel="canonical" href="{url}">'


def take(ingestor: Ingestor, source: Source | str, decision: Decision = "") -> IngestResult:
    given = web_source(source) if isinstance(source, str) else source
    return store_page(ingestor, ingestor.read(given), decision=decision)


def urls(ingestor: Ingestor) -> set[str]:
    return {page.url for page in ingestor.library.pages()}


# Addresses


@pytest.mark.parametrize(
    ("url", "twins"),
    [
        ("https://www.x.example/a?b", ["http://www.x.example/a?b", "https://x.example/a?b", "http://x.example/a?b"]),
        ("http://x.example", ["https://x.example/", "http://www.x.example/", "https://www.x.example/"]),
        ("http://x.example:8080/", []),
        ("http://127.0.0.1/", []),
        ("https://[2001:db8::1]/", []),
        ("file:///notes.txt", []),
    ],
)
def test_the_twins_of_an_address(url: str, twins: list[str]) -> None:
    assert list(twin_addresses(url)) == twins


@pytest.mark.parametrize(
    ("link", "url", "believed"),
    [
        ("https://x.example/a", "https://x.example/a?print=1", True),
        ("https://x.example/a", "https://x.example/amp/a", True),
        ("https://x.example/a", "https://x.example/a#part", False),  # the same address
        ("https://x.example/", "https://x.example/a", False),
        ("https://x.example/", "https://x.example/?lang=en", True),
        ("https://x.example/list", "https://x.example/list?page=2", False),
        ("https://x.example/list?page=2", "https://x.example/list?page=2&sort=up", True),
        ("https://x.example/list", "https://x.example/list/page/3", False),
        ("", "https://x.example/a", False),
    ],
)
def test_which_canonical_links_can_be_right(link: str, url: str, believed: bool) -> None:
    assert check_canonical(link, url) == (link if believed else "")


def test_aliases_are_spelled_as_keys() -> None:
    page = Page("https://x.example/b", url_hash("https://x.example/b"), "", "", "", "t", "", "web")
    assert with_alias(page, "HTTPS://X.example:443/c?utm_source=y#z").aliases == ("https://x.example/c",)
    assert with_alias(page, "https://x.example/b#top") == page


@pytest.mark.parametrize(
    ("canonical", "claim"),
    [
        ("HTTPS://X.example/c#top", "https://x.example/c"),
        ("https://x.example/b?utm_source=y", ""),  # the page itself
        ("https://x.example/old", ""),  # known to redirect to it
        ("https://x.example/", ""),
        ("http://[::1/c", ""),
        ("https://x.example/" + "c" * 5000, ""),
        ("", ""),
    ],
)
def test_what_a_page_claims_to_be(canonical: str, claim: str) -> None:
    aliases = ("https://x.example/old",)
    page = Page("https://x.example/b", url_hash("https://x.example/b"), "", "", "", "t", "", "web", aliases=aliases)
    assert claim_of(page, canonical) == claim


# Level one: addresses


def test_a_canonical_link_makes_an_alias(ingestor: Ingestor, page_server: PageServer) -> None:
    main = page_server.url("/main")
    page_server.add("/main", html(english(1), head=canonical(main)))
    shown = page_server.add("/main?print=1", html(english(1), head=canonical(main)))
    assert take(ingestor, main).status == "added"
    row = take(ingestor, shown)
    assert (row.status, row.notice.code, row.notice.params["other"], row.notice.params["title"]) == (
        "duplicate",
        "canonical_alias",
        main,
        "Harbour",
    )
    assert row.choices == ("skip", "refresh", "keep_both")
    assert row.preview.startswith("# Harbour")
    assert len(row.preview) <= 610
    assert ingestor.library.resolve([url_hash(shown)])[url_hash(shown)].url == main
    assert urls(ingestor) == {main}


@pytest.mark.parametrize("says_so", [True, False])
def test_the_alias_comes_first_and_the_page_after(ingestor: Ingestor, page_server: PageServer, says_so: bool) -> None:
    main = page_server.url("/main")
    page_server.add("/main", html(english(1), head=canonical(main) if says_so else ""))
    shown = page_server.add("/amp/main", html(english(1), head=canonical(main)))
    assert take(ingestor, shown).status == "added"
    row = take(ingestor, main)
    assert (row.status, row.notice.code, row.notice.params["other"]) == ("added", "canonical_first", shown)
    assert urls(ingestor) == {main}
    assert {chunk.url for chunk in ingestor.library.chunks(url_hash(main))} == {main}
    assert ingestor.library.chunks(url_hash(shown)) == []
    page = ingestor.library.page(url_hash(shown))
    assert page is not None and page.url == main, "what was said of the other address is found"
    assert (take(ingestor, shown).notice.code, take(ingestor, main).status) == ("alias_address", "unchanged")


def test_an_interrupted_replacement_is_completed_when_the_page_is_read_again(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = page_server.add("/main", html(english(1)))
    shown = page_server.add("/amp/main", html(english(1), head=canonical(main)))
    take(ingestor, shown)
    ingestor.library.set_excluded([url_hash(shown)], True)
    with monkeypatch.context() as cut:
        cut.setattr(type(ingestor.library), "remove", _cut)
        with pytest.raises(StoreError):
            take(ingestor, main)
    assert urls(ingestor) == {main, shown}
    assert take(ingestor, main).status == "unchanged"
    assert urls(ingestor) == {main}
    assert ingestor.library.excluded_pages() == {url_hash(main)}


def _cut(*_: object) -> None:
    raise StoreError("store_closed")


def test_a_page_with_earlier_texts_keeps_them_and_its_address(ingestor: Ingestor, page_server: PageServer) -> None:
    main = page_server.add("/main", html(english(1)))
    shown = page_server.add("/amp/main", html(english(2), head=canonical(main)))
    take(ingestor, shown)
    page_server.add("/amp/main", html(english(1), head=canonical(main)))
    assert take(ingestor, shown).status == "updated"
    row = take(ingestor, main)
    assert (row.status, row.notice.code, row.notice.params["other"]) == ("duplicate", "alias_address", shown)
    assert len(ingestor.library.versions(url_hash(shown))) == 2


def test_two_pages_that_name_each_other_settle(ingestor: Ingestor, page_server: PageServer) -> None:
    one, two = page_server.url("/one"), page_server.url("/two")
    page_server.add("/one", html(english(1), head=canonical(two)))
    page_server.add("/two", html(english(1), head=canonical(one)))
    assert [take(ingestor, url).status for url in (one, two, one, two)] == [
        "added",
        "duplicate",
        "unchanged",
        "duplicate",
    ]


def test_parameters_that_track_are_not_stored(ingestor: Ingestor, page_server: PageServer) -> None:
    page_server.add("/main?id=1&utm_source=mail&%75tm_medium=x&fbclid=z", html(english(1)))
    shown = page_server.url("/main?id=1&utm_source=mail&%75tm_medium=x&fbclid=z")
    assert take(ingestor, shown).status == "added"
    assert urls(ingestor) == {page_server.url("/main?id=1")}
    assert {chunk.url for chunk in ingestor.library.chunks(url_hash(shown))} == urls(ingestor)
    assert take(ingestor, shown).status == "unchanged"


def given(ingestor: Ingestor, *urls: str) -> list[tuple[str, str]]:
    """Import the addresses one after another; return their statuses and reasons."""
    return [(row.status, row.notice.code) for url in urls for _, row in ingest_all(ingestor, [web_source(url)])]


@pytest.mark.parametrize(("link", "pages"), [("/start", 12), ("/start?page_id=7", 1), ("/blog/start/", 1)])
def test_the_page_that_others_wrongly_name_is_read_all_the_same(
    ingestor: Ingestor, page_server: PageServer, link: str, pages: int
) -> None:
    start = page_server.add(link, html(english(50), head=canonical(page_server.url(link))))
    others = [page_server.add(f"/p{n}", html(english(n), head=canonical(start))) for n in range(pages)]
    assert given(ingestor, *others) == [("added", "page_added")] * pages
    assert all(page.aliases == () for page in ingestor.library.pages())
    assert given(ingestor, start, start) == [("added", "page_added"), ("unchanged", "already_here")]
    assert urls(ingestor) == {start, *others}


@pytest.mark.parametrize("same", [True, False])
def test_a_canonical_link_that_is_right_is_read_once_and_then_known(
    ingestor: Ingestor, page_server: PageServer, same: bool
) -> None:
    text = english(1) if same else english(1).rpartition("\n\n")[0] + "\n\n" + english(7, 8)
    main = page_server.add("/main", html(text))
    shown = page_server.add("/amp/main", html(english(1), head=canonical(main)))
    expected = [("added", "page_added"), ("added", "canonical_first"), ("unchanged", "already_here")]
    assert given(ingestor, shown, main, main, shown) == [*expected, ("duplicate", "alias_address")]
    assert page_server.count("/main") == page_server.count("/amp/main") == 1
    assert [(page.url, page.aliases) for page in ingestor.library.pages()] == [(main, (url_key(shown),))]


def test_a_page_that_no_longer_claims_an_address_is_not_asked_about_it(
    ingestor: Ingestor, page_server: PageServer
) -> None:
    main, shown = page_server.url("/main"), page_server.url("/amp/main")
    page_server.add("/amp/main", html(english(1), head=canonical(main)))
    take(ingestor, shown)
    assert [page.url for page in ingestor.library.claimants([url_hash(main)])[url_hash(main)]] == [shown]
    ingestor.library.update_record(ingestor.library.pages()[0])
    assert ingestor.library.claimants([url_hash(main)])
    page_server.add("/amp/main", html(english(1)))
    assert take(ingestor, shown).status == "unchanged"
    assert ingestor.library.claimants([url_hash(main)]) == {}


@pytest.mark.parametrize(("status", "reason"), [(301, "moved_address"), (302, "same_text")])
def test_redirects_are_remembered_where_they_are_for_good(
    ingestor: Ingestor, page_server: PageServer, status: int, reason: str
) -> None:
    main = page_server.add("/main", html(english(1)))
    old = page_server.add("/old", status=status, headers={"Location": "/main"})
    take(ingestor, main)
    row = take(ingestor, old)
    assert (row.status, row.notice.code) == ("duplicate", reason)
    assert (url_hash(old) in ingestor.library.resolve([url_hash(old)])) == (status == 301)


def stored(library: Library, url: str, text: str) -> Page:
    """Store a page without chunks, as finding duplicates needs it."""
    import hashlib

    import numpy as np

    page = Page(url, url_hash(url), "T", "en", "x", text, hashlib.sha256(text.encode()).hexdigest(), "web")
    bare = library.draft(page, NewChunks([], np.zeros((0, library.dimension), np.float32), [], [], []))
    return library.commit_all([bare])[0].page


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://www.x.example/a", "twin_https"),
        ("https://x.example/a", "twin_www"),
        ("http://x.example/a", "twin_both"),
    ],
)
def test_twins_are_called_what_they_are(small_library: Library, url: str, reason: str) -> None:
    stored(small_library, "https://www.x.example/a", english(1))
    page = Page(url, url_hash(url), "T", "en", "x", english(1) + " Seen again.", "other", "web")
    found = find_duplicate(small_library, page)
    assert found is not None
    assert (found.reason, found.is_alias) == (reason, True)
    assert found.choices == ("skip", "refresh", "keep_both")
    other = find_duplicate(small_library, replace(page, text=english(2)))
    assert other is None


# Levels two and three: texts


def test_the_same_text_elsewhere(ingestor: Ingestor, page_server: PageServer) -> None:
    one, two = (page_server.add(path, html(english(1))) for path in ("/one", "/two"))
    take(ingestor, one)
    row = take(ingestor, two)
    assert (row.status, row.notice.code, row.notice.params["other"]) == ("duplicate", "same_text", one)
    assert row.choices == ("skip", "keep_both")
    assert say(row.notice, "en").startswith("Same text as")
    assert take(ingestor, two, "skip").status == "skipped"
    assert urls(ingestor) == {one}
    assert take(ingestor, two, "keep_both").status == "added"
    assert urls(ingestor) == {one, two}


def test_nearly_the_same_text_elsewhere(ingestor: Ingestor, page_server: PageServer) -> None:
    one = page_server.add("/one", html("Seen on 5 March 2024.\n\n" + english(1)))
    two = page_server.add("/two", html("Seen on 6 April 2025.\n\n" + english(1)))
    other = page_server.add("/other", html(english(2)))
    take(ingestor, one)
    row = take(ingestor, two)
    assert (row.status, row.notice.code, row.notice.params["other"]) == ("duplicate", "near_text", one)
    assert 85 <= row.notice.params["percent"] <= 99
    assert f"{row.notice.params['percent']}%" in say(row.notice, "en")
    assert take(ingestor, other).status == "added"


def test_refresh_puts_the_text_in_the_place_of_the_other(ingestor: Ingestor, page_server: PageServer) -> None:
    one = page_server.add("/one", html("Seen on 5 March 2024.\n\n" + english(1)))
    two = page_server.add("/two", html("Seen on 6 April 2025.\n\n" + english(1)))
    take(ingestor, one)
    row = take(ingestor, two, "refresh")
    assert (row.status, row.url_hash) == ("updated", url_hash(one))
    page = ingestor.library.page(url_hash(one))
    assert page is not None
    assert (page.url, page.version, page.aliases) == (one, 2, (url_key(two),))
    assert "6 April 2025" in page.text
    assert len(ingestor.library.versions(page.url_hash)) == 2
    assert urls(ingestor) == {one}


def test_keeping_both_ends_the_alias(ingestor: Ingestor, page_server: PageServer) -> None:
    main = page_server.add("/main", html(english(1)))
    old = page_server.add("/old", status=301, headers={"Location": "/main"})
    take(ingestor, main)
    take(ingestor, old)
    assert take(ingestor, old, "keep_both").status == "added"
    assert urls(ingestor) == {main, old}
    found = ingestor.library.stored_pages([url_hash(main)])[url_hash(main)]
    assert found.aliases == ()


def test_files_are_compared_and_prepared_pages_are_not(ingestor: Ingestor) -> None:
    text = english(1)
    (first,), (second,) = (file_sources(name, text.encode()) for name in ("a.txt", "b.txt"))
    assert take(ingestor, first).status == "added"
    assert take(ingestor, second).notice.code == "same_text"
    lines = [f'{{"url": "https://{n}.example/", "text": "The same few words."}}' for n in range(2)]
    assert [take(ingestor, source).status for source in record_sources(lines, "x.jsonl")] == ["added", "added"]


def test_a_page_in_the_library_is_no_duplicate_of_others(ingestor: Ingestor, page_server: PageServer) -> None:
    """The user chose to keep it; a re-check changes that page only."""
    one, two = (page_server.add(path, html(english(1))) for path in ("/one", "/two"))
    take(ingestor, one)
    take(ingestor, two, "keep_both")
    page_server.add("/two", html(english(1) + "\n\nOne more line of text."))
    assert take(ingestor, two).status == "updated"
    page_server.add("/two", html(english(1)))
    assert take(ingestor, two).status == "updated"
    assert urls(ingestor) == {one, two}


@pytest.mark.parametrize("seed", [1, 3])
def test_reads_in_any_order_end_in_one_page(ingestor: Ingestor, page_server: PageServer, seed: int) -> None:
    main = page_server.url("/main")
    paths = [f"/main?ref={n}" for n in range(6)]
    for path in ("/main", *paths):
        page_server.add(path, html(english(1), head=canonical(main)))
    sources = [web_source(main), *(web_source(page_server.url(path)) for path in paths)]
    random.Random(seed).shuffle(sources)
    reads: list[LoadedPage] = [ingestor.read(source) for source in sources]
    rows = [store_page(ingestor, read) for read in reads]
    reasons = {row.notice.code: row.status for row in rows if row.url != main}
    assert reasons == {"page_added": "added", "canonical_alias": "duplicate"} or sources[0].url == main
    assert urls(ingestor) == {main}
    hashes = [url_hash(source.url) for source in sources]
    assert len(ingestor.library.resolve(hashes)) == 7


def settled(ingestor: Ingestor, reads: list[LoadedPage], at_once: int) -> list[tuple[str, str, str]]:
    """Store the reads, `at_once` at a time; return what became of each."""
    rows: list[IngestResult | RagError] = []
    for at in range(0, len(reads), at_once):
        rows += ingestor.store_all([StoreRequest(read) for read in reads[at : at + at_once]])
    return [(row.url, row.status, row.notice.code) for row in rows if isinstance(row, IngestResult)]


@pytest.mark.parametrize("seed", range(2))
def test_together_ends_as_one_after_the_other(ingestor: Ingestor, page_server: PageServer, seed: int) -> None:
    main = page_server.url("/main")
    bodies = {
        "/main": html(english(1)),
        "/copy": html(english(1), "Copy"),
        "/named": html(english(1), head=canonical(main)),
        "/near": html(english(1).replace("the", "a", 1)),
        **{f"/{number}": html(english(number), f"Page {number}") for number in range(2, 9)},
    }
    reads = [ingestor.read(web_source(page_server.add(path, body))) for path, body in bodies.items()]
    reads += [ingestor.read(record) for record in records(5)]
    random.Random(seed).shuffle(reads)
    library = ingestor.library
    other = open_library(library.client, "other", library.embedding_model, library.dimension)
    beside = Ingestor(other, ingestor._model, ingestor._sparse, ingestor._fetcher, ingestor._parser, ingestor._chunker)
    assert settled(ingestor, reads, len(reads)) == settled(beside, reads, 1)
    known = [(page.url, page.aliases, page.chunks) for page in library.pages()]
    assert sorted(known) == sorted((page.url, page.aliases, page.chunks) for page in other.pages())
    assert library.chunk_count() == other.chunk_count()


def test_new_pages_share_their_calls(ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = [ingestor.read(record) for record in records(20)]
    client, calls = ingestor.library.client, []
    for name in ("retrieve", "scroll", "upsert", "batch_update_points", "set_payload", "delete", "query_batch_points"):
        real = getattr(client, name)
        monkeypatch.setattr(client, name, lambda *a, real=real, **k: (calls.append(1), real(*a, **k))[1])
    assert [status for _, status, _ in settled(ingestor, reads, 20)] == ["added"] * 20
    assert len(calls) <= 8


def test_pages_that_fail_together_are_stored_one_by_one(
    ingestor: Ingestor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store_all = ingestor.store_all

    def broken(requests: Sequence[StoreRequest]) -> list[IngestResult | RagError]:
        if len(requests) > 1:
            raise RuntimeError("a bug")
        return store_all(requests)

    monkeypatch.setattr(ingestor, "store_all", broken)
    outcomes = _store(ingestor, [StoreRequest(ingestor.read(record)) for record in records(2)])
    assert [outcome.status for outcome in outcomes if isinstance(outcome, IngestResult)] == ["added", "added"]
    assert "Could not store 2 pages together; storing them one by one" in caplog.text


def test_one_page_that_cannot_be_stored_costs_no_other(ingestor: Ingestor) -> None:
    reads = [ingestor.prepare(ingestor.read(record)) for record in records(3)]
    assert reads[1].prepared is not None
    reads[1].prepared.new.dense[0] = float("nan")
    found = ingestor.store_all([StoreRequest(read) for read in reads])
    assert [type(one) is IngestResult for one in found] == [True, False, True]
    assert ingestor.library.page_count() == 2


def test_what_may_repeat_another_waits_for_it(ingestor: Ingestor, page_server: PageServer) -> None:
    urls = [page_server.add(path, html(english(number))) for path, number in (("/a", 1), ("/b", 2), ("/c", 1))]
    reads = [StoreRequest(ingestor.read(web_source(url))) for url in urls]
    assert list(independent_groups(reads)) == [[0, 1], [2]]


def test_a_page_is_judged_again_where_the_library_changed_meanwhile(
    ingestor: Ingestor, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    real = ingestor.library.pages_with_text
    monkeypatch.setattr(ingestor.library, "pages_with_text", lambda one: (asked.append(one), real(one))[1])
    found = [page_server.add(path, html(english(1))) for path in ("/first", "/second")]
    first, second = (ingestor.prepare(ingestor.read(web_source(url))) for url in found)
    assert len(asked) == 2
    assert store_page(ingestor, first).status == "added"
    assert len(asked) == 2
    assert store_page(ingestor, second).notice.code == "same_text"
    assert len(asked) == 3
