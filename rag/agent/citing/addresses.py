"""Links and addresses of an answer: links lose their targets, and an address stays only where a passage holds it.

What stays stands as code: it can be copied, and no reader makes a link of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rag.agent.citing.code import outside_code
from rag.agent.citing.marks import is_label

_TARGET = (
    r"\(\s{0,3}(?P<target>(?:[^()\s<>]|\([^()\s]{0,200}\)){0,2000}|<[^<>\n]{0,2000}>)"
    r"(?:\s{1,3}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\s{0,3}\)"
)
_LINK = re.compile(rf"(?P<image>!?)(?P<double>\[)?\[(?P<label>[^\[\]\n]{{0,300}})\](?(double)\]){_TARGET}")
_PART = r"[^\s<>\[\]\"`{}|\\，。；、：！？（）《》「」“”]"
_URL = re.compile(rf"(?<![A-Za-z0-9])(?:https?://|www\.){_PART}{{1,2000}}", re.IGNORECASE)
_IN_TEXT = re.compile(rf"(?P<space>[ \t]?)(?P<open>[<(（])?(?P<url>{_URL.pattern})(?P<close>[>）])?", re.IGNORECASE)
_BEYOND_ASCII = re.compile(r"[^!-~].*", re.DOTALL)
_NESTED = 2  # an image within a link, an address within another


def held_addresses(texts: Iterable[str]) -> frozenset[str]:
    """The addresses that stand in `texts`, as `_key` writes them."""
    found = (_trimmed(match.group()) for text in texts for match in _URL.finditer(text))
    return frozenset(_key(form) for url in found for form in (url, _trimmed(_BEYOND_ASCII.sub("", url))))


def without_links(text: str, held: frozenset[str]) -> str:
    """`text` without the targets of its links and without addresses that are not `held`; code stays as it is."""
    for _ in range(_NESTED):
        text = outside_code(_LINK, lambda match: _label(match, held), text)
    for _ in range(_NESTED):
        text = outside_code(_IN_TEXT, lambda match: _address(match, held), text)
    return text


def _label(match: re.Match[str], held: frozenset[str]) -> str:
    label, target = match["label"], match["target"].strip("<>")
    if not match["image"] and is_label(label):
        return f"[{label}]"
    opening = match["double"] or ""
    shown = f"{opening}{label}{']' if opening else ''}"
    same = _key(label.strip("`*_< >")) == _key(target)
    if match["image"] or _key(target) not in held or not _URL.match(target):
        return shown
    return target if same else f"{shown} ({target})"


def _address(match: re.Match[str], held: frozenset[str]) -> str:
    url = _trimmed(match["url"])
    if _key(url) not in held:
        url = _trimmed(_BEYOND_ASCII.sub("", url))
    rest = match["url"][len(url) :] + (match["close"] or "")
    opening, space = match["open"] or "", match["space"]
    if opening == "<":
        opening, rest = "", rest.removesuffix(">")
    if _key(url) in held:
        return f"{space}{opening}`{url}`{rest}"
    if opening and rest[:1] in (")", "）"):
        return rest[1:]
    return f"{space if opening else ''}{opening}{rest}"


def _trimmed(url: str) -> str:
    """Without what ends the sentence around it."""
    while url:
        bare = url.rstrip(".,;:!?'*_~")
        if bare.endswith(")") and bare.count(")") > bare.count("("):
            bare = bare[:-1]
        if bare == url:
            break
        url = bare
    return url


def _key(url: str) -> str:
    return url.rstrip("/")
