"""Tags in a page's bytes, for checks before the page is parsed by a child process.

Tags are found as in the WHATWG's prescan (HTML, section 13.2.3.2), in time proportional to the length: comments and
declarations are skipped, and scanning ends at a truncated tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

OPAQUE = frozenset(
    [b"script", b"style", b"title", b"textarea", b"template", b"iframe", b"noembed", b"noframes", b"xmp"]
)
"""Elements whose content is not parsed for tags."""

_SPACE = rb"[\t\n\f\r ]"
_TAG = re.compile(rb"<(?:(?P<comment>!--)|(?P<name>/?[a-z][^\t\n\f\r />]*+)|[!/?])", re.IGNORECASE)
_NAME = re.compile(
    rb"[\t\n\f\r /]*+(?P<end>>)?(?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*+)?" + _SPACE + rb"*+(?P<equals>=)?"
)
_VALUE = re.compile(_SPACE + rb"*+(?:\"(?P<a>[^\"]*+)\"|'(?P<b>[^']*+)'|(?P<c>(?![\"'])[^\t\n\f\r >]*+))")
_ENDS = {name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE) for name in OPAQUE}


class Tag(NamedTuple):
    """A tag, from `start` to before `end`.

    `name` is in lower case, with a leading slash for an end tag, and "!" for comments and declarations. `attributes`
    have names in lower case, and unparsed values.
    """

    name: bytes
    attributes: dict[bytes, bytes]
    start: int
    end: int


def tags(markup: bytes, *, opaque: bool = False) -> Iterator[Tag]:
    """Yield the tags of `markup` in order; with `opaque`, none from inside the elements of OPAQUE."""
    position = 0
    while match := _TAG.search(markup, position):
        name, attributes = (match["name"] or b"!").lower(), dict[bytes, bytes]()
        if match["comment"]:
            end_position = markup.find(b"-->", match.start() + 2) + 2
        elif match["name"]:
            attributes, end_position = _attributes(markup, match.end())
        else:
            end_position = markup.find(b">", match.end())
        if end_position < match.start() + 2:
            return
        position = end_position + 1
        yield Tag(name, attributes, match.start(), position)
        if opaque and name in OPAQUE:
            end = _ENDS[name].search(markup, position)
            position = end.start() if end else len(markup)


def _attributes(markup: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of a tag from `place` on, and the position of its last byte: -1 if truncated."""
    attributes: dict[bytes, bytes] = {}
    while (match := _NAME.match(markup, position)) and not match["end"] and match["name"]:
        position, text = match.end(), b""
        if match["equals"]:
            value = _VALUE.match(markup, position)
            if not value or value.end() == len(markup):
                return attributes, -1
            position, text = value.end(), value["a"] or value["b"] or value["c"] or b""
        attributes.setdefault(match["name"].lower(), text)
    return attributes, match.start("end") if match and match["end"] else -1
