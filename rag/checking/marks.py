"""Marks, code and links of an answer.

In code a number in brackets is an index and an address a part of a command: neither is touched. Elsewhere links lose
their targets, and an address stays only where a passage holds it: then it stands as code, which can be copied, and no
reader makes a link of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rag.text import fenced_blocks

_NAMES: Final = r"passages?|sources?|refs?\.?|references?|citations?|段落|来源|资料|网页|引用|文献|参考|出处"
_NUMBER: Final = r"\d{1,3}(?::\d{1,3}(?=†))?(?:†[^\]】\n,，、;；&和]{0,60}+)?"
_ITEM: Final = (
    rf"(?:(?:{_NAMES}|pages?|页面)\s{{0,2}}+[:：]?+\s{{0,2}}+)?[#^№]?+\s{{0,2}}+{_NUMBER}(?:\s?[-–—~～]\s?{_NUMBER})?+"
)
# Possessive, since a list of spaces and numbers could else be read in millions of ways.
_BETWEEN: Final = r"\s{0,2}+(?:[,，、;；&和](?:\s?and\s)?+|and\s)\s{0,2}+"
_LIST: Final = rf"\s{{0,2}}+{_ITEM}(?:{_BETWEEN}{_ITEM}){{0,20}}+\s{{0,2}}+"
_BRACKETS: Final = rf"\\?[\[［【〔]{{1,2}}(?P<in>{_LIST})\\?[\]］】〕]{{1,2}}"
_RAISED: Final = rf"<sup>\s?(?:\[(?P<sup>{_LIST})\]|(?<=[\s.,;。，；”\"]<sup>)(?P<bare>{_LIST}))\s?</sup>"
_ANY = re.compile(f"{_BRACKETS}|{_RAISED}", re.IGNORECASE)
_ROUND = re.compile(
    rf"[(（]\s?(?:(?P<named>(?:{_NAMES})\s?[:：]?\s?\d{{1,2}}(?:{_BETWEEN}(?:{_NAMES})?\s?\d{{1,2}}){{0,9}})"
    rf"|(?P<plain>\d{{1,2}}(?:{_BETWEEN}\d{{1,2}}){{0,9}}))\s?[)）]",
    re.IGNORECASE,
)
_ENDS = re.compile(r"(?:\s?[(（]\s?\d{1,2}\s?[)）])*[*_\"”]{0,3}\s{0,2}(?:[.。!?！？;；]|\s*\Z|\n| \|)")
_HAS_ENDED = re.compile(r"[.。!?！？][*_\"”]{0,3}\s{0,2}\Z")
_COUNTED: Final = (
    r"section|article|clause|paragraph|rule|schedule|chapter|equation|eq\.?|figure|fig\.?|table|step|item|point|option"
    r"|note|part|version|type|class"
)
_COUNTS = re.compile(  # what is numbered in round brackets: section 4 (1), equation (2), f(1)
    rf"(?:[)\]]|\b(?:{_COUNTED})(?:\s[\dA-Z][\d.]{{0,5}})?|\b(?:see|in|of|and|or|to|is|are)|[条款项式图表步第见])\s?\Z"
    r"|[A-Za-z_]\Z",
    re.IGNORECASE,
)
_BOUNDS = re.compile(
    r"(?:\b(?:range|interval|between|set|bounds?|from|array|list|vector)|区间|范围|值域|数组|介于|在)\W{0,3}\Z",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d{1,3})[^\d†,，、;；]{0,5}[-–—~～]\s?(\d{1,3})")
_APART = re.compile(r"[ \t]*+(?:(?:[,，、;；&和]|and\b)[ \t]*+)?")
NAMED_PASSAGE = re.compile(
    rf"\b(?:the\s)?(?:{_NAMES})\s?#?\d{{1,2}}(?:\s?(?:[,、和&-]|and|or)\s?\d{{1,2}}){{0,9}}", re.IGNORECASE
)
"""A passage that is named in words: `passage 2 says`."""
_OPENED = re.compile(r"[(（]\s?(?:(?:see|cf\.?|sources?|见|参见|来源)\s?[:：]?\s?)?\Z", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,3}")
_IN_BRACKETS = re.compile(
    r"(?P<row>[ \t]?(?:\^?[\[【［〔]{1,2}(?P<square>[^\[\]【】［］〔〕\n]{1,120})[\]】］〕]{1,2}(?:\(#[^)\s]{0,60}\))?"
    r"|<(?P<tag>[a-z]{1,10})>\s?\[?(?P<tagged>[\d,;\s]{1,20})\]?\s?</(?P=tag)>"
    r"|[{<](?P<bare>\s?\d{1,2}(?:\s?,\s?\d{1,2}){0,9}\s?)[}>]|\#\#(?P<hash>\d{1,2})\$\$|(?P<raised>[¹²³⁴-⁹]{1,2})))",
    re.IGNORECASE,
)
_NAMED_NUMBER = re.compile(
    r"(?:(?P<label>[^\W\d_]{1,20})\s?[:：#_.-]?\s?|[#^]\s?)?(?P<number>\d{1,3})(?:[a-z]|\^|[:.]\d{1,3})?"
    r"(?:\s?[:：,，|–-]\s?(?P<tail>\D.*))?",
    re.IGNORECASE,
)
_RAISED_DIGITS = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹", "123456789")
_FURTHEST: Final = 999
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
_TICKS = re.compile(r"`+")
_AHEAD: Final = 40  # runs of backticks after which one is taken to be left open
_INDEXED = re.compile(
    r"(?<![\w`.])(?P<word>[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,5})"
    r"(?P<first>\[(?P<index>[^\[\]`\n]{1,40})\])(?P<rest>(?:\[[^\[\]`\n]{1,40}\]|\([^()\[\]`\s]{0,60}\)|\.[a-z_]\w{0,60}){0,8})",
    re.ASCII,
)
_ASSIGNED = re.compile(r"\s{0,2}(?:[-+*/|&]?=(?![=>])|==|<-)")
_ASSIGNS = re.compile(r"[\w\])]\s{0,2}(?::=|[-+*/]?=)\s{0,2}$")
_DOTTED = re.compile(r"\.(?!(?:html?|json|info|yaml|jpeg|tiff|docx|xlsx|pptx|toml)$)[a-z_]\w{3,}$")
_ADDRESS = re.compile(r"^\(\W*(?:[a-z][a-z0-9+.-]*:|www\.|[/#.])|^\([^)]*\.[a-z]{2,}(?:[/?#)]|$)", re.IGNORECASE)

_CODE_ENDS = re.compile(r"[*_]{0,3}\s{0,2}(?:[.,;:!?。，；：！？、]|\Z|\n)")

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mark:
    """`text[start:stop]`, with the white space before it, names the passages `numbers`, 1-based."""

    start: int
    stop: int
    numbers: tuple[int, ...]


def is_label(label: str) -> bool:
    """Whether the text of a link is a passage's number."""
    return bool(re.fullmatch(_LIST, label, re.IGNORECASE))


def find_marks(text: str, texts: Sequence[str] | None = None) -> list[Mark]:
    """The marks of `text` in order; `texts` are the passages that it can name, any without them."""
    spans = code_spans(text)
    known = " ".join(" ".join(texts).split()) if texts else ""
    count = _FURTHEST if texts is None else len(texts)
    found = [
        Mark(match.start(), match.end(), tuple(_numbers(_inner(match))))
        for match in _ANY.finditer(text)
        if not inside(spans, match.start()) and not _is_text(match, count, known)
    ]
    if not found:
        found = [mark for mark in _round(text, count, known) if not inside(spans, mark.start)]
    return _in_rows(text, found)


def with_plain_marks(text: str, texts: Sequence[str], titles: Sequence[str]) -> str:
    """`text` with marks of other shapes, such as `[Doc 1]`, `{1}` or a passage's title in brackets, as `[n]`.

    What stands like that in `texts` is no mark: it belongs to what is said.
    """
    known = " ".join(" ".join(texts).split()).casefold()
    names = [" ".join(title.split()).casefold() for title in titles]

    def plain(match: re.Match[str]) -> str:
        numbers = _meant(match, names, known)
        return "".join(f"[{n}]" for n in numbers) if numbers else match.group()

    return outside_code(_IN_BRACKETS, plain, text)


def _meant(match: re.Match[str], names: Sequence[str], known: str) -> Sequence[int]:
    """The passages that a bracket of another shape names; none where it is a mark already, or no mark."""
    whole, before = " ".join(match["row"].split()).casefold(), match.string[: match.start()]
    if whole in known or before.endswith(("](", "\\")):
        return ()
    if match["square"] is None:
        raised = match["raised"]
        if raised and not match["row"].startswith((" ", "\t")) and not _HAS_ENDED.search(before):
            return ()
        if match["bare"] and not (_ENDS.match(match.string, match.end()) or _HAS_ENDED.search(before)):
            return ()
        digits = match["tagged"] or match["bare"] or match["hash"] or (raised or "").translate(_RAISED_DIGITS)
        numbers = [int(number) for number in _DIGITS.findall(digits)]
        return numbers if numbers and all(0 < n <= len(names) for n in numbers) else ()
    inner = " ".join(match["square"].split()).casefold()
    if re.fullmatch(_LIST, inner, re.IGNORECASE):
        return tuple(_numbers(inner)) if match["row"].strip().startswith("^") else ()
    return _by_name(inner, names, known)


def _by_name(inner: str, names: Sequence[str], known: str) -> Sequence[int]:
    if inner in names:
        return [n for n, name in enumerate(names, 1) if name == inner][:3]
    found = _NAMED_NUMBER.fullmatch(inner)
    if found is None or not 0 < int(found["number"]) <= len(names):
        return ()
    label, tail = found["label"], (found["tail"] or "").strip()
    if (label and inner in known) or (tail and tail not in names):
        return ()
    return (int(found["number"]),)


def cut(text: str, marks: Sequence[Mark], start: int, stop: int) -> str:
    """`text[start:stop]` without its marks."""
    parts, at = [], start
    for mark in marks:
        parts.append(text[at : max(at, mark.start)])
        at = max(at, mark.stop)
    return "".join([*parts, text[at : max(at, stop)]])


def between(marks: Sequence[Mark], start: int, stop: int) -> list[Mark]:
    """Those that begin in `start:stop`."""
    first = bisect_left(marks, start, key=lambda mark: mark.start)
    return list(marks[first : bisect_left(marks, stop, key=lambda mark: mark.start)])


def _inner(match: re.Match[str]) -> str:
    return match["in"] or match["sup"] or match["bare"] or ""


def _numbers(inner: str) -> Iterator[int]:
    """The numbers that a mark names; [2-4] names three."""
    if spanned := _RANGE.search(inner):
        first, last = int(spanned[1]), int(spanned[2])
        yield from range(first, min(last, first + 20) + 1)
        inner = inner[: spanned.start()] + " " + inner[spanned.end() :]
    inner = re.sub(r":\d+†[^,，、;；]*|†[^,，、;；]*", " ", inner)
    yield from (int(number) for number in _DIGITS.findall(inner))


def _is_text(match: re.Match[str], count: int, known: str) -> bool:
    """Whether brackets hold an interval, a list of numbers or a pattern rather than passages."""
    inner = _inner(match)
    if inner.strip().isdecimal():
        return False
    named = re.search(rf"{_NAMES}|[#^†]", inner, re.IGNORECASE)
    if named:
        return False
    numbers = list(_numbers(inner))
    before = match.string[max(0, match.start() - 24) : match.start()]
    if _RANGE.search(inner) and (not numbers or max(numbers) > count or re.search(r"[\w\\^(]\Z", before, re.ASCII)):
        return True
    if min(numbers) == 0 or (max(numbers) > count and _BOUNDS.search(before)):
        return True
    word = re.search(r"\w+\W{0,3}\Z", before)
    return bool(word) and " ".join(f"{word.group() if word else ''}{match.group()}".split()) in known


def _round(text: str, count: int, known: str) -> Iterator[Mark]:
    """Round brackets are marks only at the end of a sentence, where no other marks are and nothing is listed."""
    found = []
    for match in _ROUND.finditer(text):
        before = text[max(0, match.start() - 24) : match.start()]
        numbers = tuple(int(number) for number in _DIGITS.findall(match.group()))
        ends = bool(_ENDS.match(text, match.end()) or _HAS_ENDED.search(before)) and bool(_line(before).strip(" >*-"))
        if not ends and match["plain"]:
            return
        stands = match["plain"] and " ".join(f"{before[-12:]}{match.group()}".split()) in known
        apart = match["named"] or not _COUNTS.search(_line(before))
        if ends and apart and not stands and all(0 < number <= count for number in numbers):
            found.append(Mark(match.start(), match.end(), numbers))
    yield from found


def _line(before: str) -> str:
    """What stands before on the same line, without marks of the same kind."""
    return _ROUND.sub("", before.rsplit("\n", 1)[-1])


def _in_rows(text: str, marks: list[Mark]) -> list[Mark]:
    """Each mark with the white space before it, with what joins it to the next one, and with brackets around a row."""
    rows: list[list[Mark]] = []
    for mark in marks:
        joined = rows and _APART.fullmatch(text, rows[-1][-1].stop, mark.start)
        if joined:
            rows[-1][-1] = replace(rows[-1][-1], stop=mark.start)
            rows[-1].append(mark)
        else:
            rows.append([mark])
    before = 0
    for row in rows:
        opened = _OPENED.search(text[max(before, row[0].start - 16) : row[0].start])
        if opened and (closed := re.compile(r"\s?[)）]").match(text, row[-1].stop)):
            row[0] = replace(row[0], start=row[0].start - len(opened.group()))
            row[-1] = replace(row[-1], stop=closed.end())
        row[0] = replace(row[0], start=before + len(text[before : row[0].start].rstrip()))
        before = row[-1].stop
    return [mark for row in rows for mark in row]


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


@dataclass(frozen=True, slots=True)
class _Known:
    """The text of the pages, their code alone, and how many they are: what a mark can name."""

    text: str
    code: str
    count: int


def code_spans(text: str) -> list[tuple[int, int]]:
    """Spans of fenced blocks and of code within lines, with their fences and backticks, in order."""
    spans: list[tuple[int, int]] = []
    at = 0
    for start, end in fenced_blocks(text):
        spans += [*_inline(text, at, start), (start, end)]
        at = end
    return [*spans, *_inline(text, at, len(text))]


def _inline(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    runs = list(_TICKS.finditer(text, start, end))
    place = 0
    while place < len(runs):
        opening = runs[place]
        length = len(opening.group())
        ahead = range(place + 1, min(len(runs), place + 1 + _AHEAD))
        closing = next((i for i in ahead if len(runs[i].group()) == length), None)
        if closing is None or "\n\n" in text[opening.end() : runs[closing].start()]:
            place += 1
            continue
        yield opening.start(), runs[closing].end()
        place = closing + 1


def inside(spans: Spans, at: int) -> bool:
    place = bisect_right(spans, (at, float("inf"))) - 1
    return place >= 0 and spans[place][0] <= at < spans[place][1]


def outside_code(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with every match of `pattern` changed that does not begin in code."""
    spans = code_spans(text)
    return pattern.sub(lambda match: match.group() if inside(spans, match.start()) else change(match), text)


def with_code_marked(text: str, pages: Sequence[str]) -> str:
    """`text` with what is plainly code in backticks, so that nothing takes its index for a mark or a link.

    An index behind a word is code where its shape says so, or where the text of `pages` has it as code.
    """
    if not _INDEXED.search(text):
        return text
    known = _Known("\n".join(pages), "\n".join(page[a:b] for page in pages for a, b in code_spans(page)), len(pages))
    return outside_code(_INDEXED, lambda match: f"`{match.group()}`" if _is_code(match, known) else match.group(), text)


def _is_code(match: re.Match[str], known: _Known) -> bool:
    index, rest, whole = match["index"], match["rest"], match.group()
    if rest.startswith("("):
        return not _ADDRESS.match(rest) and not index.isdecimal()
    if not index.isdecimal():
        return False
    if whole in known.code or int(index) == 0 or "[0]" in rest or rest.startswith(".") or re.search(r"\[\D", rest):
        return True
    if "_" in match["word"] or _DOTTED.search(match["word"]):
        return whole in known.text or int(index) > known.count or not _CODE_ENDS.match(match.string, match.end())
    before = match.string[max(0, match.start() - 8) : match.start()]
    return bool(_ASSIGNED.match(match.string, match.end()) or _ASSIGNS.search(before))
