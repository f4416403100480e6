"""Captions and subtitles (.vtt, .srt): what is said, in paragraphs that begin with their time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from rag.reading.charset import decode
from rag.reading.extraction.clean import clean_text
from rag.reading.extraction.metadata import name_of
from rag.reading.parser import Extracted
from rag.reading.properties import described

_TIMES = re.compile(r"^[ \t]*((?:\d+:)?\d\d?:\d\d)[.,]\d+[ \t]*-->[^\n]*\n", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?[ \t]++([^<>\n]++)>")
_MARKUP = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’」)]*$")
_PARAGRAPH, _LONGEST = 300, 900


def read_captions(body: bytes, charset: str | None, url: str) -> Extracted:
    """What captions say, once each, also where they repeat a line while it scrolls.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    source = clean_text(decode(body, charset, url)).removeprefix("WEBVTT") + "\n"
    return described("\n\n".join(_paragraphs(source)), url, own_title=name_of(url))


def _paragraphs(source: str) -> Iterator[str]:
    begin, said = "", ""
    for time, line in _lines(source):
        is_voice = line.startswith("\v")
        ended = _SENTENCE_END.search(said) and len(said) > _PARAGRAPH
        if said and (ended or is_voice or len(said) > _LONGEST):
            yield f"[{begin}] {said}"
            said = ""
        begin = begin if said else time
        said = f"{said} {line.lstrip(chr(11))}".lstrip()
    if said:
        yield f"[{begin}] {said}"


def _lines(source: str) -> Iterator[tuple[str, str]]:
    """The lines of all cues with their times; one that begins another speaker's words begins with a vertical tab."""
    pieces = _TIMES.split(source)
    before: list[str] = []
    speaker = ""
    for time, cue in zip(pieces[1::2], pieces[2::2], strict=True):
        shown = []
        for line in cue.partition("\n\n")[0].split("\n"):
            voice, text = _VOICE.search(line), " ".join(unescape(_MARKUP.sub("", line)).split())
            shown.append(text)
            if text and text not in before:
                is_other = voice is not None and voice[1] != speaker
                speaker = voice[1] if voice else speaker
                yield time, f"\v{speaker}: {text}" if is_other else text
        before = shown
