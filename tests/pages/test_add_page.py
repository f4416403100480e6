from dataclasses import replace
from typing import get_args

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rag.app import App
from rag.errors import StoreError, WebSearchError
from rag.ingest.jobs.service import JobView
from rag.ingest.sources import Source
from rag.locales import label, say
from rag.reading.parser import READING_VERSION
from rag.store.sql.job_table import NewItem
from rag.types import Decision, IngestResult, IngestStatus, Notice, Page, Stage
from rag.ui.chat.filters import chips_of
from rag.ui.imports.jobs import PAGE
from rag.ui.kit.session import Scope
from rag.web.search import WebHit
from rag.web.url_finder import find_urls
from rag.web.urls import url_hash
from tests.pages.conftest import QUOTES, Open, end_job, newest, page_file, words
from tests.support.lighthouse import LIGHTHOUSE
from tests.support.storing import store_pages

A = "https://example.org/a"
STAGES = get_args(Stage)


def test_links_are_found_in_what_is_pasted(open_page: Open, language: str) -> None:
    page = open_page("add", language)
    page.text_area[0].set_value("See https://example.org/a and <https://example.org/b>.").run()
    assert not page.exception
    assert label("add_found", language, count=2) in words(page)
    page.text_area[0].set_value(" ".join(f"https://example.org/{n}" for n in range(203))).run()
    assert label("add_dropped", language, count=3, limit=200) in words(page)
    page.text_area[0].set_value("nothing here").run()
    assert label("add_found_none", language) in words(page)
    page.text_area[0].set_value("").run()
    page.button(key="add-links").click().run()
    assert label("add_empty", language) in words(page)


def only_job(app: App) -> JobView:
    (job,) = app.imports.jobs.jobs("main")
    return job


def make_result(
    url: str = A,
    status: IngestStatus = "added",
    reason: str = "page_added",
    /,
    *choices: Decision,
    url_hash: str = "a" * 32,
    **params: object,
) -> IngestResult:
    preview = "What the page said." if choices else ""
    return IngestResult(url, url, url_hash, status, Notice(reason, params), preview=preview, choices=choices)


def open_ended(open_page: Open, app: App, *results: IngestResult, language: str = "en") -> tuple[AppTest, str]:
    """Open an import that ended with these results; return the page, and the id of the import."""
    job = app.imports.add_urls([result.url for result in results], library="main")
    end_job(app, job, *results)
    return open_page("add", language, job=job), job


def test_an_import_moves_through_its_stages_to_its_end(open_page: Open, app: App, language: str) -> None:
    page = open_page("add", language)
    page.text_area[0].set_value(A).run()
    page.button(key="add-links").click().run()
    job = only_job(app).id
    assert page.query_params["job"] == job
    assert page.text_area[0].value == ""
    for stage in STAGES[:-1]:
        app._database.items.set_stage(job, 0, stage)
        assert label(f"stage_{stage}", language) in words(page.run())
    end_job(app, job, make_result())
    page.run()
    assert not page.exception
    assert label("status_added", language) in words(page)
    assert page.button(key="job-ask").label == label("job_ask", language)


def test_known_links_are_counted_before_the_import(open_page: Open, app: App, language: str) -> None:
    old = "https://example.org/old"
    store_pages(app.imports.ingestor("main"), replace(LIGHTHOUSE["en"], url=old, url_hash=url_hash(old)))
    page = open_page("add", language)
    page.text_area[0].set_value("https://example.org/old https://example.org/new").run()
    assert label("add_found", language, count=2) in words(page)
    assert label("add_known_one", language, count=1) in words(page)


def test_a_bulk_import_is_followed_in_batches(open_page: Open, app: App, language: str) -> None:
    job = app.imports.external.begin("main", ["dump.jsonl"], lambda: [NewItem(f"dump.jsonl: {n}") for n in range(4)])
    app._database.items.finish(job, 0, make_result("dump.jsonl", added=900, failed=1))
    page = open_page("add", language, job=job)
    assert not page.exception
    assert label("job_kind_bulk", language) in words(page) and label("job_bulk_hint", language) in words(page)
    assert "## dump.jsonl\n" in words(page) and "900" in words(page)
    assert not [button for button in page.button if button.key == "job-retry"]


def test_files_that_are_kept_can_be_read_again(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    assert label("add_files_kept", language) not in words(open_page("add", language))
    sources = [Source(name, f"file:///{name}", "file", data=b"%PDF-") for name in ("a.pdf", "b.pdf")]
    job = app.imports.jobs.submit(sources, library="main")
    end_job(app, job, *(make_result(source.url, "failed", "unreadable") for source in sources))
    monkeypatch.setattr("rag.ingest.jobs.service.READING_VERSION", READING_VERSION + 1)
    page = open_page("add", language)
    assert label("add_files_kept", language) in words(page)
    assert page.button(key="files-reread").label == label("add_files_reread", language, count=2)
    page.button(key="files-reread").click().run()
    assert page.query_params["job"] == job
    assert label("add_files_kept", language) not in words(page)


def half_added(app: App) -> tuple[Page, str]:
    """Import a stored page and a link that fails; return the page and the id of the import."""
    stored, gone = LIGHTHOUSE["en"], "https://example.org/gone"
    job = app.imports.add_urls([stored.url, gone], library="main")
    end_job(
        app,
        job,
        make_result(stored.url, url_hash=stored.url_hash),
        make_result(gone, "failed", "timeout", url=gone, seconds=3),
    )
    return stored, job


def test_questions_about_an_import_are_confined_to_its_pages(open_page: Open, app: App, language: str) -> None:
    stored, job = half_added(app)
    page = open_page("add", language, job=job)
    assert stored.title in words(page)
    page.button(key="job-ask").click().run()
    page.switch_page(page_file("chat")).run()
    assert page.button(key="chip-0").label == stored.title
    page.chat_input[0].set_value("How often?").run()
    assert newest(app).settings["scope"] == {"pages": [stored.url_hash]}


def test_a_card_summarises_an_import_and_suggests_questions(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr("rag.app.overviews.questions_about", lambda *_: ["How often is the lamp lit?"])
    _, job = half_added(app)
    page = open_page("add", language, job=job)
    for overview in app.overviews._futures.values():
        overview.result(60)
    assert f"“{QUOTES['en'][0]}”" in words(page.run())
    failure = Notice("timeout", {"url": "https://example.org/gone", "seconds": 3})
    assert words(page).count(say(failure, language)) == 1
    page.button(key="card-ask-0-job").click().run()
    assert newest(app).question == "How often is the lamp lit?"


def test_many_pages_are_one_chip() -> None:
    titles = {str(n): f"Page {n}" for n in range(4)}
    chips = chips_of(Scope(pages=tuple(titles)[:3]), titles, "en")
    assert [chip.text for chip in chips] == ["Page 0", "Page 1", "Page 2"]
    (chip,) = chips_of(Scope(pages=tuple(titles)), titles, "en")
    assert chip.text == "4 pages" and Scope(pages=tuple(titles)).without(chip.name, chip.value) == Scope()


def test_an_import_is_stopped_put_away_opened_again_and_deleted(open_page: Open, app: App) -> None:
    job = app.imports.add_urls([A], library="main")
    page = open_page("add", job=job)
    assert "example.org/a" in words(page)
    page.button(key="job-cancel").click().run()
    assert only_job(app).state == "cancelled"
    page.button(key="job-close").click().run()
    assert "job" not in page.query_params
    page.button(key=f"job-{job}").click().run()
    assert page.query_params["job"] == job
    page.button(key="job-close").click().run()
    page.button(key=f"forget-{job}").click().run()
    assert not app.imports.jobs.jobs("main")
    assert not [button for button in page.button if button.key == f"job-{job}"]


def test_options_apply_to_every_way_of_adding(open_page: Open, app: App, language: str) -> None:
    page = open_page("add", language)
    assert page.selectbox(key="chunker").value == app.settings.chunker
    assert label("add_advanced", language) in words(page)
    page.selectbox(key="chunker").select("markdown").run()
    page.checkbox(key="force").check()
    page.text_area[0].set_value(A).run()
    page.button(key="add-links").click().run()
    page.selectbox(key="chunker").select("parent").run()
    page.file_uploader[0].set_value([("notes.md", b"# Notes", "text/markdown")]).run()
    page.button(key="add-files").click().run()
    page.button(key="samples").click().run()
    assert not page.exception
    samples, files, links = app.imports.jobs.jobs("main")
    assert [job.options["chunker"] for job in (links, files, samples)] == ["markdown", "parent", "parent"]
    assert links.options["force"] and app._database.files.names(files.id) == ["notes.md"]


@pytest.mark.parametrize("kind", ["sitemap", "crawl", "feed"])
def test_a_site_is_added_within_its_limits(open_page: Open, app: App, kind: str, language: str) -> None:
    page = open_page("add", language)
    page.text_input(key="site-start-0").set_value("docs.example.org/guide/start.html")
    page.button_group(key="site-kind").set_value(kind).run()
    page.number_input(key="site-pages").set_value(50)
    if kind == "crawl":
        assert "docs.example.org/guide/" in words(page)
        page.number_input(key="site-depth").set_value(5)
        page.text_input(key="site-prefix").set_value("/guide/en/")
    page.button(key="add-site").click().run()
    assert not page.exception
    job = only_job(app)
    plan = job.options["plan"]
    assert (job.kind, job.title, plan["max_pages"]) == (kind, "https://docs.example.org/guide/start.html", 50)
    if kind == "crawl":
        assert (plan["max_depth"], plan["prefix"]) == (5, "/guide/en/")
    assert page.query_params["job"] == job.id


def test_a_site_needs_one_address(open_page: Open, app: App) -> None:
    page = open_page("add")
    for given in ("", "not an address", "https://a.example https://b.example", "nowhere"):
        page.text_input(key="site-start-0").set_value(given)
        page.button(key="add-site").click().run()
        assert label("site_start_wrong", "en") in words(page)
    assert not app.imports.jobs.jobs("main")


HELD = make_result(A, "held", "gate_login", "add_anyway", "skip", seen="Sign in")


def test_a_page_that_was_held_back_is_shown_and_decided_on(open_page: Open, app: App, language: str) -> None:
    page, job = open_ended(open_page, app, HELD, make_result("https://example.org/b"), language=language)
    shown = words(page)
    assert label("status_held", language) in shown
    assert "What the page said." in shown
    page.button(key="decide-add_anyway-0").click().run()
    item, _ = app.imports.jobs.items(job)
    assert (item.decision, item.result) == ("add_anyway", None)
    end_job(app, job, make_result())
    assert label("count_added", language, count=2) in words(page.run())


def test_a_duplicate_tells_what_it_repeats_and_what_can_be_done(open_page: Open, app: App) -> None:
    offered: tuple[Decision, ...] = ("skip", "refresh", "keep_both")
    stored = LIGHTHOUSE["en"]
    told = {"title": stored.title, "other": stored.url, "url_hash": stored.url_hash}
    repeated = replace(make_result(A, "duplicate", "same_text", *offered), notice=Notice("same_text", told))
    page, job = open_ended(open_page, app, repeated)
    assert f"Duplicate] {A.removeprefix('https://')} :small[:gray[Same text as “{stored.title}”" in words(page)
    assert page.button(key="decide-open-0")
    for decision in offered:
        assert page.button(key=f"decide-{decision}-0").label == label(f"decide_{decision}", "en")
    page.button(key="decide-keep_both-0").click().run()
    assert app.imports.jobs.items(job)[0].decision == "keep_both"


def test_what_failed_is_tried_again(open_page: Open, app: App) -> None:
    page, job = open_ended(open_page, app, make_result(A, "failed", "timeout", url=A, seconds=30))
    page.button(key="job-retry").click().run()
    end_job(app, job, make_result())
    assert label("count_added", "en", count=1) in words(page.run())


def test_a_choice_that_is_not_possible_any_more_is_said_so(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, _ = open_ended(open_page, app, HELD)

    def refuse(*given: object) -> None:
        raise StoreError("decision_unfit")

    monkeypatch.setattr(app.imports.jobs, "decide", refuse)
    page.button(key="decide-skip-0").click().run()
    assert not page.exception
    assert len(page.toast) == 1


def test_an_import_is_paused_and_goes_on(open_page: Open, app: App) -> None:
    page = open_page("add", job=app.imports.add_urls([A], library="main"))
    page.button(key="job-pause").click().run()
    assert only_job(app).state == "paused"
    assert label("job_paused", "en") in "".join(str(bar.proto.text) for bar in page.get("progress"))
    page.button(key="job-resume").click().run()
    assert only_job(app).state == "running"


def test_pace_and_time_left_are_told(open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    job = app.imports.add_urls([f"https://example.org/{n}" for n in range(300)], library="main")
    monkeypatch.setattr(app.imports.jobs._worker, "rate", lambda _: 90.0)
    assert app.models.embedding  # otherwise the bar says that it is being loaded
    page = open_page("add", language, job=job)
    told = "".join(str(bar.proto.text) for bar in page.get("progress"))
    assert label("job_rate", language, rate="90") in told
    assert label("job_left_minutes", language, count=3) in told


def test_a_long_import_lists_items_for_review_first_in_pages(open_page: Open, app: App) -> None:
    results = [make_result(f"https://example.org/{n}") for n in range(500)]
    url = "https://example.org/401"
    results[401] = make_result(url, "failed", "timeout", url=url, seconds=30)
    results[402] = replace(HELD, url="https://example.org/402")
    page, job = open_ended(open_page, app, *results)

    def rows() -> list[str]:
        return [row.value for row in page.markdown if "example.org/" in row.value and "badge" in row.value]

    failed, held, *others = rows()
    assert len(others) == PAGE  # the saved ones are collapsed below
    assert "/401" in failed and "/402" in held
    filters = page.button_group(key=f"job-filter-{job}")
    assert filters.options == ["All", "Failed 1", "Needs review 1"]  # "All 2" would contradict the count of the import
    filters.set_value("held").run()
    assert len(rows()) == 1 + PAGE


def test_the_limit_that_is_shown_is_the_servers(open_page: Open) -> None:
    for name in ("library", "add"):
        page = open_page(name)
        assert {one.proto.max_upload_size_mb for one in page.file_uploader} == {st.get_option("server.maxUploadSize")}
    assert "200 files and 200 MB at once" in words(page)


def test_too_many_imports_are_refused_and_what_was_pasted_stays(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    def full(*_: object, **__: object) -> str:
        raise StoreError("too_many_jobs", most=50)

    monkeypatch.setattr(app.imports, "add_urls", full)
    page = open_page("add", language)
    page.text_area[0].set_value(A).run()
    page.button(key="add-links").click().run()
    assert say(Notice("too_many_jobs", {"most": 50}), language) in words(page)
    assert page.text_area[0].value == A


class Searching:
    name = "SearXNG"

    def __init__(self, *found: WebHit) -> None:
        self.found: list[WebHit] = list(found)
        self.asked: list[str] = []

    def find(self, query: str, limit: int = 8) -> list[WebHit]:
        self.asked.append(query)
        if query == "down":
            raise WebSearchError("web_search_unreachable", name=self.name)
        return self.found


def test_pages_found_on_the_web_are_chosen_and_added(open_page: Open, app: App, language: str) -> None:
    page = open_page("add", language)
    assert not [one for one in page.tabs if one.label == label("add_tab_web", language)]
    tea = WebHit("https://tea.example/longjing", "Longjing *tea*", "It grows in Hangzhou.")
    other = WebHit("https://other.example/", "", "")
    app.imports.web_search = search = Searching(tea, other)
    page = open_page("add", language)
    page.text_input(key="web-asked").set_value("tea")
    page.button(key="web-go").click().run()
    assert search.asked == ["tea"]
    assert "It grows in Hangzhou." in words(page) and page.button(key="web-add").disabled
    page.checkbox(key=f"web-hit-{tea.url}").check().run()
    page.button(key="web-add").click().run()
    assert not page.exception
    assert [item.source for item in only_job(app).items] == [tea.url]


def test_a_search_that_fails_or_finds_nothing_says_so(open_page: Open, app: App) -> None:
    app.imports.web_search = Searching()
    page = open_page("add")
    for asked, said in (("down", "reach the search service SearXNG"), ("tea", label("web_none", "en"))):
        page.text_input(key="web-asked").set_value(asked)
        page.button(key="web-go").click().run()
        assert said in words(page)


def test_a_link_in_the_address_is_added_by_a_click_alone(open_page: Open, app: App, language: str) -> None:
    page = open_page(
        "add", language, add="https://example.org/one", add_text="See javascript:alert(1) www.example.org/two"
    )
    (box,) = [one for one in page.text_area if (one.key or "").startswith("pasted-")]
    assert (box.value or "").split() == find_urls("https://example.org/one www.example.org/two")[0]
    assert label("add_handed", language) in words(page)
    assert not app.imports.jobs.jobs("main")
    page.button(key="add-links").click().run()
    assert only_job(app)
    assert not {"add", "add_text"} & {*page.query_params}
