"""Decoding: byte order mark, then UTF-8, then the declared charset, then detection.

Text in other charsets is rarely valid UTF-8, so UTF-8 takes precedence over any declaration (`rag.web.markup`). A
declared charset is used if it fits the bytes. Single-byte charsets fit any bytes, so such a declaration is ignored if
the bytes are clearly East Asian text. The rest is left to chardetng, Firefox's detector, which compares letter pairs
with their frequencies in the languages of the web.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter

from rag.text import lazy_regex
from rag.web.markup import codec_of, detect_utf16, find_declaration
from rag.web.urls import split_url

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 65536
_ASCII = bytes(range(128))
_FALLBACK = "cp1252"
EAST_ASIAN = frozenset(["gb18030", "big5hkscs", "cp932", "cp949", "euc-jp", "iso-2022-jp"])
# Python codecs to try in turn for charsets that no single one covers.
_FULLER_CODECS = {
    "cp949": ("euc-kr", "cp949"),
    "euc-jp": ("euc-jp", "euc-jis-2004"),
    "iso-2022-jp": ("iso-2022-jp", "iso2022-jp-2004"),
}
_BROKEN = lazy_regex("[\ufffd\x80-\x9f\ue000-\uf8ff]")
_CONTROLS = lazy_regex("[\x80-\x9f]")
_WINDOWS_SIGNS = {place: bytes([place]).decode("cp1252", "ignore") or chr(place) for place in range(0x80, 0xA0)}
# The first two bytes of a UTF-8 character, decoded by a single-byte charset.
_TWICE = lazy_regex(r"[\xc2-\xf4][\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]")
_NOT_ASCII = lazy_regex("[^\x00-\x7f]")
# Bytes that never occur inside a multi-byte character, in any charset.
_SAFE_BREAKS = rb"[\x00-/:-?]"
_PIECES = 16
_SURE_BYTES = 3  # continuation bytes: other charsets do not have that many by chance
_CLEAR_BYTES = 32
# Shares of the non-ASCII bytes. In other charsets, at least 40 % of them are invalid UTF-8.
_MAX_BROKEN_UTF8 = 0.25
_MAX_BROKEN = 0.02


def decode(body: bytes, declared: str | None = None, url: str = "") -> str:
    """Decode `body`, without its byte order mark; `declared` is the charset of the HTTP header, if any.

    The country in the host of `url`, if any, helps detection. Never fails: undecodable bytes become U+FFFD.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if utf16 := detect_utf16(body, declared):
        return body.decode(utf16, "replace")
    count = len(body.translate(None, _ASCII))
    codec_names = (codec_of(label) for label in (declared, find_declaration(body[:_HEAD])) if label)
    codecs_declared = list(dict.fromkeys(codec for codec in codec_names if codec and not codec.startswith("utf-16")))
    codecs_declared.sort(key=_FALLBACK.__eq__)  # Latin-1, a common server default, comes last
    if _is_utf8(body, count, codecs_declared):
        return _repair(body.decode("utf-8", "replace"))
    for codec in codecs_declared:
        text = _decode_as(body, codec)
        broken = _count_broken(text, codec)
        if broken <= _MAX_BROKEN * count and not _is_contradicted(codec, broken, body, count):
            return text
    return _decode_as(body, _detect(body, count, _find_country(url)))


def _repair(text: str) -> str:
    """Repair text that its site encoded twice, as in "donâ€™t"."""
    if not _TWICE.search(text):
        return text
    from ftfy import fix_encoding

    lines = text.split("\n")  # separately, as only some may be wrong
    return "\n".join(fix_encoding(line) if _TWICE.search(line) else line for line in lines)


def _is_utf8(body: bytes, count: int, declared: list[str]) -> bool:
    """Return whether `body` is UTF-8, except for a few broken bytes; `count` is the number of non-ASCII bytes."""
    try:
        others = len(body) - len(body.decode("utf-8"))
    except UnicodeDecodeError:
        limit = _MAX_BROKEN if set(declared) - {"utf-8"} else _MAX_BROKEN_UTF8
        return body.decode("utf-8", "replace").count("\ufffd") <= limit * count
    is_sure = others >= (_SURE_BYTES if EAST_ASIAN.intersection(declared) else 1)
    return b"\x1b" not in body and (is_sure or not count)


def _decode_as(body: bytes, codec: str) -> str:
    if codec.startswith("iso-8859"):
        return _decode_iso(body, codec)
    for name in _FULLER_CODECS.get(codec, (codec,)):
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    return body.decode(codec, "replace")


def _decode_iso(body: bytes, codec: str) -> str:
    """Decode ISO 8859, with the quotes and dashes of Windows-1252 in place of control characters.

    If the detected Windows charset agrees on most other characters, and has letters in these places or is detected
    without them too, decode everything by that.
    """
    text = body.decode(codec, "replace")
    controls = [match.start() for match in _CONTROLS.finditer(text)]
    if not controls:
        return text
    guess = guess_codec(body)
    windows_text = body.decode(guess, "replace") if guess.startswith("windows") else ""
    alike = sum(ours == theirs for ours, theirs in zip(text, windows_text, strict=False) if ours >= "\xa0")
    has_letters = windows_text and any(windows_text[place].isalpha() for place in controls)
    is_other = has_letters or guess_codec(body.translate(None, bytes(range(0x80, 0xA0)))) == guess
    return windows_text if is_other and 2 * alike > len(_NOT_ASCII.findall(text)) else text.translate(_WINDOWS_SIGNS)


def _count_broken(text: str, codec: str) -> int:
    """Count replacement, control and private-use characters in `text`; 0 if `codec` is a single-byte charset."""
    return len(_BROKEN.findall(text)) if codec in EAST_ASIAN or codec == "utf-8" else 0


def _is_contradicted(codec: str, broken: int, body: bytes, count: int) -> bool:
    """Return whether `body` is clearly East Asian text in another charset than `codec`, which leaves `broken` bad
    characters."""
    if count < _CLEAR_BYTES or (codec in EAST_ASIAN and not broken):
        return False
    detected = _detect(body, count, None)
    return detected in EAST_ASIAN - {codec} and _count_broken(_decode_as(body, detected), detected) < max(broken, 1)


def _detect(body: bytes, count: int, country: bytes | None) -> str:
    """Return the codec that fits `body` best; `count` is the number of non-ASCII bytes."""
    codec = guess_codec(body, country)
    is_clean = codec in EAST_ASIAN and not _count_broken(_decode_as(body, codec), codec)
    if codec == "utf-8" or is_clean:
        return codec
    if count >= _CLEAR_BYTES and (majority := _detect_damaged(body, count, country)):
        return majority
    return codec if codec in EAST_ASIAN | {_FALLBACK} or _forms_words(body, codec) else _FALLBACK


def guess_codec(body: bytes, country: bytes | None = None) -> str:
    """Return the codec that chardetng guesses for `body`; `country` is the top-level domain of its host, if any."""
    from chardetng_py import EncodingDetector

    detector = EncodingDetector()
    detector.feed(body, last=True)
    name = detector.guess(tld=country, allow_utf8=True)
    return codec_of(name) or name


def _detect_damaged(body: bytes, count: int, country: bytes | None) -> str | None:
    """Return the East Asian charset of most pieces of `body`, or None: a single bad byte rules it out for the whole."""
    pieces = re.findall(rb"(?s).{%d,}?(?:%s|\Z)" % (len(body) // _PIECES + 1, _SAFE_BREAKS), body)
    votes = Counter[str]()
    for piece in pieces:
        votes[guess_codec(piece, country)] += len(piece.translate(None, _ASCII))
    codec, _ = votes.most_common(1)[0]
    if codec not in EAST_ASIAN or _count_broken(_decode_as(body, codec), codec) > _MAX_BROKEN * count:
        return None
    return codec


def _forms_words(body: bytes, codec: str) -> bool:
    """Return whether characters that `codec` decodes unlike Windows-1252 are mostly letters within words."""
    text, plain = body.decode(codec, "replace"), body.decode(_FALLBACK, "replace")
    places = [match.start() for match in _NOT_ASCII.finditer(text) if text[match.start()] != plain[match.start()]]
    in_words = (
        text[place].isalpha() and (text[place - 1 : place].isalpha() or text[place + 1 : place + 2].isalpha())
        for place in places
    )
    return 2 * sum(in_words) > len(places)


def _find_country(url: str) -> bytes | None:
    """Return the country-code top-level domain of the host of `url`, or None."""
    label = (split_url(url).hostname or "").rstrip(".").rpartition(".")[2].lower()
    is_country = label.isascii() and ((len(label) == 2 and label.isalpha()) or label.startswith("xn--"))
    return label.encode() if is_country else None
