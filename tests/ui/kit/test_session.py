from datetime import date

from rag.store.qdrant.records import scope_filter
from rag.ui.chat.filters import chips_of
from rag.ui.kit.session import Scope

FULL = Scope(("a" * 32, "b" * 32), ("x.example",), ("en",), "Prices", date(2026, 3, 1), date(2026, 3, 5), "keyword")


def test_nothing_chosen_leaves_everything_to_the_defaults() -> None:
    assert Scope().options() == {}
    assert Scope(strategy="dense").options() == {"strategy": "dense"}


def test_days_are_the_readers() -> None:
    filters = FULL.filters(minutes_behind=-480)
    assert filters is not None
    assert filters.since == "2026-03-01T00:00:00+08:00"
    assert filters.until == "2026-03-05T23:59:59+08:00"
    assert filters.sections == ("Prices",)
    assert scope_filter(filters) is not None


def test_a_filter_or_one_of_its_values_can_be_taken_away() -> None:
    assert FULL.without("pages", "a" * 32).pages == ("b" * 32,)
    assert FULL.without("since").since is None
    assert FULL.without("strategy").strategy == ""
    assert FULL.filter_count == 6
    assert FULL.without_filters() == Scope(strategy="keyword")


def test_each_choice_is_a_chip() -> None:
    chips = chips_of(FULL, {"a" * 32: "A page"}, "en")
    assert [chip.text for chip in chips] == [
        "A page",
        "bbbbbbbb",
        "x.example",
        "English",
        "Heading: Prices",
        "From 2026-03-01",
        "To 2026-03-05",
        "Strategy: Keywords only",
    ]
    left = FULL
    for chip in chips:
        left = left.without(chip.name, chip.value)
    assert left == Scope()
