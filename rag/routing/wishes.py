"""What a message asks for besides its question: mode, strategy, how saved pages are cut, their language and days; and
of one that has pages saved first, what is to be saved and what is asked of it then.

Only what this program calls by name is read, and only where the message says that it is to be used: "in deep mode",
"用关键词检索", "chunk size 500", "只看英文页面". What was read is taken out of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from rag.dates import period_of
from rag.routing.classifier import only_saves

_MODES: Final = {
    "fast": r"fast|quick|快速|快答",
    "deep": r"deep|thorough|深度|深入",
    "research": r"(?:deep )?research|研究|调研",
    "judge": r"judge|tree|评判|裁判",
}
_STRATEGIES: Final = {
    "dense": r"dense|vector|semantic|向量|语义|稠密",
    "keyword": r"keywords?|bm25|sparse|full[- ]text|关键词|关键字|稀疏|全文",
    "hybrid": r"hybrid|混合",
    "weighted": r"weighted|加权",
    "mmr": r"mmr|diverse|多样性?",
    "hyde": r"hyde|hypothetical|假设(?:文档|答案)?",
    "multi_query": r"multi[- ]?query|多(?:查询|问法|路)",
    "rerank": r"re-?rank(?:ed|ing)?|重排序?",
    "auto": r"auto(?:matic)?|自动",
    "classic": r"classic|经典",
}
_CHUNKERS: Final = {
    "semantic": r"semantic(?:ally)?|by meaning|语义",
    "recursive": r"recursive(?:ly)?|递归",
    "fixed": r"fixed(?:[- ]size)?|固定(?:长度|大小)?",
    "markdown": r"markdown|by headings?|标题",
    "parent": r"parent(?:[- ]child)?|父子(?:文档)?",
    "breakpoints": r"breakpoints?|classic|断点|经典",
}
_LANGUAGES: Final = {"en": r"english|英文|英语|英語", "zh": r"chinese|中文|汉语|漢語"}
_USE: Final = r"(?:(?:please )?(?:use|using|with|in|by|via|through)(?: the| a)? )"
_ZH_USE: Final = r"(?:请?(?:使用|采用|用|以|按照?)\s?)"
_ONLY: Final = r"(?:only (?:in|from|on)?|just (?:in|from)|(?:in|from|among|within) (?:the )?)"
_PAGES: Final = r"(?:pages?|sites?|documents?|sources?|articles?)"
_ZH_PAGES: Final = r"(?:网页|页面|资料|文档|文章)"
_END: Final = r"[\s,，。.;；:：]*"

_JOINT: Final = re.compile(
    r"[,.;:!?\n，。；：！？]+|\s(?:and then|and|then)\s|然后|之后|接着|并且|并|再", re.IGNORECASE
)
_AROUND: Final = " \t\n,.;:，。；：、"
_HEAD: Final = re.compile(r"\s*+(?P<head>[^\n:：]{2,200})(?:[:：]|\n)")
_HEAD_END: Final = re.compile(r"[,，.。;；]")
_PASTED: Final = 300  # characters from which on a text is worth keeping


@dataclass(frozen=True, slots=True)
class InlineOptions:
    """`rest` is the text without them; `found` maps mode, strategy, chunker, chunk_size, language, since and until to
    what was wished for, and `words` to how that was put.
    """

    rest: str
    found: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


def read_options(text: str, today: date, *, saves: bool = False, without: Iterable[str] = ()) -> InlineOptions:
    """What `text` asks for; how pages are cut only where it `saves`. `without` are kinds to leave where they are.

    A text of nothing but wishes stays whole: it is asked about, then.
    """
    rest, found, words = text, {}, {}
    for kind, value, start, end in _find_options(text, today, saves):
        said = text[start:end]
        if kind in without or kind in found or said not in rest:
            continue
        left = " ".join(rest.replace(said, " ", 1).split()).strip(" ,，;；:：、")
        if not re.search(r"\w", left):
            break
        rest, found[kind], words[kind] = left, value, said.strip(" ,，。.;；:：")
    return InlineOptions(rest, found, words) if found else InlineOptions(text)


def _find_options(text: str, today: date, saves: bool) -> Iterator[tuple[str, Any, int, int]]:
    """(kind, value, start, end) of each in turn."""
    for mode, named in _MODES.items():
        yield from _each(
            "mode",
            mode,
            text,
            rf"{_USE}(?:{named}) mode{_END}",
            rf"{_ZH_USE}?(?:{named})模式(?:来?(?:回答|查找?))?{_END}",
        )
    if saves:
        yield from _cut(text)
    for strategy, named in _STRATEGIES.items():
        english = rf"{_USE}(?:{named})(?: (?:search|retrieval|strategy|matching))(?: only)?{_END}"
        chinese = rf"{_ZH_USE}(?:{named})(?:检索|搜索|查找|策略|方式|方法)+(?:来?查)?{_END}"
        yield from _each("strategy", strategy, text, english, chinese)
    for language, named in _LANGUAGES.items():
        english = rf"(?:look |search )?{_ONLY}\s?(?:the )?(?:{named}) {_PAGES}{_END}"
        chinese = rf"(?:请?[只仅][看查搜用在]?|在)(?:{named})的?{_ZH_PAGES}[里中内]?(?:查找?|搜索?|找)?{_END}"
        yield from _each("language", language, text, english, chinese)
    yield from _days(text, today)


def _cut(text: str) -> Iterator[tuple[str, Any, int, int]]:
    number = r"(?P<n>\d{2,5})"
    for pattern in (
        rf"(?:(?:with|in|into|using) )?(?:a )?chunks?(?:[- ]size)?(?: (?:of|size))*[:= ]+{number}"
        rf"(?: (?:characters|chars))?{_END}",
        rf"(?:切片|分块|块|切块)的?(?:大小|长度)?(?:为|是|设为|[用:：=])?\s?{number}(?:个?字符?)?{_END}",
        rf"每[块片段]{number}(?:个?字符?)?{_END}",
    ):
        for one in re.finditer(pattern, text, re.IGNORECASE):
            yield "chunk_size", int(one["n"]), one.start(), one.end()
    for chunker, named in _CHUNKERS.items():
        english = (
            rf"{_USE}?(?:the )?(?:{named}) (?:chunk(?:er|ing)|splitt(?:er|ing)){_END}"
            rf"|(?:split|chunk|cut) (?:it |them )?(?:{named}){_END}"
        )
        chinese = rf"{_ZH_USE}?(?:{named})来?(?:切片|切分|分块|切块|分割)(?:方式|方法)?{_END}"
        yield from _each("chunker", chunker, text, english, chinese)


def _days(text: str, today: date) -> Iterator[tuple[str, Any, int, int]]:
    """Only pages by the time they were saved: "in pages saved since May", "只看最近一周保存的网页"."""
    for pattern in (
        rf"{_ONLY}\s?(?:the )?{_PAGES} (?:that (?:were|are) )?(?:saved|added|stored|imported|updated)"
        rf"[^,?.;:]{{2,40}}{_END}",
        rf"[只仅在][看查搜用从]?[^，,。？?；;：:]{{1,16}}(?:保存|收录|添加|导入|更新|存)过?的{_ZH_PAGES}[里中内]?{_END}",
    ):
        for one in re.finditer(pattern, text, re.IGNORECASE):
            if period := period_of(one.group(), today):
                yield "days", (period.since, period.until), one.start(), one.end()


def _each(kind: str, value: str, text: str, *patterns: str) -> Iterator[tuple[str, Any, int, int]]:
    for pattern in patterns:
        for one in re.finditer(rf"(?<![A-Za-z]){pattern}", text, re.IGNORECASE):
            yield kind, value, one.start(), one.end()


def split_pasted(text: str) -> tuple[str, str]:
    """A wish to save what stands below or behind it, and that text; the whole message and nothing for any other."""
    first = _HEAD.match(text)
    body = text[first.end() :].strip() if first else ""
    if first is None or len(body) < _PASTED or not only_saves(_HEAD_END.split(first["head"])[0]):
        return text, ""
    return first["head"], body


def question_of(rest: str) -> str:
    """The words from the first clause on that does more than ask for something to be saved."""
    place = 0
    for joint in _JOINT.finditer(rest):
        head = rest[place : joint.start()].strip(_AROUND)
        if (head and not only_saves(head)) or not rest[joint.end() :].strip(_AROUND):
            break
        place = joint.end()
    return rest[place:].strip(_AROUND)
