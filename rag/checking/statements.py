"""Statements of an answer: its sentences with their marks, without headings, questions and transitions.

A remark is about the answer or its sources rather than its subject: it names the sources and says that they lack
something. It needs no source. Since pages contain such sentences too, it is a remark only if no passage supports it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rag.checking.marks import NAMED_PASSAGE, Mark, code_spans, find_marks, is_inside, marks_between, remove_marks
from rag.checking.terms import Term, read_terms
from rag.patterns import lazy_regex
from rag.text import fenced_blocks, split_sentences, weigh

_HEADING = lazy_regex(r"\s*#{1,6}\s")
_BOLD_LINE = lazy_regex(r"\s*(?:\*\*[^*]+\*\*|__[^_]+__)\s*+(?:[:：]\s*+)?$")
_FULL_STOP = lazy_regex(r"[.。!！][*_\s]*$")
_QUESTION = lazy_regex(r"[?？][\"'”’」』）)*_\s]*$")
_COLON = lazy_regex(r"[:：][*_\s]*$")
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
        own = marks_between(marks, start if i else 0, limit)
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
    if not terms or word_alone or (ends_in_colon(bare) and _weight(terms) <= _MAX_TRANSITION_WORDS):
        return "nothing"
    if not marked and declines(bare):
        return "remark"
    remark = is_about_sources(bare) if marked else is_remark(bare)
    return "remark" if heading or bold or remark or leads else "statement"


def ends_in_colon(bare: str) -> bool:
    """True if the sentence ends in a colon, so that the next one completes it."""
    return bool(_COLON.search(bare))


def _weight(terms: Sequence[Term]) -> float:
    return sum(0.5 if term.kind == "han" else 1.0 for term in terms)


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
