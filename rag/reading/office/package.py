"""Zip packages of office programs and books: bounded before they are opened, and their XML.

Office programs save Office Open XML in two dialects. The Strict one differs from what libraries read by its namespaces
alone (ISO/IEC 29500-4, annex A), so it is rewritten.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from io import BytesIO
from typing import Any

from rag.errors import IngestError
from rag.web.guard import shown

MAX_UNPACKED = 40_000_000
"""Bytes of a package's XML parts; its pictures are not counted, as they stay packed in the check."""
DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, OSError, StopIteration, TypeError),
    *(RuntimeError, SyntaxError, ValueError, zipfile.BadZipFile, zlib.error),  # a SyntaxError is one of XML
)
"""What libraries raise for a package that is none, or holds other parts than it says."""
_MAX_PARTS = 20_000
_STATED = {
    "title": "title",
    "author": "creator initial-creator",
    "created": "created creation-date",
    "modified": "modified date",
}
_TEXTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_NOWHERE = re.compile(rb'<Relationship\b[^<>]*\bTarget="[^"<>]*\bNULL"[^<>]*/>')


def open_package(body: bytes, url: str, limit: int = MAX_UNPACKED) -> zipfile.ZipFile:
    """The package, unless it says that it unpacks to more than `limit`; zipfile reads no more than it says.

    Raises IngestError("office_too_large"), and one of DAMAGE.
    """
    package = zipfile.ZipFile(BytesIO(body))
    parts = package.infolist()
    unpacked = sum(part.file_size for part in parts if part.filename.endswith(_TEXTS))
    if unpacked > limit or sum(part.file_size for part in parts) > 10 * MAX_UNPACKED or len(parts) > _MAX_PARTS:
        raise IngestError("office_too_large", url=shown(url), limit=limit // 1_000_000)
    return package


def office_file(body: bytes, url: str, limit: int = MAX_UNPACKED) -> BytesIO:
    """Office Open XML in the dialect that libraries read, without relations to parts that are not there.

    Raises what `open_package` does.
    """
    package = open_package(body, url, limit)
    relations = b"".join(package.read(name) for name in package.namelist() if name.endswith(".rels"))
    if not (_STRICT.search(relations) or _NOWHERE.search(relations)):
        return BytesIO(body)
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as written:
        for name in package.namelist():
            data = package.read(name)
            if name.endswith((".xml", ".rels")):
                data = _NOWHERE.sub(b"", _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data))
            written.writestr(name, data)
    return stream


def parsed(data: bytes) -> Any:
    """The root of a part's XML; nothing outside the file is read, and no entity is expanded."""
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def stated(package: zipfile.ZipFile, name: str = "docProps/core.xml") -> dict[str, str]:
    """What the properties of a package say: title, author, created and modified."""
    root = parsed(package.read(name) if name in package.namelist() else b"<none/>")
    found = {local(node): node.text or "" for node in root.iter() if local(node)}
    return {
        field: next((found[name] for name in names.split() if name in found), "") for field, names in _STATED.items()
    }


def local(node: Any) -> str:
    """An element's name without its namespace; "" for comments."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def attribute(node: Any, name: str, default: str = "") -> str:
    """An attribute's value, whatever its namespace."""
    return next((str(found) for key, found in node.items() if key.rpartition("}")[2] == name), default)


def value(node: Any, path: str) -> str:
    """The `val` of the element at `path`, "" where there is none; an element without one is switched on."""
    found = node.find(path)
    return "" if found is None else attribute(found, "val", "1")


def number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else default
