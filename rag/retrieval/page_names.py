"""Which pages of a library a text names: by an address or host, a title in quotes, or words of titles and addresses.

Words weigh what they are worth among the titles of the library: the inverse document frequency of BM25 (Robertson and
Zaragoza, “The Probabilistic Relevance Framework”, 2009).
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rag.text import is_chinese, terms
from rag.types import Page
from rag.web.url_key import url_hash

MOST_PAGES = 3
"""A name that fits more pages than this tells none of them."""

_ENOUGH = 0.5  # of a title's weight, that a single word must carry
_RUN = 2  # words side by side that are a name wherever they stand
_HAN_RUN = 3  # pairs of characters, which is four characters
_LONGEST = 300  # characters of a text that are read for names: those of a wish stand at its beginning
_NEAR = 200  # pages whose names are taken apart
_STOP = "."

_LITTLE = frozenset("a an and at for from in of on or our the this to with your".split())
# What people call pages, wishes and times by: no name consists of these alone.
_FRAME = frozenset(
    "all any anything about article brief changed change content day document each entire every everything give"
    " happened it last latest library line list main make me month my new news overview page past please point read"
    " recap recent say sentence short show since site summaries summarise summarize summary tell that their them these"
    " thi those today two three until updated we web website week what whole write year yesterday you".split()
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
    """A stretch of the text's tokens, by their places, that stands in the name of one page."""

    weight: float
    whole: bool
    strong: bool
    places: frozenset[int]
    page: Page


class _Names:
    """What pages are called, as plain strings: most of them are never taken apart."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self.names = [_folded(f"{page.title} {slug(page)}") for page in pages]
        self._joined = "\n".join(self.names)

    def holding(self, word: str) -> list[int]:
        """The places of the pages with these letters in their names."""
        return [at for at, name in enumerate(self.names) if word in name] if word in self._joined else []

    def weight(self, df: int) -> float:
        """The inverse document frequency of a word that `df` pages have."""
        return log(1 + (len(self.names) - df + 0.5) / (df + 0.5))

    def share(self, word: str, name: frozenset[str]) -> float:
        """How much of a name's weight one word of it carries (0 to 1)."""
        weights = {one: self.weight(self._joined.count(one)) for one in name}
        return weights[word] / sum(weights.values())


def pages_named(text: str, pages: Sequence[Page]) -> list[Page]:
    """The pages that a message names, the surest first; none where none clearly is, as in "summarise everything".

    A page is named by its address, its host, its title in quotes, two words or four Chinese characters of its title or
    address that stand together, or one word that is most of a title and stands by itself. What fits more than
    `MOST_PAGES` names none.
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


def names_alone(text: str, page: Page) -> bool:
    """Whether a message says nothing but the page's name beside the words that frame a wish."""
    own = {token for name in (page.title, slug(page)) for token in _tokens(name)}
    rest = _QUOTED.sub(" ", _ADDRESS.sub(" ", text))
    return all(not token or token in own or _joins(token, page.title) for token in _tokens(rest))


def words(text: str) -> frozenset[str]:
    """The words of a name without little ones, in the singular, roughly."""
    return frozenset(_singular(word) for word in terms(text) if word not in _LITTLE)


def slug(page: Page) -> str:
    """The last part of the page's address, as words."""
    path = _SITE.sub("", page.url, 1).partition("?")[0].partition("#")[0]
    last = re.sub(r"\.\w{1,5}$", "", unquote(path.rstrip("/").rpartition("/")[2]))
    return last.replace("-", " ").replace("_", " ").replace(".", " ")


def is_whole(name: str, page: Page) -> bool:
    """Whether these are the words of the page's title, or of its address."""
    own = words(name)
    return bool(own) and own in (words(page.title), words(slug(page)))


def on_site(host: str, pages: Sequence[Page]) -> list[Page]:
    """The pages of a host and of those below it."""
    wanted = host.lower().removeprefix("www.")
    hosts = ((page, (urlsplit(page.url).hostname or "").lower()) for page in pages)
    return [page for page, own in hosts if own == wanted or own.endswith(f".{wanted}")]


def _at(address: re.Match[str], pages: Sequence[Page]) -> list[Page]:
    """The page of an address, else, where it is no more than a host, those of the host."""
    path = address["path"] or "/"
    path = path.rstrip(".,;:!?'\"" if "(" in path else ".,;:!?'\")")
    keys = {url_hash(f"{scheme}://{address['host']}{path}") for scheme in ("https", "http")}
    found = [page for page in pages if page.url_hash in keys]
    return found or (on_site(address["host"], pages) if path == "/" else [])


def _by_words(text: str, pages: Sequence[Page]) -> Iterator[Page]:
    """The pages of the heaviest runs, one run after another, none of which takes a word that another has."""
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
    """The words of a text in order, each little or framing one as ""."""
    found = (_singular(word) if word not in _LITTLE else "" for word in terms(_ZH_FRAME.sub(" the ", text)))
    return ["" if word in _FRAME else word for word in found]


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()


def _runs(page: Page, tokens: Sequence[str], weights: Mapping[str, float], names: _Names) -> Iterator[_Run]:
    """The stretches of the tokens that are words of the page's name; little words between them count neither way."""
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
    """Whether so few words are all of a title or of an address, or one that no other page has is most of it."""
    if any(part <= said for part in parts):
        return True
    word, *others = said
    return (
        not others
        and len(names.holding(word)) == 1
        and max(names.share(word, part) for part in parts if word in part) >= _ENOUGH
    )


def _joins(token: str, title: str) -> bool:
    """Whether a pair of characters that no title has joins two words of this one: 差旅政策 in 差旅费用政策."""
    return len(token) == 2 and is_chinese(token) and all(character in title for character in token)
