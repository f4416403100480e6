"""Cards of a grid, such as products with their prices, become the items of a list."""

from __future__ import annotations

import pytest

from rag.reading.extract import html_to_markdown
from rag.text import find_entries


def grid(*cards: str, kind: str = "tile") -> str:
    return "<div>" + "".join(f"<div class={kind}>{card}</div>" for card in cards) + "</div>"


POTS = [f"<a href=/{name}>{name} pot</a><div>${price}</div>" for name, price in (("Red", 4), ("Blue", 5), ("Tall", 6))]


def test_each_card_is_an_item_with_its_lines() -> None:
    assert html_to_markdown(f"<h2>Pots</h2>{grid(*POTS)}<p>Prices include tax.") == (
        "## Pots\n\n- Red pot\n  $4\n- Blue pot\n  $5\n- Tall pot\n  $6\n\nPrices include tax."
    )


@pytest.mark.parametrize(
    "page",
    [
        grid(*POTS[:2]),
        grid(*(f"<h3>Pot {number}</h3><p>${number}</p>" for number in range(4))),
        grid(*(f"<p>By Ann</p><p>{'A long comment about pots. ' * 10}</p>" for _ in range(4))),
        grid(*(f"<p>Pot {number}</p>" for number in range(4))),
        grid(*(f"<p>Sizes</p><ul><li>{number}</ul>" for number in range(4))),
    ],
    ids=["two", "headings", "long text", "one line each", "lists"],
)
def test_other_repeated_elements_are_left_as_they_are(page: str) -> None:
    assert not any(
        line.startswith(("- Pot", "- By", "- Red", "- Sizes")) for line in html_to_markdown(page).split("\n")
    )


def test_a_heading_that_is_shorter_than_the_name_of_a_card_is_a_line() -> None:
    cards = grid(*(f"<p>Terracotta pot {number}</p><h3>Item: {number}</h3><p>$9</p>" for number in range(3)))
    assert html_to_markdown(cards).startswith("- Terracotta pot 0\n  Item: 0\n  $9\n- Terracotta pot 1")


NAMES = ("Low boots", "High boots", "Warm boots")


def test_a_card_begins_with_its_heading() -> None:
    cards = grid(*(f"<p>{number}.5</p><p>New</p><h3>{name}</h3><p>$9</p>" for number, name in enumerate(NAMES)))
    assert html_to_markdown(cards).startswith("- Low boots\n  0.5\n  New\n  $9\n- High boots")


def test_a_list_item_or_an_article_begins_with_its_heading() -> None:
    items = "".join(f"<li><p>Add to bag</p><h2>{name}</h2><p>$9</p></li>" for name in NAMES)
    assert html_to_markdown(f"<ul>{items}</ul>").startswith("## Low boots\n\n- Add to bag\n  $9\n\n## High boots")
    story = "The boots of this season stay dry in a river. " * 20
    posts = "".join(f"<article><p>May 5, 2024</p><h2>{name}</h2><p>{story}</p></article>" for name in NAMES)
    assert html_to_markdown(posts).startswith("## Low boots\n\nMay 5, 2024\n\nThe boots")


def test_text_of_the_section_before_a_heading_stays_there() -> None:
    parts = "".join(f"<div class=row><p>{'It ends here. ' * 20}</p><h2>{name}</h2></div>" for name in NAMES)
    assert html_to_markdown(parts).startswith("It ends here.")
    prices = "".join(f"<li><p>{name}</p><h2>$9</h2></li>" for name in NAMES)
    assert html_to_markdown(f"<ul>{prices}</ul>").startswith("- Low boots\n\n## $9")


def test_the_innermost_cards_count() -> None:
    shelves = [grid(*POTS, kind="pot") for _ in range(3)]
    assert html_to_markdown(grid(*shelves, kind="shelf")).count("- Red pot\n  $4") == 3


def test_a_label_that_several_entries_begin_with_is_below_the_name() -> None:
    items = "".join(f"<li><p>Top rated</p><p>{name}</p><p>$9</p></li>" for name in NAMES)
    assert html_to_markdown(f"<ul>{items}</ul>").startswith("- Low boots\n  Top rated\n  $9\n- High boots")
    assert html_to_markdown(grid(*(f"<p>$9</p><p>{name}</p>" for name in NAMES))).startswith("- Low boots\n  $9")
    colours = grid(*(f"<p>Quarter socks</p><p>{colour}</p><p>$9</p>" for colour in ("Red", "Blue", "Grey")))
    assert html_to_markdown(colours).startswith("- Quarter socks\n  Red")
    replies = "".join(f"<li><p>Ann wrote:</p><p>{name} are warm.</p><p>No.</p></li>" for name in NAMES)
    assert html_to_markdown(f"<ul>{replies}</ul>").startswith("- Ann wrote:\n  Low boots are warm.\n  No.")
    prices = grid(*(f"<p>Price</p><p>${price}</p>" for price in (10, 20, 30)))
    assert html_to_markdown(prices).startswith("- Price\n  $10")


def test_the_price_of_a_card_belongs_to_its_product() -> None:
    text = html_to_markdown(grid(*(f"<p>On sale!</p>{pot}" for pot in POTS)))
    entry = find_entries(text)[1]
    assert entry.title and text[slice(*entry.title)] == "- Blue pot"
    assert [text[slice(*span)] for span in entry.attributes] == ["On sale!", "$5"]
