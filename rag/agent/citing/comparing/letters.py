"""Text to the letter: its words, numbers and signs in order, whatever became of white space, marks and Markdown.

What counts is kept: a number with its points, its sign, its percent or currency; `C++` is another word than
`C`. A match neither begins nor ends inside a word, a hyphenated word or a number.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
COUNTS: Final = "年月日号时点元度米克页章节层楼分秒周天一二三四五六七八九十个人次级线期版"
"""Signs behind a number, after which a hyphen leads to the next one and is no minus."""
_FRACTION = re.compile("[¼½¾⅓⅔⅛⅜⅝⅞]")
_POWER = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3})((?:[\u00a0\u202f\u2009]\d{3})+)(?![\d.,]?\d)")
_MARKDOWN = re.compile(r"\*\*|__|`|^\s*#{1,6}\s+|^\s*[-*+•]\s+", re.MULTILINE)
_DASHES = str.maketrans({"−": "-", "–": "-", "‐": "-", "‑": "-", "‒": "-", "’": "'", "º": "°", "∶": ":"})
_ATOM = re.compile(
    rf"(?P<number>(?:(?:(?<![\w)\]}}.])|(?<=[{HAN}])(?<![{COUNTS}]))[+-])?\d+(?:[.,:/^×-]\d+)*|(?<![\w.])\.\d+)"
    rf"|(?P<word>[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)*(?:[+#]+(?!\w))?)"
    rf"|(?P<han>[{HAN}])|(?P<sign>[%‰$€£¥₹₽₩°]|[<>≤≥≠±]=?(?=\s*[\d.+-]))"
)
_CONNECTOR = re.compile(r"[-_/.·&@']")
_SCALES = frozenset(
    "hundred thousand million billion trillion dozen percent k bn m 百 千 万 亿 兆 余 多 几 半 点 成 倍 折 分".split()
)
_RANGE = frozenset("to and or - ~ 至 到 或 比".split())
_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿两半")
_SPELLED = frozenset(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million".split()
)
_TURNING = frozenset("负 minus negative 零下".split())


@dataclass(frozen=True, slots=True)
class Atom:
    """A word, a number, a Chinese sign or another that counts; `inside` where it goes on from the one before it."""

    key: str
    kind: str
    inside: bool = False


def plain(text: str) -> str:
    """One form for marks and compatibility signs; ½ becomes 0.5, and 10² another number than 102."""
    text = _GROUPED.sub(lambda match: match[1] + re.sub(r"\D", "", match[2]), text)
    text = _POWER.sub(lambda match: "^" + unicodedata.normalize("NFKC", match.group()), _FRACTION.sub(_decimal, text))
    return unicodedata.normalize("NFKC", text).translate(_DASHES)


def without_markdown(text: str) -> str:
    return _MARKDOWN.sub("", text)


def _decimal(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1 : match.start()]
    value = f"{unicodedata.numeric(match.group()):.3g}"
    return value[1:] if before.isdecimal() else value


def squash(text: str) -> str:
    """What counts in `text`, without what stands between."""
    return "".join(atom.key for atom in atoms(text))


def atoms(text: str) -> Iterator[Atom]:
    text = without_markdown(plain(text)).lower()
    before: Atom | None = None
    end = 0
    for match in _ATOM.finditer(text):
        atom = Atom(match.group(), str(match.lastgroup))
        if before is not None:
            atom = Atom(atom.key, atom.kind, _goes_on(before, text[end : match.start()], atom))
        yield atom
        before, end = atom, match.end()


def _goes_on(before: Atom, gap: str, atom: Atom) -> bool:
    """Whether what is said of the first is not said without the second: parts of a word, a number and its scale."""
    latin = ("word", "number")
    if before.kind in latin and atom.kind in latin and (not gap or _CONNECTOR.fullmatch(gap)):
        return True
    if gap.strip():
        return False
    if (before.kind == "sign" and before.key not in "%‰°") or atom.key in "%‰°":
        return True
    counted = before.kind == "number" or before.key in _NUMERALS or before.key in _SPELLED
    if counted and (atom.key in _SCALES or atom.key in _RANGE or atom.key in _NUMERALS or atom.key in _SPELLED):
        return True
    if atom.key in ("bc", "bce") and (before.kind == "number" or before.key in ("century", "centuries")):
        return True
    if atom.key == "半" and before.key in ("点", "年", "月", "时", "天"):
        return True
    return before.key in _TURNING and (atom.kind == "number" or atom.key in _NUMERALS)


class Letters:
    """A text's atoms in pieces (its sentences), to find others in."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._atoms: list[Atom] = []
        self.ends: list[int] = []
        for piece in pieces:
            self._atoms += atoms(piece)
            self.ends.append(len(self._atoms))
        self._text = "\n" + "".join(atom.key + "\n" for atom in self._atoms)
        self._starts = [0]
        for atom in self._atoms:
            self._starts.append(self._starts[-1] + len(atom.key) + 1)

    def find(self, said: Sequence[Atom]) -> Iterator[tuple[int, int]]:
        """Where `said` stands, as ranges of atoms."""
        if not said:
            return
        sought = "\n" + "".join(atom.key + "\n" for atom in said)
        at = self._text.find(sought)
        while at >= 0:
            first = bisect_left(self._starts, at)
            last = first + len(said)
            if not self._is_inside(first) and not self._is_inside(last):
                yield first, last
            at = self._text.find(sought, at + 1)

    def covering(self, first: int, last: int) -> tuple[int, int, bool]:
        """The first and the last piece that hold these atoms, and whether they hold nothing else."""
        head, tail = bisect_left(self.ends, first + 1), bisect_left(self.ends, last)
        begin = self.ends[head - 1] if head else 0
        return head, tail, (first, last) == (begin, self.ends[tail])

    def _is_inside(self, place: int) -> bool:
        return place < len(self._atoms) and self._atoms[place].inside
