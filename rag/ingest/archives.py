"""Reading of files in zip archives and folders, within limits that ordinary documents do not reach.

An archive is read in the app's process, so nothing is unpacked past a limit: the declared size of an entry is checked
first, and its actual bytes are counted while reading.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath

from rag.errors import IngestError
from rag.reading.charset import EAST_ASIAN, guess_codec
from rag.text import lazy_regex, replace_surrogates
from rag.web.media import EXTENSION_TYPES, MEGABYTE, PICTURE, SLOW_TYPES

_UTF8_FLAG = 0x800
_UNICODE_PATH = 0x7075
# Code pages of Windows consoles, each with the charset that the detector uses for the same languages.
_CONSOLES = {"cp850": "cp1252", "cp852": "windows-1250", "cp866": "windows-1251", "cp737": "windows-1253"}
_COMMON = {"gb2312": "gb18030", "shift_jis": "cp932", "big5": "big5hkscs", "euc-kr": "cp949"}
_SIGNS = frozenset(["So", "Sm", "Sc", "Sk", "No", "Lo"])
_WORD = lazy_regex(r"[^\W\d_]+")
_RUN = lazy_regex(rb"[\x80-\xff]+")
_ENDING = lazy_regex(rb"\.\w{1,8}$", re.MULTILINE)
_MAX_SIGNS = 0.1
_TOO_FEW_BYTES = 4  # two characters, too few to tell Chinese from Korean; Chinese is more likely here


def read_names(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Return the decoded path of each entry; an undeclared charset is guessed from all names."""
    names = [_read_name(entry) for entry in entries]
    codec = _codec_of(b"\n".join(name for name in names if isinstance(name, bytes)))
    return [name if isinstance(name, str) else name.decode(codec, "replace") for name in names]


def _read_name(entry: zipfile.ZipInfo) -> str | bytes:
    """Return the name if its charset is declared, by a flag or in Info-ZIP's extra field; else its bytes."""
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
    if _can_decode(names, "utf-8"):
        return "utf-8"
    east_asian = guess_codec(names)
    is_east_asian = east_asian in EAST_ASIAN and _can_decode(names, east_asian)
    console = next((page for page in _CONSOLES if _is_console_text(names, page)), "")
    runs = _RUN.findall(names)
    size = sum(map(len, runs))
    if size <= _TOO_FEW_BYTES and _can_decode(names, "gb2312"):
        return "gb18030"
    # Like accented letters in words, most non-ASCII bytes have no non-ASCII neighbour.
    are_isolated = 2 * sum(len(run) == 1 for run in runs) > size
    if is_east_asian and not (console and are_isolated and _is_latin(names, east_asian)):
        return east_asian
    if console or _is_latin(names, "gb18030"):
        return console or "cp850"
    # Fallback: the first charset whose common characters cover all names.
    return next((codec for common, codec in _COMMON.items() if _can_decode(names, common)), "gb18030")


def _can_decode(names: bytes, codec: str) -> bool:
    try:
        names.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _is_latin(names: bytes, codec: str) -> bool:
    """Return whether `codec` gives more ASCII letters than non-ASCII characters, without file extensions."""
    text = _ENDING.sub(b"", names).decode(codec, "replace")
    return sum(character > "\x7f" for character in text) < sum(c.isascii() and c.isalpha() for c in text)


def _is_console_text(names: bytes, page: str) -> bool:
    """Return whether a console's code page gives words with ordinary case that the detector takes for its languages."""
    text = names.decode(page, "replace")
    outside = [character for character in text if character > "\x7f"]
    if sum(unicodedata.category(character) in _SIGNS for character in outside) > _MAX_SIGNS * len(outside):
        return False
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    if not all(word.isupper() or word[1:] == word[1:].lower() for word in words):
        return False
    windows = _CONSOLES[page]
    return guess_codec(text.encode(windows, "replace")) == windows


MAX_FILE_BYTES = 5 * MEGABYTE
MAX_DOCUMENT_BYTES = 25 * MEGABYTE
_DOCUMENT_EXTENSIONS = tuple(ending for ending, kind in EXTENSION_TYPES.items() if kind in SLOW_TYPES)
FILE_TYPES = (*EXTENSION_TYPES, ".jsonl")
_MEMBER_TYPES = tuple(ending for ending in FILE_TYPES if EXTENSION_TYPES.get(ending) != PICTURE)
"""File types read from folders and archives, without images, which usually belong to pages there."""
MAX_FILES = 2000
MAX_ENTRIES = 20_000
MAX_RATIO = 200
MAX_FOLDER_BYTES = 500 * MEGABYTE
_MIN_RATIO_BYTES = 1 * MEGABYTE
_SPARE_BYTES = 40 * MEGABYTE
_MAX_EXPANSION = 4
_ENTRY_MARK = b"PK\x01\x02"
_ENCRYPTED = 0x1
# zipfile decompresses all other methods in one step of any size.
_METHODS = frozenset([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
_ARCHIVES = (".zip", ".gz", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst")
# Errors that zipfile and zlib raise for malformed archives, such as impossible sizes and undecodable names.
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
_MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive or folder: its relative path, and its bytes or an error."""

    path: str
    data: bytes = b""
    broken: IngestError | None = None


def total_limit(packed: int) -> int:
    """Return how many bytes an archive of `packed` bytes may expand to."""
    return _SPARE_BYTES + _MAX_EXPANSION * packed


def file_limit(name: str) -> int:
    """Return the maximum size in bytes of a file with this name."""
    return MAX_DOCUMENT_BYTES if name.lower().endswith(_DOCUMENT_EXTENSIONS) else MAX_FILE_BYTES


def zip_members(name: str, data: bytes) -> Iterator[Member]:
    """Yield the files of a zip archive, sorted by path.

    Refused entries and unsupported types are yielded with an error. Raises IngestError for an archive that is broken or
    has too many files.
    """
    with _open_archive(name, data) as archive:
        infos = [info for info in archive.infolist() if info.filename and not info.is_dir()]
        entries = sorted(zip(read_names(infos), infos, strict=True), key=lambda entry: entry[0])
        visible = [(path, info) for path, info in entries if not _is_hidden(path)]
        if sum(not _is_unsupported(path) for path, _ in visible) > MAX_FILES:
            raise IngestError("archive_too_many", name=name, limit=MAX_FILES)
        files = [(path, partial(_read, archive, info, path, f"{name}/{path}")) for path, info in visible]
        yield from _read_members(name, files, total_limit(len(data)))


def folder_members(folder: Path) -> Iterator[Member]:
    """Yield the files of a folder and its subfolders like `zip_members`, without hidden files and symbolic links.

    Raises IngestError for a folder with too many files.
    """
    paths: list[str] = []
    count = 0
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            full = Path(parent) / name
            if name.startswith(".") or full.is_symlink() or not full.is_file():
                continue
            paths.append(full.relative_to(folder).as_posix())
            count += not _is_unsupported(name)
            if count > MAX_FILES:
                raise IngestError("folder_too_many", name=str(folder), limit=MAX_FILES)
    files = [(path, partial(_read_file, folder / path)) for path in sorted(paths)]
    yield from _read_members(str(folder), files, MAX_FOLDER_BYTES)


def _read_members(name: str, files: Sequence[tuple[str, Callable[[int, int], bytes]]], budget: int) -> Iterator[Member]:
    """Read `files`: paths, each with a reader that takes the file's limit and the remaining budget for all.

    Yields an error for each skipped file up to _MAX_LISTED, one for the rest, and one if no file was readable.
    """
    skipped: list[str] = []
    for path, read in files:
        if _is_unsupported(path):
            skipped.append(path)
            continue
        try:
            content = read(file_limit(path), budget)
        except IngestError as error:
            yield Member(path, broken=error)
            continue
        budget -= len(content)
        yield Member(path, content)
    readable = ", ".join(_MEMBER_TYPES)
    for path in skipped[:_MAX_LISTED]:
        yield Member(path, broken=IngestError("other_kind", types=readable))
    if more := skipped[_MAX_LISTED:]:
        yield Member("", broken=IngestError("archive_left_out", name=name, count=len(more), examples=more[0]))
    if len(skipped) == len(files):
        yield Member("", broken=IngestError("archive_empty", name=name, types=readable))


def _open_archive(name: str, data: bytes) -> zipfile.ZipFile:
    """Open an archive, unless it has too many entries, as each takes memory."""
    if data.count(_ENTRY_MARK) > MAX_ENTRIES:
        raise IngestError("archive_too_many", name=name, limit=MAX_FILES)
    try:
        return zipfile.ZipFile(BytesIO(data))
    except _ARCHIVE_ERRORS as error:
        raise IngestError("archive_broken", name=name) from error


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str, full: str, limit: int, budget: int) -> bytes:
    """Return an entry's bytes. Raises IngestError if it is not allowed or not readable."""
    _check_entry(info, path, full, limit, budget)
    maximum = min(limit, budget)
    try:
        with archive.open(info) as stream:
            content = stream.read(maximum + 1)
    except _ARCHIVE_ERRORS as error:
        raise IngestError("archive_broken", name=full) from error
    if len(content) > maximum:
        raise _size_error(full, limit, budget)
    return content


def _check_entry(info: zipfile.ZipInfo, path: str, full: str, limit: int, budget: int) -> None:
    pure = PurePosixPath(path.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or ":" in "".join(pure.parts[:1]):
        raise IngestError("archive_unsafe_name", name=full)
    if pure.suffix.lower() in _ARCHIVES:
        raise IngestError("archive_nested", name=full)
    if info.flag_bits & _ENCRYPTED:
        raise IngestError("archive_encrypted", name=full)
    if info.compress_type not in _METHODS or stat.S_ISLNK(info.external_attr >> 16):
        raise IngestError("archive_packing", name=full)
    times = info.file_size // max(1, info.compress_size)
    if info.file_size > _MIN_RATIO_BYTES and times > MAX_RATIO:
        raise IngestError("archive_bomb", name=full, times=times)
    if info.file_size > min(limit, budget):
        raise _size_error(full, limit, budget)


def _size_error(full: str, limit: int, budget: int) -> IngestError:
    return make_size_error(full, limit) if limit <= budget else IngestError("archive_over_budget", name=full)


def make_size_error(name: str, limit: int) -> IngestError:
    return IngestError("file_too_large", name=name, limit=limit // MEGABYTE)


def _read_file(path: Path, limit: int, budget: int) -> bytes:
    name = replace_surrogates(str(path))
    if path.suffix.lower() in _ARCHIVES:
        raise IngestError("archive_nested", name=name)
    try:
        if path.stat().st_size > min(limit, budget):
            raise _size_error(name, limit, budget)
        return path.read_bytes()
    except OSError as error:
        raise IngestError("file_unreadable", name=name) from error


def _is_hidden(path: str) -> bool:
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return any(part.startswith(".") and part != ".." for part in parts) or "__MACOSX" in parts


def _is_unsupported(path: str) -> bool:
    return not path.lower().endswith((*_MEMBER_TYPES, *_ARCHIVES))
