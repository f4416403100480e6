"""From bytes to text: byte order mark, UTF-8, the charset that is declared, then detection.

Nothing but UTF-8 looks like UTF-8, so that comes before every declaration (`rag.web.declared_charset`). A declared
charset is right when it explains the bytes. Every byte is a letter in a charset of single bytes, so such a declaration
is not believed where the bytes are clearly an East Asian text. What nothing explains is left to chardetng, the
detector of Firefox, which knows how often letters follow each other in the languages of the web.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from functools import partial

from rag.web.declared_charset import codec_of, declared_in, unmarked_utf16
from rag.web.url_key import split_url

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 65536
_ASCII = bytes(range(128))
_WEAK = "cp1252"
EAST_ASIAN = frozenset(["gb18030", "big5hkscs", "cp932", "cp949", "euc-jp", "iso-2022-jp"])
# Python's codecs that know characters which the one of that name leaves out, in the order in which they are tried.
_COMPLETE = {
    "cp949": ("euc-kr", "cp949"),
    "euc-jp": ("euc-jp", "euc-jis-2004"),
    "iso-2022-jp": ("iso-2022-jp", "iso2022-jp-2004"),
}
_BROKEN = re.compile("[\ufffd\x80-\x9f\ue000-\uf8ff]")
_CONTROLS = re.compile("[\x80-\x9f]")
_WINDOWS_SIGNS = {place: bytes([place]).decode("cp1252", "ignore") or chr(place) for place in range(0x80, 0xA0)}
_NOT_ASCII = re.compile("[^\x00-\x7f]")
# Bytes after which no character of more than one byte goes on, in any charset.
_CUTS = rb"[\x00-/:-?]"
_PIECES = 16
_SURE_BYTES = 3  # beyond the lead bytes: other charsets do not look like that much UTF-8 by accident
_CLEAR_BYTES = 32
# Shares of the bytes outside ASCII. In other charsets at least two in five are no UTF-8.
_MAX_BROKEN_UTF8 = 0.25
_MAX_BROKEN = 0.02


def decode(body: bytes, declared: str | None = None, url: str = "") -> str:
    """The text of `body`, without its byte order mark; `declared` is the charset of the header, if any.

    The country at the end of the host of `url`, if any, is a hint where nothing is declared. Never fails: what no
    charset explains comes out with replacement characters.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if unmarked := unmarked_utf16(body, declared):
        return body.decode(unmarked, "replace")
    count = len(body.translate(None, _ASCII))
    codecs_declared = _declared_codecs(body, declared)
    if _is_utf8(body, count, codecs_declared):
        return body.decode("utf-8", "replace")
    for codec in codecs_declared:
        text = _read(body, codec)
        broken = _count_broken(text, codec)
        if broken <= _MAX_BROKEN * count and not _is_contradicted(codec, broken, body, count):
            return text
    return _read(body, _detect(body, count, _country(url)))


def _declared_codecs(body: bytes, declared: str | None) -> list[str]:
    """The codecs that the header and the start of the document name. Servers say Latin-1 unasked, so it waits."""
    named = (codec_of(label) for label in (declared, declared_in(body[:_HEAD])) if label)
    found = dict.fromkeys(codec for codec in named if codec and not codec.startswith("utf-16"))
    return sorted(found, key=_WEAK.__eq__)


def _is_utf8(body: bytes, count: int, declared: list[str]) -> bool:
    """Whether `body` is UTF-8, a few broken bytes aside; `count` of its bytes are outside ASCII."""
    try:
        others = len(body) - len(body.decode("utf-8"))
    except UnicodeDecodeError:
        limit = _MAX_BROKEN if set(declared) - {"utf-8"} else _MAX_BROKEN_UTF8
        return body.decode("utf-8", "replace").count("\ufffd") <= limit * count
    is_sure = others >= (_SURE_BYTES if EAST_ASIAN.intersection(declared) else 1)
    return b"\x1b" not in body and (is_sure or not count)


def _read(body: bytes, codec: str) -> str:
    if codec.startswith("iso-8859"):
        return _read_iso(body, codec)
    for name in _COMPLETE.get(codec, (codec,)):
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    return body.decode(codec, "replace")


def _read_iso(body: bytes, codec: str) -> str:
    """Read ISO 8859, and what Windows has in the place of its control characters: quotes, dashes and a few letters.

    Where there are such letters, or all others are the Windows charset's too, the whole is in that.
    """
    text = body.decode(codec, "replace")
    controls = [match.start() for match in _CONTROLS.finditer(text)]
    if not controls:
        return text
    found = guess_codec(body)
    other = body.decode(found, "replace") if found.startswith("windows") else ""
    alike = sum(ours == theirs for ours, theirs in zip(text, other, strict=False) if ours >= "\xa0")
    has_letters = other and any(other[place].isalpha() for place in controls)
    is_other = has_letters or guess_codec(body.translate(None, bytes(range(0x80, 0xA0)))) == found
    return other if is_other and 2 * alike > len(_NOT_ASCII.findall(text)) else text.translate(_WINDOWS_SIGNS)


def _count_broken(text: str, codec: str) -> int:
    """How many characters of `text`, read by `codec`, no writer meant; charsets of single bytes do not show them."""
    return len(_BROKEN.findall(text)) if codec in EAST_ASIAN or codec == "utf-8" else 0


def _is_contradicted(codec: str, broken: int, body: bytes, count: int) -> bool:
    """Whether bytes that are declared as `codec`, and which that reads with so many broken characters, are clearly an
    East Asian text in another charset."""
    if count < _CLEAR_BYTES or (codec in EAST_ASIAN and not broken):
        return False
    other = _detect(body, count, None)
    return other in EAST_ASIAN - {codec} and _count_broken(_read(body, other), other) < max(broken, 1)


def _detect(body: bytes, count: int, country: bytes | None) -> str:
    """The codec that fits `body` best, `count` of whose bytes are outside ASCII."""
    codec = guess_codec(body, country)
    is_clean = codec in EAST_ASIAN and not _count_broken(_read(body, codec), codec)
    if codec == "utf-8" or is_clean:
        return codec
    if count >= _CLEAR_BYTES and (damaged := _detect_damaged(body, count, country)):
        return damaged
    return codec if codec in EAST_ASIAN | {_WEAK} or _makes_words(body, codec) else _WEAK


def guess_codec(body: bytes, country: bytes | None = None) -> str:
    """The codec that the detector of Firefox finds for `body`; `country` is the last label of its host, if any."""
    from chardetng_py import EncodingDetector

    detector = EncodingDetector()
    detector.feed(body, last=True)
    name = detector.guess(tld=country, allow_utf8=True)
    return codec_of(name) or name


def _detect_damaged(body: bytes, count: int, country: bytes | None) -> str | None:
    """The East Asian charset of most pieces of `body`: of the whole, one broken character rules out the right one."""
    pieces = re.findall(rb"(?s).{%d,}?(?:%s|\Z)" % (len(body) // _PIECES + 1, _CUTS), body)
    votes = Counter[str]()
    for piece in pieces:
        votes[guess_codec(piece, country)] += len(piece.translate(None, _ASCII))
    codec, _ = votes.most_common(1)[0]
    if codec not in EAST_ASIAN or _count_broken(_read(body, codec), codec) > _MAX_BROKEN * count:
        return None
    return codec


def _makes_words(body: bytes, codec: str) -> bool:
    """Whether what `codec` reads otherwise than Windows-1252 are letters in words, rather than signs such as £."""
    text, plain = body.decode(codec, "replace"), body.decode(_WEAK, "replace")
    places = [match.start() for match in _NOT_ASCII.finditer(text) if text[match.start()] != plain[match.start()]]
    return 2 * sum(map(partial(_is_in_word, text), places)) > len(places)


def _is_in_word(text: str, place: int) -> bool:
    before, letter, after = text[place - 1 : place], text[place], text[place + 1 : place + 2]
    return letter.isalpha() and (before.isalpha() or after.isalpha())


def _country(url: str) -> bytes | None:
    """The last label of the host of `url`, where that is a country's."""
    label = (split_url(url).hostname or "").rstrip(".").rpartition(".")[2].lower()
    is_country = label.isascii() and ((len(label) == 2 and label.isalpha()) or label.startswith("xn--"))
    return label.encode() if is_country else None
