"""Classification of messages by route: a softmax regression over their features, fitted by `benchmarks.routing`.

The training data is `training.jsonl` next to this file. A message that is similar to one whose route a user chose gets
that route.

The features are the semantic fields in a message, the number of other words, and character n-grams, hashed after
Weinberger et al. (2009). A field is a closed set of words for one thing that this program can do or be asked about.
Often the other words decide: "how many pages are there?" has none, "how many pages may the form have?" has one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import hypot, log
from pathlib import Path
from typing import Final, Literal, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rag.ingest.paste import locate_urls
from rag.patterns import lazy_regex
from rag.types import Notice
from rag.web.url_key import split_url

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
_PUNCTUATION: Final = (
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

    @property
    def has_only_sites(self) -> bool:
        """True if all links point to sites rather than to pages."""
        return bool(self.addresses) and all(_is_site(address) for address in self.addresses)

    @property
    def is_wordless(self) -> bool:
        return not _WORD.search(self.words)


def read_message(text: str, *, has_files: bool = False) -> Message:
    links = locate_urls(text)
    words, masked, end = [], [], 0
    for start, stop, address in links:
        words.append(text[end:start])
        masked += [text[end:start], f" {SITE if _is_site(address) else ADDRESS} "]
        end = stop
    rest = " ".join(part.strip(_PUNCTUATION) for part in (*words, text[end:]))
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
_MAX_CHARACTERS: Final = 400  # characters: a request is at the beginning
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
    return lazy_regex(rf"(?<![{_LATIN}])(?:{pattern})(?![{_LATIN}])|" + _chinese_of(pattern), re.IGNORECASE)


def _chinese_of(pattern: str) -> str:
    """Return the Chinese words of a pattern, which need no word boundaries."""
    return "|".join(word for word in pattern.split("|") if not re.search(r"[a-z\\]", word)) or "(?!)"


_PATTERNS: Final = {name: _whole_words(pattern) for name, pattern in _FIELDS.items()}
_FUNCTION_WORDS: Final = lazy_regex(rf"(?<![{_LATIN}])(?:{_FUNCTION})(?![{_LATIN}])|[{_FUNCTION_ZH}]", re.IGNORECASE)
_LATIN_WORD: Final = lazy_regex(rf"[{_LATIN}]{{2,}}")
_HAN: Final = lazy_regex("[\u3400-\u9fff]")
FEATURE_NAMES: Final = (
    *_FIELDS, "address", "site", "first_search", "left_0", "left_1", "left_2", "left_3", "left_more",
    "short", "brief", "long", "story",
)  # fmt: skip
_PAIRS: Final = tuple(combinations(range(len(FEATURE_NAMES)), 2))
NAMED_FEATURE_COUNT: Final = len(FEATURE_NAMES) + len(_PAIRS)
FEATURE_COUNT: Final = NAMED_FEATURE_COUNT + BUCKETS
"""Length of a message's feature vector."""


def find_features(masked: str) -> list[bool]:
    """Return a flag for each feature in `FEATURE_NAMES`: True if the message has it."""
    text = masked[:_MAX_CHARACTERS].lower()
    has_field = [pattern.search(text) is not None for pattern in _PATTERNS.values()]
    rest = text.replace(ADDRESS, " ").replace(SITE, " ")
    for name, pattern in _PATTERNS.items():
        rest = pattern.sub(" ", rest) if name not in ("asks",) else rest
    rest = _FUNCTION_WORDS.sub(" ", _PATTERNS["asks"].sub(" ", rest))
    other_words = len(_LATIN_WORD.findall(rest)) + len(_HAN.findall(rest)) / 2
    size = len(_LATIN_WORD.findall(text)) + len(_HAN.findall(text)) / 2
    steps = [other_words == 0, 0 < other_words <= 1, 1 < other_words <= 2, 2 < other_words <= 4, other_words > 4]
    lengths = [size <= 2, 2 < size <= 6, 12 < size <= 25, size > 25]
    return [*has_field, ADDRESS in text, SITE in text, _is_at_start(text, "search"), *steps, *lengths]


def match_words(masked: str, field: str) -> str:
    """Return the first match of the field in the message, or an empty string."""
    pattern = _PATTERNS.get(field)
    bare = masked[:_MAX_CHARACTERS].replace(ADDRESS, " ").replace(SITE, " ")
    match = pattern.search(bare) if pattern else None
    return match.group().strip() if match else ""


def strip_words(text: str, field: str) -> str:
    """Remove all words that match the field."""
    return _PATTERNS[field].sub(" ", text)


def is_save_only(clause: str) -> bool:
    """True if a clause asks to save something, and for nothing else."""
    has_field = dict(zip(FEATURE_NAMES, find_features(clause), strict=True))
    return has_field["save"] and has_field["left_0"] and not has_field["asks"]


def _is_at_start(text: str, field: str) -> bool:
    match = _PATTERNS[field].search(text)
    return match is not None and match.start() <= 6


def feature_vector(masked: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the indexes and values of the features that are not 0: fields, pairs of fields, n-grams."""
    has_field = find_features(masked)
    places = [place for place, is_present in enumerate(has_field) if is_present]
    places += [len(FEATURE_NAMES) + place for place, (a, b) in enumerate(_PAIRS) if has_field[a] and has_field[b]]
    weights = weigh_ngrams(masked)
    values = np.array([0.5] * len(places) + [_NGRAM_WEIGHT * weight for weight in weights.values()], np.float32)
    return np.array([*places, *(NAMED_FEATURE_COUNT + place for place in weights)], np.int32), values


@lru_cache(maxsize=4096)
def weigh_ngrams(masked: str) -> Mapping[int, float]:
    """Return the buckets of the n-grams with their weights, 1 + log of the count, as a unit vector."""
    weights = {bucket: 1 + log(count) for bucket, count in sorted(Counter(_hash_ngrams(masked)).items())}
    length = hypot(*weights.values())
    return {bucket: weight / length for bucket, weight in weights.items()}


def _hash_ngrams(masked: str) -> list[int]:
    text = f" {' '.join(masked[:_MAX_CHARACTERS].lower().split())} "
    ngrams = (text[at : at + size] for size in _NGRAM_SIZES for at in range(len(text) - size + 1))
    return [crc32(gram.encode()) % BUCKETS for gram in ngrams if gram.strip()]


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
    fields = [name for place, name in enumerate(FEATURE_NAMES) if gains.get(place, 0.0) > 0]
    words = [
        match_words(message.masked, name) for name in sorted(fields, key=lambda name: -gains[FEATURE_NAMES.index(name)])
    ]
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
    if message.addresses and not message.has_only_sites:
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
