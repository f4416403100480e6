"""Words and their positions on a page, and the lines and cells that they form."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rag.patterns import lazy_regex

# PDF writers map a glyph shared by a radical and a character to the radical's code point, which no user types. NFKC
# maps the Kangxi block back to characters; these are the radicals of the supplement that are whole characters.
_RADICALS = str.maketrans(
    "⺁⺟⺠⺮⼾⻁⻄⻅⻆⻉⻋⻑⻓⻔⻗⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻲⻳",
    "厂母民竹户虎西见角贝车長长門雨青韦页风飞食马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙亀龟",
)
_SHARED_GLYPH = lazy_regex(r"[\u2f00-\u2fdf\ufb00-\ufb06\ufb50-\ufdff\ufe70-\ufefc]")
_ENDING = lazy_regex("(?<=ة)(?=[\u0621-\u064a])")
"""The boundary after teh marbuta, which only ends words: pdfium drops narrow spaces there."""
_RIGHT_TO_LEFT = lazy_regex("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LABEL = lazy_regex(r"[•◦‣▪▫■□●○·⁃–—*-]|[(\[]?\w{1,3}[.)\]]|[$€£¥]|\(")
"""A bullet, a number or a currency sign that is set apart from its text."""
_TRAILING_SIGN = lazy_regex(r"[)%]+")
_POWER = lazy_regex(r"(?:^|[^\d.,])10$|(?<![^\W\d_])[^\W\d_]{1,3}$|[)\]]$")
"""A base after which a raised number is an exponent; anywhere else it is a note reference."""
_DENSE_END = lazy_regex(r"[\d\u2e80-\u9fff\uf900-\uffef%)]\Z")
_DENSE_START = lazy_regex(r"[\d\u2e80-\u9fff\uf900-\uffef$€£¥(-]")
_CELL_GAP = 1.1
"""A wider gap, in font sizes, ends a cell; between numbers or Chinese words, _DENSE_CELL_GAP is the limit."""
_DENSE_CELL_GAP = 0.5
RAISED_SHARE = 0.2
"""A word is raised if it is higher above its line than this share of its size."""
_MAX_CODE_WIDTH = 300


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, or the Markdown of a table, with its start and main font size.

    Positions are measured along and across the writing direction, so that rotated pages work like others.
    """

    text: str
    x: float
    y: float
    size: float
    is_code: bool = False
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word from `x` to `end` on a line at height `y`; `start` is its offset in the page's text."""

    text: str
    x: float
    end: float
    y: float
    size: float
    rotation: int = 0
    start: int = 0

    def gap(self, before: Word) -> float:
        """Return the space between two words, in either writing direction; negative if they overlap."""
        return max(self.x - before.end, before.x - self.end)


def rotate(x: float, y: float, degrees: int) -> tuple[float, float]:
    """Return a position along and across the writing direction of text rotated by `degrees`."""
    if not degrees:
        return x, y
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return x * cosine + y * sine, y * cosine - x * sine


def append_raised(before: str, number: str) -> str:
    """Append a raised number to `before` as an exponent or a note reference."""
    is_power = _POWER.search(before) or not number.isdigit()
    return f"{before}^{number}" if is_power else f"{before}[^{number}]"


def measure_word_gap(lines: Iterable[Sequence[Word]]) -> float:
    """Return the median space between words, as a share of their size; 0.3 for short texts."""
    gaps = [
        word.gap(before) / max(word.size, 1)
        for words in lines
        if len(words) > 4
        for before, word in pairwise(words)
        if before.text.isalpha() and word.text.isalpha()
    ]
    return median(gaps) if len(gaps) > 20 else 0.3


def split_cells(words: Sequence[Word], gap: float = 0.3) -> list[list[Word]]:
    """Split a line into cells at spaces much wider than the usual `gap`, from left to right unless it has RTL text."""
    widest = max(_CELL_GAP, 2.5 * gap)
    cells: list[list[Word]] = []
    for word in words:
        if cells and not _is_apart(cells[-1], word, widest):
            cells[-1].append(word)
        else:
            cells.append([word])
    is_reversed = any(_RIGHT_TO_LEFT.search(word.text) for word in words)
    return cells if is_reversed else sorted(cells, key=lambda cell: cell[0].x)


def _is_apart(cell: Sequence[Word], word: Word, widest: float) -> bool:
    """Return whether a word starts a new cell."""
    before, size = cell[-1], max(cell[-1].size, word.size)
    is_label = len(cell) == 1 and _LABEL.fullmatch(before.text)
    if is_label or _TRAILING_SIGN.fullmatch(word.text):
        return False
    is_close = _DENSE_END.search(before.text) and _DENSE_START.match(word.text)
    return word.gap(before) > (_DENSE_CELL_GAP if is_close else widest) * size


def build_code_lines(lines: Sequence[Sequence[Word]]) -> list[Line]:
    """Return monospaced lines with their indentation and inner spaces."""
    margin = min(word.x for words in lines for word in words)
    result = []
    for words in lines:
        text = ""
        for word in words:
            column = round((word.x - margin) * len(word.text) / max(word.end - word.x, 1))
            text += " " * max(bool(text), min(column, _MAX_CODE_WIDTH) - len(text)) + word.text
        result.append(Line(text, margin, words[0].y, round(words[0].size, 1), is_code=True))
    return result


def build_line(words: Sequence[Word]) -> Line:
    """Build a line from its words."""
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[round(word.size, 1)] += len(word.text)
    size = sizes.most_common(1)[0][0]
    y = next(word.y for word in words if round(word.size, 1) == size)
    text = " ".join(join_words(cell, y) for cell in split_cells(words))
    return Line(text, min(word.x for word in words), y, size)


def join_words(words: Sequence[Word], y: float) -> str:
    """Return the words of a line at height `y` as text."""
    text = ""
    for i, word in enumerate(words):
        is_raised = i and word.y > y + RAISED_SHARE * word.size and word.text.strip(".,;:)]").isdigit()
        if is_raised and word.gap(words[i - 1]) < 0.2 * word.size:
            text = append_raised(text, word.text)
        else:
            text += (" " if text else "") + word.text
    return normalize_glyphs(text)


def normalize_glyphs(text: str) -> str:
    """Replace ligatures and radicals with the letters and characters they represent."""
    text = _ENDING.sub(" ", text.translate(_RADICALS))
    return _SHARED_GLYPH.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
