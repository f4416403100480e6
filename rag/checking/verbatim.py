"""Find a text in another by its tokens with meaning, regardless of white space, punctuation, Markdown and the way that
values are written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rag.checking.terms import Term, Terms, read
from rag.text import sentence_spans, without_struck


class TokenIndex:
    """The tokens of a text, sentence by sentence."""

    def __init__(self, sentences: Sequence[str]) -> None:
        joined = [_joined(read(sentence)) for sentence in sentences]
        self._text = "\n" + "".join(joined)
        self._ends = list(accumulate(map(len, joined)))

    def places(self, said: Terms) -> Iterator[tuple[int, int, bool]]:
        """The first and last sentence of each place with the tokens of `said` in a row, and True if these are the
        whole sentences."""
        sought = "\n" + _joined(said)
        at = self._text.find(sought) if said.tokens else -1
        while at >= 0:
            end = at + len(sought) - 1
            first, last = bisect_right(self._ends, at), bisect_left(self._ends, end)
            yield first, last, at in (0, *self._ends[first - 1 : first]) and self._ends[last] == end
            at = self._text.find(sought, at + 1)


def stands_in(said: str, text: str) -> bool:
    """Return True if `text` has the words of `said` in a row, and its values with or without their units: 5 and 5 °C
    are in "it was 5 °C", and not in "it was −5 °C"."""
    mine, theirs = read(said).tokens, read(text).tokens
    starts = range(len(theirs) - len(mine) + 1) if mine else ()
    return any(all(map(_says, mine, theirs[start:])) for start in starts)


def _says(mine: Term, theirs: Term) -> bool:
    if mine.value is not None and theirs.value is not None:
        return mine.value.stands(theirs.value)
    return mine.letters == theirs.letters


def whole_sentences(said: str, page: str) -> str:
    """Return the page's own sentences that contain `said`, or an empty text."""
    spans = sentence_spans(page)
    index = TokenIndex([without_struck(page, start, end) for start, end in spans])
    first, last, _ = next(index.places(read(said)), (-1, -1, False))
    return page[spans[first][0] : spans[last][1]] if first >= 0 else ""


def _joined(terms: Terms) -> str:
    return "".join(f"{token.letters}\n" for token in terms.tokens)
