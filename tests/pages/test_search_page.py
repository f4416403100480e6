from datetime import date

import pytest
from streamlit.testing.v1 import AppTest

from rag.app import App
from rag.locales import label
from rag.ui.chat.search_explanation import likelihood
from rag.ui.kit.parts import duration
from tests.pages.conftest import ASKED, Open, newest, opened, page_file, record_calls, words
from tests.support.lighthouse import LIGHTHOUSE


def searched(page: AppTest, query: str = ASKED["en"]) -> AppTest:
    page.text_input(key="search-text").set_value(query)
    return page.button(key="search-go").click().run()


def choosing(page: AppTest) -> AppTest:
    return opened(page, "filters")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_search_shows_passages_and_why_and_asks_nothing(open_page: Open, app: App, language: str) -> None:
    page = searched(open_page("search", language), ASKED[language])
    assert not page.exception
    shown, result = words(page), page.session_state["pagelight"].search.result
    assert label("search_count_one", language, time=duration(sum(result.ms.values()), language)) in shown
    assert label("why_left_out", language) in shown
    assert likelihood(result.answerable, language) in shown
    assert ":yellow-background[" in shown
    assert not any(result.passages[0].title in str(one.value) for one in page.caption)  # only in the card's title
    assert not app.conversations.conversations("main")
    assert page.query_params["find"] == ASKED[language]


def test_a_search_is_made_once_and_its_question_can_be_asked(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = record_calls(monkeypatch, app, "search")
    page = searched(open_page("search"))
    page.run()
    page.run()
    search.assert_called_once_with(ASKED["en"], library="main", chat=None)
    page.button(key="search-go").click().run()
    assert search.call_count == 2
    page.button(key="search-ask").click().run()
    assert newest(app).question == ASKED["en"]


def test_a_search_in_the_address_is_made(open_page: Open) -> None:
    page = open_page("search", find="lamp")
    assert page.session_state["pagelight"].search.question == "lamp"


def test_each_of_two_searches_in_a_row_is_made(open_page: Open) -> None:
    page = searched(open_page("search"))
    searched(page, "lamp")
    assert page.text_input(key="search-text").value == page.session_state["pagelight"].search.question == "lamp"


def test_an_empty_library_says_so(open_page: Open, app: App, language: str) -> None:
    app.clear_library("main")
    page = open_page("search", language)
    assert not page.exception
    assert label("search_empty", language) in words(page)


def test_nothing_found_is_said(open_page: Open, app: App, language: str) -> None:
    app.remove_pages("main", [LIGHTHOUSE["en"].url_hash])
    page = searched(open_page("search", language), "lamp")
    assert label("search_found_none", language) in words(page)


def test_filters_reach_the_search_and_the_question(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    search = record_calls(monkeypatch, app, "search")
    page = choosing(open_page("search", language))
    assert not page.exception
    page.multiselect(key="filter-pages").set_value([LIGHTHOUSE["en"].url_hash])
    page.multiselect(key="filter-languages").set_value(["en"])
    page.text_input(key="filter-section").set_value(" The lamp ")
    page.date_input(key="filter-since").set_value(date(2026, 3, 1))
    page.selectbox(key="filter-strategy").set_value("keyword")
    choosing(page)
    searched(page, "lamp")
    made = search.call_args.kwargs
    assert made["strategy"] == "keyword"
    assert made["filters"].pages == (LIGHTHOUSE["en"].url_hash,)
    assert made["filters"].languages == ("en",)
    assert made["filters"].sections == ("The lamp",)
    assert made["filters"].since.startswith("2026-03-01T00:00:00")
    page.switch_page(page_file("chat")).run()
    assert "Keeping a lighthouse" in words(page)
    page.chat_input[0].set_value(ASKED["en"]).run()
    question = app.conversations.question(newest(app).id)
    assert (question.options.strategy, question.scope) == ("keyword", made["filters"])


def test_a_chip_takes_its_filter_away(open_page: Open) -> None:
    page = choosing(open_page("search"))
    page.multiselect(key="filter-languages").set_value(["en", "zh"])
    choosing(page).button(key="chip-0").click()
    assert choosing(page).multiselect(key="filter-languages").value == ["zh"]
    page.button(key="chip-0").click()
    assert choosing(page).multiselect(key="filter-languages").value == []
    assert not [button for button in page.button if (button.key or "").startswith("chip")]


def test_the_standard_strategy_is_no_choice(open_page: Open) -> None:
    page = choosing(open_page("search"))
    select = page.selectbox(key="filter-strategy")
    standard = select.value
    select.set_value("dense")
    choosing(page).selectbox(key="filter-strategy").set_value(standard)
    choosing(page)
    assert page.session_state["pagelight"].scope.strategy == ""


def test_another_library_has_its_own_filters(open_page: Open, app: App) -> None:
    app.libraries.create("second")
    page = choosing(open_page("search"))
    page.multiselect(key="filter-languages").set_value(["en"])
    assert choosing(page).session_state["pagelight"].scope.filter_count == 1
    page.selectbox(key="library-picker-main").set_value("second").run()
    assert page.session_state["pagelight"].scope.filter_count == 0
