"""Routing of messages, and parsing of their options and parts.

Rules decide on the route in clear cases, otherwise a classifier, or the fast chat model if that is unsure. A message
that is similar to one whose route a user chose gets that route.

The classifier is a softmax regression that `benchmarks.routing` fits to `training.jsonl`. Its features are the semantic
fields in a message, the number of other words, and character n-grams, hashed after Weinberger et al. (2009). A field is
a closed set of words for one thing that this program can do or be asked about. Often the other words decide: "how many
pages are there?" has none, "how many pages may the form have?" has one.

Options are mode, strategy, splitting of saved pages, language and dates. Only the program's names for these are
recognised, and only in a phrase such as "in deep mode", "用关键词检索", "chunk size 500", "只看英文页面". Recognised
options are removed from the question. A message may have two parts: a request to save pages, and a question about them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, Final, Literal, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from rag.dates import find_period
from rag.errors import ModelError
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import asks, is_about_conversation
from rag.text import lazy_regex
from rag.tools.calculator import expression_of
from rag.tools.calendar_day import is_calendar_question
from rag.types import Notice
from rag.web.url_finder import locate_urls
from rag.web.urls import split_url

log = logging.getLogger(__name__)


Route = Literal[
    "ask",
    "save",
    "save_then_ask",
    "remove",
    "summarise",
    "what_changed",
    "statistics",
    "calculate",
    "date",
    "web",
    "small_talk",
    "unknown",
]
RouteBy = Literal["rules", "classifier", "model", "person"]
ROUTES: Final[tuple[Route, ...]] = get_args(Route)


@dataclass(frozen=True, slots=True)
class Routing:
    """The route of a message, its origin and reason, and the confidence (0 to 1)."""

    route: Route
    by: RouteBy
    reason: Notice
    confidence: float = 1.0
    addresses: tuple[str, ...] = ()
    rest: str = ""


ADDRESS: Final = "\u27e8url\u27e9"
SITE: Final = "\u27e8site\u27e9"
"""The placeholders for links in a message."""
_WORD: Final = lazy_regex(r"\w")
_QUOTED: Final = lazy_regex(r"《[^《》]{1,120}》|[“「][^“”「」]{1,120}[”」]|\"[^\"]{1,120}\"")
_EDGE_PUNCTUATION: Final = (
    " \t\r\n,;:|<>()[]\"'\u2018\u2019\u201c\u201d\uff0c\u3001\uff1b\uff1a\uff08\uff09\u3010\u3011\u300a\u300b"
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message with the `addresses` of its links as they are fetched, the `words` around them, and the text with
    placeholders for links (`masked`). `has_files` is true if files are attached.
    """

    text: str
    addresses: tuple[str, ...]
    words: str
    masked: str
    has_files: bool = False


def read_message(text: str, *, has_files: bool = False) -> Message:
    links = locate_urls(text)
    words, masked, end = [], [], 0
    for start, stop, address in links:
        words.append(text[end:start])
        masked += [text[end:start], f" {SITE if _is_site(address) else ADDRESS} "]
        end = stop
    rest = " ".join(part.strip(_EDGE_PUNCTUATION) for part in (*words, text[end:]))
    addresses = tuple(dict.fromkeys(address for _, _, address in links))
    return Message(text, addresses, " ".join(rest.split()), "".join((*masked, text[end:])), has_files)


def _is_site(address: str) -> bool:
    parts = split_url(address)
    return parts.path in ("", "/") and not parts.query


TRAINING: Final = Path(__file__).parent / "training.jsonl"
WEIGHTS: Final = Path(__file__).parent / "weights.npz"
_MIN_SIMILARITY: Final = 0.8
"""Minimum cosine at which two messages count as the same request."""
_SAVE_ROUTES: Final = ("save", "save_then_ask")
BUCKETS: Final = 1 << 14
_MAX_CLASSIFIED: Final = 400  # characters: a request is at the beginning
_NGRAM_SIZES: Final = range(1, 5)
_NGRAM_WEIGHT: Final = 4.0

_FIELDS: Final = {
    "summary": r"summar\w*|sumar\w*|recap\w*|overview\w*|gist|tl;? ?dr|outline|digest|nutshell|boil (?:it |them )?down"
    r"|(?:main|key|central|important) (?:points?|ideas?|messages?)|takeaways?|highlights|essentials|rundown|abstract"
    r"|condens\w*|abridge\w*|synops\w*|in brief|briefly|short version|sum up|up to speed"
    r"|总结|總結|概括|摘要|概述|概要|概览|归纳|歸納|浓缩|精简|梗概|要点|重点|小结|综述|提炼|大意|简介|大概|整理",
    "change": r"chang\w*|updat\w*|new(?:er|est|ly)?|add(?:ed|itions?)|modif\w*|edited|edits|revis\w*|disappear\w*"
    r"|remov\w*|differ\w*|latest|missed|miss|what's new|变化|变动|变了|更新|改过|改了|改动|新增|新加(?!坡)|新收|新存"
    r"|新的|最新|修改|增加|删|消失|不同|變|動",
    "remove": r"delet\w*|remov(?:e|ing|al)|erase|forget|discard|purge|trash|bin|drop|ditch|unsave"
    r"|(?:get rid|dispose) of|(?:throw|take|clear|kick) (?:\w+ ){0,3}(?:out|away)"
    r"|删除|删掉|删去|删了|删|刪除|刪掉|移除|移走|移出|去掉|清除|清掉|忘掉|忘记|丢掉|扔掉|剔除|撤下|不要了|不再保留",
    "library": r"librar\w*|collection|knowledge ?base|database|saved|stored|imported|in here|archive"
    r"|资料库|資料庫|知识库|知識庫|库里|库中|库内|本库|整个库|这个库|这里面|收录|收藏|已存|存的|存了|入库|导入",
    "page": r"(?:web ?)?pages?|(?:web ?)?sites?|documents?|docs|articles?|urls?|links?|网页|網頁|页面|頁面|文章|站点"
    r"|网站|網站|文档|资料|資料|文件|链接|网址|篇|页",
    "count": r"how many|how much|number of|counts?|total|biggest|largest|longest|shortest|smallest|list|average|size"
    r"|empty|statistics?|stats|多少|几个|几篇|几页|几种|总共|统计|列出|清单|数量|最大|最长|最短|最多"
    r"|总数|平均|一共|列个|列一下|空的|多大",
    "since": r"since|(?:last|past|this|previous) (?:week|month|year|night|few|two|three|\d+|monday|tuesday|wednesday"
    r"|thursday|friday|weekend|morning)\w*|yesterday|overnight|lately|recently|ago"
    r"|以来|以來|之后|自从|最近|近期|过去|昨天|昨晚|本周|本月|这周|這週"
    r"|上周|上週|上个月|这个月|半个月|小时|前天",
    "web": r"(?:the )?(?:web|internet|online|net)|上网|网上|上網|網上|网络|網路|联网|互联网|全网|外网|線上|网页搜索",
    "engine": r"google[ds]?|bing|duckduckgo|search engine|谷歌|百度|必应|搜索引擎",
    "search": r"search(?:es|ed|ing)?|look(?:s|ed|ing)? (?:(?:it|this|that|them) )?up|look (?:for|at|online)"
    r"|find|browse|check|搜索|搜寻|搜尋|搜|查找|查询|查|找",
    "sum": r"\d[\d,.]* ?[-+*/x×÷^] ?\(?\d|percent of|% of|\d ?%|times|divided|multipl\w*|plus|minus|squared?|cubed"
    r"|(?:square|cube) root|乘以?|除以|加上?|减去?|平方|立方|等于|百分之|开方|次方",
    "unit": r"(?:kilo|centi|milli)?met(?:er|re)s?|km|kg|miles?|pounds?|lbs?|celsius|fahrenheit|inch(?:es)?|feet|foot|cm"
    r"|lit(?:er|re)s?|gallons?|ounces?|oz|grams?|acres?|hectares?|knots?|mph|[mg]b|convert\w*"
    r"|公里|英里|公斤|千克|磅|摄氏|华氏|英寸|英尺|厘米|加仑|盎司|换算|等于多少|合多少|平方米|海里|斤",
    "day": r"dates?|weekdays?|day of the week|what day|which day|days|weeks|leap year|what time|time is it"
    r"|today|tomorrow"
    r"|how long (?:until|till|ago)|easter|christmas|midnight|noon|new year\w*"
    r"|几号|幾號|星期|礼拜|周几|週幾|日期|多少天|几天|闰年|几点|哪天|哪一天|农历|倒计时|第几"
    r"|今天|明天|后天|现在|天后|天前|距离?|还有|春节|国庆|中秋|元旦",
    "number": r"\d[\d,.]*|[一二三四五六七八九十百千万两]{2,}|half|dozen",
    "greeting": r"hi|hello|hey|thanks?|thank you|thx|bye|goodbye|good (?:morning|evening|night|afternoon)|cheers"
    r"|haha\w*|wow|nice|great|cool|awesome|well done|good job|sorry|how are you|who are you"
    r"|你好|您好|谢谢|謝謝|多谢|感谢|再见|拜拜|早上好|早安|晚安|哈+|辛苦|嗨|不错|棒"
    r"|厉害|抱歉|不好意思|对不起|你是谁|你是",
    "save": r"save|add|import|store|keep|collect|ingest|fetch|put|archive|bookmark|index|load|grab|pull|include|crawl"
    r"|download|read in|take in|保存|存下|存档|存到|存进|存一下|存|收藏|收录|收下|收进"
    r"|添加|加入|加到|加进|导入|导进|入库|抓取|抓|放进|放到|归档|下载",
    "you": r"you|your|yourself|u|你|您|你们",
    "asks": r"what|which|who|whose|when|where|why|how|do|does|did|is|are|can|could|may|should|must"
    r"|什么|甚麼|哪些?|谁|誰|吗|嗎|怎么|怎样|为什么|为啥|如何|是否|能不能|可不可以|有没有|呢",
}
_FUNCTION: Final = (
    r"an?|the|of|in|on|at|to|for|from|by|with|and|or|but|so|was|were|be|been|being|am|have|has|had|will|would|i|we|they"
    r"|he|she|it|me|us|them|my|our|their|its|this|that|these|those|there|here|not|no|any|all|some|please|pls|tell|show"
    r"|give|let|know|just|now|then|than|as|if|up|out|off|about|into|more|most|very|really|only|also|too|want|need|like"
    r"|get|got|make|made|one|ones|things?|everything|something|whole|every|each|per|between|until|till|after|before|s|m"
    r"|re|ve|d|ll|t|by|own|currently|altogether|right"
)
_FUNCTION_ZH: Final = (
    "的了吗呢啊呀吧嘛是在有和与跟或把被给我他她它们这那为一下请帮都也就还要想会"
    "到从里中上内对得地着过再又让用看说个两来去些所共里面们麻烦将自己咱現在请帮忙"
)
_LATIN: Final = r"a-zA-Z0-9"


def _whole_words(pattern: str) -> re.Pattern[str]:
    """Compile alternatives; the Chinese ones need no word boundaries."""
    chinese = "|".join(word for word in pattern.split("|") if not re.search(r"[a-z\\]", word)) or "(?!)"
    return lazy_regex(rf"(?<![{_LATIN}])(?:{pattern})(?![{_LATIN}])|{chinese}", re.IGNORECASE)


_PATTERNS: Final = {name: _whole_words(pattern) for name, pattern in _FIELDS.items()}
_FUNCTION_WORDS: Final = lazy_regex(rf"(?<![{_LATIN}])(?:{_FUNCTION})(?![{_LATIN}])|[{_FUNCTION_ZH}]", re.IGNORECASE)
_LATIN_WORD: Final = lazy_regex(rf"[{_LATIN}]{{2,}}")
_HAN: Final = lazy_regex("[\u3400-\u9fff]")
_SUMMARY_FIELDS: Final = frozenset({"summary", "page", "library", "you"})
FEATURE_NAMES: Final = (
    *_FIELDS, "address", "site", "first_search", "left_0", "left_1", "left_2", "left_3", "left_more",
    "short", "brief", "long", "story",
)  # fmt: skip
_PAIRS: Final = tuple(combinations(range(len(FEATURE_NAMES)), 2))
NAMED_FEATURE_COUNT: Final = len(FEATURE_NAMES) + len(_PAIRS)
FEATURE_COUNT: Final = NAMED_FEATURE_COUNT + BUCKETS
"""Length of a message's feature vector."""


def find_features(masked: str) -> dict[str, bool]:
    """Return a flag for each feature in `FEATURE_NAMES`: True if the message has it."""
    text = masked[:_MAX_CLASSIFIED].lower()
    has_field = [pattern.search(text) is not None for pattern in _PATTERNS.values()]
    rest = text.replace(ADDRESS, " ").replace(SITE, " ")
    for pattern in (*_PATTERNS.values(), _FUNCTION_WORDS):
        rest = pattern.sub(" ", rest)
    other_words = len(_LATIN_WORD.findall(rest)) + len(_HAN.findall(rest)) / 2
    size = len(_LATIN_WORD.findall(text)) + len(_HAN.findall(text)) / 2
    steps = [other_words == 0, 0 < other_words <= 1, 1 < other_words <= 2, 2 < other_words <= 4, other_words > 4]
    lengths = [size <= 2, 2 < size <= 6, 12 < size <= 25, size > 25]
    search = _PATTERNS["search"].search(text)
    is_search_first = search is not None and search.start() <= 6
    flags = [*has_field, ADDRESS in text, SITE in text, is_search_first, *steps, *lengths]
    return dict(zip(FEATURE_NAMES, flags, strict=True))


def strip_words(text: str, field: str) -> str:
    """Remove all words that match the field."""
    return _PATTERNS[field].sub(" ", text)


def is_save_only(clause: str) -> bool:
    """True if a clause asks to save something, and for nothing else."""
    has_field = find_features(clause)
    return has_field["save"] and has_field["left_0"] and not has_field["asks"]


def asks_for_summary_of_name(text: str) -> bool:
    """Return whether a message asks for a summary of a quoted name, and has no other words."""
    rest, names = _QUOTED.subn(" ", text)
    has_field = find_features(rest)
    fields = {name for name in _FIELDS if has_field[name]}
    return names == 1 and has_field["left_0"] and {"summary"} <= fields <= _SUMMARY_FIELDS


def feature_vector(masked: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the indexes and values of the features that are not 0: fields, pairs of fields, n-grams."""
    has_field = list(find_features(masked).values())
    places = [place for place, is_present in enumerate(has_field) if is_present]
    places += [len(FEATURE_NAMES) + place for place, (a, b) in enumerate(_PAIRS) if has_field[a] and has_field[b]]
    weights = weigh_ngrams(masked)
    values = np.array([0.5] * len(places) + [_NGRAM_WEIGHT * weight for weight in weights.values()], np.float32)
    return np.array([*places, *(NAMED_FEATURE_COUNT + place for place in weights)], np.int32), values


@lru_cache(maxsize=4096)
def weigh_ngrams(masked: str) -> Mapping[int, float]:
    """Return the buckets of the n-grams with their weights, 1 + log of the count, as a unit vector."""
    text = f" {' '.join(masked[:_MAX_CLASSIFIED].lower().split())} "
    ngrams = (text[at : at + size] for size in _NGRAM_SIZES for at in range(len(text) - size + 1))
    counts = Counter(crc32(gram.encode()) % BUCKETS for gram in ngrams if gram.strip())
    weights = {bucket: 1 + math.log(count) for bucket, count in sorted(counts.items())}
    length = math.hypot(*weights.values())
    return {bucket: weight / length for bucket, weight in weights.items()}


def route_probabilities(message: Message) -> dict[Route, float]:
    """Return the probability of each route; 0 if the message cannot take it."""
    weights, bias = _weights()
    places, values = feature_vector(message.masked)
    scores = weights[:, places].astype(np.float32) @ values + bias
    possible = np.array([_is_possible(route, message) for route in ROUTES])
    exponents = np.where(possible, np.exp(scores - scores[possible].max()), 0.0)
    return dict(zip(ROUTES, (exponents / exponents.sum()).tolist(), strict=True))


def explain_route(message: Message, route: Route) -> list[str]:
    """Return the words of the message that contribute most to the route, up to three."""
    weights, _ = _weights()
    places, values = feature_vector(message.masked)
    gains = {
        int(place): float(weights[ROUTES.index(route), place] * value)
        for place, value in zip(places, values, strict=True)
    }
    bare = message.masked[:_MAX_CLASSIFIED].replace(ADDRESS, " ").replace(SITE, " ")
    fields = [place for place, _ in enumerate(_FIELDS) if gains.get(place, 0.0) > 0]
    patterns = (_PATTERNS[FEATURE_NAMES[place]] for place in sorted(fields, key=lambda place: -gains[place]))
    words = (match.group().strip() for pattern in patterns if (match := pattern.search(bare)))
    return list(dict.fromkeys(filter(None, words)))[:3]


def find_earlier_choice(message: Message, rows: Iterable[tuple[str, Route]]) -> Route | None:
    """Return the user's choice for a similar message, if any; `rows` are (masked text, route), latest first."""
    message_ngrams = weigh_ngrams(message.masked)
    for text, route in rows:
        row_ngrams = weigh_ngrams(text)
        similarity = sum(weight * row_ngrams.get(bucket, 0.0) for bucket, weight in message_ngrams.items())
        if similarity >= _MIN_SIMILARITY and _is_possible(route, message):
            return route
    return None


def _is_possible(route: Route, message: Message) -> bool:
    """True if the route fits the links and files of a message: without any, nothing can be saved."""
    if message.has_files:
        return route in _SAVE_ROUTES
    if not all(map(_is_site, message.addresses)):
        return route in (*_SAVE_ROUTES, "remove")
    return route not in _SAVE_ROUTES or bool(message.addresses)


@cache
def _weights() -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """Load the weights (routes, FEATURE_COUNT) and the bias (routes,)."""
    with np.load(WEIGHTS) as file:
        return file["weights"], file["bias"]


def training_digest() -> str:
    """Return the MD5 of the training file that the weights were fitted to."""
    with np.load(WEIGHTS) as file:
        return str(file["training"])


def save_weights(
    weights: NDArray[np.float64], bias: NDArray[np.float64], routes: Sequence[str], path: Path = WEIGHTS
) -> None:
    """Save fitted weights, whose rows are in the order of `routes`."""
    order = [list(routes).index(route) for route in ROUTES]
    assert weights.shape == (len(ROUTES), FEATURE_COUNT)
    halved, offsets = weights[order].astype(np.float16), bias[order].astype(np.float32)
    np.savez_compressed(path, weights=halved, bias=offsets, training=np.array(digest(TRAINING)))


def digest(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


MIN_CONFIDENCE: Final = 0.5
"""Minimum probability of a route other than a question."""
_MIN_CONFIDENCES: Final[dict[Route, float]] = {"web": 0.7, "unknown": 0.7}
"""Higher thresholds for routes that would send a question to the web, or refuse it."""
_MIN_CALCULATION_CONFIDENCE: Final = 0.3
"""Minimum probability of a calculation, which no page has: accepts 94 % of test calculations and 0.2 % of questions."""
_MODEL_THRESHOLD: Final = 0.8
MODEL_TIMEOUT: Final = 3.0
"""Seconds to wait for the chat model to choose a route."""

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
        if not _WORD.search(message.words) and (message.addresses or message.has_files):
            return _route_by(message, "save", "rules", "route_only_addresses", count=len(message.addresses))
        if earlier := find_earlier_choice(message, self._earlier_choices()):
            return _route_by(message, earlier, "person", "route_chosen_before")
        if message.addresses or message.has_files:
            return None
        if not _WORD.search(message.text):
            return _route_by(message, "unknown", "rules", "route_no_words")
        if expression := expression_of(message.text):
            return _route_by(message, "calculate", "rules", "route_expression", expression=expression)
        if asks_for_summary_of_name(message.text):
            words = ", ".join(f"“{word}”" for word in explain_route(message, "summarise"))
            return _route_by(message, "summarise", "rules", "route_summarise", words=words)
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
