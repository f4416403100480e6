from dataclasses import replace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rag.errors import StoreError, WebSearchError
from rag.ingest.sources import find_urls
from rag.locales import label, say
from rag.types import Decision, IngestResult, IngestStatus, Notice, Page
from rag.ui.chat.filters import chips_of
from rag.ui.imports.jobs import PAGE
from rag.ui.kit.session import Scope
from rag.web.search import WebHit
from rag.web.urls import url_hash
from tests.pages.conftest import Open, page_file, words
from tests.support.fake_app import STAGES, FakeApp


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


def test_an_import_moves_through_its_stages_to_its_end(open_page: Open, language: str) -> None:
    page = open_page("add", language)
    page.text_area[0].set_value("https://example.org/a").run()
    page.button(key="add-links").click().run()
    assert page.query_params["job"] == "job1"
    assert page.text_area[0].value == ""
    assert any(label(f"stage_{stage}", language) in words(page) for stage in STAGES)
    for _ in STAGES:
        page.run()
    assert not page.exception
    assert label("status_added", language) in words(page)
    assert page.button(key="job-ask").label == label("job_ask", language)


def test_known_links_are_counted_before_the_import(open_page: Open, app: FakeApp, language: str) -> None:
    stored = app.library("main").stored[0]
    stored = replace(stored, url="https://example.org/old", url_hash=url_hash("https://example.org/old"))
    app.library("main").stored.append(stored)
    page = open_page("add", language)
    page.text_area[0].set_value("https://example.org/old https://example.org/new").run()
    assert label("add_found", language, count=2) in words(page)
    assert label("add_known_one", language, count=1) in words(page)


def test_a_bulk_import_is_followed_in_batches(open_page: Open, app: FakeApp, language: str) -> None:
    job = app.imports.add_urls([f"dump.jsonl: {n}" for n in range(4)], library="main")
    bulk = app.imports.jobs_by_id[job]
    bulk.bulk, bulk.title, bulk.pages = 1, "dump.jsonl", {"added": 900, "failed": 1}
    page = open_page("add", language, job=job)
    assert not page.exception
    assert label("job_kind_bulk", language) in words(page) and label("job_bulk_hint", language) in words(page)
    assert "## dump.jsonl\n" in words(page)
    assert not [button for button in page.button if button.key == "job-retry"]


def test_files_that_are_kept_can_be_read_again(open_page: Open, app: FakeApp, language: str) -> None:
    assert label("add_files_kept", language) not in words(open_page("add", language))
    job = app.imports.add_urls(["https://example.org/a"], library="main")
    app.imports.jobs.unread_files = 2
    page = open_page("add", language)
    assert label("add_files_kept", language) in words(page)
    assert page.button(key="files-reread").label == label("add_files_reread", language, count=2)
    page.button(key="files-reread").click().run()
    assert page.query_params["job"] == job
    assert label("add_files_kept", language) not in words(page)


def half_added(app: FakeApp) -> tuple[Page, str]:
    """Import a sample page and a link that fails; return the page and the id of the import."""
    stored, other = app.library("main").stored[0], "https://example.org/gone"
    app.imports.jobs.ends[stored.url] = IngestResult(stored.url, stored.url, stored.url_hash, "added", "page_added", "")
    ended(app, other, "failed", "timeout", url=other, seconds=3)
    job = app.imports.add_urls([stored.url, other], library="main")
    run_to_the_end(app, job)
    return stored, job


def test_questions_about_an_import_are_confined_to_its_pages(open_page: Open, app: FakeApp, language: str) -> None:
    stored, job = half_added(app)
    page = open_page("add", language, job=job)
    assert stored.title in words(page)
    page.button(key="job-ask").click().run()
    page.switch_page(page_file("chat")).run()
    assert page.button(key="chip-0").label == stored.title
    page.chat_input[0].set_value("How often?").run()
    assert app.turns()[-1].settings["scope"] == {"pages": [stored.url_hash]}


def test_a_card_summarises_an_import_and_suggests_questions(open_page: Open, app: FakeApp, language: str) -> None:
    app.overviews.questions = ("How often is the lamp lit?",)
    stored, job = half_added(app)
    page = open_page("add", language, job=job)
    assert f"“About {stored.title}.”" in words(page)
    failure = Notice("timeout", {"url": "https://example.org/gone", "seconds": 3})
    assert words(page).count(say(failure, language)) == 1
    page.button(key="card-ask-0-job").click().run()
    assert app.turns()[-1].question == "How often is the lamp lit?"


def test_many_pages_are_one_chip() -> None:
    titles = {str(n): f"Page {n}" for n in range(4)}
    chips = chips_of(Scope(pages=tuple(titles)[:3]), titles, "en")
    assert [chip.text for chip in chips] == ["Page 0", "Page 1", "Page 2"]
    (chip,) = chips_of(Scope(pages=tuple(titles)), titles, "en")
    assert chip.text == "4 pages" and Scope(pages=tuple(titles)).without(chip.name, chip.value) == Scope()


def test_an_import_is_stopped_put_away_opened_again_and_deleted(open_page: Open, app: FakeApp) -> None:
    page = open_page("add", job=app.imports.add_urls(["https://example.org/a"], library="main"))
    assert "example.org/a" in words(page)
    page.button(key="job-cancel").click().run()
    assert app.imports.jobs_by_id["job1"].state == "cancelled"
    page.button(key="job-close").click().run()
    assert "job" not in page.query_params
    page.button(key="job-job1").click().run()
    assert page.query_params["job"] == "job1"
    page.button(key="job-close").click().run()
    page.button(key="forget-job1").click().run()
    assert not app.imports.jobs_by_id
    assert not [button for button in page.button if button.key == "job-job1"]


def test_options_apply_to_every_way_of_adding(open_page: Open, app: FakeApp, language: str) -> None:
    page = open_page("add", language)
    assert page.selectbox(key="chunker").value == app.settings.chunker
    assert label("add_advanced", language) in words(page)
    page.selectbox(key="chunker").select("markdown").run()
    page.checkbox(key="force").check()
    page.text_area[0].set_value("https://example.org/a").run()
    page.button(key="add-links").click().run()
    page.selectbox(key="chunker").select("parent").run()
    page.file_uploader[0].set_value([("notes.md", b"# Notes", "text/markdown")]).run()
    page.button(key="add-files").click().run()
    page.button(key="samples").click().run()
    assert not page.exception
    links, files, samples = app.imports.jobs_by_id.values()
    assert [job.chunker for job in (links, files, samples)] == ["markdown", "parent", "parent"]
    assert links.options == {"force": True} and [item.source for item in files.items] == ["notes.md"]


def ended(app: FakeApp, source: str, status: IngestStatus, reason: str, *choices: Decision, **params: object) -> None:
    """Make this source end like this."""
    preview = "What the page said." if choices else ""
    result = IngestResult(source, source, "a" * 32, status, reason, "", params=params, preview=preview, choices=choices)
    app.imports.jobs.ends[source] = result


def open_ended(open_page: Open, app: FakeApp, *urls: str, language: str = "en") -> tuple[AppTest, str]:
    """Import these links and open the import once it has ended; return the page, and the id of the import."""
    job = app.imports.add_urls(urls or ["https://example.org/a"], library="main")
    run_to_the_end(app, job)
    return open_page("add", language, job=job), job


def run_to_the_end(app: FakeApp, job_id: str) -> None:
    while app.imports.jobs.job(job_id).state == "running":
        pass


@pytest.mark.parametrize("kind", ["sitemap", "crawl", "feed"])
def test_a_site_is_added_within_its_limits(open_page: Open, app: FakeApp, kind: str, language: str) -> None:
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
    job = app.imports.jobs_by_id["job1"]
    assert (job.kind, job.title, job.options["max_pages"]) == (kind, "https://docs.example.org/guide/start.html", 50)
    if kind == "crawl":
        assert (job.options["max_depth"], job.options["prefix"]) == (5, "/guide/en/")
    assert page.query_params["job"] == "job1"


def test_a_site_needs_one_address(open_page: Open, app: FakeApp) -> None:
    page = open_page("add")
    for given in ("", "not an address", "https://a.example https://b.example", "nowhere"):
        page.text_input(key="site-start-0").set_value(given)
        page.button(key="add-site").click().run()
        assert label("site_start_wrong", "en") in words(page)
    assert not app.imports.jobs_by_id


def test_a_page_that_was_held_back_is_shown_and_decided_on(open_page: Open, app: FakeApp, language: str) -> None:
    ended(app, "https://example.org/a", "held", "gate_login", "add_anyway", "skip", seen="Sign in")
    page, job = open_ended(open_page, app, "https://example.org/a", "https://example.org/b", language=language)
    shown = words(page)
    assert label("status_held", language) in shown
    assert "What the page said." in shown
    page.button(key="decide-add_anyway-0").click().run()
    assert app.imports.jobs.decided == [(job, 0, "add_anyway")]
    run_to_the_end(app, job)
    assert label("count_added", language, count=2) in words(page.run())


def test_a_duplicate_tells_what_it_repeats_and_what_can_be_done(open_page: Open, app: FakeApp) -> None:
    offered: tuple[Decision, ...] = ("skip", "refresh", "keep_both")
    told = {"title": "Lamps", "other": "https://example.org/lamps", "url_hash": "b" * 32}
    ended(app, "https://example.org/a", "duplicate", "same_text", *offered, **told)
    page, job = open_ended(open_page, app)
    assert "“Lamps”" in words(page)
    assert page.button(key="decide-open-0")
    for decision in offered:
        assert page.button(key=f"decide-{decision}-0").label == label(f"decide_{decision}", "en")
    page.button(key="decide-keep_both-0").click().run()
    assert app.imports.jobs.decided == [(job, 0, "keep_both")]


def test_what_failed_is_tried_again(open_page: Open, app: FakeApp) -> None:
    ended(app, "https://example.org/a", "failed", "timeout", url="https://example.org/a", seconds=30)
    page, job = open_ended(open_page, app)
    app.imports.jobs.ends.clear()
    page.button(key="job-retry").click().run()
    run_to_the_end(app, job)
    assert label("count_added", "en", count=1) in words(page.run())


def test_a_choice_that_is_not_possible_any_more_is_said_so(
    open_page: Open, app: FakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(app, "https://example.org/a", "held", "gate_login", "add_anyway", "skip", seen="Sign in")
    page, _ = open_ended(open_page, app)

    def refuse(*given: object) -> None:
        raise StoreError("decision_unfit")

    monkeypatch.setattr(app.imports.jobs, "decide", refuse)
    page.button(key="decide-skip-0").click().run()
    assert not page.exception
    assert len(page.toast) == 1


def test_an_import_is_paused_and_goes_on(open_page: Open, app: FakeApp) -> None:
    page = open_page("add", job=app.imports.add_urls(["https://example.org/a"], library="main"))
    page.button(key="job-pause").click().run()
    assert app.imports.jobs_by_id["job1"].state == "paused"
    assert label("job_paused", "en") in "".join(str(bar.proto.text) for bar in page.get("progress"))
    assert app.imports.jobs_by_id["job1"].done == 0
    page.button(key="job-resume").click().run()
    run_to_the_end(app, "job1")
    assert app.imports.jobs_by_id["job1"].done == 1


def test_pace_and_time_left_are_told(open_page: Open, app: FakeApp, language: str) -> None:
    job = app.imports.add_urls([f"https://example.org/{n}" for n in range(300)], library="main")
    app.imports.jobs_by_id[job].rate, app.imports.jobs_by_id[job].seconds_left = 84.0, 200.0
    page = open_page("add", language, job=job)
    told = "".join(str(bar.proto.text) for bar in page.get("progress"))
    assert label("job_rate", language, rate="84") in told
    assert label("job_left_minutes", language, count=3) in told


def test_a_long_import_lists_items_for_review_first_in_pages(open_page: Open, app: FakeApp) -> None:
    ended(app, "https://example.org/401", "failed", "timeout", url="https://example.org/401", seconds=30)
    ended(app, "https://example.org/402", "held", "gate_login", "add_anyway", "skip", seen="Sign in")
    page, job = open_ended(open_page, app, *(f"https://example.org/{n}" for n in range(500)))

    def rows() -> list[str]:
        return [row.value for row in page.markdown if "example.org/" in row.value and "badge" in row.value]

    failed, held, *others = rows()
    assert len(others) == PAGE  # the saved ones are collapsed below
    assert "/401" in failed and "/402" in held
    page.button_group(key=f"job-filter-{job}").set_value("held").run()
    assert len(rows()) == 1 + PAGE


def test_the_limit_that_is_shown_is_the_servers(open_page: Open) -> None:
    for name in ("library", "add"):
        page = open_page(name)
        assert {one.proto.max_upload_size_mb for one in page.file_uploader} == {st.get_option("server.maxUploadSize")}
    assert "200 files and 200 MB at once" in words(page)


def test_too_many_imports_are_refused_and_what_was_pasted_stays(
    open_page: Open, app: FakeApp, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    def full(*_: object, **__: object) -> str:
        raise StoreError("too_many_jobs", most=50)

    monkeypatch.setattr(app.imports, "add_urls", full)
    page = open_page("add", language)
    page.text_area[0].set_value("https://example.org/a").run()
    page.button(key="add-links").click().run()
    assert say(Notice("too_many_jobs", {"most": 50}), language) in words(page)
    assert page.text_area[0].value == "https://example.org/a"


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


def test_pages_found_on_the_web_are_chosen_and_added(open_page: Open, app: FakeApp, language: str) -> None:
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
    (job,) = app.imports.jobs_by_id.values()
    assert [item.source for item in job.items] == [tea.url]


def test_a_search_that_fails_or_finds_nothing_says_so(open_page: Open, app: FakeApp) -> None:
    app.imports.web_search = Searching()
    page = open_page("add")
    for asked, said in (("down", "reach the search service SearXNG"), ("tea", label("web_none", "en"))):
        page.text_input(key="web-asked").set_value(asked)
        page.button(key="web-go").click().run()
        assert said in words(page)


def test_a_link_in_the_address_is_added_by_a_click_alone(open_page: Open, app: FakeApp, language: str) -> None:
    page = open_page(
        "add", language, add="https://example.org/one", add_text="See javascript:alert(1) www.example.org/two"
    )
    (box,) = [one for one in page.text_area if (one.key or "").startswith("pasted-")]
    assert (box.value or "").split() == find_urls("https://example.org/one www.example.org/two")[0]
    assert label("add_handed", language) in words(page)
    assert not app.imports.jobs_by_id
    page.button(key="add-links").click().run()
    assert len(app.imports.jobs_by_id) == 1
    assert not {"add", "add_text"} & {*page.query_params}
