import html
import re

import pytest

from rag.ingest.diff import page_diff
from rag.ui.library.page_detail import diff_html
from tests.support.lighthouse import ENGLISH
from tests.ui.library.test_page_detail import HOSTILE

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


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_text_becomes_html(text: str) -> None:
    shown = diff_html([("removed", text), ("added", f"\n| {text} | x |\n"), ("same", text)], "en")
    tags = "div p table tr td ins del details summary".split()
    assert set(re.findall(r"<(/?\w+)", shown)) <= {*tags, *(f"/{tag}" for tag in tags)}
    assert not re.search(r"<[^>]*\bon\w+=", shown)
    assert not re.search("[\u202a-\u202e\x00]", shown)
