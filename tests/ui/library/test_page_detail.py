import html
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from rag.ingest.diff import page_diff
from rag.types import Passage
from rag.ui.library.page_detail import badges, chunks_html, diff_html, parts_of, segments_of, text_html
from tests.support.lighthouse import ENGLISH, ENGLISH_QUOTES, make_page, make_passage

HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "</ins></div><a href=javascript:alert(1)>x</a>",
    "&lt;b&gt; & \u202eevil\u202c \x00",
    "## <svg onload=alert(1)>",
]
PAGE = make_page(1, "Lamps", ENGLISH, "en")


def chunk(start: int, end: int) -> Passage:
    return replace(make_passage(PAGE, ENGLISH_QUOTES[0]), start=start, end=end, section=("<b>", "Oil"))


def test_a_file_without_a_site_has_no_badge_for_it() -> None:
    page = replace(PAGE, source="file", site="")
    assert badges(page, False, "en").count("-badge[") == 2
    assert "-badge[:material/draft: Skiff Docs]" in badges(replace(page, site="Skiff Docs"), False, "en")


def plain(drawn: str) -> str:
    """Return the visible text, without chunk marks and folded lines."""
    drawn = re.sub(r'<span class="chunk-mark">.*?</span>|<summary>.*?</summary>', "", drawn)
    return html.unescape(re.sub(r"<[^>]+>", "", drawn))


def bare(text: str) -> str:
    return re.sub(r"(?m)^#+ ", "", text)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_tag_of_a_page_gets_through(text: str) -> None:
    chunks = [replace(chunk(0, 5), section=(text,))]
    pieces = [("removed", text), ("added", f"\n| {text} | x |\n"), ("same", text)]
    for shown, tags in (
        (text_html(text), "b"),
        (chunks_html(text, chunks, "en"), "b div span"),
        (diff_html(pieces, "en"), "div p table tr td ins del details summary"),
    ):
        assert set(re.findall(r"</?(\w+)", shown)) <= set(tags.split())
        assert not re.search(r"<[^>]*\bon\w+=", shown)
        assert not re.search("[\u202a-\u202e\x00]", shown)


def test_segments_cover_a_text_without_gaps() -> None:
    segments = list(segments_of(10, [(0, 4), (3, 7), (8, 10)]))
    assert segments == [(0, 3, [0]), (3, 4, [0, 1]), (4, 7, [1]), (7, 8, []), (8, 10, [2])]


def test_chunks_lie_in_the_text_that_stays_whole() -> None:
    drawn = chunks_html(ENGLISH, [chunk(0, 60), chunk(50, 120), chunk(130, len(ENGLISH))], "en", first=7)
    assert plain(drawn) == bare(ENGLISH)
    assert re.findall(r"<b>(\d+)</b> characters ([\d,–]+)", drawn) == [
        ("7", "0–60"), ("8", "50–120"), ("9", f"130–{len(ENGLISH)}"),
    ]  # fmt: skip
    (both,) = re.findall(r'<span class="chunk-both">(.*?)</span>', drawn, re.S)
    assert plain(both) == bare(ENGLISH[50:60])
    assert "&lt;b&gt; › Oil" in drawn


def test_a_part_of_a_text_keeps_the_places_of_the_whole() -> None:
    drawn = chunks_html(ENGLISH[40:120], [chunk(40, 80), chunk(80, 120)], "en", first=2, offset=40)
    assert plain(drawn) == bare(ENGLISH[40:120])
    assert "<b>3</b> characters 80–120" in drawn


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 1000])
@pytest.mark.parametrize("line", [7, 5000])
def test_parts_of_a_long_text_are_the_whole_of_it(length: int, line: int) -> None:
    text = "".join("\n" if place % line == line - 1 else "x" for place in range(length))
    borders = parts_of(text, size=100)
    assert borders[0] == 0
    assert borders[-1] == length
    assert all(0 < end - start <= 100 for start, end in pairwise(borders))
    if line == 7:
        assert all(text[border - 1] == "\n" for border in borders[1:-1])


TABLE = "| Tea | Price |\n| --- | --- |\n| Green | 12 |\n"
OLD = f"# Prices\n\nTea costs three euros.\n\n- in the hall\n- on the pier\n\n{TABLE}"


def drawn(old: str, new: str) -> str:
    return diff_html([(piece.kind, piece.text) for piece in page_diff(old, new)], "en")


def words(shown: str) -> list[str]:
    """Return the visible text, without folded lines."""
    shown = re.sub(r"<summary>.*?</summary>", "", shown)
    return html.unescape(re.sub(r"<(?!/?(?:ins|del)\b)[^>]+>", " ", shown)).split()


def test_markdown_is_read_and_the_changed_words_are_marked_in_it() -> None:
    new = OLD.replace("three", "four").replace("the pier", "the old pier").replace("12", "14")
    shown = drawn(OLD, new)
    assert '<p class="head">Prices</p>' in shown
    assert "<p>Tea costs <del>three</del><ins>four</ins> euros.</p>" in shown
    assert '<p class="item">on the <ins>old </ins>pier</p>' in shown
    assert "<tr><td>Tea</td><td>Price</td></tr><tr><td>Green</td><td><del>12</del><ins>14</ins></td></tr>" in shown
    assert not re.search(r"[#|]|---|^- ", html.unescape(re.sub(r"<[^>]+>", "\n", shown)), re.M)


def test_both_texts_can_be_read_from_it() -> None:
    new = ENGLISH.replace("four hours", "six hours").replace("ten litres.", "ten litres. No more.")
    shown = drawn(ENGLISH, new)
    assert "<del>four</del><ins>six</ins>" in shown
    for text, gone, stays in ((new, "del", "ins"), (ENGLISH, "ins", "del")):
        seen = re.sub(rf"<{gone}>.*?</{gone}>|</?{stays}>", "", shown, flags=re.S)
        bare = re.sub(r"(?m)^(?:#{1,6}|[-*]) |^\|[-| :]+\|$|\|", " ", text)
        assert words(seen) == bare.split()


def test_unchanged_blocks_are_folded_but_for_those_beside_a_change() -> None:
    lines = [f"Line {number} says something about the lamp and its oil." for number in range(60)]
    text = "\n".join(lines)
    shown = diff_html([("same", text), ("added", "\nNew."), ("same", "\n" + text)], "en")
    folded = re.findall(r"<details><summary>([\d,]+) characters unchanged</summary>(.*?)</details>", shown, re.S)
    assert [part.count("<p>") for _, part in folded] == [59, 59]
    assert words(shown) == [*text.split(), "<ins>New.</ins>", *text.split()]


def test_a_short_unchanged_text_stays_in_sight() -> None:
    assert "<details>" not in diff_html([("same", "Short."), ("added", "More.")], "en")
