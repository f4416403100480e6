"""Clean text: no control or invisible characters, composed accents, tidy blank lines.

What a reader cannot see must not reach a model, and an offset into the text must mean the same everywhere.
"""

from __future__ import annotations

import re
import unicodedata

_LINE_ENDS = re.compile(r"\r\n?|[\u0085\u2028\u2029\x0b\x0c]")
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\ue000-\uf8ff"
    r"\U000e0000-\U000e0fff\U000f0000-\U0010ffff]+"
)
# Joiners shape Persian and Indic words; beside a letter of ASCII or a space they only hide.
_STRAY_JOINER = re.compile(r"(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])")
_SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
# Only where a mark follows: NFC would also replace whole ideographs by look-alikes.
_DECOMPOSED = re.compile(r".[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff\u3099\u309a]+")
_TRAILING = re.compile(r"(?<![ \t])[ \t]++$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def clean_text(text: str) -> str:
    """`text` with visible characters only, single blank lines, and no space around it or at line ends."""
    text = _LINE_ENDS.sub("\n", text)
    text = _STRAY_JOINER.sub("", _INVISIBLE.sub("", text))
    text = _DECOMPOSED.sub(lambda match: unicodedata.normalize("NFC", match[0]), text)
    text = _TRAILING.sub("", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", text).strip("\n").rstrip()


def clean_line(text: str, limit: int = 300) -> str:
    """`text` as one line of at most `limit` characters, for titles and names."""
    line = " ".join(clean_text(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
