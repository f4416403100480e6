"""From bytes to text: byte order mark, header, meta element, then detection.

A declaration (`rag.web.declared_charset`) is believed only when the bytes agree with it, since servers often
declare one charset for pages written in another.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from rag.ingest import byte_charsets, cjk_charsets
from rag.web.declared_charset import codec_of, declared_in, unmarked_utf16

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NOT_ASCII = re.compile(rb"(?:[\x80-\xff][\x30-\xff]?)+")
_WORDS = re.compile(rb"(?<![A-Za-z])[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*")
_WEAK = "cp1252"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAMPLE = 65536
_BEFORE = 40
_MAX_WRONG = 0.002
_SURE_BYTES = 3


def decode(body: bytes, declared: str | None = None) -> str:
    """The text of `body`, without its byte order mark; `declared` is the charset of the header, if any.

    Never fails: what no charset explains comes out with replacement characters.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if unmarked := unmarked_utf16(body, declared):
        return body.decode(unmarked, "replace")
    if _is_utf8(body):
        return body.decode("utf-8")
    best: tuple[float, str] | None = None
    for codec in _candidates(body, declared):
        text = body.decode(codec, "replace")
        wrong = text.count("\ufffd") / max(1, len(text))
        if wrong <= _MAX_WRONG:
            return text
        if best is None or wrong < best[0]:
            best = (wrong, text)
    return best[1] if best else body.decode("utf-8", "replace")


def without_surrogates(text: str) -> str:
    """`text` with a replacement character for each half of one: those can be neither stored nor printed."""
    return _SURROGATE.sub("\ufffd", text)


def _is_utf8(body: bytes) -> bool:
    """Whether `body` is UTF-8 beyond doubt: other charsets make no three characters of it by accident."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(body) - len(text) >= _SURE_BYTES and b"\x1b" not in body


def _candidates(body: bytes, declared: str | None) -> Iterator[str]:
    """Codecs in the order of trust. Latin-1 fits any bytes and is what servers say unasked, so it waits."""
    told = _told(body[:_SAMPLE], declared)
    strong = [codec for codec in told if codec != _WEAK and not codec.startswith("utf-16")]
    pieces = b" ".join(_NOT_ASCII.findall(_sample(body)))
    share, found = cjk_charsets.best_codec(pieces) if pieces else (0.0, _WEAK)
    if strong and share >= cjk_charsets.CLEAR and found not in strong[:1] and _is_doubtful(pieces, strong[0]):
        yield from (codec for codec in strong if codec == "utf-8")
        yield found
    yield from dict.fromkeys(strong)
    if "utf-8" not in strong:
        yield "utf-8"
    yield from (codec for codec in told if codec.startswith("utf-16"))
    if share >= cjk_charsets.CLEAR:
        yield found
    elif _WEAK not in told and (detected := _detect(body)):
        yield detected
    yield _WEAK


def _told(head: bytes, declared: str | None) -> list[str]:
    """The codecs that the header and the start of the document declare."""
    found = (codec_of(label) for label in (declared, declared_in(head)) if label)
    return [codec for codec in found if codec]


def _is_doubtful(pieces: bytes, codec: str) -> bool:
    """Whether a declared charset makes nothing sensible of the text: East Asian noise, or single bytes."""
    if codec not in cjk_charsets.CODECS:
        return True
    return cjk_charsets.score(pieces.decode(codec, "replace"), codec) < cjk_charsets.DOUBTFUL


def _detect(body: bytes) -> str | None:
    sample = _sample(body)
    if found := byte_charsets.likely_codec(b" ".join(_WORDS.findall(sample))):
        return found
    from charset_normalizer import from_bytes

    best = from_bytes(sample, threshold=0.3).best()
    return codec_of(best.encoding.replace("_", "-")) or best.encoding if best else None


def _sample(body: bytes) -> bytes:
    """The first stretch that is not ASCII, from where the text begins to differ between charsets."""
    match = re.search(rb"[\x80-\xff]", body)
    start = max(0, match.start() - _BEFORE) if match else 0
    return body[start : start + _SAMPLE]
