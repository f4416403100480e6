"""Recognition of the pages that a text names, by a link or host, a title in quotes, or words of titles and links.

Words weigh by their inverse document frequency among the titles of the library, as in BM25 (Robertson and Zaragoza,
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

from rag.models.sparse import SparseEncoder
from rag.text import is_chinese, terms
from rag.types import Page, Passage
from rag.web.url_key import split_url, url_hash

NAMED: Final = 0.2
"""Minimum share of the question in all titles together, and of that share in each title, for a page to be named."""
WHOLE: Final = 0.7
"""Minimum share of a title's terms in the question at which the question has the title, not just a word or two."""

Terms = frozenset[int]


def named(titles: Sequence[Terms], weigh: Callable[[Terms], float], worth: Sequence[float]) -> list[int]:
    """Return the indexes of the pages whose titles cover most of the terms in any title, selected greedily.

    titles: the question's terms in each page's title; `weigh` returns the share of the question that terms make up. Of
    titles that cover as much, the page of higher `worth` comes first.
    """
    names = Terms().union(*titles)
    left, found = names, list[int]()
    while left and weigh(names) > NAMED:
        best = max(range(len(titles)), key=lambda place: (weigh(titles[place] & left), worth[place]))
        if weigh(titles[best] & left) < NAMED * weigh(names):
            break
        found.append(best)
        left -= titles[best]
    return found


def named_whole(passages: Sequence[Passage], asked: Mapping[int, float], encoder: SparseEncoder) -> set[str]:
    """Return the `url_hash` of each page whose title is in the question."""
    best: dict[str, Passage] = {}
    for passage in passages:
        known = best.setdefault(passage.url_hash, passage)
        best[passage.url_hash] = max(known, passage, key=lambda one: one.score)
    mass = sum(asked.values()) or 1.0
    titles = [encoder.terms(passage.title) for passage in best.values()]
    found = named(
        [title & asked.keys() for title in titles],
        lambda terms: sum(asked[term] for term in terms) / mass,
        [passage.score for passage in best.values()],
    )
    hashes = list(best)
    return {hashes[one] for one in found if len(titles[one] & asked.keys()) >= WHOLE * len(titles[one])}


MOST_PAGES = 3
"""A name that matches more pages than this names none of them."""

_ENOUGH = 0.5  # of a title's weight, that a single word must carry
_RUN = 2  # consecutive words that are a name anywhere
_HAN_RUN = 3  # pairs of characters, which is four characters
_LONGEST = 300  # characters of a text that are searched for names: those of a request are at its beginning
_NEAR = 200  # pages whose names are tokenised
_STOP = "."

_LITTLE = frozenset("a an and at for from in of on or our the this to with your".split())
# Words for pages, requests and times: no name consists of these alone.
_FRAME = frozenset(
    "all any anything about article brief changed change content day document each entire every everything give"
    " happened it last latest library line list main make me month my new news overview page past please point read"
    " recap recent say sentence short show since site summaries summarise summarize summary tell that their them these"
    " thi those today two three until updated we web website week what whole write year yesterday you".split()
)
# Words of a request and of a summary's form, which are not its topic.
_PUT = frozenset(
    "abstract are be bird bit brief briefly bring bullet can collect collected condense condensed could create"
    " describe detail didnt digest do does don dont down dr draw essence essential executive explain eye few get"
    " gist have haven havent here highlight hold holds i id idea im important in is it ive just keep key long look"
    " lot max may message most much need no not number nutshell of out outline overall paragraph part pl plain plz"
    " pull put quick quickly rough roughly run rundown saved saying shall shorten shorter should simple skim so"
    " some speed stored stuff sum sumarise sumarize summarised summarized summed synopsis take takeaway thank"
    " thing tl tldr together too topic up us version view walk want way whats will wont word would".split()
)
_ZH_PUT = re.compile(
    "概览|总览|综述|综合|提炼|浓缩|压缩|缩写|缩到|缩成?|提要|提纲|大纲|梗概|精华|精简|重点|大意|大致|大概|大体|核心|观点|关键"
    "|信息|简单|简要|简短|快速|长话短说|太长不看|没时间看?|帮忙|麻烦|能不能|列出|汇总|合起来|整理|整体|看看?完?|告诉|我想|想|了解"
    "|一[个份遍]|几[篇页]|那[两几]?[篇页]|[两三]?[篇页]|来个|做个|写一?[个份段]?|给个|各|话|呗|吧|啊|呢|了|都|是|讲|说|有|些|啥|下"
)
_ALL = re.compile(
    r"\b(?:everything|librar(?:y|ies)|collection|(?:in|stored|saved) here|my stuff"
    r"|all (?:of )?(?:it|this|that|them)|all (?:of )?(?:(?:my|our|the) )?(?:pages?|sources?|articles?|documents?|stuff)"
    r"|(?:i|we)(?:'ve| have)? (?:saved|collected|stored|added))\b"
    r"|全部|所有|整个|库里?|收藏|这里|存的|每[个页]",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"\b(?:about|on|regarding|concerning)\b|关于|有关|相关", re.IGNORECASE)
_MANNER = re.compile(
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
_ZH_FRAME = re.compile(
    "总结|概括|概述|概要|归纳|摘要|小结|梳理|介绍|一下|说说|讲讲|讲了|关于|有关|页面|网页|网站|文章|文档|资料库|知识库"
    "|这[篇个些页份]|那[篇个些页份]|我的|所有|全部|整个|内容|主要|要点|什么|哪些|变化|更新|新增|最近|以来|上周|本周|昨天|今天"
    "|帮我|给我|请|的|把"
)
_ADDRESS = re.compile(
    r"(?:https?://|(?<![a-z0-9.@-]))(?P<host>[a-z0-9-]++(?:\.[a-z0-9-]++)++)"
    r"(?P<path>/[^\s，。；！？、）》”]*+)?(?![\w@])",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"《([^《》]{1,120})》|[“「]([^“”「」]{2,120})[”」]|\"([^\"]{2,120})\"")
_SITE = re.compile(r"^[a-z]+://[^/?#]*+", re.IGNORECASE)
_BREAK = re.compile(r"[,;:?!，。；：？！、\n]|\.(?=\s|$)")


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
        self.names = [_folded(f"{page.title} {slug(page)}") for page in pages]
        self._joined = "\n".join(self.names)

    def holding(self, word: str) -> list[int]:
        """Return the indexes of the pages with these letters in their names."""
        return [at for at, name in enumerate(self.names) if word in name] if word in self._joined else []

    def weight(self, df: int) -> float:
        """Return the inverse document frequency of a word that `df` pages have."""
        return log(1 + (len(self.names) - df + 0.5) / (df + 0.5))

    def share(self, word: str, name: frozenset[str]) -> float:
        """Return the share of a name's weight in one word of it (0 to 1)."""
        weights = {one: self.weight(self._joined.count(one)) for one in name}
        return weights[word] / sum(weights.values())


def pages_named(text: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages that a message names, surest first; none if it is unclear, as in "summarise everything".

    A page is named by its link, its host, its title in quotes, two consecutive words or four Chinese characters of its
    title or link, or a separate word that is most of a title. A match with more than `MOST_PAGES` pages names none.
    """
    named: dict[str, Page] = {}
    for address in _ADDRESS.finditer(text):
        named |= {page.url_hash: page for page in _at(address, pages)}
    rest = _ADDRESS.sub(" , ", text)
    for quoted in _QUOTED.finditer(rest):
        whole = [page for page in pages if is_whole(quoted[quoted.lastindex or 0], page)]
        if whole and len(whole) <= MOST_PAGES:
            named |= {page.url_hash: page for page in whole}
            rest = rest.replace(quoted[0], " , ")
    for page in _by_words(rest, pages):
        named.setdefault(page.url_hash, page)
    return list(named.values())


def topic_of(text: str) -> str:
    """Return the topic of a request for a summary, without the words around it; empty for the whole library.

    A page of that name need not exist.
    """
    for quoted in _QUOTED.finditer(text):
        return quoted[quoted.lastindex or 0]
    rest = _MANNER.sub(" , ", _ADDRESS.sub(" , ", text.replace("’", "'")))
    if _ALL.search(rest) and not _ABOUT.search(rest):
        return ""
    if is_chinese(rest):
        bare = _ALL.sub("", _ZH_PUT.sub("", _ZH_FRAME.sub("", rest)))
        parts = (part.strip() for part in re.split(r"[\s,;:?!，。；：？！、（）→]+", bare))
        return " ".join(part for part in parts if len(part) > 1 and any(_tokens(part)))
    rest = re.sub(r"'(?:s|m|t|ve|d|re|ll)?\b", "", rest)
    return " ".join(word for word in re.findall(r"[\w+#&-]+", rest) if {*_tokens(word)} - _PUT - {""})


def pages_with(topic: str, pages: Sequence[Page]) -> list[Page]:
    """Return all pages whose names contain every word of a topic."""
    wanted = words(topic)
    return [page for page in pages if wanted and wanted <= words(f"{page.title} {slug(page)} {page.site}")]


def nearest(topic: str, pages: Sequence[Page], found: Sequence[str], most: int = 5) -> list[Page]:
    """Return up to `most` pages: those whose names share words with a topic, the most similar first, then the hashes
    in `found`, the results of a search for it."""
    wanted = words(topic)
    alike = {page.url_hash: len(wanted & (words(page.title) | words(slug(page)))) for page in pages}
    known = {page.url_hash: page for page in pages}
    by_name = [key for key in sorted(alike, key=lambda key: -alike[key]) if alike[key]]
    return [known[key] for key in dict.fromkeys([*by_name, *found]) if key in known][:most]


def names_alone(text: str, page: Page) -> bool:
    """True if a message has only the page's name and words that frame a request."""
    own = {token for name in (page.title, slug(page)) for token in _tokens(name)}
    rest = _QUOTED.sub(" ", _ADDRESS.sub(" ", text))
    return all(not token or token in own or _joins(token, page.title) for token in _tokens(rest))


def words(text: str) -> frozenset[str]:
    """Return the words of a name without small ones, roughly in the singular."""
    return frozenset(_singular(word) for word in terms(text) if word not in _LITTLE)


def slug(page: Page) -> str:
    """Return the last part of the page's link, as words."""
    path = _SITE.sub("", page.url, 1).partition("?")[0].partition("#")[0]
    last = re.sub(r"\.\w{1,5}$", "", unquote(path.rstrip("/").rpartition("/")[2]))
    return last.replace("-", " ").replace("_", " ").replace(".", " ")


def is_whole(name: str, page: Page) -> bool:
    """True if `name` has exactly the words of the page's title, or of its link."""
    own = words(name)
    return bool(own) and own in (words(page.title), words(slug(page)))


def on_site(host: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages of a host and its subdomains."""
    wanted = host.lower().removeprefix("www.")
    hosts = ((page, (split_url(page.url).hostname or "").lower()) for page in pages)
    return [page for page, own in hosts if own == wanted or own.endswith(f".{wanted}")]


def _at(address: re.Match[str], pages: Sequence[Page]) -> list[Page]:
    """Return the page of a link, else, for a link without a path, the pages of its host."""
    path = address["path"] or "/"
    path = path.rstrip(".,;:!?'\"" if "(" in path else ".,;:!?'\")")
    keys = {url_hash(f"{scheme}://{address['host']}{path}") for scheme in ("https", "http")}
    found = [page for page in pages if page.url_hash in keys]
    return found or (on_site(address["host"], pages) if path == "/" else [])


def _by_words(text: str, pages: Sequence[Page]) -> Iterator[Page]:
    """Yield the pages of the heaviest runs in turn, which share no words."""
    tokens = [token for part in _BREAK.split(text[:_LONGEST]) for token in (*_tokens(part), _STOP)]
    names = _Names(pages)
    holding = {token: names.holding(token) for token in {*tokens} - {"", _STOP}}
    weights = {token: names.weight(len(found)) for token, found in holding.items() if found}
    bounds: Counter[int] = Counter()
    for token, weight in weights.items():
        bounds.update(dict.fromkeys(holding[token], weight))
    near = heapq.nsmallest(_NEAR, bounds, key=lambda at: (-bounds[at], len(names.names[at])))
    runs = [run for at in near for run in _runs(pages[at], tokens, weights, names)]
    while runs:
        most = max(run.weight for run in runs)
        tied = [run for run in runs if run.weight >= most - 1e-9]
        tied = [run for run in tied if run.whole] or tied
        if len(tied) <= (MOST_PAGES if tied[0].strong else 1):
            yield from (run.page for run in tied)
        taken = frozenset(at for run in tied for at in run.places)
        runs = [run for run in runs if not run.places & taken]


def _tokens(text: str) -> list[str]:
    """Return the words of a text in order, with "" for each small or framing one."""
    found = (_singular(word) if word not in _LITTLE else "" for word in terms(_ZH_FRAME.sub(" the ", text)))
    return ["" if word in _FRAME else word for word in found]


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()


def _runs(page: Page, tokens: Sequence[str], weights: Mapping[str, float], names: _Names) -> Iterator[_Run]:
    """Yield the runs of tokens that are words of the page's name; small words between them are ignored."""
    parts = [part for text in (page.title, slug(page)) if (part := frozenset(_tokens(text)) - {""})]
    own, start = frozenset[str]().union(*parts), 0
    for end, token in enumerate(tokens):
        if token in own or not token or _joins(token, page.title):
            continue
        places = frozenset(at for at in range(start, end) if tokens[at] in own)
        start = end + 1
        if not places:
            continue
        said = frozenset(tokens[at] for at in places)
        first, last = min(places), max(places)
        strong = last - first + 1 >= _HAN_RUN if any(map(is_chinese, said)) else len(said) >= _RUN
        alone = tokens[first - 1 : first] in ([], [""], [_STOP]) and tokens[last + 1] in ("", _STOP)
        if strong or (alone and _is_most(said, parts, names)):
            yield _Run(sum(weights[one] for one in said), any(part <= said for part in parts), strong, places, page)


def _is_most(said: frozenset[str], parts: Sequence[frozenset[str]], names: _Names) -> bool:
    """True if so few words make up a whole title or link, or one that no other page has makes up most of it."""
    if any(part <= said for part in parts):
        return True
    word, *others = said
    return (
        not others
        and len(names.holding(word)) == 1
        and max(names.share(word, part) for part in parts if word in part) >= _ENOUGH
    )


def _joins(token: str, title: str) -> bool:
    """True if a pair of characters that no title has joins two words of this one: 差旅政策 in 差旅费用政策."""
    return len(token) == 2 and is_chinese(token) and all(character in title for character in token)
