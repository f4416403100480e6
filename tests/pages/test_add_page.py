import pytest

from rag.ui.strings import label
from tests.pages.conftest import Open, words
from tests.support.fake_app import STAGES, FakeApp

BOTH = pytest.mark.parametrize("language", ["en", "zh"])


@BOTH
def test_links_are_found_in_what_is_pasted(open_page: Open, language: str) -> None:
    page = open_page("add", language)
    page.text_area[0].set_value("See https://example.org/a and <https://example.org/b>.").run()
    assert not page.exception
    assert label("add_found", language, count=2) in words(page)
    page.text_area[0].set_value("nothing here").run()
    assert label("add_found_none", language) in words(page)


def test_more_than_two_hundred_are_left_out(open_page: Open) -> None:
    page = open_page("add")
    page.text_area[0].set_value(" ".join(f"https://example.org/{n}" for n in range(203))).run()
    assert label("add_dropped", "en", count=3, limit=200) in words(page)


@BOTH
def test_an_import_moves_through_its_stages_to_its_end(open_page: Open, app: FakeApp, language: str) -> None:
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


def test_an_import_survives_a_reload(open_page: Open, app: FakeApp) -> None:
    job = app.imports.add_urls(["https://example.org/a"], library="main")
    page = open_page("add", job=job)
    assert "example.org/a" in words(page)


def test_an_import_can_be_stopped(open_page: Open, app: FakeApp) -> None:
    page = open_page("add", job=app.imports.add_urls(["https://example.org/a"], library="main"))
    page.button(key="job-cancel").click().run()
    assert app.imports.jobs_by_id["job1"].state == "cancelled"


def test_earlier_imports_can_be_opened(open_page: Open, app: FakeApp) -> None:
    app.imports.add_urls(["https://example.org/a"], library="main")
    page = open_page("add")
    page.button(key="job-job1").click().run()
    assert page.query_params["job"] == "job1"
    assert "example.org/a" in words(page)


def test_files_are_handed_on(open_page: Open, app: FakeApp) -> None:
    page = open_page("add")
    page.file_uploader[0].set_value([("notes.md", b"# Notes", "text/markdown")]).run()
    page.button(key="add-files").click().run()
    assert [item.source for item in app.imports.jobs_by_id["job1"].items] == ["notes.md"]


@BOTH
def test_the_sample_pages_can_be_loaded(open_page: Open, app: FakeApp, language: str) -> None:
    page = open_page("add", language)
    page.button(key="samples").click().run()
    assert len(app.imports.jobs_by_id) == 1
    assert not page.exception


@BOTH
def test_the_chunker_is_chosen_for_every_way_of_adding(open_page: Open, app: FakeApp, language: str) -> None:
    page = open_page("add", language)
    assert page.selectbox(key="chunker").value == app.settings.chunker
    assert label("add_advanced", language) in words(page)
    page.selectbox(key="chunker").select("markdown").run()
    page.text_area[0].set_value("https://example.org/a").run()
    page.button(key="add-links").click().run()
    page.selectbox(key="chunker").select("parent").run()
    page.file_uploader[0].set_value([("notes.md", b"# Notes", "text/markdown")]).run()
    page.button(key="add-files").click().run()
    page.button(key="samples").click().run()
    assert not page.exception
    assert [job.chunker for job in app.imports.jobs_by_id.values()] == ["markdown", "parent", "parent"]
