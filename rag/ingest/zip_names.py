"""The names in a zip archive, which mostly does not say what charset they are in.

Explorer and many others write them in the charset of the packing machine's console, macOS in UTF-8 without saying so.
What a console of another country has in the place of a letter is a sign, a letter of the wrong case, or not what the
languages of the letters around it have there: so the names of an archive are judged together.
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Sequence

from rag.reading.charset import EAST_ASIAN, guess_codec

_UTF8_FLAG = 0x800
_UNICODE_PATH = 0x7075
# Consoles of Windows, each with the charset of the same languages that the detector knows.
_CONSOLES = {"cp850": "cp1252", "cp852": "windows-1250", "cp866": "windows-1251", "cp737": "windows-1253"}
_COMMON = {"gb2312": "gb18030", "shift_jis": "cp932", "big5": "big5hkscs", "euc-kr": "cp949"}
_SIGNS = frozenset(["So", "Sm", "Sc", "Sk", "No", "Lo"])
_WORD = re.compile(r"[^\W\d_]+")
_RUN = re.compile(rb"[\x80-\xff]+")
_ENDING = re.compile(rb"\.\w{1,8}$", re.MULTILINE)
_MAX_SIGNS = 0.1
_TOO_FEW_BYTES = 4  # two characters: common ones in Chinese are so in Korean too, and Chinese has more readers here


def read_names(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The path of each entry, as its writer saw it."""
    names = [_stated_name(entry) for entry in entries]
    codec = _codec_of(b"\n".join(name for name in names if isinstance(name, bytes)))
    return [name if isinstance(name, str) else name.decode(codec, "replace") for name in names]


def _stated_name(entry: zipfile.ZipInfo) -> str | bytes:
    """The name where its charset is stated, by a flag or in Info-ZIP's extra field; else its bytes."""
    if entry.flag_bits & _UTF8_FLAG:
        return entry.filename
    name, extra = entry.filename.encode("cp437", "replace"), entry.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _UNICODE_PATH and field[1:5] == struct.pack("<I", zlib.crc32(name)):
            return field[5:].decode("utf-8", "replace").partition("\0")[0]
    return name


def _codec_of(names: bytes) -> str:
    try:
        names.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    east_asian = guess_codec(names)
    is_east_asian = east_asian in EAST_ASIAN and _can_decode(names, east_asian)
    console = next((page for page in _CONSOLES if _is_of_console(names, page)), "")
    if sum(map(len, _RUN.findall(names))) <= _TOO_FEW_BYTES and _can_decode(names, "gb2312"):
        return "gb18030"
    if is_east_asian and not (console and _stand_alone(names) and _is_latin(names, east_asian)):
        return east_asian
    if console or _is_latin(names, "gb18030"):
        return console or "cp850"
    # Of a few characters no more can be said than whether they are common ones.
    return next((codec for common, codec in _COMMON.items() if _can_decode(names, common)), "gb18030")


def _can_decode(names: bytes, codec: str) -> bool:
    try:
        return bool(names.decode(codec))
    except UnicodeDecodeError:
        return False


def _stand_alone(names: bytes) -> bool:
    """Whether most bytes outside ASCII have none of their kind beside them, as accents in words do not."""
    runs = _RUN.findall(names)
    return 2 * sum(len(run) == 1 for run in runs) > sum(map(len, runs))


def _is_latin(names: bytes, codec: str) -> bool:
    """Whether there are more Latin letters in the names, endings aside, than other characters by `codec`."""
    text = _ENDING.sub(b"", names).decode(codec, "replace")
    return sum(character > "\x7f" for character in text) < sum(c.isascii() and c.isalpha() for c in text)


def _is_of_console(names: bytes, page: str) -> bool:
    """Whether a console's reading is of letters, cased as words are, which the detector takes for its languages'."""
    text = names.decode(page, "replace")
    outside = [character for character in text if character > "\x7f"]
    if sum(unicodedata.category(character) in _SIGNS for character in outside) > _MAX_SIGNS * len(outside):
        return False
    if not all(word.isascii() or _is_cased(word) for word in _WORD.findall(text)):
        return False
    windows = _CONSOLES[page]
    return guess_codec(text.encode(windows, "replace")) == windows


def _is_cased(word: str) -> bool:
    return word.isupper() or word[1:] == word[1:].lower()
