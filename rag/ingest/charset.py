"""From bytes to text: byte order mark, header, meta element, then detection.

A declaration is believed only when the bytes agree with it, since servers often declare one charset
for pages written in another. `gb2312` and `gbk` are read as GB18030, their superset, as browsers do.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Browsers' readings of labels. What is neither here nor in _KNOWN is no charset: utf-7 is an attack.
_READ_AS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb_2312-80": "gb18030",
    "x-gbk": "gb18030",
    "cp936": "gb18030",
    "big5": "big5hkscs",
    "big5-hkscs": "big5hkscs",
    "x-x-big5": "big5hkscs",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "tis-620": "cp874",
    "utf8": "utf-8",
}
_KNOWN = re.compile(
    r"utf-8|utf-16(?:-?[lb]e)?|gb18030|cp(?:125[0-8]|866|874|932|949|950)|windows-(?:125[0-8]|874|31j)"
    r"|iso-8859-(?:[2-8]|1[0-6])|koi8-[ru]|euc-jp|iso-2022-jp|big5hkscs"
)
_META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_XML = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_NOT_ASCII = re.compile(rb"(?:[\x80-\xff][\x30-\xff]?)+")
_WEAK = "cp1252"
_SNIFFED = 8192
_SAMPLE = 65536
_MAX_WRONG = 0.002
# The most frequent characters of modern Chinese text, in both scripts: four in ten of any page.
_FREQUENT = {
    "gb18030": "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得",
    "big5hkscs": "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得",
}
_FREQUENT_SHARE = 0.15


def decode(body: bytes, declared: str | None = None) -> str:
    """The text of `body`, without its byte order mark; `declared` is the charset of the header, if any.

    Never fails: what no charset explains comes out with replacement characters.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    best: tuple[float, str] | None = None
    for codec in _candidates(body, declared):
        text = body.decode(codec, "replace")
        wrong = text.count("\ufffd") / max(1, len(text))
        if wrong <= _MAX_WRONG:
            return text
        if best is None or wrong < best[0]:
            best = (wrong, text)
    return best[1] if best else body.decode("utf-8", "replace")


def codec_of(label: str) -> str | None:
    """The Python codec for a charset's label as browsers read it, or None for an unknown one."""
    name = label.strip().lower()
    name = _READ_AS.get(name, name)
    return name if _KNOWN.fullmatch(name) else None


def _candidates(body: bytes, declared: str | None) -> Iterator[str]:
    """Codecs in the order of trust. Latin-1 fits any bytes and is what servers say unasked, so it waits."""
    head = body[:_SNIFFED]
    metas = [match[1].decode("ascii") for match in (_META.search(head), _XML.search(head)) if match]
    told = [codec_of(label) for label in (declared, *metas) if label]
    strong = [codec for codec in told if codec and codec != _WEAK and not codec.startswith("utf-16")]
    yield from dict.fromkeys(strong)
    if "utf-8" not in strong:
        yield "utf-8"
    if declared and (codec_of(declared) or "").startswith("utf-16"):
        yield "utf-16" if codec_of(declared) == "utf-16" else str(codec_of(declared))
    if _WEAK not in told and (found := _detect(body)):
        yield found
    if _WEAK in told:
        yield _chinese_codec(body) or _WEAK
    yield _WEAK


def _detect(body: bytes) -> str | None:
    if chinese := _chinese_codec(body):
        return chinese
    from charset_normalizer import from_bytes

    best = from_bytes(_sample(body), threshold=0.3).best()
    return codec_of(best.encoding.replace("_", "-")) or best.encoding if best else None


def _chinese_codec(body: bytes) -> str | None:
    """GB18030 or Big5 when, read so, the text uses the characters that Chinese text uses most."""
    pieces = b" ".join(_NOT_ASCII.findall(_sample(body)))
    shares = {codec: _frequent_share(pieces.decode(codec, "ignore"), often) for codec, often in _FREQUENT.items()}
    codec = max(shares, key=lambda name: shares[name])
    return codec if shares[codec] >= _FREQUENT_SHARE else None


def _frequent_share(text: str, often: str) -> float:
    marks = [character for character in text if character >= "\x80"]
    return sum(character in often for character in marks) / max(1, len(marks))


def _sample(body: bytes) -> bytes:
    """The first stretch that is not ASCII, from where the text begins to differ between charsets."""
    match = re.search(rb"[\x80-\xff]", body)
    start = match.start() if match else 0
    return body[start : start + _SAMPLE]
