from __future__ import annotations

from decimal import Decimal

import pytest

from rag.quantities.values import Measure, find_compound_unit, find_measures, load_currencies


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("km", "公里"),
        ("metres", "公尺"),
        ("m2", "square metres"),
        ("平方米", "m2"),
        ("km/h", "kilometres per hour"),
        ("公里/小时", "公里每小时"),
        ("% ".strip(), "percent"),
        ("volts", "V"),
        ("伏特", "V"),
        ("years", "年"),
        ("个百分点", "percentage points"),
        ("KG", "kg"),
        ("mcg", "\u03bcg"),
        ("Mbps", "megabits/second"),
        ("US dollars", "US$"),
        ("美元", "USD"),
    ],
)
def test_names_of_one_unit(name: str, other: str) -> None:
    assert find_measures(name)
    assert find_measures(name)[0] == find_measures(other)[0]


@pytest.mark.parametrize(
    ("name", "of", "times"),
    [("GW", "W", "1e9"), ("mA", "A", "0.001"), ("MHz", "Hz", "1e6"), ("‰", "%", "0.1"), ("decades", "years", "10")],
)
def test_prefixes_and_multiples(name: str, of: str, times: str) -> None:
    ((one, *_), (base, *_)) = find_measures(name), find_measures(of)
    assert one.kind == base.kind
    assert one.size == base.size * Decimal(times)


def test_a_name_may_stand_for_several() -> None:
    kinds = {measure.kind for measure in find_measures("pounds")}
    assert {"GBP", (0, 1, 0, 0, 0)} <= kinds
    assert {"USD", "AUD"} <= load_currencies()["$"]
    assert load_currencies()["A$"] == {"AUD"}
    assert load_currencies()["¥"] == {"CNY", "JPY"}
    assert "USD" not in load_currencies()["元"]


@pytest.mark.parametrize("name", ["people", "all", "top", "to", "分", "M", ""])
def test_what_is_no_unit(name: str) -> None:
    assert find_measures(name) == ()


def test_a_quotient_of_a_currency_is_of_its_own_kind() -> None:
    (measure,) = find_measures("€/kg")
    assert measure == Measure("EUR/(0, 1, 0, 0, 0)")


def test_units_of_the_calculator() -> None:
    unit = find_compound_unit("km/h")
    assert unit
    assert unit.symbol == "km/h"
    assert unit.size.dimension == (1, 0, -1, 0, 0)
    assert find_compound_unit("cubic furlongs") is None
