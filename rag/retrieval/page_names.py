"""Recognition of pages named in text, by a link or host, a quoted title, or words of titles and links.

Words are weighted by their inverse document frequency among the library's titles, as in BM25 (Robertson and Zaragoza,
“The Probabilistic Relevance Framework”, 2009).
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from typing import Final, NamedTuple
from urllib.parse import unquote

from rag.models.embedding import SparseEncoder
from rag.text import is_chinese, lazy_regex, terms
from rag.types import Page, Passage
from rag.web.urls import split_url, url_hash

MIN_SHARE: Final = 0.2
"""Minimum share of the question in all titles together, and of that share in each title, for a page to be named."""
MIN_TITLE_SHARE: Final = 0.7
"""Minimum share of a title's terms in the question for it to have the title, not just a word or two of it."""

Terms = frozenset[int]


def select_named(titles: Sequence[Terms], weigh: Callable[[Terms], float], scores: Sequence[float]) -> list[int]:
    """Return the indexes of the pages whose titles cover most of the terms in any title, selected greedily.

    titles: the question's terms in each page's title; `weigh` returns the share of the question that terms make up.
    Ties go to the page with the higher score.
    """
    all_terms = Terms().union(*titles)
    remaining, places = all_terms, list[int]()
    while remaining and weigh(all_terms) > MIN_SHARE:
        best = max(range(len(titles)), key=lambda place: (weigh(titles[place] & remaining), scores[place]))
        if weigh(titles[best] & remaining) < MIN_SHARE * weigh(all_terms):
            break
        places.append(best)
        remaining -= titles[best]
    return places


def find_named(passages: Sequence[Passage], query_weights: Mapping[int, float], encoder: SparseEncoder) -> set[str]:
    """Return the `url_hash` of each page whose title is in the question."""
    best: dict[str, Passage] = {}
    for passage in passages:
        current = best.setdefault(passage.url_hash, passage)
        best[passage.url_hash] = max(current, passage, key=lambda item: item.score)
    mass = sum(query_weights.values()) or 1.0
    titles = [encoder.terms(passage.title) for passage in best.values()]
    places = select_named(
        [title & query_weights.keys() for title in titles],
        lambda terms: sum(query_weights[term] for term in terms) / mass,
        [passage.score for passage in best.values()],
    )
    hashes = list(best)
    return {hashes[i] for i in places if len(titles[i] & query_weights.keys()) >= MIN_TITLE_SHARE * len(titles[i])}


MAX_PAGES = 3
"""A name that matches more pages than this names none of them."""

_MIN_WORD_SHARE = 0.5  # min. share of a title's weight in a single word
_RUN = 2  # consecutive words that are a name anywhere
_HAN_RUN = 3  # pairs of characters, which is four characters
_MAX_CHARACTERS = 300  # searched for names, which are at the beginning of a request
_MAX_TOKENISED = 200  # pages whose names are tokenised
_STOP = "."
_TRAILING = ".,;:!?'\""  # punctuation after a link, not a part of it

_SMALL_WORDS = frozenset("a an and at for from in of on or our the this to with your".split())
# Words for pages, requests and times: no name consists of these alone.
_FRAME = frozenset(
    "all any anything about article brief changed change content day document each entire every everything give"
    " happened it last latest library line list main make me month my new newest news overview page past please point"
    " read recap recent say sentence short show since site summaries summarise summarize summary tell that their them"
    " these thi those today two three until updated we web website week what whole write year yesterday you".split()
)
# Words of a request and of a summary's form, which are not its topic.
_REQUEST_WORDS = frozenset(
    "abstract are be bird bit brief briefly bring bullet can collect collected condense condensed could create"
    " describe detail didnt digest do does don dont down dr draw essence essential executive explain eye few get"
    " gist have haven havent here highlight hold holds i id idea im important in is it ive just keep key long look"
    " lot max may message most much need no not number nutshell of out outline overall paragraph part pl plain plz"
    " pull put quick quickly rough roughly run rundown saved saying shall shorten shorter should simple skim so"
    " some speed stored stuff sum sumarise sumarize summarised summarized summed synopsis take takeaway thank"
    " there thing tl tldr together too topic up us version view walk want way whats will wont word would".split()
)
_ZH_REQUEST = lazy_regex(
    "概览|总览|综述|综合|提炼|浓缩|压缩|缩[写到成]?|提要|提纲|大纲|梗概|精华|精简|重点|大[意致概体]|核心|观点|关键|资料|[你您]"
    "|信息|简单|简要|简短|快速|长话短说|太长不看|没时间看?|帮忙|麻烦|能不能|列出|汇总|合起来|整理|整体|看看?完?|告诉|我想|想|了解"
    "|一[个份遍]|几[篇页]|那[两几]?[篇页]|[两三]?[篇页]|来个|做个|写一?[个份段]?|给个|各|话|呗|吧|啊|呢|了|都|是|讲|说|没?有|些|啥|下"
)
_ALL = lazy_regex(
    r"\b(?:everything|librar(?:y|ies)|collection|(?:in|stored|saved) here|my (?:stuff|pages|sources|articles|documents)"
    r"|all (?:of )?(?:it|this|that|them)|all (?:of )?(?:(?:my|our|the) )?(?:pages?|sources?|articles?|documents?|stuff)"
    r"|(?:i|we)(?:'ve| have)? (?:saved|collected|stored|added))\b"
    r"|全部|所有|整个|库里?|收藏|这里|存的|每[个页]|我的网页",
    re.IGNORECASE,
)
ABOUT = lazy_regex(r"\b(?:about|on|regarding|concerning)\b|有?关于|有关|相关", re.IGNORECASE)
_MANNER = lazy_regex(
    r"\b(?:in|into|as|with|using|within|under|to) (?:(?:no more|less|fewer) than |(?:at most|about|around|up to) )?"
    r"(?:an? |one |two |three |four |five |six |ten |my own |your own |simple |plain |clear |easy |short |a few |\d+)"
    r"[^,.;:!?，。]*"
    r"|\b(?:in|into) (?:chinese|english|brief|short|detail|bullets?|prose|general|total|markdown)\b"
    r"|\b(?:as|for) (?:if|me|us|some(?:one|body)|an? |my |our |the (?:team|board|boss|meeting|others)\b)[^,.;:!?，。]*"
    r"|\blike (?:i'?m|i am|you)\b[^,.;:!?，。]*"
    r"|(?:[用以按]|分成|成|不超过|控制在|限)[^，。,.；！？]{0,12}?"
    r"(?:[话字句点条段]|语言|中文|英文|英语|方式|形式|列表|表格|要点)(?:以?内|左右)?"
    r"|(?:\d+|[一二两三四五六七八九十百几]+)\s?(?:句话|个?字|[点条段]|个要点)(?:以?内|左右|的)?",
    re.IGNORECASE,
)
_ZH_FRAME = lazy_regex(
    "总结|概括|概述|概要|归纳|摘要|小结|梳理|介绍|一下|说说|讲讲|讲了|有?关于|有关|页面|网页|网站|文章|文档|资料库|知识库"
    "|这[篇个些页份]|那[篇个些页份]|我的|所有|全部|整个|内容|主要|要点|什么|哪些|变化|更新|新增|最近|以来|上周|本周|昨天|今天"
    "|帮我|给我|请|的|把"
)
_ADDRESS = lazy_regex(
    r"(?:https?://|(?<![a-z0-9.@-]))(?P<host>[a-z0-9-]++(?:\.[a-z0-9-]++)++)"
    r"(?P<path>/[^\s，。；！？、）》”]*+)?(?![\w@])",
    re.IGNORECASE,
)
_QUOTED = lazy_regex(r"《([^《》]{1,120})》|[“「]([^“”「」]{2,120})[”」]|\"([^\"]{2,120})\"")
_SITE = lazy_regex(r"^[a-z]+://[^/?#]*+", re.IGNORECASE)
_BREAK = lazy_regex(r"[,;:?!，。；：？！、\n]|\.(?=\s|$)")


class _Run(NamedTuple):
    """A run of the text's tokens, by their indexes, that is in the name of one page."""

    weight: float
    whole: bool
    strong: bool
    places: frozenset[int]
    page: Page


class _Names:
    """The names of pages as plain strings, most of which are never tokenised."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self.names = [_normalise(f"{page.title} {slug(page)}") for page in pages]
        self._joined = "\n".join(self.names)

    def find(self, word: str) -> list[int]:
        """Return the indexes of the pages whose names contain `word`, also as a substring."""
        return [at for at, name in enumerate(self.names) if word in name] if word in self._joined else []

    def weight(self, df: int) -> float:
        """Return the inverse document frequency of a word that `df` pages have."""
        return log(1 + (len(self.names) - df + 0.5) / (df + 0.5))

    def share(self, word: str, name: frozenset[str]) -> float:
        """Return the share of a name's weight in one word of it (0 to 1)."""
        weights = {one: self.weight(self._joined.count(one)) for one in name}
        return weights[word] / sum(weights.values())


def find_named_pages(text: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages that a message names, most certain first; none if unclear, as in "summarise everything".

    A page is named by its link, its host, its title in quotes, two consecutive words or four Chinese characters of its
    title or link, or a separate word that is most of a title. A match with more than `MAX_PAGES` pages names none.
    """
    pages_found: dict[str, Page] = {}
    for address in _ADDRESS.finditer(text):
        path = address["path"] or "/"
        path = path.rstrip(_TRAILING if "(" in path else f"{_TRAILING})")
        keys = {url_hash(f"{scheme}://{address['host']}{path}") for scheme in ("https", "http")}
        matches = [page for page in pages if page.url_hash in keys]
        matches = matches or (find_on_site(address["host"], pages) if path == "/" else [])
        pages_found |= {page.url_hash: page for page in matches}
    rest = _ADDRESS.sub(" , ", text)
    for quote in _QUOTED.finditer(rest):
        matches = [page for page in pages if is_full_name(quote[quote.lastindex or 0], page)]
        if matches and len(matches) <= MAX_PAGES:
            pages_found |= {page.url_hash: page for page in matches}
            rest = rest.replace(quote[0], " , ")
    for page in _find_by_words(rest, pages):
        pages_found.setdefault(page.url_hash, page)
    return list(pages_found.values())


def topic_of(text: str, shortest: int = 2) -> str:
    """Return the topic of a request for a summary, without the words around it; empty for the whole library.

    A page of that name need not exist. Chinese words have at least `shortest` characters.
    """
    for quote in _QUOTED.finditer(text):
        return quote[quote.lastindex or 0]
    rest = _MANNER.sub(" , ", _ADDRESS.sub(" , ", text.replace("’", "'")))
    if _ALL.search(rest) and not ABOUT.search(rest):
        return ""
    if is_chinese(rest):
        topic = _ALL.sub("", _ZH_REQUEST.sub("", _ZH_FRAME.sub("", rest)))
        parts = (part.strip() for part in re.split(r"[\s,;:?!，。；：？！、（）→]+", topic))
        return " ".join(part for part in parts if len(part) >= shortest and any(_tokens(part)))
    rest = re.sub(r"'(?:s|m|t|ve|d|re|ll)?\b", "", rest)
    return " ".join(word for word in re.findall(r"[\w+#&-]+", rest) if {*_tokens(word)} - _REQUEST_WORDS - {""})


def find_addresses(text: str) -> list[str]:
    """Return the links and hosts in text, but not "3.14" or "e.g."."""
    addresses = (match[0].rstrip(_TRAILING) for match in _ADDRESS.finditer(text))
    return [address for address in addresses if re.search(r"//|\.[a-z]{2}", address, re.IGNORECASE)]


def asks_for_all(text: str) -> bool:
    """Return whether a request is for the whole library."""
    return bool(_ALL.search(text))


def find_pages_with(topic: str, pages: Sequence[Page]) -> list[Page]:
    """Return all pages whose names contain every word of a topic."""
    wanted = words(topic)
    return [page for page in pages if wanted and wanted <= words(f"{page.title} {slug(page)} {page.site}")]


def find_nearest(
    topic: str, pages: Sequence[Page], found: Sequence[str], limit: int = 5, *, min_share: float = 0.0
) -> list[Page]:
    """Return up to `limit` pages: those whose names share words with a topic, at least `min_share` of them, most
    similar first, then those in `found`, the hashes that a search for it returned."""
    topic_words = words(topic)
    similarity = {page.url_hash: len(topic_words & (words(page.title) | words(slug(page)))) for page in pages}
    by_hash = {page.url_hash: page for page in pages}
    by_name = [key for key in sorted(similarity, key=lambda key: -similarity[key]) if similarity[key]]
    by_name = [key for key in by_name if similarity[key] >= min_share * len(topic_words)]
    return [by_hash[key] for key in dict.fromkeys([*by_name, *found]) if key in by_hash][:limit]


def is_only_name(text: str, page: Page) -> bool:
    """True if a message has only the page's name and words that frame a request."""
    name_tokens = {token for name in (page.title, slug(page)) for token in _tokens(name)}
    rest = _QUOTED.sub(" ", _ADDRESS.sub(" ", text))
    return all(not token or token in name_tokens or _is_joint(token, page.title) for token in _tokens(rest))


def words(text: str) -> frozenset[str]:
    """Return the words of a name without small ones, roughly in the singular."""
    return frozenset(_singular(word) for word in terms(text) if word not in _SMALL_WORDS)


def slug(page: Page) -> str:
    """Return the last part of the page's link, as words."""
    path = _SITE.sub("", page.url, 1).partition("?")[0].partition("#")[0]
    last = re.sub(r"\.\w{1,5}$", "", unquote(path.rstrip("/").rpartition("/")[2]))
    return last.replace("-", " ").replace("_", " ").replace(".", " ")


def is_full_name(name: str, page: Page) -> bool:
    """True if `name` has exactly the words of the page's title, or of its link."""
    name_words = words(name)
    return bool(name_words) and name_words in (words(page.title), words(slug(page)))


def find_on_site(host: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages of a host and its subdomains."""
    wanted = host.lower().removeprefix("www.")
    hosts = ((page, (split_url(page.url).hostname or "").lower()) for page in pages)
    return [page for page, own in hosts if own == wanted or own.endswith(f".{wanted}")]


def _find_by_words(text: str, pages: Sequence[Page]) -> Iterator[Page]:
    """Yield the pages of runs that share no words, heaviest first."""
    tokens = [token for part in _BREAK.split(text[:_MAX_CHARACTERS]) for token in (*_tokens(part), _STOP)]
    names = _Names(pages)
    holding = {token: names.find(token) for token in {*tokens} - {"", _STOP}}
    weights = {token: names.weight(len(places)) for token, places in holding.items() if places}
    bounds: Counter[int] = Counter()
    for token, weight in weights.items():
        bounds.update(dict.fromkeys(holding[token], weight))
    nearest_pages = heapq.nsmallest(_MAX_TOKENISED, bounds, key=lambda at: (-bounds[at], len(names.names[at])))
    runs = [run for at in nearest_pages for run in _runs(pages[at], tokens, weights, names)]
    while runs:
        heaviest = max(run.weight for run in runs)
        best = [run for run in runs if run.weight >= heaviest - 1e-9]
        best = [run for run in best if run.whole] or best
        if len(best) <= (MAX_PAGES if best[0].strong else 1):
            yield from (run.page for run in best)
        used = frozenset(at for run in best for at in run.places)
        runs = [run for run in runs if not run.places & used]


def _tokens(text: str) -> list[str]:
    """Return the words of a text in order, with "" for each small or framing one."""
    tokens = (_singular(word) if word not in _SMALL_WORDS else "" for word in terms(_ZH_FRAME.sub(" the ", text)))
    return ["" if word in _FRAME else word for word in tokens]


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _normalise(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()


def _runs(page: Page, tokens: Sequence[str], weights: Mapping[str, float], names: _Names) -> Iterator[_Run]:
    """Yield the runs of tokens that are words of the page's name; small words between them are ignored."""
    parts = [part for text in (page.title, slug(page)) if (part := frozenset(_tokens(text)) - {""})]
    name_words, start = frozenset[str]().union(*parts), 0
    for end, token in enumerate(tokens):
        if token in name_words or not token or _is_joint(token, page.title):
            continue
        places = frozenset(i for i in range(start, end) if tokens[i] in name_words)
        start = end + 1
        if not places:
            continue
        hits = frozenset(tokens[i] for i in places)
        first, last = min(places), max(places)
        strong = last - first + 1 >= _HAN_RUN if any(map(is_chinese, hits)) else len(hits) >= _RUN
        is_separate = tokens[first - 1 : first] in ([], [""], [_STOP]) and tokens[last + 1] in ("", _STOP)
        if strong or (is_separate and _is_most(hits, parts, names)):
            yield _Run(sum(weights[one] for one in hits), any(part <= hits for part in parts), strong, places, page)


def _is_most(hits: frozenset[str], parts: Sequence[frozenset[str]], names: _Names) -> bool:
    """True if the words make up a whole title or link, or a single word unique to the page makes up most of one."""
    if any(part <= hits for part in parts):
        return True
    word, *others = hits
    return (
        not others
        and len(names.find(word)) == 1
        and max(names.share(word, part) for part in parts if word in part) >= _MIN_WORD_SHARE
    )


def _is_joint(token: str, title: str) -> bool:
    """True if a pair of characters that no title has joins two words of this one: 差旅政策 in 差旅费用政策."""
    return len(token) == 2 and is_chinese(token) and all(character in title for character in token)
