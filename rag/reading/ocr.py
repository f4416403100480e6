"""Text recognition (OCR) for pictures: scanned pages of a PDF file, photographs and screenshots of text.

rapidocr and its models are an optional requirement, `make install-ocr`. They run in a child of their own, a picture
at a time: a full page takes them seconds, and three times the memory of other readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from importlib.util import find_spec
from statistics import median
from typing import Any

from rag.errors import IngestError
from rag.web.guard import shown
from rag.web.media import PDF

Scanned = list[Any]
"""A recognized line: how sure its letters are (0 to 1), its height above the page's foot, the size of its letters, and
its words, each a list of text, beginning and end. Lengths are in points."""
_DPI = 150
_LARGEST = 8 * 3_400_000
_BAND = 3_400_000
"""Pixels that are read at once; what is larger is read in bands."""
_OVERLAP = 160
_LOWEST_BAND = 600
_LONGEST_SIDE = 4000
_SPACED = 0.35
_TALL = 1.5
_LETTERS = 0.72
"""The size of letters for the height of the box around their line."""
_LEVEL = 0.2
_SMALL = 1000
_JUDGED = 9
_JUDGED_LENGTH = 8


def is_installed() -> bool:
    """Whether the optional requirement is there."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


@lru_cache(maxsize=1)
def load_engine() -> Any:
    """The engine with its models, in one thread."""
    from rapidocr import RapidOCR

    threads = {f"EngineConfig.onnxruntime.{name}_op_num_threads": 1 for name in ("intra", "inter")}
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": _LONGEST_SIDE,
            "Global.text_score": 0.0,
            "Rec.rec_batch_num": 1,  # more at a time take more memory, and are slower in one thread
            **threads,
        }
    )


def recognize_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """The lines of a picture, or of a page of a PDF file; arguments: content_type, url, page (from 1).

    Raises IngestError("picture_broken").
    """
    image = _rendered(body, header["page"]) if header["content_type"] == PDF else _decoded(body, header["url"])
    return {"lines": _in_points(_lines(_upright(_fitted(image))))}


def _rendered(body: bytes, number: int) -> Any:
    from pypdfium2 import PdfDocument

    with closing(PdfDocument(body)) as document, closing(document[number - 1]) as page:
        width, height = page.get_size()
        scale = min(_DPI / 72, math.sqrt(_LARGEST / max(1.0, width * height)))
        return page.render(scale=scale).to_numpy().copy()


def _decoded(body: bytes, url: str) -> Any:
    """A picture's pixels, turned as its camera says, on white where it is transparent."""
    import cv2
    import numpy as np

    data = np.frombuffer(body, np.uint8)
    try:
        image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
        if image is not None and image.ndim == 3 and image.shape[2] == 4 and image.dtype == np.uint8:
            opaque = image[:, :, 3:] / 255.0
            return (image[:, :, :3] * opaque + 255 * (1 - opaque)).astype(np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise IngestError("picture_broken", url=shown(url)) from error
    if image is None:
        raise IngestError("picture_broken", url=shown(url))
    return image


def _fitted(image: Any) -> Any:
    """A picture no larger than can be read in the time for one."""
    import cv2

    scale = math.sqrt(_LARGEST / (image.shape[0] * image.shape[1]))
    return image if scale >= 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def _upright(image: Any) -> Any:
    """The picture turned so that its lines run level, and its letters stand on their feet."""
    import numpy as np

    found = _boxes(image)
    if sum(map(_is_tall, found)) > 0.6 * len(found):
        image = np.rot90(image).copy()
        found = _boxes(image)
    if abs(angle := _slant(found)) > _LEVEL:
        image = _turned(image, angle)
        found = _boxes(image)
    widest = sorted(found, key=lambda box: math.dist(box[0], box[1]), reverse=True)[:_JUDGED]
    downs = [_is_upside_down(image[top:bottom, left:right]) for left, top, right, bottom in map(_bounds, widest)]
    return np.rot90(image, 2).copy() if 2 * sum(downs) > max(1, len(downs)) else image


def _slant(boxes: Sequence[Any]) -> float:
    """The angle in which most lines that are long enough to tell lie, in degrees."""
    wide = [box for box in boxes if math.dist(box[0], box[1]) > 5 * math.dist(box[0], box[3])]
    return median(math.degrees(math.atan2(b[1][1] - b[0][1], b[1][0] - b[0][0])) for b in wide) if wide else 0.0


def _turned(image: Any, degrees: float) -> Any:
    import cv2

    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
    return cv2.warpAffine(image, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)


def _boxes(image: Any) -> list[Any]:
    """Where lines are, as the engine sees them in a small copy of the picture."""
    import cv2

    scale = min(1.0, _SMALL / max(image.shape[:2]))
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    found = load_engine()(small, use_det=True, use_cls=False, use_rec=False).boxes
    return [] if found is None else [box / scale for box in found]


def _bounds(box: Any) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a line's beginning, since the engine squeezes what it judges into one size."""
    left, top = (max(0, int(side)) for side in box.min(axis=0))
    right, bottom = (int(side) + 1 for side in box.max(axis=0))
    return left, top, min(right, left + _JUDGED_LENGTH * (bottom - top)), bottom


def _is_tall(box: Any) -> bool:
    return bool(math.dist(box[0], box[3]) > _TALL * math.dist(box[0], box[1]))


def _is_upside_down(crop: Any) -> bool:
    found = load_engine()(crop, use_det=False, use_cls=True, use_rec=False).cls_res
    return bool(found) and found[0][0] == "180"


def _bands(image: Any) -> Iterator[tuple[int, int, float, float]]:
    """Where bands of a picture begin and end, and between which heights their lines count: they overlap."""
    height, width = image.shape[:2]
    step = max(_LOWEST_BAND, _BAND // width)
    tops = range(0, max(1, height - _OVERLAP), step - _OVERLAP) if height > step else range(1)
    for top in tops:
        bottom = min(height, top + step)
        is_last = bottom == height
        yield top, bottom, top and top + _OVERLAP / 2, height if is_last else bottom - _OVERLAP / 2
        if is_last:
            return


def _lines(image: Any) -> Iterator[tuple[Any, float, list[list[Any]]]]:
    """The box of each line, how sure it is, and its words."""
    import numpy as np

    for top, bottom, first, last in _bands(image):
        result = load_engine()(image[top:bottom], use_det=True, use_cls=True, use_rec=True, return_word_box=True)
        if result.txts is None:
            continue
        for box, text, score, words in zip(result.boxes, result.txts, result.scores, result.word_results, strict=True):
            if first <= top + box[:, 1].mean() < last:
                yield np.add(box, (0, top)), float(score), _words(text, box, words)


def _words(text: str, box: Any, found: Sequence[Any]) -> list[list[Any]]:
    """The words of a line with their beginnings and ends; wide gaps part what is written without spaces."""
    places: list[tuple[float, float]] = []
    for word, _, corners in found:
        start, step = float(corners[0][0]), float(corners[1][0] - corners[0][0]) / max(1, len(word))
        places += [(start + n * step, start + (n + 1) * step) for n in range(len(word))]
    letters = "".join(text.split())
    if "".join(word for word, *_ in found) != letters:
        start, step = float(box[0][0]), float(box[1][0] - box[0][0]) / max(1, len(letters))
        places = [(start + n * step, start + (n + 1) * step) for n in range(len(letters))]
    size, at = math.dist(box[0], box[3]), 0
    words: list[list[Any]] = []
    for token in text.split():
        part: list[Any] = [token[0], *places[at]]
        for letter, (x, end) in zip(token[1:], places[at + 1 :], strict=False):
            if x - part[2] > _SPACED * size:
                words.append(part)
                part = ["", x, end]
            part = [part[0] + letter, part[1], end]
        words.append(part)
        at += len(token)
    return words


def _in_points(lines: Iterable[tuple[Any, float, list[list[Any]]]]) -> list[Scanned]:
    """The lines with their places above the page's foot."""
    unit = 72 / _DPI
    found = []
    for box, score, words in lines:
        size = _LETTERS * math.dist(box[0], box[3])
        foot = float(box[3][1] + box[2][1]) / 2 - 0.2 * size
        along = [[text, unit * x, unit * end] for text, x, end in words]
        found.append([round(score, 3), -unit * foot, unit * size, along])
    return found
