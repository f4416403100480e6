"""Text recognition (OCR) for images: scanned PDF pages, photographs and screenshots of text.

rapidocr and its models are an optional dependency (`make install-ocr`). They run in a separate child process, one
image at a time: a full page takes seconds, and three times the memory of other readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from statistics import median
from typing import Any

from rag.errors import IngestError
from rag.web.guard import printable
from rag.web.media import PDF

ScannedLine = list[Any]
"""A recognised line: confidence (0 to 1), baseline (y axis upwards, 0 at the top edge), font size, and words as [text,
start, end]. Lengths are in points at 150 dpi."""
_DPI = 150
_MAX_PIXELS = 8 * 3_400_000
_BAND_PIXELS = 3_400_000
"""Max. pixels per engine call; larger images are split into bands."""
_OVERLAP = 160
_MIN_BAND_HEIGHT = 600
_MAX_SIDE = 4000
_WORD_GAP = 0.35
_TALL_RATIO = 1.5
_LETTER_RATIO = 0.72
"""Ratio of the font size to the height of a line's bounding box."""
_MAX_SLANT = 0.2
_PREVIEW_SIDE = 1000
_SAMPLE_LINES = 9
_SAMPLE_LENGTH = 8


@lru_cache(maxsize=1)
def load_engine() -> Any:
    """Load the OCR engine with its models, limited to one thread."""
    from rapidocr import RapidOCR

    threads = {f"EngineConfig.onnxruntime.{name}_op_num_threads": 1 for name in ("intra", "inter")}
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": _MAX_SIDE,
            "Global.text_score": 0.0,
            "Rec.rec_batch_num": 1,  # larger batches take more memory and are slower in one thread
            **threads,
        }
    )


def recognize_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """Return the lines of an image or a PDF page; arguments: content_type, url, page (from 1).

    Raises IngestError("picture_broken") if the image cannot be decoded.
    """
    import cv2

    image = _render(body, header["page"]) if header["content_type"] == PDF else decode_image(body, header["url"])
    scale = math.sqrt(_MAX_PIXELS / (image.shape[0] * image.shape[1]))
    if scale < 1:  # too large for the time limit
        image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return {"lines": list(_recognize_lines(_make_upright(image)))}


def _render(body: bytes, number: int) -> Any:
    from pypdfium2 import PdfDocument

    with closing(PdfDocument(body)) as document, closing(document[number - 1]) as page:
        width, height = page.get_size()
        scale = min(_DPI / 72, math.sqrt(_MAX_PIXELS / max(1.0, width * height)))
        return page.render(scale=scale).to_numpy().copy()


def decode_image(body: bytes, url: str) -> Any:
    """Decode an image, rotated by its EXIF orientation, and blended onto white if it is transparent."""
    import cv2
    import numpy as np

    data: Any = np.frombuffer(body, np.uint8)
    try:
        image, kinds, metadata = cv2.imdecodeWithMetadata(data, cv2.IMREAD_UNCHANGED)
        if image is not None and image.ndim == 3 and image.shape[2] == 4 and image.dtype == np.uint8:
            opaque = image[:, :, 3:] / 255.0
            blended = (image[:, :, :3] * opaque + 255 * (1 - opaque)).astype(np.uint8)
            exif = [entry for kind, entry in zip(kinds, metadata, strict=True) if kind == cv2.IMAGE_METADATA_EXIF]
            if not exif:
                return blended
            # IMREAD_COLOR rotates an image, but drops its transparency.
            _, data = cv2.imencodeWithMetadata(".png", blended, [cv2.IMAGE_METADATA_EXIF], exif)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise IngestError("picture_broken", url=printable(url)) from error
    if image is None:
        raise IngestError("picture_broken", url=printable(url))
    return image


def _make_upright(image: Any) -> Any:
    """Rotate an image so that its text is horizontal and upright."""
    import cv2
    import numpy as np

    boxes = _find_boxes(image)
    tall = [box for box in boxes if math.dist(box[0], box[3]) > _TALL_RATIO * math.dist(box[0], box[1])]
    if len(tall) > 0.6 * len(boxes):
        image = np.rot90(image).copy()
        boxes = _find_boxes(image)
    wide = [box for box in boxes if math.dist(box[0], box[1]) > 5 * math.dist(box[0], box[3])]
    angles = [math.degrees(math.atan2(box[1][1] - box[0][1], box[1][0] - box[0][0])) for box in wide]
    if angles and abs(median(angles)) > _MAX_SLANT:
        height, width = image.shape[:2]
        matrix = cv2.getRotationMatrix2D((width / 2, height / 2), median(angles), 1.0)
        image = cv2.warpAffine(image, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)
        boxes = _find_boxes(image)
    widest = sorted(boxes, key=lambda box: math.dist(box[0], box[1]), reverse=True)[:_SAMPLE_LINES]
    flags = [_is_upside_down(image, box) for box in widest]
    return np.rot90(image, 2).copy() if 2 * sum(flags) > max(1, len(flags)) else image


def _find_boxes(image: Any) -> list[Any]:
    """Detect text lines in a downscaled copy, and return their boxes in the image's coordinates."""
    import cv2

    scale = min(1.0, _PREVIEW_SIDE / max(image.shape[:2]))
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    boxes = load_engine()(small, use_det=True, use_cls=False, use_rec=False).boxes
    return [] if boxes is None else [box / scale for box in boxes]


def _is_upside_down(image: Any, box: Any) -> bool:
    """Return whether a line is upside down, by its first letters: the engine scales every crop to one size."""
    left, top = (max(0, int(side)) for side in box.min(axis=0))
    right, bottom = (int(side) + 1 for side in box.max(axis=0))
    crop = image[top:bottom, left : min(right, left + _SAMPLE_LENGTH * (bottom - top))]
    result = load_engine()(crop, use_det=False, use_cls=True, use_rec=False).cls_res
    return bool(result) and result[0][0] == "180"


def _split_bands(image: Any) -> Iterator[tuple[int, int, float, float]]:
    """Yield overlapping bands as (top, bottom, first, last); lines count if centred between `first` and `last`."""
    height, width = image.shape[:2]
    step = max(_MIN_BAND_HEIGHT, _BAND_PIXELS // width)
    tops = range(0, max(1, height - _OVERLAP), step - _OVERLAP) if height > step else range(1)
    for top in tops:
        bottom = min(height, top + step)
        is_last = bottom == height
        yield top, bottom, top and top + _OVERLAP / 2, height if is_last else bottom - _OVERLAP / 2
        if is_last:
            return


def _recognize_lines(image: Any) -> Iterator[ScannedLine]:
    """Yield the lines of an upright image."""
    import numpy as np

    unit = 72 / _DPI
    for top, bottom, first, last in _split_bands(image):
        result = load_engine()(image[top:bottom], use_det=True, use_cls=True, use_rec=True, return_word_box=True)
        if result.txts is None:
            continue
        for box, text, score, words in zip(result.boxes, result.txts, result.scores, result.word_results, strict=True):
            if first <= top + box[:, 1].mean() < last:
                corners = np.add(box, (0, top))
                size = _LETTER_RATIO * math.dist(corners[0], corners[3])
                baseline = float(corners[3][1] + corners[2][1]) / 2 - 0.2 * size
                spans = [[word, unit * x, unit * end] for word, x, end in _split_words(text, box, words)]
                yield [round(float(score), 3), -unit * baseline, unit * size, spans]


def _split_words(text: str, box: Any, pieces: Sequence[Any]) -> list[list[Any]]:
    """Return a line's words as [text, start, end], split at spaces and at wide gaps."""
    places: list[tuple[float, float]] = []
    for word, _, corners in pieces:
        start, step = float(corners[0][0]), float(corners[1][0] - corners[0][0]) / max(1, len(word))
        places += [(start + n * step, start + (n + 1) * step) for n in range(len(word))]
    letters = "".join(text.split())
    if "".join(word for word, *_ in pieces) != letters:
        start, step = float(box[0][0]), float(box[1][0] - box[0][0]) / max(1, len(letters))
        places = [(start + n * step, start + (n + 1) * step) for n in range(len(letters))]
    size, at = math.dist(box[0], box[3]), 0
    words: list[list[Any]] = []
    for token in text.split():
        part: list[Any] = [token[0], *places[at]]
        for letter, (x, end) in zip(token[1:], places[at + 1 :], strict=False):
            if x - part[2] > _WORD_GAP * size:
                words.append(part)
                part = ["", x, end]
            part = [part[0] + letter, part[1], end]
        words.append(part)
        at += len(token)
    return words
