"""Sources as users recognise them."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from rag.evaluation.metrics import METRICS
from rag.ui.chat.filters import strategy_hint
from rag.ui.kit.markdown import JOINER
from rag.ui.kit.parts import metric_name, short_source, site_of, strategy_name
from tests.support.odd_addresses import ODD_ADDRESSES


@pytest.mark.parametrize(
    ("source", "short", "site"),
    [
        ("https://a.example/b%20c/?q=1", "a.example/b c?q=1", "a.example"),
        ("file:///notes%20one.md", "notes one.md", "notes one.md"),
        ("http://[::1/x", "http://[::1/x", "http://[::1/x"),
        ("a.txt", "a.txt", "a.txt"),
    ],
)
def test_short_names(source: str, short: str, site: str) -> None:
    assert (short_source(source), site_of(source)) == (short, site)


def test_every_metric_has_a_name_for_the_reader() -> None:
    as_they_are = {name for name in METRICS if metric_name(name, "en") == name}
    assert as_they_are == {"MRR@10", "nDCG@10"} and not any("_" in metric_name(name, "zh") for name in METRICS)


@pytest.mark.parametrize("url", ODD_ADDRESSES)
def test_an_address_that_is_none_is_shown_nevertheless(url: str) -> None:
    assert short_source(url) or not url or url.startswith("file:")
    assert site_of(url) or not url or url.startswith("file:")


def test_no_cell_of_a_table_begins_as_a_formula() -> None:
    def script() -> None:
        from rag.ui.kit.parts import draw_table

        draw_table([{"a": "=1+1", "b": -1, "c": "-1.5", "d": "+0.031"}, {"a": "@x", "b": 2, "c": "-x", "d": "plain"}])

    (table,) = AppTest.from_function(script, default_timeout=60).run().dataframe
    assert [*table.value["a"], *table.value["c"]] == [f"{JOINER}=1+1", f"{JOINER}@x", "-1.5", f"{JOINER}-x"]
    assert [*table.value["b"], *table.value["d"]] == [-1, 2, "+0.031", "plain"]


def test_the_strategy_with_a_reranker_says_whether_one_runs() -> None:
    assert strategy_name("rerank", "en") == "Reranked"
    assert strategy_hint("rerank", "en", "judge_m") == "judge\\_m reorders the candidates"
    assert strategy_name("rerank", "en", reranks=False) == "Standard (no reranker)"
    assert "no reranker" in strategy_hint("rerank", "en")
    assert strategy_name("mmr", "en", reranks=False) == strategy_name("mmr", "en")
