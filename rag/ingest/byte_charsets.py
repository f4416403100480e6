"""Which single-byte charset bytes are in, judged by whether the letters they would make form words.

Every byte is some letter in each of these charsets. In a wrong one capitals stand inside words, signs stand
between letters, and the letters are not those of the languages that the charset is for.
"""

from __future__ import annotations

import re
from itertools import pairwise

_CYRILLIC = ("оеаинтсрвлкмдпуяы", "ьгзбчйхжшюцщэфъёіїєґў")
# Frequent letters and the others; in the order of use on the web, which decides between equal readings.
_LETTERS = {
    "cp1252": ("éèêëàâäáãåæçíîïñóôöõøœúùûüß", "ìòÿýþðªº"),
    "cp1251": _CYRILLIC,
    "cp1250": ("áąăćčďéęěíłńňóőřśšşťţůűýžż", "äâçđëîĺľôöŕúüźß"),
    "cp1254": ("çğıöşüiâî", "ûéàèêä"),
    "cp1253": ("αοιετσνηυρπκμλςόίάέή", "θδγχφωβώύξζψϊϋΐΰ"),
    "cp1256": ("اليمونترعبدفهسكقةء", "حجشصخضزثطذىغئأؤظآإپچژگ"),
    "cp1255": ("יוהלאתרשמבנםעד", "חקכפצטגזסןךףץ"),
    "koi8-r": _CYRILLIC,
    "cp866": _CYRILLIC,
}
_LATIN = frozenset(["cp1252", "cp1250", "cp1254"])
_WORD = re.compile(r"[^\W\d_]+")
_SIGNS = re.compile(r"(?<=[^\W\d_])[^\w\s\x00-\x7f“”‘’–—…·](?=[^\W\d_])|\ufffd|[\x80-\x9f]")
_MIN = 0.6
_OTHER = 0.5


def likely_codec(pieces: bytes) -> str | None:
    """The charset whose reading of `pieces` (words with bytes above 127) is best, or None when none is good."""
    scores = {codec: _score(pieces.decode(codec, "replace"), codec) for codec in _LETTERS}
    best = max(scores, key=lambda codec: scores[codec])
    return best if scores[best] >= _MIN else None


def _score(text: str, codec: str) -> float:
    """The mean of the letters outside ASCII, 1 for a frequent one; less for words and signs that cannot be."""
    frequent, others = _LETTERS[codec]
    total = count = 0.0
    for word in _WORD.findall(text):
        marked = [letter.lower() if letter != "İ" else "i" for letter in word if letter >= "\x80"]
        count += len(marked)
        if _is_possible(word, len(marked), codec in _LATIN):
            total += sum(1.0 if letter in frequent else _OTHER if letter in others else -1.0 for letter in marked)
        else:
            total -= len(marked)
    signs = len(_SIGNS.findall(text))
    return (total - signs) / (count + signs) if count else 0.0


def _is_possible(word: str, marked: int, is_latin: bool) -> bool:
    """Whether a word is cased as words are, and of one alphabet; a Latin one is not all accents."""
    if any(left.islower() and right.isupper() for left, right in pairwise(word)):
        return False
    return marked <= (len(word) + 1) // 2 if is_latin else marked in (0, len(word))
