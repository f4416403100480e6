"""Zip packages of office programs and e-books: size checks before opening, and their XML.

Office programs save Office Open XML in two dialects. Strict differs from what libraries read only by its namespaces
(ISO/IEC 29500-4, annex A), so these are rewritten.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from io import BytesIO
from typing import Any

from rag.errors import IngestError
from rag.web.guard import printable

MAX_UNPACKED = 40_000_000
"""Max. bytes of a package's XML parts, without pictures, which are not unpacked."""
DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, OSError, StopIteration, TypeError),
    *(RuntimeError, SyntaxError, ValueError, zipfile.BadZipFile, zlib.error),  # XML errors are SyntaxErrors
)
"""Errors that libraries raise for invalid or inconsistent packages."""
_MAX_PARTS = 20_000
_PROPERTIES = {
    "title": "title",
    "author": "creator initial-creator",
    "created": "created creation-date",
    "modified": "modified date",
}
_TEXT_SUFFIXES = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_NULL_RELATION = re.compile(rb'<Relationship\b[^<>]*\bTarget="[^"<>]*\bNULL"[^<>]*/>')


def open_package(body: bytes, url: str, limit: int = MAX_UNPACKED) -> zipfile.ZipFile:
    """Open a package unless its declared unpacked size exceeds `limit`; zipfile reads no more than declared.

    Raises IngestError("office_too_large"), and one of DAMAGE.
    """
    package = zipfile.ZipFile(BytesIO(body))
    parts = package.infolist()
    unpacked = sum(part.file_size for part in parts if part.filename.endswith(_TEXT_SUFFIXES))
    if unpacked > limit or sum(part.file_size for part in parts) > 10 * MAX_UNPACKED or len(parts) > _MAX_PARTS:
        raise IngestError("office_too_large", url=printable(url), limit=limit // 1_000_000)
    return package


def office_file(body: bytes, url: str, limit: int = MAX_UNPACKED) -> BytesIO:
    """Return Office Open XML in the dialect that libraries read, without relations to missing parts.

    Raises what `open_package` does.
    """
    package = open_package(body, url, limit)
    relations = b"".join(package.read(name) for name in package.namelist() if name.endswith(".rels"))
    if not (_STRICT.search(relations) or _NULL_RELATION.search(relations)):
        return BytesIO(body)
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in package.namelist():
            data = package.read(name)
            if name.endswith((".xml", ".rels")):
                data = _NULL_RELATION.sub(b"", _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data))
            archive.writestr(name, data)
    return stream


def parse_xml(data: bytes) -> Any:
    """Parse a part's XML and return its root, without external files or entities."""
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def read_meta(package: zipfile.ZipFile, name: str = "docProps/core.xml") -> dict[str, str]:
    """Return the properties of a package: title, author, created and modified."""
    root = parse_xml(package.read(name) if name in package.namelist() else b"<none/>")
    texts = {get_tag(node): node.text or "" for node in root.iter() if get_tag(node)}
    return {
        key: next((texts[name] for name in names.split() if name in texts), "") for key, names in _PROPERTIES.items()
    }


def get_tag(node: Any) -> str:
    """Return an element's name without its namespace; "" for comments."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def get_attr(node: Any, name: str, default: str = "") -> str:
    """Return an attribute's value in any namespace."""
    return next((str(text) for key, text in node.items() if key.rpartition("}")[2] == name), default)


def get_val(node: Any, path: str) -> str:
    """Return the `val` of the element at `path`: "" without the element, "1" (on) without the attribute."""
    element = node.find(path)
    return "" if element is None else get_attr(element, "val", "1")


def to_int(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else default
