"""Blocks of a page, the features that classify them, and the text of the chosen ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag.reading.extraction.features import FEATURE_NAMES, Forest, Trigrams, build_features, load_forest, split_words
from rag.reading.extraction.main_text import (
    Byline,
    ScoredBlock,
    add_byline,
    complete_cards,
    complete_selection,
    drop_repeats,
    drop_teasers,
    name_posts,
    select_blocks,
)
from rag.reading.extraction.metadata import StructuredData
from rag.reading.extraction.render import markdown
from rag.reading.extraction.segments import LANDMARKS, ROLES, Block, role_bits, segment
from rag.reading.extraction.tree import body_of, parse


def blocks(html: str) -> list[Block]:
    return segment(body_of(parse(f"<html><body>{html}</body></html>")))


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("one<p>two <b>th</b>ree</p>four", ["one", "two three", "four"]),
        ("<a>12</a><a>new</a>", ["12 new"]),
        ("<p>a<br>b</p>", ["a\nb"]),
        ("<pre>a\n  b</pre>", ["a\n  b"]),
        ("<p>a<script>x</script>b</p><select><option>c</select>", ["ab"]),
        ("<div> \n <p></p></div>", []),
        ("<ul><li>a<ul><li>b</ul>c</ul>", ["a", "b", "c"]),
        ("<price><pre-price>$</pre-price><dollars>299</dollars><cents>.99</cents></price>", ["$299.99"]),
        ("<div>€</div><div>1,303</div><div>95</div><div>/mo</div><div>95</div>", ["€1,303.95/mo", "95"]),
        ("<s><div>$</div><div>408</div></s><div>$</div><div>379</div>", ["~~$408~~", "$379"]),
        ("<p><i>€</i></p><p>30</p><section><p>15</p></section>", ["€30", "15"]),
        ("<div>$</div><div>to</div><div>$</div><div>3 items</div>", ["$", "to", "$", "3 items"]),
    ],
)
def test_blocks(html: str, texts: list[str]) -> None:
    assert [block.text for block in blocks(html)] == texts


def test_links_and_buttons_are_counted() -> None:
    block = blocks("<p>See <a href=x>this</a><button>go</button></p>")[0]
    assert (block.link_length, len(block.links), block.button_length) == (4, 1, 2)
    inner = blocks("<a href=x><div>card</div></a>")[0]
    assert inner.link_density == 1.0


def test_places() -> None:
    first, second = blocks("<main><div class='RelatedPosts'><p class=x>a</p><p class=x>b</p></div></main>")
    assert first.place.shape == second.place.shape
    assert first.place.landmarks == 1 << LANDMARKS.index("main")
    assert first.place.closeness(ROLES.index("related")) == 2
    assert first.place.closeness(ROLES.index("price")) == 0
    assert role_bits("site-footer__nav") == 1 << ROLES.index("chrome") | 1 << ROLES.index("nav")


def test_features_have_their_names() -> None:
    rows, sizes = build_features(
        blocks("<h1>Boats</h1><p>Oak boats for two, built in Vik since 1910.</p>"), "# Boats", StructuredData()
    )
    assert {len(row) for row in rows} == {len(FEATURE_NAMES)}
    assert sizes == [1, 9]
    row = dict(zip(FEATURE_NAMES, rows[1], strict=True))
    assert (row["after_h1"], row["ends_sentence"], row["date"], row["heading_main_share"]) == (1.0, 1.0, 1.0, 1.0)


def test_the_forest_was_fitted_to_these_features() -> None:
    assert len(load_forest().trees) > 10
    tree = Forest(0.0, [(0, 1.5, -2.0, (1, 0.0, 2.0, 3.0))])
    assert tree.probability([1.0, 9.0]) < 0.2 < 0.8 < tree.probability([2.0, 0.0]) < tree.probability([2.0, 1.0])


@pytest.mark.parametrize(
    ("probabilities", "taken"),
    [
        ([0.9, 0.1, 0.8], [True, False, True]),
        ([0.4, 0.4, 0.4], [True, True, True]),
        ([0.05, 0.9], [False, True]),
        ([], []),
    ],
)
def test_the_set_that_promises_most(probabilities: list[float], taken: list[bool]) -> None:
    assert select_blocks(probabilities, [10] * len(probabilities)) == taken


def test_what_is_doubtful_stands_or_falls_together() -> None:
    """For a short text above long comments, block by block, keeping three times its length would seem a good bet."""
    assert select_blocks([0.95, *[0.4] * 6], [100] + [50] * 6) == [True, *[False] * 6]
    assert select_blocks([0.95, *[0.6] * 6], [100] + [50] * 6) == [True] * 7


def test_doubtful_text_is_taken_if_recall_weighs_more() -> None:
    assert select_blocks([0.95, *[0.4] * 6], [100] + [50] * 6, recall_weight=2.0) == [True] * 7
    assert select_blocks([0.95, *[0.05] * 6], [100] + [50] * 6, recall_weight=2.0) == [True, *[False] * 6]


def test_tables_stay_whole_and_text_has_its_heading() -> None:
    page = blocks("<h2>Crew</h2><table><tr><td>Ruth<td>90</table><h2>More</h2><p>x</p>")
    assert complete_selection(page, [False, True, False, False, False], [1, 2, 1, 1, 1], [0.5] * 5) == [
        *(True, True, True),
        *(False, False),
    ]


def test_a_table_of_numbers_counts_as_content_unless_it_is_unlikely_or_small() -> None:
    row = "<tr><td>Ruth<td>90</tr>"
    page = blocks(f"<table>{row * 3}</table><table>{row * 2}</table>")
    likely = complete_selection(page, [False] * 10, [1] * 10, [0.15] * 10)
    assert likely == [True] * 6 + [False] * 4
    assert complete_selection(page, [False] * 10, [1] * 10, [0.05] * 10) == [False] * 10


def test_the_title_of_the_page_is_no_heading_of_a_section() -> None:
    page = blocks("<h1>Boats</h1><p>Oak.</p><h2>Crew</h2><p>Two.</p>")
    assert complete_selection(page, [False, True, False, True], [1] * 4, [0.3] * 4) == [False, True, True, True]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h3>A</h3><p>b</p>", "### A\n\nb"),
        ("<ul><li>a<ol><li>b</ol><li><p>c</p><p>d</p></ul>", "- a\n  1. b\n- c\n  d"),
        ("<ul><li>a</ul><ul><li>b</ul>", "- a\n\n- b"),
        ("<blockquote><p>a<br>b</blockquote>", "> a\n> b"),
        ("<table><tr><th>a|b<th>c<tr><td><p>d</p><p>e</p><td>f</table>", "| a\\|b | c |\n|---|---|\n| d e | f |"),
        ("<table><tr><td><table><tr><td>a</table><td><p>" + "b " * 300 + "</table>", "a\n\n" + ("b " * 300).strip()),
        ("<pre>```\nx</pre>", "````\n```\nx\n````"),
    ],
)
def test_markdown(html: str, text: str) -> None:
    assert markdown(blocks(html)) == text


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Contact", 0.0),
        ("Opening hours", 1.0),
        ("open every day", 1.0),
        ("open every night", 0.0),
        ("我们每天都开门，欢迎光临本店", 1.0),
    ],
)
def test_overlap(text: str, share: float) -> None:
    known = Trigrams("Opening hours\nWe are open every day. Contact us.\n我们每天都开门，欢迎光临本店\n")
    assert known.share(split_words(text)) == share


def test_a_card_keeps_its_price() -> None:
    page = blocks("".join(f"<div><p><a>{name}</a><p>$9<p>Save</div>" for name in ("Pot", "Cup", "Jug")))
    likely = [0.5, 0.25, 0.5, 0.5, 0.1, 0.5, 0.4, 0.5, 0.5]
    is_name = [True, False, False, True, False, False, False, False, False]
    assert complete_cards(page, is_name, likely) == [True, True, False, True, *[False] * 5]


def test_paragraphs_that_are_a_link_lead_away_from_an_article() -> None:
    page = blocks(
        "<p>One boat of the harbour was sold for more than its price.</p><p><a href=x>See how another was sold</a></p>"
        "<p>Its keeper said <a href=y>so in a letter</a> to the office.</p><ul><li><a href=z>Sold</a></ul><p>The end."
    )
    sizes = [len(block.text.split()) for block in page]
    assert drop_teasers(page, [True] * 5, [2, *sizes[1:]]) == [True, True, True, True, True]
    assert drop_teasers(page, [True] * 5, [40, *sizes[1:]]) == [True, False, True, True, True]
    assert drop_teasers(page, [True, False, True, True, True], sizes) == [True, False, True, True, True]


def test_what_a_page_repeats_is_dropped() -> None:
    tip = "Rinse the oars with fresh water after each trip. " * 3
    page = blocks(f"<h2>Oars</h2><p>{tip}</p><h3>Oak</h3><p>{tip}</p><p>{tip}</p><p>Dry.</p><p>Dry.</p>")
    assert drop_repeats(page, [True] * 7) == [True, True, True, True, False, True, True]
    assert drop_repeats(page, [True, False, True, False, True, True, True])[4]
    kept = f"<blockquote>{tip}</blockquote><pre>{tip}</pre><div role='tabpanel'>{tip}</div>"
    assert all(drop_repeats(blocks(f"<p>{tip}</p>{kept}<div role='tabpanel'>{tip}</div>"), [True] * 5))


POSTERS = ("ann-b", "ben", "ann-b")


def thread(*posts: str) -> str:
    """Return the Markdown of a thread, of which only paragraphs, code and quotations are selected."""
    kinds = ("p", "pre", "blockquote")
    page = blocks("<main>" + "".join(f"<article class=post>{post}</article>" for post in posts) + "</main>")
    return markdown(name_posts([ScoredBlock(block, 0.5, block.find_above(kinds) is not None) for block in page]))


def test_a_post_begins_with_its_author() -> None:
    said = "<blockquote>When?</blockquote>", "<p>On Monday, at the latest.</p>", "<pre>at 9</pre>"
    posts = [f"<h4><a href='/members/{name}.{len(name)}/'>{name}</a></h4>" for name in POSTERS]
    text = "ann-b:\n\n> When?\n\nben:\n\nOn Monday, at the latest.\n\nann-b:\n\n```\nat 9\n```"
    assert thread(*map("".join, zip(posts, said, strict=True))) == text
    assert thread(*map("".join, zip(said, posts, strict=True))) == text


@pytest.mark.parametrize(
    "link",
    [
        "<div><a href='/t/12/reply'>Reply</a></div>",
        "<div><a href='/{name}/1'>{name}</a></div>",
        "<div><a href='/tags/{name}'>{name}</a></div><div><a href='/tags/x{name}'>x{name}</a></div>",
        "<div>by {name}</div>",
        "<p><a href='/u/{name}'>{name}</a></p>",
    ],
    ids=["the same", "other address", "several", "no link", "selected"],
)
def test_other_links_are_no_authors(link: str) -> None:
    posts = [f"{link.format(name=name)}<p>On day {number}, {name} rows.</p>" for number, name in enumerate(POSTERS)]
    assert not any(line.endswith(":") for line in thread(*posts).splitlines())


def test_an_article_keeps_its_byline() -> None:
    long = "The boats of the harbour were counted again. " * 5
    page = blocks(
        f"<h1>Boats</h1><p>By Ann Beck, with Bo</p><p>5 May 2024</p><p>Edited: May 7, 2024</p><nav>Cy Dee</nav>"
        f"<p>{long}</p><p>7 May 2024: {long}</p><p>More by Ann Beck</p>"
    )
    rows = [ScoredBlock(block, 0.5, block.text == "Boats" or len(block.text) > 200) for block in page]
    byline = Byline("Ann Beck, Cy Dee", "2024-05-05T09:00:00", "2024-05-07")
    assert [row.is_selected for row in add_byline(rows, byline)] == [True, True, True, True, False, True, True, False]
    assert add_byline(rows, Byline("", "", "")) == rows
    named = [replace(row, is_selected=row.is_selected or row.block.text.startswith("More")) for row in rows]
    assert not add_byline(named, Byline("Ann Beck", "", ""))[1].is_selected, "its author is selected already"
