"""How much of one text another holds, by runs of three words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_LONG = 12


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


class Trigrams:
    """A text to look shorter ones up in."""

    def __init__(self, text: str) -> None:
        words = words_of(text)
        self._grams = set(zip(words, words[1:], words[2:], strict=False))
        self._flat = f" {' '.join(words)} "
        self._lines = {" ".join(words_of(cell)) for line in text.split("\n") for cell in (line, *line.split("|"))}

    def share(self, words: Sequence[str], text: str) -> float:
        """The share of `words` (those of `text`) that stand in this text in the same order, from 0 to 1.

        One or two words count in full only as a line or a table's cell of their own, since menus repeat
        words of the text; without spaces between words, as in Chinese, a long run counts wherever it stands.
        """
        flat = " ".join(words)
        if not flat or flat in self._lines:
            return float(bool(flat))
        if len(words) >= 3:
            grams = zip(words, words[1:], words[2:], strict=False)
            return sum(gram in self._grams for gram in grams) / (len(words) - 2)
        if f" {flat} " not in self._flat:
            return 0.0
        return 1.0 if len(flat) >= _LONG and not flat.isascii() else 0.5 * (len(words) - 1)
