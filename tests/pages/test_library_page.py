import re
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from unittest.mock import Mock, call

import pytest
from streamlit.testing.v1 import AppTest

from rag.app import App
from rag.app.moves import LibraryMove
from rag.locales import label
from rag.models.model_files import MINILM
from rag.retrieval.page_map import MIN_PAGES, PageMap
from rag.store.qdrant.records import LIBRARIES, library_id
from rag.store.values import now
from rag.types import IngestResult, Notice
from tests.pages.conftest import Open, end_job, record_calls, run_imports, words
from tests.support.apps import finish
from tests.support.lighthouse import LIGHTHOUSE
from tests.support.odd_addresses import ODD_ADDRESSES
from tests.support.storing import store_pages
from tests.support.waiting import until

EN, ZH = (page.url_hash for page in LIGHTHOUSE.values())


def choose(page: AppTest, *, ticked: tuple[int, ...] = (), opened: int | None = None) -> None:
    """Select rows of the page's table, or click a cell of one."""
    cells = [] if opened is None else [[opened, "title"]]
    selection = {"selection": {"rows": list(ticked), "columns": [], "cells": cells}}
    page.session_state[page.dataframe[0].key] = selection
    page.run()


def titles(page: AppTest) -> list[str]:
    return list(page.dataframe[0].value["title"])


def drawn_html(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


def test_the_table_lists_the_pages(open_page: Open, language: str) -> None:
    page = open_page("library", language)
    assert not page.exception
    table = page.dataframe[0].value
    assert sorted(table["title"]) == ["Keeping a lighthouse", "灯塔的看守"]
    assert set(table["language"]) == {label("language_en", language), label("language_zh", language)}
    assert set(table["state"]) == {label("row_active", language)}
    assert list(page.dataframe[0].proto.column_order) == ["title", "site", "language"]  # others are the same


def test_no_stored_address_keeps_the_page_from_being_drawn(open_page: Open, app: App) -> None:
    urls, first = [url for url in ODD_ADDRESSES if "\ud800" not in url], LIGHTHOUSE["en"]  # surrogates are never stored
    pages = [replace(first, url=url, aliases=(url,), site=url, url_hash=f"{n:032x}") for n, url in enumerate(urls)]
    app.clear_library("main")
    store_pages(app.imports.ingestor("main"), *pages)
    page = open_page("library")
    assert not page.exception and not page.error and len(page.dataframe[0].value) == len(urls)
    for place in range(len(urls)):
        choose(page, opened=place)
        assert not page.exception and not page.error and not page.dataframe, page.query_params["page"]
        page.button(key="page-back").click().run()


def test_words_narrow_the_table_by_title_or_text(open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    search = record_calls(monkeypatch, app, "search")
    page = open_page("library")
    page.text_input(key="library-words").set_value("nowhere").run()
    assert "nowhere" in words(page)
    assert not page.dataframe
    page.text_input(key="library-words").set_value("灯塔").run()
    assert titles(page) == ["灯塔的看守"]
    page.toggle(key="library-in_text").set_value(True).run()
    box = page.text_input(key="library-words")
    assert box.value == "灯塔"
    assert not box.proto.set_value  # the browser keeps its value
    choose(page, opened=0)
    page.button(key="page-back").click().run()
    assert page.text_input(key="library-words").value == "灯塔"
    page.text_input(key="library-words").set_value("发条").run()
    assert titles(page) == ["灯塔的看守"]
    assert search.call_args == call("发条", library="main", strategy="keyword", fetch_k=300)
    searches = search.call_count
    page.run()
    assert search.call_count == searches


def test_a_state_shows_its_pages_alone(open_page: Open, app: App) -> None:
    app.library("main").update_record(replace(LIGHTHOUSE["en"], status="gone"))
    page = open_page("library")
    page.button_group(key="library-state").set_value("gone").run()
    assert titles(page) == ["Keeping a lighthouse"]
    assert list(page.dataframe[0].value["state"]) == [label("row_gone", "en")]


def test_a_click_opens_the_text_of_a_page_and_filters_outlive_the_visit(open_page: Open) -> None:
    page = open_page("library")
    page.selectbox(key="library-language").select("zh").run()
    choose(page, opened=0)
    assert not page.exception
    assert page.query_params["page"] == ZH and "看守的一天从黄昏开始。" in words(page)
    page.button(key="page-back").click().run()
    assert titles(page) == ["灯塔的看守"]
    page.button(key="page-filter-clear").click().run()
    assert len(titles(page)) == 2


def test_all_pages_go_only_after_a_confirmation(open_page: Open, app: App, language: str) -> None:
    page = open_page("library", language)
    page.button(key="clear").click().run()
    assert page.button(key="clear-go").disabled
    assert len(app.library("main").pages()) == 2
    # The test runner always runs the whole page, and the dialog is drawn where its button is clicked.
    page.checkbox(key="clear-sure").check()
    page.button(key="clear").click().run()
    page.button(key="clear").click()
    page.button(key="clear-go").click().run()
    assert app.library("main").pages() == []
    assert not page.exception and label("empty_title", language) in words(page)


def test_ticked_pages_go_after_a_confirmation(open_page: Open, app: App, language: str) -> None:
    run_imports(app)
    page = open_page("library", language)
    place = titles(page).index("Keeping a lighthouse")
    choose(page, ticked=(place,))
    page.button(key="bulk-remove").click().run()
    assert len(app.library("main").pages()) == 2
    page.button(key="bulk-remove").click()
    page.button(key="bulk-remove-go").click().run()
    assert [left.title for left in app.library("main").pages()] == ["灯塔的看守"]
    assert label("pages_removed_one", language, title="Keeping a lighthouse") in words(page)
    page.button(key="removal-undo-go").click().run()
    assert label("pages_removed_one", language, title="Keeping a lighthouse") not in words(page)
    finish(app, app.imports.jobs.jobs("main")[0].id)
    page.run()
    assert len(app.library("main").pages()) == 2
    assert label("pages_restored_one", language) in words(page)
    assert label("count_added", language, count=1) not in words(page)


def test_ticked_pages_are_left_out_let_in_and_looked_at_again(open_page: Open, app: App) -> None:
    page = open_page("library")
    choose(page, ticked=(0, 1))
    page.button(key="bulk-leave-out").click().run()
    assert len(app.library("main").excluded_pages()) == 2
    choose(page, ticked=(0,))
    page.button(key="bulk-let-in").click().run()
    assert len(app.library("main").excluded_pages()) == 1
    choose(page, ticked=(0, 1))
    page.button(key="bulk-recheck").click().run()
    (job,) = app.imports.jobs.jobs("main")
    assert (job.kind, set(job.options["url_hashes"])) == ("recheck", {EN, ZH})
    assert label("job_kind_recheck", "en") in words(page)
    unchanged = [
        IngestResult(one.url, one.url, one.url_hash, "unchanged", Notice("page_unchanged"))
        for one in LIGHTHOUSE.values()
    ]
    end_job(app, job.id, *unchanged)
    assert "2 unchanged" in words(page.run())
    page.button(key="follow-close").click().run()
    assert "job" not in page.query_params


def test_chunks_are_marked_where_they_lie(open_page: Open, app: App, language: str) -> None:
    page = open_page("library", language, page=EN)
    page.button_group(key="page-view").set_value("chunks").run()
    assert not page.exception
    shown = drawn_html(page)
    chunk = app.library("main").chunks(EN)[1]
    span = label("page_chunk_span", language, start=f"{chunk.start:,}", end=f"{chunk.end:,}")
    before, mark, after = shown.partition(f"<b>2</b> {span}")
    assert mark and "began at dusk" in before and "The lamp was wound" in after


def test_a_changed_page_shows_what_changed(open_page: Open, app: App, language: str) -> None:
    before = LIGHTHOUSE["en"]
    changed = before.text.replace("four hours", "six hours")
    store_pages(app.imports.ingestor("main"), replace(before, text=changed))
    page = open_page("library", language)
    assert label("row_changed", language) in set(page.dataframe[0].value["state"])
    assert "changed" in page.dataframe[0].proto.column_order
    page = open_page("library", language, page=EN)
    page.button_group(key="page-view").set_value("versions").run()
    assert not page.exception
    assert "<del>four</del><ins>six</ins>" in drawn_html(page)


def test_a_summary_is_made_with_a_click_and_gone_with_the_text(open_page: Open, app: App, language: str) -> None:
    own = LIGHTHOUSE[language]
    page = open_page("library", language, page=own.url_hash)
    page.button_group(key="page-view").set_value("summary").run()
    assert label("summary_none", language) in words(page)
    page.button(key="summary-make").click().run()
    until(lambda: not app.count_running())
    page.run()
    assert not page.exception
    shown = label("summary_rules", language)
    assert shown in words(page) and "summary-make" not in {button.key for button in page.button}
    assert len([one for one in page.markdown if "[**1" in one.value]) == 1, "a chip for the mark"
    store_pages(app.imports.ingestor("main"), replace(own, text=f"{own.text} More."))
    assert shown not in words(page.run())


def test_a_page_tells_what_is_known_of_it(open_page: Open, app: App) -> None:
    app.remove_pages("main", [EN])
    stored = replace(
        LIGHTHOUSE["en"],
        author="Ida [Lewis](https://evil.example)",
        published="2024-03-05",
        checked_at="2026-03-07T10:00:00+00:00",
        aliases=("https://lighthouse.example/one",),
        failures=2,
    )
    store_pages(app.imports.ingestor("main"), stored)
    app.library("main").update_record(stored)
    page = open_page("library", page=EN)
    shown = words(page)
    assert "By Ida [Lewis]" in shown
    assert "Published 2024-03-05" in shown
    assert "Last checked 2026-03-07 10:00" in shown
    assert label("page_failures", "en", count=2) in shown
    assert "lighthouse.example/one" in shown
    assert not any("](https://evil" in str(element.value) for element in page.caption)


def test_a_page_that_is_not_there_leads_back_to_the_list(open_page: Open) -> None:
    page = open_page("library", page="f" * 32)
    assert "page" not in page.query_params
    assert len(titles(page)) == 2
    assert [toast.value for toast in page.toast] == [label("page_not_here", "en")]


def test_a_schedule_is_set_and_taken_back(open_page: Open, app: App, language: str) -> None:
    page = open_page("library", language)
    page.selectbox(key="schedule-site").select("lighthouse.example")
    page.number_input(key="schedule-every-library").set_value(2)
    page.button(key="schedule-set-library").click().run()
    assert not page.exception
    (view,) = app.imports.schedules.schedules("main")
    assert (view.schedule.site, view.schedule.every_hours) == ("lighthouse.example", 48)
    assert f"lighthouse.example** · {label('every_days', language, count=2)}" in words(page)
    page.button(key=f"schedule-remove-{view.schedule.id}").click().run()
    assert not app.imports.schedules.schedules("main")


def test_one_page_has_a_schedule_of_its_own(open_page: Open, app: App) -> None:
    page = open_page("library", page=EN)
    page.selectbox(key="schedule-unit-page").select("hours")
    page.number_input(key="schedule-every-page").set_value(12)
    page.button(key="schedule-set-page").click().run()
    (view,) = app.imports.schedules.schedules("main")
    assert (view.schedule.url_hashes, view.schedule.every_hours) == ((EN,), 12)


def test_the_library_becomes_a_file(open_page: Open, app: App, language: str) -> None:
    page = open_page("library", language)
    page.button(key="export-go").click().run()
    assert label("transfer_export", language, library="main") in words(page)
    read_export(app, page.query_params["transfer"])
    page.run()
    assert not page.exception
    assert page.get("download_button")
    page.button(key="transfer-close").click().run()
    assert "transfer" not in page.query_params


def read_export(app: App, transfer: str) -> bytes:
    """Return the file of an export once it has ended."""
    found = until(lambda: (now := app.transfers.transfer(transfer)) and now.state == "done" and now)
    content: bytes = found.path.read_bytes()
    return content


def test_a_file_becomes_a_library(open_page: Open, app: App) -> None:
    content = read_export(app, app.transfers.export("main"))
    page = open_page("library")
    page.text_input(key="import-name-0").set_value("second")
    uploader = next(one for one in page.file_uploader if one.key == "import-file-0")
    uploader.set_value([("main.pagelight", content, "application/zip")]).run()
    page.button(key="import-go").click().run()
    until(lambda: app.transfers.transfer(page.query_params["transfer"]).state == "done")
    assert not page.run().exception
    assert sorted(one.title for one in app.library("second").pages()) == ["Keeping a lighthouse", "灯塔的看守"]


def test_a_library_is_renamed(open_page: Open, language: str) -> None:
    page = open_page("library", language)
    page.text_input(key="rename-title-main").set_value("Our Wiki")
    page.button(key="library-rename").click().run()
    assert page.selectbox(key="library-picker-main").options == ["Our Wiki"]
    assert "library-remove" not in {button.key for button in page.button}


def test_a_library_is_removed_after_a_question_and_brought_back(open_page: Open, app: App, language: str) -> None:
    name = app.libraries.create("My Notes")
    page = open_page("library", language, library=name)
    page.button(key="library-remove").click().run()
    assert app.libraries.has(name)
    page.button(key="library-remove").click()
    page.button(key="library-remove-go").click().run()
    assert not app.libraries.has(name)
    assert page.selectbox(key="library-picker-main").options == ["main"]
    assert label("library_removed_done", language, title="My Notes") in [toast.value for toast in page.toast]
    page = open_page("library", language, library=name)  # an old link offers to restore it
    assert "My Notes" in words(page) and page.selectbox(key="library-picker-main").value == "main"
    page.button(key=f"restore-{name}").click().run()
    assert page.selectbox(key=f"library-picker-{name}").value == name
    assert app.libraries.title(name) == "My Notes"


@pytest.fixture
def page_map(app: App, monkeypatch: pytest.MonkeyPatch) -> PageMap:
    """Give the library a map with two subjects, the first of which is about the second of two pages."""
    found = PageMap({EN: (0.0, 1.0), ZH: (1.0, 0.25)}, ("看守 · 发条", "four · hours"), {EN: 1, ZH: 0})
    future: Future[PageMap] = Future()
    future.set_result(found)
    monkeypatch.setattr(app.page_maps, "get", lambda *_: future)
    monkeypatch.setattr(app.page_maps, "latest", lambda _: found)
    return found


def dots(page: AppTest) -> dict[str, str]:
    """Return the attributes of each dot on the map, by its title."""
    found = re.findall(r'<a class="dot([^>]*)aria-label="([^"]*)"', drawn_html(page))
    return {title: attributes for attributes, title in found}


@pytest.mark.usefixtures("page_map")
def test_the_map_has_a_dot_for_each_page_at_its_place(open_page: Open) -> None:
    page = open_page("library", view="map")
    found = dots(page)
    assert found.keys() == {"Keeping a lighthouse", "灯塔的看守"}
    assert "--n:1;left:4.00%;top:96.00%" in found["Keeping a lighthouse"]
    assert "--n:0;left:96.00%;top:27.00%" in found["灯塔的看守"]
    for scheme, groups in (("site", {"lighthouse.example", "灯塔.example"}), ("added", {label("age_older", "en")})):
        page.button_group(key="map-colours").set_value(scheme).run()
        assert set(re.findall(r"</i>([^<]*)</span>", drawn_html(page))) == groups
    page.text_input(key="library-words").set_value("灯塔").run()
    assert " aside" in dots(page)["Keeping a lighthouse"]
    assert " aside" not in dots(page)["灯塔的看守"]
    page.text_input(key="requested-page").set_value(EN).run()
    assert page.query_params["page"] == EN
    assert "Keeping a lighthouse" in words(page)


def test_a_link_to_a_subject_lists_its_pages_alone_and_an_unknown_one_all(open_page: Open, page_map: PageMap) -> None:
    page = open_page("library", subject=page_map.topics[0])
    assert titles(page) == ["灯塔的看守"]
    assert "subject" not in page.query_params
    page.button_group(key="library-subject").set_value(page_map.topics[1]).run()
    assert titles(page) == ["Keeping a lighthouse"]
    assert len(titles(open_page("library", subject="gone"))) == 2


def test_a_small_library_has_no_map(open_page: Open) -> None:
    assert label("map_too_few", "en", fewest=MIN_PAGES) in words(open_page("library", view="map"))


def test_a_library_of_another_model_moves_and_can_go_back(
    open_page: Open, app: App, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.app.libraries._CACHE_SECONDS", 0.0)  # records change without the app's knowledge
    moves, current = app.moves._moves, app.libraries.current_model()

    def change_record(**values: Any) -> None:
        app._client.set_payload(LIBRARIES, values, [library_id("main")])

    def start(library: str, model: str) -> LibraryMove:
        moves[library] = LibraryMove(library, model, total=8)
        return moves[library]

    monkeypatch.setattr(app.moves, "begin", begin := Mock(side_effect=start))
    change_record(model=MINILM)
    page = open_page("library", language)
    assert label("move_go", language, model=current) in words(page)
    page.button(key="move-go").click().run()
    begin.assert_called_once_with("main", current)
    for done in (0, 4, 8):
        moves["main"] = replace(moves["main"], done=done)
        assert label("move_title", language, model=current) in words(page.run())
        assert not {"move-go", "move-close"} & {button.key for button in page.button}
    moves["main"] = replace(moves["main"], state="done", asked=5, found=4)
    assert label("move_compared", language, found=4, asked=5) in words(page.run())
    page.button(key="move-close").click().run()
    assert label("move_done", language, model=current) not in words(page)
    change_record(model=current, previous_model=MINILM, moved_at=now())
    page.run()
    assert "move-go" not in [button.key for button in page.button]
    page.button(key="move-back").click().run()
    begin.assert_called_with("main", MINILM)
