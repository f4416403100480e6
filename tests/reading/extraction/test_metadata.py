"""Authors and dates: declared before visible ones, the page's before those of its content; structured data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag.reading.extraction.main_text import find_unseen_passages
from rag.reading.extraction.metadata import (
    StructuredData,
    find_byline,
    find_iso_date,
    read_structured_data,
    strip_tags,
    to_text,
)
from rag.reading.extraction.tree import parse


def stated(thing: dict[str, Any]) -> str:
    return f"<script type='application/ld+json'>{json.dumps(thing)}</script>"


REVIEW = {"@type": "Review", "author": {"name": "A Customer"}, "datePublished": "2020-01-01"}


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (stated({"@type": "Article", "author": "Ada", "dateModified": "2024-03-06"}), ("Ada", "", "2024-03-06")),
        (stated({"@graph": [REVIEW, {"@type": "BlogPosting", "author": {"name": "Bo"}}]}), ("Bo", "", "")),
        (stated(REVIEW), ("", "", "")),
        ("<meta name='author' content='By Ada Lind'>", ("Ada Lind", "", "")),
        ("<meta property='article:author' content='https://social.example/ada'>", ("", "", "")),
        ("<meta property='article:published_time' content='2024-03-05'>", ("", "2024-03-05", "")),
        (
            "<div itemscope itemtype='https://schema.org/Article'><span itemprop='author' itemscope "
            "itemtype='https://schema.org/Person'><b itemprop='name'>Ada</b></span>"
            "<time itemprop='datePublished' datetime='2024-03-05'>5/3</time></div>",
            ("Ada", "2024-03-05", ""),
        ),
        (
            "<div itemprop='author' itemscope><a>Vader</a><i itemprop='name'>Vader</i><b>6,796</b>8 badges</div>",
            ("Vader", "", ""),
        ),
        (
            "<p>By <a rel='author' href='/ada'>Ada</a> <time datetime='2024-03-05'>today</time>",
            ("Ada", "2024-03-05", ""),
        ),
        (
            "<div class='post-meta'>发布于 2024年3月5日</div><div class='date'>更新：2024年3月7日</div>",
            ("", "2024-03-05", "2024-03-07"),
        ),
        ("<nav><time datetime='2024-03-05'>5/3</time></nav>", ("", "", "")),
        ("<p>In the story of 5 March 2024 nobody wrote anything.</p>", ("", "", "")),
    ],
)
def test_sources(html: str, found: tuple[str, str, str]) -> None:
    tree = parse(f"<html><body>{html}</body></html>")
    assert find_byline(read_structured_data(tree), tree) == found


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024-03-05", "2024-03-05"),
        ("2024-03-05T08:30:00Z", "2024-03-05T08:30:00+00:00"),
        ("2024-03-05T08:30:00.123+0800", "2024-03-05T08:30:00+08:00"),
        ("2024-03-05 08:30", "2024-03-05T08:30:00"),
        ("Tue, 05 Mar 2024 08:30:00 GMT", "2024-03-05T08:30:00+00:00"),
        ("发布时间：2024年3月5日 08:30", "2024-03-05"),
        ("二〇二四年三月二十一日", "2024-03-21"),
        ("2024/3/5", "2024-03-05"),
        ("2024.03.05", "2024-03-05"),
        ("20240305", "2024-03-05"),
        ("Posted on March 5th, 2024 by Ada", "2024-03-05"),
        ("5 Sept 2024", "2024-09-05"),
        ("03/05/2024", ""),
        ("2024-13-40", ""),
        ("2024年13月5日", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_forms(text: str, date: str) -> None:
    assert find_iso_date(text) == date


def facts(html: str) -> StructuredData:
    return read_structured_data(parse(html))


def test_json_ld_nested_and_several() -> None:
    html = (
        '<script type="application/ld+json">{"@graph":[{"@type":["Product","Thing"],'
        '"offers":{"@type":"Offer"}}]}</script>'
        '<script type="application/LD+JSON; charset=utf-8">[{"@type":"FAQPage"}];</script><p>x'
    )
    assert facts(html).types == {"Product", "Thing", "Offer", "FAQPage"}


@pytest.mark.parametrize("source", ["", "{", "[" * 100_000, '{"a":', "nonsense", '"text"', "null"])
def test_broken_json_ld_says_nothing(source: str) -> None:
    assert facts(f'<script type="application/ld+json">{source}</script><p>x').objects == []


def test_meta_and_title() -> None:
    found = facts(
        "<title>One\n two</title><meta property='OG:Type' content='product'><meta name=description content=Words>"
    )
    assert (found.title, found.descriptions) == ("One two", "Words")
    assert found.flags()[StructuredData.FLAG_NAMES.index("shared_product")] == 1.0


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
    assert to_text(value) == text


def test_plain_text_has_no_markup() -> None:
    assert strip_tags("One<br>two &lt;b&gt;three&lt;/b&gt;") == "One\ntwo three"
    assert strip_tags("a<b") == "a<b"
    assert strip_tags("An%20oak%20table") == "An oak table"
    assert strip_tags("50%20 off") == "50%20 off"


FAQ = {
    "@type": "FAQPage",
    "mainEntity": [
        {"@type": "Question", "name": "Is it open?", "acceptedAnswer": {"text": "<p>Every day until six.</p>"}}
    ],
}


def test_only_what_the_page_does_not_show_is_taken() -> None:
    known = StructuredData(objects=[FAQ["mainEntity"][0]])  # type: ignore[index, list-item]
    assert find_unseen_passages(known, "Opening hours") == ["**Is it open?**\n\nEvery day until six."]
    assert find_unseen_passages(known, "Is it open? Every day until six.") == []


def test_further_products_are_others() -> None:
    objects = [{"@type": "Product", "description": f"A boat of oak with {n} pairs of oars."} for n in ("two", "four")]
    assert find_unseen_passages(StructuredData(objects=objects), "") == ["A boat of oak with two pairs of oars."]
