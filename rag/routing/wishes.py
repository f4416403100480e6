"""Options in a message besides its question: mode, strategy, splitting of saved pages, language and dates; and the two
parts of a message that saves pages first and then asks about them.

Only the program's names for these are recognised, and only with a phrase such as "in deep mode", "用关键词检索",
"chunk size 500", "只看英文页面". Recognised options are removed from the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from rag.dates import find_period
from rag.patterns import lazy_regex
from rag.routing.classifier import is_save_only

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

_JOINT: Final = lazy_regex(
    r"[,.;:!?\n，。；：！？]+|\s(?:and then|and|then)\s|然后|之后|接着|并且|并|再", re.IGNORECASE
)
_AROUND: Final = " \t\n,.;:，。；：、"
_HEAD: Final = lazy_regex(r"\s*+(?P<head>[^\n:：]{2,200})(?:[:：]|\n)")
_HEAD_END: Final = lazy_regex(r"[,，.。;；]")
_PASTED: Final = 300  # minimum characters of a text to save


@dataclass(frozen=True, slots=True)
class InlineOptions:
    """Options of a message. `rest` is the other text; `found` maps mode, strategy, chunker, chunk_size, language, since
    and until to their values, and `words` to their wording.
    """

    rest: str
    found: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


def read_options(text: str, today: date, *, saves: bool = False, without: Iterable[str] = ()) -> InlineOptions:
    """Extract the options of `text`, those for splitting only if it `saves`. `without` are kinds to leave in place.

    A text with nothing but options stays whole, as a question about them.
    """
    rest, found, words = text, {}, {}
    for kind, value, start, end in _find_options(text, today, saves):
        phrase = text[start:end]
        if kind in without or kind in found or phrase not in rest:
            continue
        remaining = " ".join(rest.replace(phrase, " ", 1).split()).strip(" ,，;；:：、")
        if not re.search(r"\w", remaining):
            break
        rest, found[kind], words[kind] = remaining, value, phrase.strip(" ,，。.;；:：")
    return InlineOptions(rest, found, words) if found else InlineOptions(text)


def _find_options(text: str, today: date, saves: bool) -> Iterator[tuple[str, Any, int, int]]:
    """Yield (kind, value, start, end) of each option."""
    for mode, words in _MODES.items():
        yield from _find_each(
            "mode",
            mode,
            text,
            rf"{_USE}(?:{words}) mode{_END}",
            rf"{_ZH_USE}?(?:{words})模式(?:来?(?:回答|查找?))?{_END}",
        )
    if saves:
        yield from _find_splitting(text)
    for strategy, words in _STRATEGIES.items():
        english = rf"{_USE}(?:{words})(?: (?:search|retrieval|strategy|matching))(?: only)?{_END}"
        chinese = rf"{_ZH_USE}(?:{words})(?:检索|搜索|查找|策略|方式|方法)+(?:来?查)?{_END}"
        yield from _find_each("strategy", strategy, text, english, chinese)
    for language, words in _LANGUAGES.items():
        english = rf"(?:look |search )?{_ONLY}\s?(?:the )?(?:{words}) {_PAGES}{_END}"
        chinese = rf"(?:请?[只仅][看查搜用在]?|在)(?:{words})的?{_ZH_PAGES}[里中内]?(?:查找?|搜索?|找)?{_END}"
        yield from _find_each("language", language, text, english, chinese)
    yield from _find_days(text, today)


def _find_splitting(text: str) -> Iterator[tuple[str, Any, int, int]]:
    number = r"(?P<n>\d{2,5})"
    for pattern in (
        rf"(?:(?:with|in|into|using) )?(?:a )?chunks?(?:[- ]size)?(?: (?:of|size))*[:= ]+{number}"
        rf"(?: (?:characters|chars))?{_END}",
        rf"(?:切片|分块|块|切块)的?(?:大小|长度)?(?:为|是|设为|[用:：=])?\s?{number}(?:个?字符?)?{_END}",
        rf"每[块片段]{number}(?:个?字符?)?{_END}",
    ):
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield "chunk_size", int(match["n"]), match.start(), match.end()
    for chunker, words in _CHUNKERS.items():
        english = (
            rf"{_USE}?(?:the )?(?:{words}) (?:chunk(?:er|ing)|splitt(?:er|ing)){_END}"
            rf"|(?:split|chunk|cut) (?:it |them )?(?:{words}){_END}"
        )
        chinese = rf"{_ZH_USE}?(?:{words})来?(?:切片|切分|分块|切块|分割)(?:方式|方法)?{_END}"
        yield from _find_each("chunker", chunker, text, english, chinese)


def _find_days(text: str, today: date) -> Iterator[tuple[str, Any, int, int]]:
    """Yield limits on the time that pages were saved: "in pages saved since May", "只看最近一周保存的网页"."""
    for pattern in (
        rf"{_ONLY}\s?(?:the )?{_PAGES} (?:that (?:were|are) )?(?:saved|added|stored|imported|updated)"
        rf"[^,?.;:]{{2,40}}{_END}",
        rf"[只仅在][看查搜用从]?[^，,。？?；;：:]{{1,16}}(?:保存|收录|添加|导入|更新|存)过?的{_ZH_PAGES}[里中内]?{_END}",
    ):
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if period := find_period(match.group(), today):
                yield "days", (period.since, period.until), match.start(), match.end()


def _find_each(kind: str, value: str, text: str, *patterns: str) -> Iterator[tuple[str, Any, int, int]]:
    for pattern in patterns:
        for match in re.finditer(rf"(?<![A-Za-z]){pattern}", text, re.IGNORECASE):
            yield kind, value, match.start(), match.end()


def split_pasted(text: str) -> tuple[str, str]:
    """Split a request to save pasted text from that text; return any other message whole, with an empty string."""
    match = _HEAD.match(text)
    body = text[match.end() :].strip() if match else ""
    if match is None or len(body) < _PASTED or not is_save_only(_HEAD_END.split(match["head"])[0]):
        return text, ""
    return match["head"], body


def question_of(rest: str) -> str:
    """Return the words from the first clause that does more than ask to save something."""
    place = 0
    for joint in _JOINT.finditer(rest):
        head = rest[place : joint.start()].strip(_AROUND)
        if (head and not is_save_only(head)) or not rest[joint.end() :].strip(_AROUND):
            break
        place = joint.end()
    return rest[place:].strip(_AROUND)
