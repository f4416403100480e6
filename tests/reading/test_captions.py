"""Captions: what is said, once each, with the times at which paragraphs begin."""

from __future__ import annotations

import pytest

from rag.errors import IngestError
from rag.reading.captions import read_captions


def text_of(source: str) -> str:
    return read_captions(source.encode(), None, "talks/lamp.vtt").text


def test_cues_make_paragraphs() -> None:
    cues = "".join(
        f"\n00:{n:02}.000 --> 00:{n:02}.900\nSentence {n} says where the lamp stands on the coast.\n" for n in range(9)
    )
    text = text_of(f"WEBVTT - Talk\nKind: captions\n\nSTYLE\n::cue {{}}\n\nNOTE by hand\n{cues}")
    assert text.startswith("[00:00] Sentence 0 says where the lamp stands on the coast. Sentence 1 says")
    assert text.count("\n\n[00:0") == 1 and "hand" not in text and "-->" not in text


def test_markup_settings_and_voices() -> None:
    first = "1\n01:00:01.000 --> 01:00:03.000 align:start line:0\n<v.loud Ines>The lamp &amp; its <i>oil</i>\n\n"
    second = "01:00:03.000 --> 01:00:05.000\n<v Ines>burn.\n\n01:00:06.000 --> 01:00:08.000\n<v Bo>Not &lt;here&gt;.\n"
    text = text_of(f"WEBVTT\n\n{first}{second}")
    assert text == "[01:00:01] Ines: The lamp & its oil burn.\n\n[01:00:06] Bo: Not <here>."


def test_lines_that_scroll_are_said_once() -> None:
    first = "00:01.000 --> 00:02.000\n \nthe lamp<00:01.500><c> is</c>\n\n"
    second = "00:02.000 --> 00:02.010\nthe lamp is\n \n\n00:02.010 --> 00:04.000\nthe lamp is\nlit at six\n\n"
    last = "00:04.000 --> 00:04.010\nlit at six\n \n\n00:09.000 --> 00:10.000\nthe lamp is\n"
    assert text_of(f"WEBVTT\n\n{first}{second}{last}") == "[00:01] the lamp is lit at six the lamp is"


def test_subrip_in_an_older_charset() -> None:
    first = "1\r\n00:00:01,000 --> 00:00:03,000\r\n{\\an8}<i>灯塔每晚六点亮灯，</i>\r\n\r\n"
    second = "2\r\n00:00:03,500 --> 00:00:05,000\r\n直到天明。\r\n"
    found = read_captions((first + second).encode("gbk"), None, "lamp.srt")
    assert (found.title, found.text) == ("lamp", "[00:00:01] 灯塔每晚六点亮灯， 直到天明。")


@pytest.mark.parametrize("source", ["", "WEBVTT\n\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n<i></i>\n"])
def test_what_cannot_be_read(source: str) -> None:
    with pytest.raises(IngestError) as raised:
        text_of(source)
    assert raised.value.code == "document_no_text"
