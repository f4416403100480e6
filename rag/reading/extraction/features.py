"""Features of blocks (of their text, template, surroundings, names and page), and the classifier that uses them.

No feature depends on a site, and lengths count words (two Chinese characters as one). `FEATURE_NAMES` and the rows of
`build_features` have the same order, because the fitted model refers to columns by position. Overlap with another text
is measured in word trigrams. Wording counts too: prices, dates, sentence ends, and the stock phrases of menus and calls
to action.

The classifier is a sum of small decision trees, mapped to a probability: gradient boosting (Friedman 2001,
https://doi.org/10.1214/aos/1013203451), fitted by `python -m benchmarks.extraction_fit` and stored as JSON next to this
module.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rag.reading.extraction.metadata import StructuredData
from rag.reading.extraction.segments import LANDMARKS, ROLES, Block
from rag.text import lazy_regex

HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_LEVELS = (1, 2, 3, 5)
_GROUP_FEATURES = ("words", "links", "main_share", "prose", "share")
_BLOCK_FEATURES = (
    "words links buttons ends_sentence capitals boilerplate price date heading cell position words_before depth copies "
    "described link_count in_title in_description after_h1 from_h1"
)
_CONTEXT_FEATURES = "main_share in_main_span main_share_around links_around words_previous words_next"
_SECTION_FEATURES = "from_heading heading_main_share heading_level under_boilerplate"
_SHAPE_FEATURES = "shape_blocks shape_mean shape_links shape_main_share shape_share"
_PAGE_FEATURES = "page_words page_main_share page_blocks page_main page_links"
FEATURE_NAMES = (
    *f"{_BLOCK_FEATURES} {_CONTEXT_FEATURES} {_SECTION_FEATURES} {_SHAPE_FEATURES}".split(),
    *(f"up{level}_{part}" for level in _LEVELS for part in _GROUP_FEATURES),
    *(f"large_{part}" for part in _GROUP_FEATURES),
    *(f"half_{part}" for part in _GROUP_FEATURES),
    *(f"in_{name}" for name in LANDMARKS),
    *(f"named_{name}" for name in ROLES),
    *_PAGE_FEATURES.split(),
    *(f"page_{kind}" for kind in StructuredData.FLAG_NAMES),
)
_LARGE_WORDS = 100
_PROSE_WORDS = 8
_WINDOW = 5
_MAX_DISTANCE = 60
_WORD = lazy_regex(r"\w+")
_MIN_LONG_RUN = 12
_BOILERPLATE = lazy_regex(
    r"sign in|sign up|log ?in|register|add to (?:cart|bag|basket|wish)|subscribe|newsletter|cookie|privacy"
    r"|terms (?:of|and|&)|all rights reserved|copyright|©|share (?:on|this|via)|follow us|read more|learn more"
    r"|view (?:all|more|cart)|show more|see (?:all|more)|load more|skip to|back to top|contact us|about us|my account"
    r"|free shipping|sort by|filter|next page|previous|powered by|\bmenu\b|search|download the app|related"
    r"|you may also|recommended|recently viewed|advertisement|sponsored|javascript|browser|reply|report|quote|edit"
    r"|save|print|登录|注册|版权|分享|相关|推荐|更多|下一页|上一页|关注|收藏|首页|返回顶部|评论|登入|註冊|版權|相關|推薦",
    re.IGNORECASE,
)
_BOILERPLATE_HEADING = lazy_regex(
    r"relat|similar|recommend|also (?:like|bought|view|enjoy)|you m(?:ay|ight)|more (?:from|in|like|stor|post|art|on)"
    r"|popular|trending|recent|latest|newsletter|subscribe|follow|share|comment|leave a reply|categor|tags|archive"
    r"|sign up|contact|connect|footer|about us|sponsor|customers|top stor|navigation|menu|filter|sort"
    r"|相关|推荐|热门|最新|评论|猜你喜欢|相關|推薦|熱門|留言",
    re.IGNORECASE,
)
PRICE = lazy_regex(r"[$€£¥]\s?\d|\d\s?(?:USD|EUR|GBP|元|€|kr)\b")
_DATE = lazy_regex(
    r"\b(?:19|20)\d\d\b|\b\d{1,2}[:/]\d\d\b|\bago\b|(?:19|20)\d\d年"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_regex(r"[.!?:;。！？：；…][\"'”’)\]」』]*$")
_WITHOUT_SPACES = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PREFIX_LENGTH = 300

WEIGHTS = Path(__file__).with_name("weights.json")
# A leaf is its value, an inner node (column, threshold, branch up to it, branch above it).
Node = float | tuple[int, float, "Node", "Node"]


@dataclass(slots=True)
class _WordCounts:
    """Word counts of a part of the page: all words, and those in links, in the main text, and in sentences."""

    blocks: int = 0
    words: float = 0.0
    links: float = 0.0
    main: float = 0.0
    prose: float = 0.0

    def add(self, words: float, links: float, main_share: float, is_prose: bool) -> None:
        self.blocks += 1
        self.words += words
        self.links += links * words
        self.main += main_share * words
        self.prose += words if is_prose else 0.0

    def shares(self, total: float) -> tuple[float, float, float, float, float]:
        """Return the values of _GROUP_FEATURES."""
        words = max(1.0, self.words)
        return (math.log1p(self.words), self.links / words, self.main / words, self.prose / words, self.words / total)


@dataclass(slots=True)
class PageMeasures:
    """Sums over a page that the features of its blocks are relative to."""

    sizes: list[int]
    words: list[list[str]]
    main_shares: list[float]
    total: float
    structured_data: StructuredData
    by_element: dict[Any, _WordCounts] = field(default_factory=lambda: defaultdict(_WordCounts))
    by_shape: dict[int, _WordCounts] = field(default_factory=lambda: defaultdict(_WordCounts))
    copies: Counter[str] = field(default_factory=Counter)


def build_features(
    blocks: Sequence[Block], main: str, structured_data: StructuredData
) -> tuple[list[list[float]], list[int]]:
    """Return a row of FEATURE_NAMES and a length in words for each block; `main` is a first guess at the main text."""
    measures = _measure(blocks, main, structured_data)
    page = _page_row(blocks, measures)
    in_title, descriptions = set(split_words(structured_data.title)), Trigrams(structured_data.descriptions)
    headings = _section_rows(blocks, measures.main_shares)
    first_h1 = next((i for i, block in enumerate(blocks) if block.place.node.tag == "h1"), -1)
    span = _find_main_span(measures.main_shares)
    neighbours = _window_means(measures.main_shares), _window_means([block.link_density for block in blocks])
    rows, words_before = [], 0
    for i, block in enumerate(blocks):
        words = measures.words[i]
        row = _block_row(block, measures.sizes[i])
        row += (i / len(blocks), words_before / measures.total, block.place.depth, measures.copies[block.text])
        row += (float(block.place.is_described), len(block.links))
        row += (_get_share(words, in_title), descriptions.share(words))
        row += (float(i > first_h1), math.log1p(abs(i - first_h1))) if first_h1 >= 0 else (0.5, 0.0)
        row += (measures.main_shares[i], float(span[0] <= i <= span[1]), neighbours[0][i], neighbours[1][i])
        row += (_log_size(measures.sizes, i - 1), _log_size(measures.sizes, i + 1), *headings[i])
        row += _group_rows(block, measures)
        row += _name_row(block)
        rows.append(row + page)
        words_before += measures.sizes[i]
    return rows, measures.sizes


def _measure(blocks: Sequence[Block], main: str, structured_data: StructuredData) -> PageMeasures:
    words = [split_words(block.text) for block in blocks]
    sizes = [_count_words(block.text, len(tokens)) for block, tokens in zip(blocks, words, strict=True)]
    grams = Trigrams(main)
    main_shares = [grams.share(tokens) for tokens in words]
    measures = PageMeasures(sizes, words, main_shares, float(sum(sizes) or 1), structured_data)
    for block, size, share in zip(blocks, sizes, main_shares, strict=True):
        is_prose = size > _PROSE_WORDS and _ends_sentence(block.text)
        measures.by_shape[block.place.shape].add(size, block.link_density, share, is_prose)
        for node in block.place.ancestors:
            measures.by_element[node].add(size, block.link_density, share, is_prose)
        measures.copies[block.text] += 1
    return measures


def _block_row(block: Block, size: int) -> list[float]:
    text, length = block.text, len(block.text)
    tag = block.place.node.tag
    return [
        math.log1p(size),
        block.link_density,
        block.button_length / length,
        float(_ends_sentence(text)),
        sum(map(str.isupper, text)) / length,
        float(_BOILERPLATE.search(text[:_PREFIX_LENGTH]) is not None),
        float(PRICE.search(text) is not None),
        float(_DATE.search(text) is not None),
        float(HEADINGS.get(tag, 0)),
        float(tag in ("td", "th")),
    ]


def _section_rows(blocks: Sequence[Block], main_shares: Sequence[float]) -> list[tuple[float, float, float, float]]:
    """Return the values of _SECTION_FEATURES for each block: about its heading, and whether that opens boilerplate."""
    rows, last, level, top_level, is_boilerplate = [], -1, 0, 9, 0.0
    for i, block in enumerate(blocks):
        if rank := HEADINGS.get(block.place.node.tag):
            last, level = i, rank
            if rank <= top_level:
                top_level = rank
                is_boilerplate = float(_BOILERPLATE_HEADING.search(block.text[:_PREFIX_LENGTH]) is not None)
        distance = float(min(i - last, _MAX_DISTANCE)) if last >= 0 else float(_MAX_DISTANCE)
        rows.append((distance, main_shares[last] if last >= 0 else 0.0, float(level), is_boilerplate))
    return rows


def _group_rows(block: Block, measures: PageMeasures) -> list[float]:
    """Return the values of _SHAPE_FEATURES, of ancestors, of the smallest large and the largest up to half the page."""
    shape = measures.by_shape[block.place.shape]
    _, links, main_share, _, share = shape.shares(measures.total)
    row = [math.log1p(shape.blocks), shape.words / shape.blocks, links, main_share, share]
    sums = [measures.by_element[node] for node in block.place.ancestors] or [shape]
    for level in _LEVELS:
        row += sums[max(0, len(sums) - level)].shares(measures.total)
    large = next((part for part in reversed(sums) if part.words >= _LARGE_WORDS), sums[0])
    half = next((part for part in sums if part.words <= measures.total / 2), sums[0])
    return [*row, *large.shares(measures.total), *half.shares(measures.total)]


def _name_row(block: Block) -> list[float]:
    place = block.place
    row = [float(place.landmarks >> bit & 1) for bit in range(len(LANDMARKS))]
    return row + [float(place.closeness(role)) for role in range(len(ROLES))]


def _page_row(blocks: Sequence[Block], measures: PageMeasures) -> list[float]:
    main = sum(size * share for size, share in zip(measures.sizes, measures.main_shares, strict=True))
    length = sum(len(block.text) for block in blocks) or 1
    link_length = sum(block.link_length for block in blocks)
    row = [
        math.log1p(measures.total),
        main / measures.total,
        math.log1p(len(blocks)),
        math.log1p(main),
        link_length / length,
    ]
    return row + measures.structured_data.flags()


def _find_main_span(main_shares: Sequence[float]) -> tuple[int, int]:
    inside = [i for i, share in enumerate(main_shares) if share > 0.6]
    return (inside[0], inside[-1]) if inside else (len(main_shares), -1)


def _window_means(values: Sequence[float]) -> list[float]:
    """Return the mean of each value and its neighbours up to _WINDOW away."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    ends = ((max(0, i - _WINDOW), min(len(values), i + _WINDOW + 1)) for i in range(len(values)))
    return [(sums[end] - sums[start]) / (end - start) for start, end in ends]


def _log_size(sizes: Sequence[int], i: int) -> float:
    return math.log1p(sizes[i]) if 0 <= i < len(sizes) else 0.0


def _get_share(words: Iterable[str], vocabulary: set[str]) -> float:
    matches = [word in vocabulary for word in words]
    return sum(matches) / len(matches) if matches else 0.0


def split_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


class Trigrams:
    """The word trigrams of a text, in which shorter texts are looked up."""

    def __init__(self, text: str) -> None:
        words = split_words(text)
        self._grams = set(zip(words, words[1:], words[2:], strict=False))
        self._flat = f" {' '.join(words)} "
        self._lines = {" ".join(split_words(cell)) for line in text.split("\n") for cell in (line, *line.split("|"))}

    def share(self, words: Sequence[str]) -> float:
        """Return the share (0 to 1) of the trigrams of `words` that occur in this text.

        One or two words count in full only if they are a whole line or table cell, since menus repeat words of the
        text; a long run without spaces, as in Chinese, counts anywhere.
        """
        flat = " ".join(words)
        if not flat or flat in self._lines:
            return float(bool(flat))
        if len(words) >= 3:
            grams = zip(words, words[1:], words[2:], strict=False)
            return sum(gram in self._grams for gram in grams) / (len(words) - 2)
        if f" {flat} " not in self._flat:
            return 0.0
        return 1.0 if len(flat) >= _MIN_LONG_RUN and not flat.isascii() else 0.5 * (len(words) - 1)


def _count_words(text: str, words: int) -> int:
    """Return the length of `text` in words: `words` tokens, plus one for every two characters without spaces."""
    return words if text.isascii() else words + len(_WITHOUT_SPACES.findall(text)) // 2


def _ends_sentence(text: str) -> bool:
    return bool(_SENTENCE_END.search(text[-8:]))


class Forest:
    """An ensemble of gradient-boosted decision trees over the columns FEATURE_NAMES."""

    def __init__(self, start: float, trees: Sequence[Node]) -> None:
        self.start = start
        self.trees = tuple(trees)
        self._score = _compile(start, self.trees)

    def probability(self, row: Sequence[float]) -> float:
        """Return the probability that a block with these features belongs to the main text."""
        return 1.0 / (1.0 + math.exp(-self._score(row)))


def _compile(start: float, trees: Sequence[Node]) -> Callable[[Sequence[float]], float]:
    """Compile the sum of the trees: a page has hundreds of blocks, and walking tuples takes twice as long."""
    lines = [
        "def score(row):",
        f"    total = {float(start)!r}",
        *(f"    total += {_to_expression(tree)}" for tree in trees),
    ]
    namespace: dict[str, Callable[[Sequence[float]], float]] = {}
    exec("\n".join([*lines, "    return total"]), namespace)  # only numbers, see `_to_expression`
    return namespace["score"]


def _to_expression(node: Node) -> str:
    """Return a tree as a Python expression of `row`."""
    if isinstance(node, int | float):
        return repr(float(node))
    column, threshold, low, high = node
    return f"({_to_expression(low)} if row[{int(column)}] <= {float(threshold)!r} else {_to_expression(high)})"


@cache
def load_forest() -> Forest:
    """Load the bundled forest. Raises ValueError if it was fitted to other features."""
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    if weights["names"] != list(FEATURE_NAMES):
        raise ValueError("weights.json was fitted to other features: run python -m benchmarks.extraction_fit")
    return Forest(weights["start"], weights["trees"])
