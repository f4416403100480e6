"""Statements of an answer: its sentences with their marks, without headings, questions and transitions.

In code, a number in brackets is an index and an address is part of a command, so both stay. Elsewhere links lose their
targets, and an address stays only if a passage has it: as code, which can be copied and does not become a link.

A remark is about the answer or its sources rather than its subject: it names the sources and says that they lack
something. It needs no source. Since pages contain such sentences too, it is a remark only if no passage supports it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from rag.checking.rules import read_terms
from rag.text import INTRODUCTION, fenced_blocks, lazy_regex, split_sentences, weigh

_NAMES: Final = r"passages?|sources?|refs?\.?|references?|citations?|段落|来源|资料|网页|引用|文献|参考|出处"
_NUMBER: Final = r"\d{1,3}(?::\d{1,3}(?=†))?(?:†[^\]】\n,，、;；&和]{0,60}+)?"
_ITEM: Final = (
    rf"(?:(?:{_NAMES}|pages?|页面)\s{{0,2}}+[:：]?+\s{{0,2}}+)?[#^№]?+\s{{0,2}}+{_NUMBER}(?:\s?[-–—~～]\s?{_NUMBER})?+"
)
# Possessive: a list of spaces and numbers could otherwise be split in millions of ways.
_BETWEEN: Final = r"\s{0,2}+(?:[,，、;；&和](?:\s?and\s)?+|and\s)\s{0,2}+"
_LIST: Final = rf"\s{{0,2}}+{_ITEM}(?:{_BETWEEN}{_ITEM}){{0,20}}+\s{{0,2}}+"
_BRACKETS: Final = rf"\\?[\[［【〔]{{1,2}}(?P<in>{_LIST})\\?[\]］】〕]{{1,2}}"
_RAISED: Final = rf"<sup>\s?(?:\[(?P<sup>{_LIST})\]|(?<=[\s.,;。，；”\"]<sup>)(?P<bare>{_LIST}))\s?</sup>"
_ANY = lazy_regex(f"{_BRACKETS}|{_RAISED}", re.IGNORECASE)
_ROUND = lazy_regex(
    rf"[(（]\s?(?:(?P<named>(?:{_NAMES})\s?[:：]?\s?\d{{1,2}}(?:{_BETWEEN}(?:{_NAMES})?\s?\d{{1,2}}){{0,9}})"
    rf"|(?P<plain>\d{{1,2}}(?:{_BETWEEN}\d{{1,2}}){{0,9}}))\s?[)）]",
    re.IGNORECASE,
)
_ENDS = lazy_regex(r"(?:\s?[(（]\s?\d{1,2}\s?[)）])*[*_\"”]{0,3}\s{0,2}(?:[.。!?！？;；]|\s*\Z|\n| \|)")
_STOP = lazy_regex(r"[.。!?！？][*_\"”]{0,3}\s{0,2}\Z")
_COUNTED: Final = (
    r"section|article|clause|paragraph|rule|schedule|chapter|equation|eq\.?|figure|fig\.?|table|step|item|point|option"
    r"|note|part|version|type|class"
)
_COUNTS = lazy_regex(  # numbers that are not marks: section 4 (1), equation (2), f(1)
    rf"(?:[)\]]|\b(?:{_COUNTED})(?:\s[\dA-Z][\d.]{{0,5}})?|\b(?:see|in|of|and|or|to|is|are)|[条款项式图表步第见])\s?\Z"
    r"|[A-Za-z_]\Z",
    re.IGNORECASE,
)
_BOUNDS = lazy_regex(
    r"(?:\b(?:range|interval|between|set|bounds?|from|array|list|vector)|区间|范围|值域|数组|介于|在)\W{0,3}\Z",
    re.IGNORECASE,
)
_RANGE = lazy_regex(r"(\d{1,3})[^\d†,，、;；]{0,5}[-–—~～]\s?(\d{1,3})")
_MARK_SEPARATOR = lazy_regex(r"[ \t]*+(?:(?:[,，、;；&和]|and\b)[ \t]*+)?")
NAMED_PASSAGE = lazy_regex(
    rf"\b(?:the\s)?(?:{_NAMES})\s?#?\d{{1,2}}(?:\s?(?:[,、和&-]|and|or)\s?\d{{1,2}}){{0,9}}", re.IGNORECASE
)
"""A passage named in words: `passage 2 says`."""
_OPEN_BRACKET = lazy_regex(r"[(（]\s?(?:(?:see|cf\.?|sources?|见|参见|来源)\s?[:：]?\s?)?\Z", re.IGNORECASE)
_DIGITS = lazy_regex(r"\d{1,3}")
_IN_BRACKETS = lazy_regex(
    r"(?P<row>[ \t]?(?:\^?[\[【［〔]{1,2}(?P<square>[^\[\]【】［］〔〕\n]{1,120})[\]】］〕]{1,2}(?:\(#[^)\s]{0,60}\))?"
    r"|<(?P<tag>[a-z]{1,10})>\s?\[?(?P<tagged>[\d,;\s]{1,20})\]?\s?</(?P=tag)>"
    r"|[{<](?P<bare>\s?\d{1,2}(?:\s?,\s?\d{1,2}){0,9}\s?)[}>]|\#\#(?P<hash>\d{1,2})\$\$|(?P<raised>[¹²³⁴-⁹]{1,2})))",
    re.IGNORECASE,
)
_NAMED_NUMBER = lazy_regex(
    r"(?:(?P<label>[^\W\d_]{1,20})\s?[:：#_.-]?\s?|[#^]\s?)?(?P<number>\d{1,3})(?:[a-z]|\^|[:.]\d{1,3})?"
    r"(?:\s?[:：,，|–-]\s?(?P<tail>\D.*))?",
    re.IGNORECASE,
)
_RAISED_DIGITS = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹", "123456789")
_MAX_NUMBER: Final = 999
_TARGET = (
    r"\(\s{0,3}(?P<target>(?:[^()\s<>]|\([^()\s]{0,200}\)){0,2000}|<[^<>\n]{0,2000}>)"
    r"(?:\s{1,3}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\s{0,3}\)"
)
_LINK = lazy_regex(rf"(?P<image>!?)(?P<double>\[)?\[(?P<label>[^\[\]\n]{{0,300}})\](?(double)\]){_TARGET}")
_PART = r"[^\s<>\[\]\"`{}|\\，。；、：！？（）《》「」“”]"
_URL = lazy_regex(rf"(?<![A-Za-z0-9])(?:https?://|www\.){_PART}{{1,2000}}", re.IGNORECASE)
_IN_TEXT = lazy_regex(rf"(?P<space>[ \t]?)(?P<open>[<(（])?(?P<url>{_URL.pattern})(?P<close>[>）])?", re.IGNORECASE)
_BEYOND_ASCII = lazy_regex(r"[^!-~].*", re.DOTALL)
_NESTED = 2  # an image within a link, an address within an address
_TICKS = lazy_regex(r"`+")
_MAX_RUNS: Final = 40  # runs of backticks to search for a closing one
_INDEXED = lazy_regex(
    r"(?<![\w`.])(?P<word>[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,5})"
    r"(?P<first>\[(?P<index>[^\[\]`\n]{1,40})\])(?P<rest>(?:\[[^\[\]`\n]{1,40}\]|\([^()\[\]`\s]{0,60}\)|\.[a-z_]\w{0,60}){0,8})",
    re.ASCII,
)
_ASSIGNED = lazy_regex(r"\s{0,2}(?:[-+*/|&]?=(?![=>])|==|<-)")
_ASSIGNS = lazy_regex(r"[\w\])]\s{0,2}(?::=|[-+*/]?=)\s{0,2}$")
_DOTTED = lazy_regex(r"\.(?!(?:html?|json|info|yaml|jpeg|tiff|docx|xlsx|pptx|toml)$)[a-z_]\w{3,}$")
_ADDRESS = lazy_regex(r"^\(\W*(?:[a-z][a-z0-9+.-]*:|www\.|[/#.])|^\([^)]*\.[a-z]{2,}(?:[/?#)]|$)", re.IGNORECASE)

_CODE_ENDS = lazy_regex(r"[*_]{0,3}\s{0,2}(?:[.,;:!?。，；：！？、]|\Z|\n)")

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark that names the passages `numbers`, 1-based: `text[start:stop]`, with the white space before it."""

    start: int
    stop: int
    numbers: tuple[int, ...]


def is_label(label: str) -> bool:
    """True if the text of a link is a passage's number."""
    return bool(re.fullmatch(_LIST, label, re.IGNORECASE))


def find_marks(text: str, texts: Sequence[str] | None = None) -> list[Mark]:
    """Return the marks of `text` in order. `texts` are the passages that it may name; None allows any number."""
    spans = code_spans(text)
    content = " ".join(" ".join(texts).split()) if texts else ""
    count = _MAX_NUMBER if texts is None else len(texts)
    marks = [
        Mark(match.start(), match.end(), tuple(_numbers(_inner(match))))
        for match in _ANY.finditer(text)
        if not is_inside(spans, match.start()) and not _is_text(match, count, content)
    ]
    if not marks:
        marks = [mark for mark in _find_round(text, count, content) if not is_inside(spans, mark.start)]
    return _join_rows(text, marks)


def normalise_marks(text: str, texts: Sequence[str], titles: Sequence[str]) -> str:
    """Return `text` with marks of other forms, such as `[Doc 1]`, `{1}` or a passage's title in brackets, as `[n]`.

    A bracket that also occurs in `texts` is content rather than a mark.
    """
    content = " ".join(" ".join(texts).split()).casefold()
    names = [" ".join(title.split()).casefold() for title in titles]

    def rewrite(match: re.Match[str]) -> str:
        numbers = _read_bracket(match, names, content)
        return "".join(f"[{n}]" for n in numbers) if numbers else match.group()

    return replace_outside_code(_IN_BRACKETS, rewrite, text)


def _read_bracket(match: re.Match[str], names: Sequence[str], content: str) -> Sequence[int]:
    """Return the passages that a bracket of another form names; none for a mark of the usual form, or other text."""
    whole, before = " ".join(match["row"].split()).casefold(), match.string[: match.start()]
    if whole in content or before.endswith(("](", "\\")):
        return ()
    if match["square"] is None:
        raised = match["raised"]
        if raised and not match["row"].startswith((" ", "\t")) and not _STOP.search(before):
            return ()
        if match["bare"] and not (_ENDS.match(match.string, match.end()) or _STOP.search(before)):
            return ()
        digits = match["tagged"] or match["bare"] or match["hash"] or (raised or "").translate(_RAISED_DIGITS)
        numbers = [int(number) for number in _DIGITS.findall(digits)]
        return numbers if numbers and all(0 < n <= len(names) for n in numbers) else ()
    inner = " ".join(match["square"].split()).casefold()
    if re.fullmatch(_LIST, inner, re.IGNORECASE):
        return tuple(_numbers(inner)) if match["row"].strip().startswith("^") else ()
    return _find_named(inner, names, content)


def _find_named(inner: str, names: Sequence[str], content: str) -> Sequence[int]:
    if inner in names:
        return [n for n, name in enumerate(names, 1) if name == inner][:3]
    match = _NAMED_NUMBER.fullmatch(inner)
    if match is None or not 0 < int(match["number"]) <= len(names):
        return ()
    label, tail = match["label"], (match["tail"] or "").strip()
    if (label and inner in content) or (tail and tail not in names):
        return ()
    return (int(match["number"]),)


def remove_marks(text: str, marks: Sequence[Mark], start: int, stop: int) -> str:
    """Return `text[start:stop]` without its marks."""
    parts, place = [], start
    for mark in marks:
        parts.append(text[place : max(place, mark.start)])
        place = max(place, mark.stop)
    return "".join([*parts, text[place : max(place, stop)]])


def _inner(match: re.Match[str]) -> str:
    return match["in"] or match["sup"] or match["bare"] or ""


def _numbers(inner: str) -> Iterator[int]:
    """Yield the numbers that a mark names; [2-4] names three."""
    if span := _RANGE.search(inner):
        first, last = int(span[1]), int(span[2])
        yield from range(first, min(last, first + 20) + 1)
        inner = inner[: span.start()] + " " + inner[span.end() :]
    inner = re.sub(r":\d+†[^,，、;；]*|†[^,，、;；]*", " ", inner)
    yield from (int(number) for number in _DIGITS.findall(inner))


def _is_text(match: re.Match[str], count: int, content: str) -> bool:
    """True if brackets contain an interval, a list of numbers or a pattern rather than passages."""
    inner = _inner(match)
    if inner.strip().isdecimal():
        return False
    name = re.search(rf"{_NAMES}|[#^†]", inner, re.IGNORECASE)
    if name:
        return False
    numbers = list(_numbers(inner))
    preceding = match.string[max(0, match.start() - 24) : match.start()]
    if _RANGE.search(inner) and (not numbers or max(numbers) > count or re.search(r"[\w\\^(]\Z", preceding, re.ASCII)):
        return True
    if min(numbers) == 0 or (max(numbers) > count and _BOUNDS.search(preceding)):
        return True
    word = re.search(r"\w+\W{0,3}\Z", preceding)
    return bool(word) and " ".join(f"{word.group() if word else ''}{match.group()}".split()) in content


def _find_round(text: str, count: int, content: str) -> list[Mark]:
    """Return the marks in round brackets, which are marks only at the end of a sentence and outside of lists."""
    marks = []
    for match in _ROUND.finditer(text):
        before = text[max(0, match.start() - 24) : match.start()]
        numbers = tuple(int(number) for number in _DIGITS.findall(match.group()))
        ends = bool(_ENDS.match(text, match.end()) or _STOP.search(before)) and bool(_last_line(before).strip(" >*-"))
        if not ends and match["plain"]:
            return []
        is_content = match["plain"] and " ".join(f"{before[-12:]}{match.group()}".split()) in content
        is_mark = match["named"] or not _COUNTS.search(_last_line(before))
        if ends and is_mark and not is_content and all(0 < number <= count for number in numbers):
            marks.append(Mark(match.start(), match.end(), numbers))
    return marks


def _last_line(before: str) -> str:
    """Return the last line of `before`, without marks in round brackets."""
    return _ROUND.sub("", before.rsplit("\n", 1)[-1])


def _join_rows(text: str, marks: list[Mark]) -> list[Mark]:
    """Extend each mark by the white space before it, the separator to the next one, and brackets around the row."""
    rows: list[list[Mark]] = []
    for mark in marks:
        separator = rows and _MARK_SEPARATOR.fullmatch(text, rows[-1][-1].stop, mark.start)
        if separator:
            rows[-1][-1] = replace(rows[-1][-1], stop=mark.start)
            rows[-1].append(mark)
        else:
            rows.append([mark])
    before = 0
    for row in rows:
        opening = _OPEN_BRACKET.search(text[max(before, row[0].start - 16) : row[0].start])
        if opening and (closing := re.compile(r"\s?[)）]").match(text, row[-1].stop)):
            row[0] = replace(row[0], start=row[0].start - len(opening.group()))
            row[-1] = replace(row[-1], stop=closing.end())
        row[0] = replace(row[0], start=before + len(text[before : row[0].start].rstrip()))
        before = row[-1].stop
    return [mark for row in rows for mark in row]


def find_addresses(texts: Iterable[str]) -> frozenset[str]:
    """Return the addresses in `texts`, in the form of `_key`."""
    addresses = (_trim(match.group()) for text in texts for match in _URL.finditer(text))
    return frozenset(_key(form) for url in addresses for form in (url, _trim(_BEYOND_ASCII.sub("", url))))


def remove_links(text: str, addresses: frozenset[str]) -> str:
    """Remove link targets and addresses that are not in `addresses` from `text`, except in code."""
    for _ in range(_NESTED):
        text = replace_outside_code(_LINK, lambda match: _replace_link(match, addresses), text)
    for _ in range(_NESTED):
        text = replace_outside_code(_IN_TEXT, lambda match: _replace_address(match, addresses), text)
    return text


def _replace_link(match: re.Match[str], addresses: frozenset[str]) -> str:
    label, target = match["label"], match["target"].strip("<>")
    if not match["image"] and is_label(label):
        return f"[{label}]"
    opening = match["double"] or ""
    replacement = f"{opening}{label}{']' if opening else ''}"
    is_same = _key(label.strip("`*_< >")) == _key(target)
    if match["image"] or _key(target) not in addresses or not _URL.match(target):
        return replacement
    return target if is_same else f"{replacement} ({target})"


def _replace_address(match: re.Match[str], addresses: frozenset[str]) -> str:
    url = _trim(match["url"])
    if _key(url) not in addresses:
        url = _trim(_BEYOND_ASCII.sub("", url))
    rest = match["url"][len(url) :] + (match["close"] or "")
    opening, space = match["open"] or "", match["space"]
    if opening == "<":
        opening, rest = "", rest.removesuffix(">")
    if _key(url) in addresses:
        return f"{space}{opening}`{url}`{rest}"
    if opening and rest[:1] in (")", "）"):
        return rest[1:]
    return f"{space if opening else ''}{opening}{rest}"


def _trim(url: str) -> str:
    """Return the address without the punctuation of the sentence around it."""
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


def code_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of fenced blocks and inline code, with their fences and backticks, in order."""
    spans: list[tuple[int, int]] = []
    place = 0
    for start, end in fenced_blocks(text):
        spans += [*_inline_spans(text, place, start), (start, end)]
        place = end
    return [*spans, *_inline_spans(text, place, len(text))]


def _inline_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    runs = list(_TICKS.finditer(text, start, end))
    place = 0
    while place < len(runs):
        opening = runs[place]
        length = len(opening.group())
        ahead = range(place + 1, min(len(runs), place + 1 + _MAX_RUNS))
        closing = next((i for i in ahead if len(runs[i].group()) == length), None)
        if closing is None or "\n\n" in text[opening.end() : runs[closing].start()]:
            place += 1
            continue
        yield opening.start(), runs[closing].end()
        place = closing + 1


def is_inside(spans: Spans, at: int) -> bool:
    place = bisect_right(spans, (at, float("inf"))) - 1
    return place >= 0 and spans[place][0] <= at < spans[place][1]


def replace_outside_code(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], text: str) -> str:
    """Apply `change` to every match of `pattern` in `text` that does not begin in code."""
    spans = code_spans(text)
    return pattern.sub(lambda match: match.group() if is_inside(spans, match.start()) else change(match), text)


def wrap_code(text: str, pages: Sequence[str]) -> str:
    """Return `text` with recognisable code in backticks, so that its indices are not read as marks or links.

    An index after a word is code if its form is clear, or if `pages` have it as code.
    """
    if not _INDEXED.search(text):
        return text
    code = "\n".join(page[a:b] for page in pages for a, b in code_spans(page))
    return replace_outside_code(
        _INDEXED, lambda match: f"`{match.group()}`" if _is_code(match, pages, code) else match.group(), text
    )


def _is_code(match: re.Match[str], pages: Sequence[str], code: str) -> bool:
    """True if an index is code; `code` is that of the pages, whose number limits marks."""
    index, rest, whole = match["index"], match["rest"], match.group()
    if rest.startswith("("):
        return not _ADDRESS.match(rest) and not index.isdecimal()
    if not index.isdecimal():
        return False
    if whole in code or int(index) == 0 or "[0]" in rest or rest.startswith(".") or re.search(r"\[\D", rest):
        return True
    if "_" in match["word"] or _DOTTED.search(match["word"]):
        is_in_pages = any(whole in page for page in pages)
        return is_in_pages or int(index) > len(pages) or not _CODE_ENDS.match(match.string, match.end())
    before = match.string[max(0, match.start() - 8) : match.start()]
    return bool(_ASSIGNED.match(match.string, match.end()) or _ASSIGNS.search(before))


_HEADING = lazy_regex(r"\s*#{1,6}\s")
_BOLD_LINE = lazy_regex(r"\s*(?:\*\*[^*]+\*\*|__[^_]+__)\s*+(?:[:：]\s*+)?$")
_FULL_STOP = lazy_regex(r"[.。!！][*_\s]*$")
_QUESTION = lazy_regex(r"[?？][\"'”’」』）)*_\s]*$")
_RULE = lazy_regex(r"[|\s:=*_-]+")
_YES_OR_NO = lazy_regex(
    r"(?<![*_\s])[*_\s]*+(?:yes|no|yeah|nope|correct|right|indeed|certainly|of course"
    r"|是的?|不是?的?|否|对的?|没错|没有|不会|不能|不可以|不行|可以|能|会|有|行|(?P<verb>[不没未][^\W\d]{1,3})(?=[,，].{0,30}(?P=verb)))"
    r"[*_]*\s*(?:[,，、;；:：—–]|\s-\s|[.!]\s+(?=\D))[*_\s]*",
    re.IGNORECASE,
)
_LIST_MARKER = lazy_regex(r"(?<!\s)\s*+(?:(?:[-*+•>]|\d{1,3}[.)、]|[(（]\d{1,3}[)）])\s+){1,4}(?=\S)")
MAX_CHARS = 5_000
"""Maximum length of a sentence. Longer ones have no end, and nothing supports them."""
_MAX_TRANSITION_WORDS = 3  # content words of a line that only introduces the next
_MIN_REPEATED = 20  # Latin characters or the equivalent: shorter ones may be repeated on purpose
_STOPS: Final = ".。!！ *_"

_HEADING_WITHOUT_TEXT = lazy_regex(r"^(#{1,6}) [^\n]*\n*+(?=(?!\1#)#{1,6} |\Z)", re.MULTILINE)
_EMPTY_ITEM = lazy_regex(r"^[^\S\n]*+(?:[-*•]|\d++[.)])[^\S\n]*+$\n?", re.MULTILINE)
_BLANK_LINES = lazy_regex(r"\n{3,}")

Kind = Literal["statement", "remark", "nothing"]
_SOURCE: Final = (
    r"\b(?:passages?|pages?|sources?|texts?|articles?|documents?|excerpts?|snippets?|context|search results?|materials?"
    r"|websites?)\b"
)
_LACKS: Final = r"(?:\b(?:no|not|none|nothing|neither|never|cannot|unable|impossible|insufficient)\b|n['’]t\b)"
_ZH_SOURCE: Final = (
    "(?:段落|网页|资料|文章|文中|原文|页面|来源|材料|文档|文本|上下文|片段|搜索结果|检索结果"
    "|(?:提供|给出)的(?:内容|信息))"
)
_ZH_LACKS: Final = "(?:没|未|无|不[能提涉包]|难以|找不到)"
_WITHIN: Final = r"[^.。!?！？\n]{0,40}"
_LACKING_SOURCE = lazy_regex(
    rf"{_SOURCE}{_WITHIN}{_LACKS}|{_LACKS}{_WITHIN}{_SOURCE}|\bI {_WITHIN}{_LACKS}"
    rf"|{_ZH_SOURCE}{_WITHIN}{_ZH_LACKS}|{_ZH_LACKS}{_WITHIN}{_ZH_SOURCE}|我(?!们){_WITHIN}{_ZH_LACKS}",
    re.IGNORECASE,
)
_VERBS: Final = (
    "mentioned|stated|given|specified|covered|included|found|provided|described|addressed|discussed|contained"
    "|explained|answered|available|clear"
)
_ZH_VERBS: Final = (
    "提到|提及|涉及|说明|记载|介绍|指出|回答|描述|讲到|谈到|写明|给出|提供|找到|确定|得知|判断|查到|了解到"
)
_CONTENT_WORDS = lazy_regex(
    rf"\b(?:{_VERBS}|mention|say|specif|stat|expla|tell|answer|indicat|describ|discuss|address|reveal|contain|hold|provid"
    rf"|includ|cover|giv|list|show|offer|refer|inform|find|know|determin|confirm|possible|enough|sufficient|in the)"
    rf"|{_ZH_VERBS}|显示|列出|相关|有关|关于|答案|信息|包含|包括",
    re.IGNORECASE,
)
_COURTESY = lazy_regex(r"^(?:I|let me|please|sorry)\b|^(?:请|希望(?:以上|这|对|能|我|本)|如需|如果?您)", re.IGNORECASE)

# Not the beginning of a name: "no information desk".
_FOLLOWED: Final = (
    r"(?=\W*(?:$|[.,;:!?)]|(?:about|on|of|as|regarding|concerning|in|to|that|for|from|is|was|were|has|had|can|could"
    r"|available|found|here|there|given|provided)\b))"
)
_APART: Final = r"[^\w\n]*+"  # within a line, and possessive, since backtracking could freeze the app
_NOTHING_FOUND = lazy_regex(
    rf"\bno (?:(?:relevant|specific|further) )?(?:information|answer|mention)\b{_FOLLOWED}|^{_APART}not (?:{_VERBS})\b"
    r"|(?:找不到|没有找到|未找到|未能找到|没找到|没有|没|无|缺乏|缺少)(?:任何|足够)?(?:的)?(?:相关|有关|关于|与此|答案)"
    rf"|^{_APART}(?:(?:抱歉|很?遗憾|对不起){_APART})?(?:目前|暂时|其中)?(?:没有|未|并未|无法|不能)(?:{_ZH_VERBS}|包含)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, `text[start:stop]`; `bare` is its text without marks, `marks` are the passages it names.

    `is_statement` is true if it states something that a passage can support, `may_be_remark` if it reads like a remark,
    a heading or a transition: see ScoredStatement.is_counted.
    """

    start: int
    stop: int
    bare: str
    marks: tuple[int, ...]
    is_statement: bool
    may_be_remark: bool = False


def find_statements(text: str, marks: Sequence[Mark] | None = None) -> list[Sentence]:
    """Return all sentences of `text` in order, together with the marks that follow them."""
    marks = find_marks(text) if marks is None else marks
    visible = _mask_marks(text, marks)
    spans = _join_ends(visible, split_sentences(visible))
    fenced = fenced_blocks(visible)
    sentences = []
    for i, (start, end) in enumerate(spans):
        limit = spans[i + 1][0] if i + 1 < len(spans) else len(text)
        first, last = (bisect_left(marks, at, key=lambda mark: mark.start) for at in (start if i else 0, limit))
        own = marks[first:last]
        start = min([start, *(mark.start for mark in own)])
        stop = max([end, *(mark.stop for mark in own)])
        bare = remove_marks(text, own, start, stop).strip()
        numbers = tuple(dict.fromkeys(number for mark in own for number in mark.numbers))
        heads_table = bare.startswith("|") and bool(_RULE.fullmatch(visible[limit:].split("\n", 1)[0]))
        may_state = not heads_table and not is_inside(fenced, start)
        kind = _kind(bare, bool(numbers), len(spans) == 1) if may_state else "nothing"
        sentences.append(Sentence(start, stop, bare, numbers, kind == "statement", kind == "remark"))
    return sentences


def _mask_marks(text: str, marks: Sequence[Mark]) -> str:
    """Return `text` with blanks in place of its marks; line breaks are kept."""
    parts, place = [], 0
    for mark in marks:
        parts += [text[place : mark.start], re.sub(r"[^\n]", " ", text[mark.start : mark.stop])]
        place = mark.stop
    return "".join([*parts, text[place:]])


def _join_ends(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join the end of a sentence that a mark separated, as in `It was so [1].`, and code that contains a full stop."""
    joined: list[tuple[int, int]] = []
    code = [span for span in code_spans(text) if "\n" not in text[slice(*span)]]
    for start, end in spans:
        is_end = joined and not re.search(r"\w", text[start:end]) and "\n" not in text[joined[-1][1] : start]
        if is_end or (is_inside(code, start - 1) and is_inside(code, start)):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def find_repeats(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """Return the spans of verbatim repetitions, as small models write them, except for the first that cites a passage.

    A repetition that cites another passage is kept too, since another page says the same.
    """
    originals: dict[str, Sentence] = {}
    spans = []
    for item in sentences:
        text = " ".join(extract_claim(item.bare).casefold().split()).rstrip(_STOPS)
        if (
            not (item.is_statement or item.may_be_remark)
            or item.bare.startswith(("|", "#"))
            or weigh(text) < _MIN_REPEATED
        ):
            continue
        original = originals.setdefault(text, item)
        if original is item or (original.marks and set(item.marks) - set(original.marks)):
            continue
        originals[text], repetition = (item, original) if item.marks and not original.marks else (original, item)
        spans.append((repetition.start, repetition.stop))
    return spans


def extract_claim(bare: str) -> str:
    """Return the sentence without its list marker, a leading yes or no, and the passages that it names."""
    for lead in (_LIST_MARKER, _YES_OR_NO):
        match = lead.match(bare)
        bare = bare[match.end() :] if match else bare
    return NAMED_PASSAGE.sub(" ", bare)


def is_statement(bare: str) -> bool:
    """True if `bare` states something, and is not a heading, question, transition or remark on the passages."""
    return _kind(bare, marked=False, alone=False) == "statement"


def _kind(bare: str, marked: bool, alone: bool) -> Kind:
    if not re.search(r"\w", bare) or _QUESTION.search(bare) or _RULE.fullmatch(bare):
        return "nothing"
    if len(bare) > MAX_CHARS:
        return "statement"
    heading = bool(_HEADING.match(bare))
    bold = bool(_BOLD_LINE.match(bare)) and not marked
    if (heading and not marked) or (bold and not (alone or _FULL_STOP.search(bare))):
        return "nothing"
    terms = read_terms(bare).terms
    word_alone = len(terms) == 1 and terms[0].kind == "word" and not _FULL_STOP.search(bare)
    leads = ends_in_colon(bare) and not any(term.kind == "number" for term in terms)
    weight = sum(0.5 if term.kind == "han" else 1.0 for term in terms)
    if not terms or word_alone or (ends_in_colon(bare) and weight <= _MAX_TRANSITION_WORDS):
        return "nothing"
    if not marked and declines(bare):
        return "remark"
    remark = is_about_sources(bare) if marked else is_remark(bare)
    return "remark" if heading or bold or remark or leads else "statement"


def ends_in_colon(bare: str) -> bool:
    """True if the sentence ends in a colon, so that the next one completes it."""
    return bool(INTRODUCTION.search(bare))


def is_about_sources(sentence: str) -> bool:
    """True if the sentence says that the passages lack something, whatever it cites."""
    return bool(_LACKING_SOURCE.search(sentence) and _CONTENT_WORDS.search(sentence))


def is_remark(sentence: str) -> bool:
    """True if a sentence without marks is about the passages, or addresses the reader."""
    return is_about_sources(sentence) or bool(_COURTESY.search(sentence))


def declines(text: str) -> bool:
    """True if a text says that the answer is not in the passages."""
    return is_about_sources(text) or bool(_NOTHING_FOUND.search(text))


def remove_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the text without these spans, and without headings and list markers that are then empty."""
    for start, stop in sorted(spans, reverse=True):
        text = text[:start].rstrip(" ") + text[stop:]
    text = _EMPTY_ITEM.sub("", text)
    while (shorter := _HEADING_WITHOUT_TEXT.sub("", text)) != text:
        text = shorter
    return _BLANK_LINES.sub("\n\n", text).strip()
