"""The statements of an answer: its sentences with their marks, without headings, questions and transitions.

A remark says something about the answer or its sources, rather than about its subject: it names the sources and denies
that they tell something. It is not held to have a source. But pages, too, deny things: a remark is only what no passage
bears out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rag.checking.marks import NAMED_PASSAGE, Mark, between, cut, find_marks, inside
from rag.checking.terms import Term, read
from rag.text import fenced_blocks, split_sentences, weigh

_HEADING = re.compile(r"\s*#{1,6}\s")
_HEADING_LINE = re.compile(r"^[^\S\n]*+#{1,6}\s[^\n]*+", re.MULTILINE)
_BOLD_LINE = re.compile(r"\s*(?:\*\*[^*]+\*\*|__[^_]+__)\s*+(?:[:：]\s*+)?$")
_ENDED = re.compile(r"[.。!！][*_\s]*$")
_QUESTION = re.compile(r"[?？][\"'”’」』）)*_\s]*$")
_LEADS_ON = re.compile(r"[:：][*_\s]*$")
_RULE = re.compile(r"[|\s:=*_-]+")
_REPLY = re.compile(
    r"(?<![*_\s])[*_\s]*+(?:yes|no|yeah|nope|correct|right|indeed|certainly|of course"
    r"|是的?|不是?的?|否|对的?|没错|没有|不会|不能|不可以|不行|可以|能|会|有|行|(?P<verb>[不没未][^\W\d]{1,3})(?=[,，].{0,30}(?P=verb)))"
    r"[*_]*\s*(?:[,，、;；:：—–]|\s-\s|[.!]\s+(?=\D))[*_\s]*",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(?<!\s)\s*+(?:(?:[-*+•>]|\d{1,3}[.)、]|[(（]\d{1,3}[)）])\s+){1,4}(?=\S)")
LONGEST = 5_000
"""Characters of a sentence. What is longer was never ended, and nothing bears it out."""
_LONGEST_TRANSITION = 3  # content words of a line that only leads on to the next
_SHORTEST_REPEATED = 20  # Latin characters' worth: shorter ones may be meant twice
_STOPS: Final = ".。!！ *_"

_HEADING_WITHOUT_TEXT = re.compile(r"^(#{1,6}) [^\n]*\n*+(?=(?!\1#)#{1,6} |\Z)", re.MULTILINE)
_EMPTY_ITEM = re.compile(r"^[^\S\n]*+(?:[-*•]|\d++[.)])[^\S\n]*+$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")

Kind = Literal["statement", "excused", "nothing"]
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
_ON: Final = r"[^.。!?！？\n]{0,40}"  # on within the sentence
_ON_SOURCES = re.compile(
    rf"{_SOURCE}{_ON}{_LACKS}|{_LACKS}{_ON}{_SOURCE}|\bI {_ON}{_LACKS}"
    rf"|{_ZH_SOURCE}{_ON}{_ZH_LACKS}|{_ZH_LACKS}{_ON}{_ZH_SOURCE}|我(?!们){_ON}{_ZH_LACKS}",
    re.IGNORECASE,
)
_TOLD: Final = (
    "mentioned|stated|given|specified|covered|included|found|provided|described|addressed|discussed|contained"
    "|explained|answered|available|clear"
)
_ZH_TOLD: Final = (
    "提到|提及|涉及|说明|记载|介绍|指出|回答|描述|讲到|谈到|写明|给出|提供|找到|确定|得知|判断|查到|了解到"
)
_TELLS = re.compile(
    rf"\b(?:{_TOLD}|mention|say|specif|stat|expla|tell|answer|indicat|describ|discuss|address|reveal|contain|hold|provid"
    rf"|includ|cover|giv|list|show|offer|refer|inform|find|know|determin|confirm|possible|enough|sufficient|in the)"
    rf"|{_ZH_TOLD}|显示|列出|相关|有关|关于|答案|信息|包含|包括",
    re.IGNORECASE,
)
_COURTESY = re.compile(r"^(?:I|let me|please|sorry)\b|^(?:请|希望(?:以上|这|对|能|我|本)|如需|如果?您)", re.IGNORECASE)

# Not as the first part of a name: "no information desk".
_FOLLOWED: Final = (
    r"(?=\W*(?:$|[.,;:!?)]|(?:about|on|of|as|regarding|concerning|in|to|that|for|from|is|was|were|has|had|can|could"
    r"|available|found|here|there|given|provided)\b))"
)
_APART: Final = r"[^\w\n]*+"  # within a line and never given back, or the marks of an answer could freeze the app
_NOTHING_FOUND = re.compile(
    rf"\bno (?:(?:relevant|specific|further) )?(?:information|answer|mention)\b{_FOLLOWED}|^{_APART}not (?:{_TOLD})\b"
    r"|(?:找不到|没有找到|未找到|未能找到|没找到|没有|没|无|缺乏|缺少)(?:任何|足够)?(?:的)?(?:相关|有关|关于|与此|答案)"
    rf"|^{_APART}(?:(?:抱歉|很?遗憾|对不起){_APART})?(?:目前|暂时|其中)?(?:没有|未|并未|无法|不能)(?:{_ZH_TOLD}|包含)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Stated:
    """`text[start:stop]` with its marks; `bare` is what it says, `marks` the passages it names.

    `checked` is whether it states something that a passage can bear out. One that is `excused` reads like a
    remark, a heading or a transition: see Weighed.counts.
    """

    start: int
    stop: int
    bare: str
    marks: tuple[int, ...]
    checked: bool
    excused: bool = False


def find_statements(text: str, marks: Sequence[Mark] | None = None) -> list[Stated]:
    """All sentences of `text` in order, together with the marks that follow them."""
    marks = find_marks(text) if marks is None else marks
    masked = _masked(text, marks)
    spans = _with_ends(masked, split_sentences(masked))
    fenced = fenced_blocks(masked)
    headings = [line.span() for line in _HEADING_LINE.finditer(masked)]
    found = []
    for i, (start, end) in enumerate(spans):
        limit = spans[i + 1][0] if i + 1 < len(spans) else len(text)
        own = between(marks, start if i else 0, limit)
        start = min([start, *(mark.start for mark in own)])
        stop = max([end, *(mark.stop for mark in own)])
        bare = cut(text, own, start, stop).strip()
        numbers = tuple(dict.fromkeys(number for mark in own for number in mark.numbers))
        heads_table = bare.startswith("|") and bool(_RULE.fullmatch(masked[limit:].split("\n", 1)[0]))
        states = not heads_table and not inside(fenced, start)
        heads = inside(headings, start)  # a heading of several sentences is one to its end
        kind = _kind(bare, bool(numbers), len(spans) == 1, heads) if states else "nothing"
        found.append(Stated(start, stop, bare, numbers, kind == "statement", kind == "excused"))
    return found


def _masked(text: str, marks: Sequence[Mark]) -> str:
    """`text` with blanks in the place of its marks; a line ends where it ended."""
    parts, at = [], 0
    for mark in marks:
        parts += [text[at : mark.start], re.sub(r"[^\n]", " ", text[mark.start : mark.stop])]
        at = mark.stop
    return "".join([*parts, text[at:]])


def _with_ends(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give a sentence's end that a mark had cut off back to it: `It was so [1].`"""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and not re.search(r"\w", text[start:end]) and "\n" not in text[joined[-1][1] : start]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def repeated(stated: Sequence[Stated]) -> list[tuple[int, int]]:
    """Find sentences that stand word for word once more, as small models write them; the first that cites stays.

    A repetition that cites another passage stays too: another page says the same.
    """
    kept: dict[str, Stated] = {}
    spans = []
    for one in stated:
        said = " ".join(what_it_says(one.bare).casefold().split()).rstrip(_STOPS)
        if not (one.checked or one.excused) or one.bare.startswith(("|", "#")) or weigh(said) < _SHORTEST_REPEATED:
            continue
        other = kept.setdefault(said, one)
        if other is one or (other.marks and set(one.marks) - set(other.marks)):
            continue
        kept[said], again = (one, other) if one.marks and not other.marks else (other, one)
        spans.append((again.start, again.stop))
    return spans


def what_it_says(bare: str) -> str:
    """Without what makes it an entry of a list, the yes or no that it opens with, and the passages that it names."""
    for lead in (_LISTED, _REPLY):
        match = lead.match(bare)
        bare = bare[match.end() :] if match else bare
    return NAMED_PASSAGE.sub(" ", bare)


def is_statement(bare: str) -> bool:
    """Whether `bare` states something: not a heading, a question, a transition, or a remark on the passages."""
    return _kind(bare, marked=False, alone=False) == "statement"


def _kind(bare: str, marked: bool, alone: bool, heads: bool = False) -> Kind:
    if not re.search(r"\w", bare) or _QUESTION.search(bare) or _RULE.fullmatch(bare):
        return "nothing"
    if len(bare) > LONGEST:
        return "statement"
    heading = heads or bool(_HEADING.match(bare))
    bold = bool(_BOLD_LINE.match(bare)) and not marked
    if (heading and not marked) or (bold and not (alone or _ENDED.search(bare))):
        return "nothing"
    terms = read(bare).terms
    word_alone = len(terms) == 1 and terms[0].kind == "word" and not _ENDED.search(bare)
    leads = leads_on(bare) and not any(term.kind == "number" for term in terms)
    if not terms or word_alone or (leads_on(bare) and _weight(terms) <= _LONGEST_TRANSITION):
        return "nothing"
    if not marked and declines(bare):
        return "excused"
    remark = is_on_sources(bare) if marked else is_remark(bare)
    return "excused" if heading or bold or remark or leads else "statement"


def leads_on(bare: str) -> bool:
    """Whether it ends in a colon: what follows says what it is about."""
    return bool(_LEADS_ON.search(bare))


def _weight(terms: Sequence[Term]) -> float:
    return sum(0.5 if term.kind == "han" else 1.0 for term in terms)


def is_on_sources(sentence: str) -> bool:
    """Whether it says what the passages lack, whatever it cites."""
    return bool(_ON_SOURCES.search(sentence) and _TELLS.search(sentence))


def is_remark(sentence: str) -> bool:
    """Whether it speaks of the passages, or to the reader: as long as it names no passage."""
    return is_on_sources(sentence) or bool(_COURTESY.search(sentence))


def declines(text: str) -> bool:
    """Whether a text says that the answer is not in the passages."""
    return is_on_sources(text) or bool(_NOTHING_FOUND.search(text))


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without these sentences, and without headings and marks of a list that have nothing left below them."""
    for start, stop in sorted(spans, reverse=True):
        text = text[:start].rstrip(" ") + text[stop:]
    text = _EMPTY_ITEM.sub("", text)
    while (shorter := _HEADING_WITHOUT_TEXT.sub("", text)) != text:
        text = shorter
    return _BLANK_LINES.sub("\n\n", text).strip()
