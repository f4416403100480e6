"""Inline markup in plain text: superscripts and notes, struck text, check boxes."""

from __future__ import annotations

import pytest

from rag.reading.extraction.notation import mark_struck, subscript, superscript, write_notation
from rag.reading.extraction.segments import segment
from rag.reading.extraction.tree import body_of, parse


def read(html: str) -> str:
    tree = parse(f"<html><body><p>{html}</p></body></html>")
    mark_struck(tree)
    write_notation(tree, html)
    return "|".join(block.text for block in segment(body_of(tree)))


@pytest.mark.parametrize(
    ("before", "text", "ahead", "written"),
    [
        ("3.2×10", "6", " litres", "^6"),
        ("10", "−9", "", "^-9"),
        ("2", "32", " addresses", "^32"),
        ("is 4500", "2", " otters", "[^2]"),
        ("in 1911.", "4", "", "[^4]"),
        ("is 4500", "2", " + 1", "^2"),
        ("140 m", "2", "", "²"),
        ("140 metres", "2", "", "^2"),
        ("the otters", "2", "", "[^2]"),
        ("s", "−1", "", "⁻¹"),
        ("costs $19", "99", "", ".99"),
        ("costs 19", "90", " zł", ".90"),
        ("costs $19.", "99", "", "99"),
        ("the 3", "rd", "", "rd"),
        ("the n", "th", "", "th"),
        ("e", "n+1", "", "^(n+1)"),
        ("of ", "14", "C", "¹⁴"),
        ("(a+b)", "2", "", "^2"),
        ("(see there)", "2", "", "[^2]"),
        ("the hook", "AUR", "", " AUR"),
    ],
)
def test_superscripts(before: str, text: str, ahead: str, written: str) -> None:
    assert superscript(text, before, ahead) == written


@pytest.mark.parametrize(
    ("before", "text", "written"), [("H", "2", "₂"), ("x", "max", "_max"), ("1010", "2", "_2"), ("C", "n+1", "_(n+1)")]
)
def test_subscripts(before: str, text: str, written: str) -> None:
    assert subscript(text, before) == written


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a <s>b</s> c", "a ~~b~~ c"),
        ("a<del> b </del>c", "a ~~b~~ c"),
        ("a <s>b<br>c</s> d", "a ~~b~~\n~~c~~ d"),
        ("a <s><b>b</b> <i>c</i></s>", "a ~~b c~~"),
        ("a <s> </s> b", "a b"),
        ("<del>a<div>b</div>c</del> d", "~~a~~|~~b~~|~~c~~ d"),
        ("<span style='TEXT-DECORATION: red line-through'>a</span> b", "~~a~~ b"),
        ("<span style='text-decoration:underline'>a</span> b", "a b"),
        (
            "<style>del,.old{text-decoration:line-through}.old:hover{color:red}</style><b class='x old'>a</b> b",
            "~~a~~ b",
        ),
        ("<style>.old{color:red}.new{text-decoration:line-through}</style><b class=old>a</b> b", "a b"),
        ("4500<a href='#n'><sup>2</sup></a> and <a href='#top'>2</a>", "4500[^2] and 2"),
        ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>の", "漢字の"),
        ("<ul><li><input type=checkbox checked> a<li><input type=checkbox name=b value=1> b</ul>", "[x] a|b"),
        ("<q>a <b>b</b></q>", "“a b”"),
        ("<abbr title='a date'>2</abbr> <abbr title='Light Vessel'>LV</abbr>", "2 LV (Light Vessel)"),
        ("Heading<a href='#h'>¶</a>", "Heading"),
        ("<table><tr><td>Chat<td><i class='fa-solid fa-check'></i><td><i class='fa fa-xmark'></i>", "Chat|✓|✗"),
        (
            "<table><tr><td>Chat<td><div class=checkmark></div><td><i class=checkout></i><td><i class=star></i>",
            "Chat|✓",
        ),
    ],
)
def test_in_a_paragraph(html: str, text: str) -> None:
    assert read(html) == text
