from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rag.types import Page
from rag.ui.library.page_list import Age, PageFilter, Sort, age_of, filter_pages, state_of
from tests.support.lighthouse import make_page

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def page(number: int, days: float, **fields: object) -> Page:
    """Return a page that was added `days` days ago."""
    added = (NOW - timedelta(days=days)).isoformat()
    made = make_page(number, f"Page {number}", "text " * number, "en")
    return replace(made, added_at=added, updated_at=added, **fields)  # type: ignore[arg-type]


PAGES = [
    page(1, 0.5, title="Zinc"),
    page(2, 3, site="other.example", language="zh", aliases=("https://other.example/alias",)),
    page(3, 20, title="apples", checked_at=(NOW - timedelta(days=1)).isoformat()),
    page(4, 90, status="gone"),
]


def numbers(criteria: PageFilter, **how: object) -> list[int]:
    shown = filter_pages(PAGES, criteria, set(), now=NOW, **how)  # type: ignore[arg-type]
    return [int(one.url_hash, 16) for one in shown.pages]


@pytest.mark.parametrize(
    ("words", "found"), [("ZINC", [1]), ("page 2", [2]), ("alias", [2]), ("other 2", [2]), ("nowhere", [])]
)
def test_words_are_found_in_title_site_and_addresses(words: str, found: list[int]) -> None:
    assert numbers(PageFilter(words)) == found


@pytest.mark.parametrize(
    ("age", "found"),
    [("day", [1]), ("week", [1, 2]), ("month", [1, 2, 3]), ("older", [4]), ("unchecked", [4]), ("any", [1, 2, 3, 4])],
)
def test_an_age_keeps_the_pages_within_it(age: Age, found: list[int]) -> None:
    assert numbers(PageFilter(age=age)) == found


def test_a_page_of_a_month_to_the_minute_is_of_one_age() -> None:
    ages: tuple[Age, ...] = ("month", "older")
    assert [len(filter_pages([page(1, 30)], PageFilter(age=age), set(), now=NOW).pages) for age in ages] == [1, 0]


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("newest", [1, 2, 3, 4]),
        ("oldest", [4, 3, 2, 1]),
        ("title", [3, 2, 4, 1]),
        ("longest", [4, 3, 2, 1]),
        ("checked", [4, 2, 3, 1]),
        ("site", [3, 4, 1, 2]),
    ],
)
def test_pages_come_in_the_order_that_was_chosen(sort: Sort, found: list[int]) -> None:
    assert numbers(PageFilter(sort=sort)) == found


def test_site_and_language_are_both_asked() -> None:
    assert numbers(PageFilter(site="other.example")) == [2]
    assert numbers(PageFilter(language="en", site="other.example")) == []


def test_pages_that_the_texts_named_come_best_first() -> None:
    best = [PAGES[2].url_hash, PAGES[0].url_hash]
    assert numbers(PageFilter("oil", in_text=True, sort="newest"), matches=best) == [3, 1]
    assert numbers(PageFilter("", in_text=True)) == [1, 2, 3, 4]


def test_states_are_counted_among_what_fits_all_else() -> None:
    changed = replace(PAGES[1], version=2)
    shown = filter_pages([PAGES[0], changed, PAGES[3]], PageFilter(state="changed"), {PAGES[0].url_hash}, now=NOW)
    assert shown.counts == {"all": 3, "changed": 1, "gone": 1, "left_out": 1}
    assert shown.pages == [changed]


def test_a_page_is_gone_before_it_is_left_out_or_changed() -> None:
    gone = replace(PAGES[0], status="gone", version=2)
    assert state_of(gone, {gone.url_hash}, NOW) == "gone"
    assert state_of(replace(gone, status="active"), {gone.url_hash}, NOW) == "left_out"
    assert state_of(replace(gone, status="active"), set(), NOW) == "changed"
    long_ago = replace(gone, status="active", updated_at=(NOW - timedelta(days=8)).isoformat())
    assert state_of(long_ago, set(), NOW) == "active"


def test_a_subject_keeps_its_pages() -> None:
    subject = {PAGES[1].url_hash, PAGES[3].url_hash}
    assert numbers(PageFilter(subject="boats · piers"), within=subject) == [2, 4]
    assert numbers(PageFilter(subject="boats · piers", age="week"), within=subject) == [2]


@pytest.mark.parametrize(("number", "age"), [(1, "day"), (2, "week"), (3, "month"), (4, "older")])
def test_a_page_has_the_narrowest_age_that_it_fits(number: int, age: Age) -> None:
    assert age_of(PAGES[number - 1], NOW) == age
