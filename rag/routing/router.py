"""Routing of messages, and parsing of their options and parts.

Rules decide on the route in clear cases, otherwise a classifier, or the fast chat model if that is unsure.

Options are mode, strategy, splitting of saved pages, language and dates. Only the program's names for these are
recognised, and only in a phrase such as "in deep mode", "用关键词检索", "chunk size 500", "只看英文页面". Recognised
options are removed from the question. A message may have two parts: a request to save pages, and a question about them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from pydantic import BaseModel, Field

from rag.dates import find_period
from rag.errors import ModelError
from rag.patterns import lazy_regex
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import asks, is_about_conversation
from rag.routing.classifier import (
    Message,
    Route,
    RouteBy,
    Routing,
    explain_route,
    find_earlier_choice,
    is_save_only,
    read_message,
    route_probabilities,
)
from rag.tools.calculator import expression_of
from rag.tools.calendar_day import is_calendar_question
from rag.types import Notice

log = logging.getLogger(__name__)

MIN_CONFIDENCE: Final = 0.5
"""Minimum probability of a route other than a question."""
_MIN_CONFIDENCES: Final[dict[Route, float]] = {"web": 0.7, "unknown": 0.7}
"""Higher thresholds for routes that would send a question to the web, or refuse it."""
_MIN_CALCULATION_CONFIDENCE: Final = 0.3
"""Minimum probability of a calculation, which no page has: accepts 94 % of test calculations and 0.2 % of questions."""
_MODEL_THRESHOLD: Final = 0.8
MODEL_TIMEOUT: Final = 3.0
"""Seconds to wait for the chat model to choose a route."""
_WORD: Final = lazy_regex(r"\w")

AskModel = Callable[[Message], Awaitable[tuple[Route, str]]]
"""A function that asks a chat model for a route and a short reason. Raises ModelError."""


class Router:
    """A router of messages; `earlier_choices` returns those of users, as (masked text, route), latest first."""

    def __init__(self, earlier_choices: Callable[[], Iterable[tuple[str, Route]]] = tuple) -> None:
        self._earlier_choices = earlier_choices

    def route(self, text: str, *, has_files: bool = False, without: Iterable[Route] = ()) -> Routing:
        """Return the route without a chat model; the classifier chooses none of those in `without`. May block."""
        message = read_message(text, has_files=has_files)
        return self._route_by_rules(message) or self._route_by_classifier(message, without)

    async def ask(self, text: str, model: AskModel, *, has_files: bool = False) -> Routing:
        """Return the route; if the classifier is unsure, the model decides."""
        routing = self.route(text, has_files=has_files)
        if routing.by != "classifier" or routing.confidence >= _MODEL_THRESHOLD:
            return routing
        try:
            async with asyncio.timeout(MODEL_TIMEOUT):
                route, reason = await model(read_message(text, has_files=has_files))
        except (ModelError, TimeoutError) as error:
            log.info("Routing a message without the chat model (%s)", type(error).__name__)
            return routing
        return replace(routing, route=route, by="model", reason=Notice("route_model", {"why": reason}), confidence=1.0)

    def _route_by_rules(self, message: Message) -> Routing | None:
        if message.is_wordless and (message.addresses or message.has_files):
            return _route_by(message, "save", "rules", "route_only_addresses", count=len(message.addresses))
        if earlier := find_earlier_choice(message, self._earlier_choices()):
            return _route_by(message, earlier, "person", "route_chosen_before")
        if message.addresses or message.has_files:
            return None
        if not _WORD.search(message.text):
            return _route_by(message, "unknown", "rules", "route_no_words")
        if expression := expression_of(message.text):
            return _route_by(message, "calculate", "rules", "route_expression", expression=expression)
        if is_calendar_question(message.text):
            return _route_by(message, "date", "rules", "route_date")
        if is_about_conversation(message.text):
            return _route_by(message, "small_talk", "rules", "route_conversation")
        return None

    def _route_by_classifier(self, message: Message, without: Iterable[Route]) -> Routing:
        chances = route_probabilities(message) | dict.fromkeys(without, 0.0)
        best = max(chances, key=lambda route: chances[route])
        best = "calculate" if chances["calculate"] >= _MIN_CALCULATION_CONFIDENCE else best
        is_unsure = best not in ("ask", "calculate") and chances[best] < _MIN_CONFIDENCES.get(best, MIN_CONFIDENCE)
        if chances["ask"] > 0 and (is_unsure or (best == "unknown" and asks(message.text))):
            best = "ask"
        words = explain_route(message, best)
        code = f"route_{best}" if words or best == "ask" else "route_likely"
        return _route_by(
            message, best, "classifier", code, chances[best], words=", ".join(f"“{word}”" for word in words)
        )


def _route_by(
    message: Message, route: Route, by: RouteBy, code: str, confidence: float = 1.0, **params: object
) -> Routing:
    return Routing(route, by, Notice(code, params), confidence, message.addresses, message.words)


_MAX_CHARACTERS = 2_000  # characters of a message
_MAX_REASON = 160


class RouteReply(BaseModel):
    """The route of one message."""

    route: Route = Field(description="the route that fits best; ask if in doubt")
    confidence: float = Field(default=1.0, description="0 to 1")
    reason: str = Field(default="", description="a brief reason, in the language of the message")


def model_asker(chat: ChatReasoner) -> AskModel:
    """Return a function that asks this model; if the model is unsure, the route is `ask`."""

    async def ask(message: Message) -> tuple[Route, str]:
        reply = await chat.fill(RouteReply, requests.route(chat.texts, message.text[:_MAX_CHARACTERS]))
        is_sure = reply.confidence >= 0.5
        return (reply.route if is_sure else "ask"), " ".join(reply.reason.split())[:_MAX_REASON]

    return ask


# The options in a message, and its parts

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
_PUNCTUATION: Final = " \t\n,.;:，。；：、"
_HEAD: Final = lazy_regex(r"\s*+(?P<head>[^\n:：]{2,200})(?:[:：]|\n)")
_HEAD_END: Final = lazy_regex(r"[,，.。;；]")
_MIN_PASTED: Final = 300  # minimum characters of a text to save


@dataclass(frozen=True, slots=True)
class InlineOptions:
    """The options of a message. `rest` is the other text; `values` maps mode, strategy, chunker, chunk_size, language
    and days (since, until) to their values, and `wording` to their wording.
    """

    rest: str
    values: Mapping[str, Any] = field(default_factory=dict)
    wording: Mapping[str, str] = field(default_factory=dict)


def read_options(text: str, today: date, *, saves: bool = False, without: Iterable[str] = ()) -> InlineOptions:
    """Extract the options of `text`, those for splitting only if it `saves` pages. Kinds in `without` stay in the text.

    Text that consists of options only is returned whole, as a question about them.
    """
    rest, values, wording = text, {}, {}
    for kind, value, start, end in _find_options(text, today, saves):
        phrase = text[start:end]
        if kind in without or kind in values or phrase not in rest:
            continue
        remaining = " ".join(rest.replace(phrase, " ", 1).split()).strip(" ,，;；:：、")
        if not re.search(r"\w", remaining):
            break
        rest, values[kind], wording[kind] = remaining, value, phrase.strip(" ,，。.;；:：")
    return InlineOptions(rest, values, wording) if values else InlineOptions(text)


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
    """Yield limits on when pages were saved: "in pages saved since May", "只看最近一周保存的网页"."""
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
    if match is None or len(body) < _MIN_PASTED or not is_save_only(_HEAD_END.split(match["head"])[0]):
        return text, ""
    return match["head"], body


def strip_save_request(rest: str) -> str:
    """Return the text from the first clause that is more than a request to save something."""
    place = 0
    for joint in _JOINT.finditer(rest):
        head = rest[place : joint.start()].strip(_PUNCTUATION)
        if (head and not is_save_only(head)) or not rest[joint.end() :].strip(_PUNCTUATION):
            break
        place = joint.end()
    return rest[place:].strip(_PUNCTUATION)
