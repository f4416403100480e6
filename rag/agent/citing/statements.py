"""The statements of an answer: its sentences with their marks, without headings, questions and transitions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag.agent.citing.english import COMMON
from rag.agent.citing.reading import Reading, Token
from rag.text import split_sentences

MARK = re.compile(r"\s*[\[【]\s*\^?(\d{1,3}(?:\s*[,，、;；]\s*\d{1,3})*)\s*[\]】]")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*\*\*[^*]+\*\*\s*[:：]?\s*$")
_QUESTION = re.compile(r"[?？][\"'”’」』）)*_\s]*$")
_LEADS_ON = re.compile(r"[:：][*_\s]*$")
_RULE = re.compile(r"[|\s:=*_-]+")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)")
_ABOUT_ITSELF = re.compile(
    r"\b(?:passages?|pages?|sources?|text|articles?|documents?|context|they|it)\b.{0,30}"
    r"\b(?:do|does|did)(?: not|n't|n’t) "
    r"(?:contain|mention|hold|say|provide|include|cover|answer|specify|give|state|explain|tell)"
    r"|\bno (?:information|mention|answer)\b|\b(?:cannot|can't|could not|unable to) (?:find|answer|be found|tell)"
    r"|^(?:I|We) (?:hope|can|could|will|am|found|searched|don't|do not|cannot|apologi[sz]e)\b|^(?:let me|please) "
    r"|(?:段落|网页|资料|文章|文中|原文|页面|来源).{0,12}(?:没有|未|并未|不)(?:曾)?(?:提到|提及|包含|涉及|说明|找到|给出|提供)"
    r"|无法(?:回答|找到|确定|得知)|找不到|^(?:希望|如果您|如需|请)",
    re.IGNORECASE,
)
_LONGEST_TRANSITION = 3  # content words of a line that only leads on to the next


@dataclass(frozen=True, slots=True)
class Stated:
    """`text[start:stop]` with its marks; `bare` is what it says, `marks` the passages it names.

    `checked` is whether it states something that a passage can bear out.
    """

    start: int
    stop: int
    bare: str
    marks: tuple[int, ...]
    checked: bool


def find_statements(text: str) -> list[Stated]:
    """All sentences of `text` in order, together with the marks that follow them."""
    marks = list(MARK.finditer(text))
    masked = MARK.sub(lambda mark: " " * len(mark.group()), text)
    spans = _with_ends(masked, split_sentences(masked))
    fenced = _fenced_lines(text)
    found = []
    for i, (start, end) in enumerate(spans):
        limit = spans[i + 1][0] if i + 1 < len(spans) else len(text)
        own = [mark for mark in marks if start <= mark.start() < limit]
        stop = max([end, *(mark.end() for mark in own)])
        bare = MARK.sub("", text[start:stop]).strip()
        numbers = [int(number) for mark in own for number in re.findall(r"\d+", mark[1])]
        heads_table = bare.startswith("|") and bool(_RULE.fullmatch(masked[limit:].split("\n", 1)[0]))
        checked = is_statement(bare) and not heads_table and not any(a <= start < b for a, b in fenced)
        found.append(Stated(start, stop, bare, tuple(dict.fromkeys(numbers)), checked))
    return found


def _with_ends(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give a sentence's end that a mark had cut off back to it: `It was so [1].`"""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and not re.search(r"\w", text[start:end]) and "\n" not in text[joined[-1][1] : start]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _fenced_lines(text: str) -> list[tuple[int, int]]:
    """Spans of code blocks: code states nothing."""
    edges = [match.start() for match in re.finditer(_FENCE.pattern, text, re.MULTILINE)]
    return [(a, b + 3) for a, b in zip(edges[::2], [*edges[1::2], len(text)], strict=False)]


def _says_something(tokens: list[Token]) -> bool:
    """A name or a number may answer by itself, a word alone does not."""
    return len(tokens) > 1 or any(
        token.kind in ("name", "number") or (token.opens and token.key not in COMMON) for token in tokens
    )


def is_statement(bare: str) -> bool:
    """Whether `bare` states something: not a heading, a question, a transition, or a remark on the passages."""
    if not re.search(r"\w", bare) or _HEADING.match(bare) or _QUESTION.search(bare) or _RULE.fullmatch(bare):
        return False
    tokens = Reading(bare).tokens
    if not _says_something(tokens) or _ABOUT_ITSELF.search(bare):
        return False
    if not _LEADS_ON.search(bare):
        return True
    weight = sum(0.5 if token.kind == "han" else 1.0 for token in tokens)
    return weight > _LONGEST_TRANSITION and any(token.kind == "number" for token in tokens)
