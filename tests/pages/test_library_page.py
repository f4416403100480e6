import pytest
from streamlit.testing.v1 import AppTest

from rag.ui.strings import label
from tests.pages.conftest import Open, words
from tests.support.fake_app import FakeApp

BOTH = pytest.mark.parametrize("language", ["en", "zh"])


def select(page: AppTest, row: int) -> None:
    """Select a row of the page's table."""
    selection = {"selection": {"rows": [row], "columns": [], "cells": []}}
    page.session_state[page.dataframe[0].key] = selection
    page.run()


@BOTH
def test_an_empty_library_says_what_to_do_next(open_page: Open, language: str) -> None:
    page = open_page("library", language)
    assert not page.exception
    assert label("library_empty_title", language) in words(page)


@BOTH
def test_the_table_lists_the_pages(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    page = open_page("library", language)
    assert not page.exception
    table = page.dataframe[0].value
    assert list(table["title"]) == ["Keeping a lighthouse", "灯塔的看守"]
    assert list(table["language"]) == [label("language_en", language), label("language_zh", language)]


def test_the_filter_narrows_the_table(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("library")
    page.text_input(key="library-filter").set_value("灯塔").run()
    assert list(page.dataframe[0].value["title"]) == ["灯塔的看守"]
    page.text_input(key="library-filter").set_value("nowhere").run()
    assert "nowhere" in words(page)
    assert not page.dataframe


@BOTH
def test_all_pages_go_only_after_a_confirmation(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
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
    assert label("library_empty_title", language) in words(page)


@BOTH
def test_one_page_goes_after_a_confirmation(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    page = open_page("library", language)
    select(page, 0)
    page.button(key="page-remove").click().run()
    assert len(app.library("main").pages()) == 2
    page.button(key="page-remove").click()
    page.button(key="page-remove-go").click().run()
    assert [left.title for left in app.library("main").pages()] == ["灯塔的看守"]


@BOTH
def test_a_row_opens_its_text_and_chunks(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    page = open_page("library", language)
    select(page, 1)
    assert not page.exception
    shown = words(page)
    assert "看守的一天从黄昏开始。" in shown
    assert label("page_chunk", language, number=1) in shown
