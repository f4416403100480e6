"""Statements for machines, well formed and otherwise."""

from __future__ import annotations

import pytest

from rag.reading.extraction.main_text import find_unseen_passages
from rag.reading.extraction.metadata import Facts, read_facts, strip_tags, text_of
from rag.reading.extraction.tree import parse


def facts(html: str) -> Facts:
    return read_facts(parse(html))


def test_json_ld_nested_and_several() -> None:
    html = (
        '<script type="application/ld+json">{"@graph":[{"@type":["Product","Thing"],'
        '"offers":{"@type":"Offer"}}]}</script>'
        '<script type="application/LD+JSON; charset=utf-8">[{"@type":"FAQPage"}];</script><p>x'
    )
    assert facts(html).types == {"Product", "Thing", "Offer", "FAQPage"}


@pytest.mark.parametrize("source", ["", "{", "[" * 100_000, '{"a":', "nonsense", '"text"', "null"])
def test_broken_json_ld_says_nothing(source: str) -> None:
    assert facts(f'<script type="application/ld+json">{source}</script><p>x').things == []


def test_meta_and_title() -> None:
    found = facts(
        "<title>One\n two</title><meta property='OG:Type' content='product'><meta name=description content=Words>"
    )
    assert (found.title, found.descriptions) == ("One two", "Words")
    assert found.flags()[Facts.KINDS.index("shared_product")] == 1.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a &amp;lt; b", "a < b"),
        ("<p>One</p><p>two</p>", "One\ntwo"),
        (["", {"name": "x"}], "x"),
        (9.5, "9.5"),
        (True, ""),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert text_of(value) == text


def test_plain_text_has_no_markup() -> None:
    assert strip_tags("One<br>two &lt;b&gt;three&lt;/b&gt;") == "One\ntwo three"
    assert strip_tags("a<b") == "a<b"


FAQ = {
    "@type": "FAQPage",
    "mainEntity": [
        {"@type": "Question", "name": "Is it open?", "acceptedAnswer": {"text": "<p>Every day until six.</p>"}}
    ],
}


def test_only_what_the_page_does_not_show_is_taken() -> None:
    known = Facts(things=[FAQ["mainEntity"][0]])  # type: ignore[index, list-item]
    assert find_unseen_passages(known, "Opening hours") == ["**Is it open?**\n\nEvery day until six."]
    assert find_unseen_passages(known, "Is it open? Every day until six.") == []


def test_further_products_are_others() -> None:
    things = [{"@type": "Product", "description": f"A boat of oak with {n} pairs of oars."} for n in ("two", "four")]
    assert find_unseen_passages(Facts(things=things), "") == ["A boat of oak with two pairs of oars."]
