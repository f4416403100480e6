"""Captions and subtitles (.vtt, .srt): speech in paragraphs that begin with their time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from rag.reading.charset import decode
from rag.reading.extraction.clean import clean_text
from rag.reading.extraction.metadata import name_of
from rag.reading.parser import Extracted
from rag.reading.properties import build_extracted

_TIMES = re.compile(r"^[ \t]*((?:\d+:)?\d\d?:\d\d)[.,]\d+[ \t]*-->[^\n]*\n", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?[ \t]++([^<>\n]++)>")
_MARKUP = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’」)]*$")
_MIN_PARAGRAPH, _MAX_PARAGRAPH = 300, 900


def read_captions(body: bytes, charset: str | None, url: str) -> Extracted:
    """Return the text of captions, each line once, even if it repeats while scrolling.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    source = clean_text(decode(body, charset, url)).removeprefix("WEBVTT") + "\n"
    return build_extracted("\n\n".join(_write_paragraphs(source)), url, own_title=name_of(url))


def _write_paragraphs(source: str) -> Iterator[str]:
    start, text = "", ""
    for time, line in _iter_lines(source):
        is_voice = line.startswith("\v")
        is_complete = _SENTENCE_END.search(text) and len(text) > _MIN_PARAGRAPH
        if text and (is_complete or is_voice or len(text) > _MAX_PARAGRAPH):
            yield f"[{start}] {text}"
            text = ""
        start = start if text else time
        text = f"{text} {line.lstrip(chr(11))}".lstrip()
    if text:
        yield f"[{start}] {text}"


def _iter_lines(source: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of all cues with their times; a change of speaker is marked by a leading vertical tab."""
    pieces = _TIMES.split(source)
    previous: list[str] = []
    speaker = ""
    for time, cue in zip(pieces[1::2], pieces[2::2], strict=True):
        lines = []
        for line in cue.partition("\n\n")[0].split("\n"):
            voice, text = _VOICE.search(line), " ".join(unescape(_MARKUP.sub("", line)).split())
            lines.append(text)
            if text and text not in previous:
                is_change = voice is not None and voice[1] != speaker
                speaker = voice[1] if voice else speaker
                yield time, f"\v{speaker}: {text}" if is_change else text
        previous = lines
