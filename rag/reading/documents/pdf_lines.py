"""The lines of a PDF's pages: their text, where they stand, and how large they are set."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

# PDF writers map glyphs that two characters share to the radical's code point, which no reader types. NFKC undoes
# that for the block of the Kangxi radicals; these are the ones of the supplement that stand for whole characters.
_RADICALS = str.maketrans(
    "⺁⺟⺠⺮⼾⻁⻄⻅⻆⻉⻋⻑⻓⻔⻗⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻲⻳",
    "厂母民竹户虎西见角贝车長长门雨青韦页风飞食马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙亀龟",
)
_SHARED_GLYPH = re.compile(r"[\u2f00-\u2fdf\ufb00-\ufb06]")
_MONOSPACED = re.compile(r"courier|mono|consol|menlo|typewriter|cmtt|sftt|lmtt|inconsolata", re.IGNORECASE)
_LEFT_OVER = re.compile(r"[\ufffd\ue000-\uf8ff]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page in the page's own units: where it begins, and the size most of it is set in."""

    text: str
    x: float
    y: float
    size: float
    is_code: bool = False


@dataclass(slots=True)
class LineCollector:
    """Gathers a page's lines through pypdf's `visitor_text`, whose pieces put together are the page's text."""

    lines: list[Line] = field(default_factory=list)
    unmapped: int = 0
    _pieces: list[tuple[str, float, float, float, bool]] = field(default_factory=list)

    def take(self, text: str, outer: Any, inner: Any, font: Any, size: float) -> None:
        """pypdf's visitor: a piece of text, the two matrices that place it, its font and size."""
        first, *others = text.split("\n")
        self._add(first, outer, inner, font, size)
        for part in others:
            self._end_line()
            self._add(part, outer, inner, font, size)

    def finish(self) -> list[Line]:
        self._end_line()
        return self.lines

    def _add(self, text: str, outer: Any, inner: Any, font: Any, size: float) -> None:
        if not text:
            return
        x = outer[0] * inner[4] + outer[2] * inner[5] + outer[4]
        y = outer[1] * inner[4] + outer[3] * inner[5] + outer[5]
        scale = math.hypot(inner[2], inner[3]) * math.hypot(outer[2], outer[3])
        name = str(font.get("/BaseFont", "")) if font else ""
        self._pieces.append((text, x, y, abs(size) * scale, bool(_MONOSPACED.search(name))))

    def _end_line(self) -> None:
        pieces, self._pieces = self._pieces, []
        raw = "".join(piece[0] for piece in pieces)
        self.unmapped += len(_LEFT_OVER.findall(raw))
        text = " ".join(readable(raw).split())
        if not text:
            return
        said = [piece for piece in pieces if piece[0].strip()]
        _, x, y, _, _ = said[0]
        sizes: dict[tuple[float, bool], int] = {}
        for part, _, _, size, is_code in said:
            key = (round(size, 1), is_code)
            sizes[key] = sizes.get(key, 0) + len(part)
        size, is_code = max(sizes, key=lambda key: sizes[key])
        self.lines.append(Line(text, x, y, size, is_code))


def readable(text: str) -> str:
    """`text` with ligatures and radicals as the letters and characters they stand for."""
    text = text.translate(_RADICALS)
    return _SHARED_GLYPH.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
