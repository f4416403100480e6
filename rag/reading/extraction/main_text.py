"""The page's own text: its blocks, what trafilatura would keep of them, the fitted judge, the best set.

Trafilatura is a strong reader of articles and a weak one of the rest of the web, so it is asked for a first
opinion, in its fast mode, and that is one of the features by which each block is judged.
The set is the one that promises most; then a table is one piece, and text comes with the heading above it.

What a page holds only as structured data, the text that its scripts would draw or that is folded away, is taken only
for kinds of things whose statement is the page's own content, and only where what is shown lacks it: a product's
description and price, the answers of an FAQ, a recipe, the body of an article.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import Any

from rag.reading.extraction.features import HEADINGS, Trigrams, describe, words_of
from rag.reading.extraction.forest import Forest, fitted
from rag.reading.extraction.grid import data_tables, table_of
from rag.reading.extraction.panels import LABEL
from rag.reading.extraction.render import markdown
from rag.reading.extraction.roles import LANDMARKS, ROLES
from rag.reading.extraction.segments import Block, segment
from rag.reading.extraction.structured import Facts, Thing, kinds_of, plain, text_of
from rag.reading.extraction.tree import flat_text

_LACKING_SHARE = 0.4
_MIN_WORDS = 4


def unseen_passages(facts: Facts, shown: str) -> list[str]:
    """Markdown blocks of stated content that `shown`, all visible text of the page, lacks; each once."""
    known, found = Trigrams(shown), list[str]()
    for passage in _passages(facts, shown):
        words = words_of(passage)
        enough = len(words) >= _MIN_WORDS or not passage.isascii()
        if enough and passage not in found and known.share(words, passage) < _LACKING_SHARE:
            found.append(passage)
    return found


def _passages(facts: Facts, shown: str) -> Iterator[str]:
    done: set[str] = set()
    for thing in facts.things:
        for kind in kinds_of(thing):
            # Further products are related ones; questions are many.
            if kind in _READERS and (kind == "Question" or kind not in done):
                done.add(kind)
                yield from _READERS[kind](thing)
                if (price := _price(thing.get("offers"))) and price.partition(" ")[0] not in shown:
                    yield f"{text_of(thing.get('name'))}: {price}"


def _price(offers: object) -> str:
    offer = offers[0] if isinstance(offers, list) and offers else offers
    if not isinstance(offer, dict):
        return ""
    price, currency = text_of(offer.get("price") or offer.get("lowPrice")), text_of(offer.get("priceCurrency"))
    return f"{price} {currency}".strip() if price else ""


def _question(thing: Thing) -> Iterator[str]:
    answer = thing.get("acceptedAnswer") or thing.get("suggestedAnswer")
    answer = answer[0] if isinstance(answer, list) and answer else answer
    text = plain(str(answer.get("text") or "")) if isinstance(answer, dict) else ""
    if text:
        yield f"**{text_of(thing.get('name'))}**\n\n{text}"


def _recipe(thing: Thing) -> Iterator[str]:
    for name in ("recipeIngredient", "recipeInstructions"):
        values = thing.get(name)
        lines = [_step(value) for value in values] if isinstance(values, list) else [text_of(values)]
        yield "\n".join(f"- {line}" for line in lines if line)


def _step(value: object) -> str:
    return text_of(value.get("text") or value.get("name")) if isinstance(value, dict) else text_of(value)


def _article(thing: Thing) -> Iterator[str]:
    yield text_of(thing.get("articleBody"))


def _described(thing: Thing) -> Iterator[str]:
    yield text_of(thing.get("description"))


_READERS: dict[str, Callable[[Thing], Iterator[str]]] = {
    "Question": _question,
    "Recipe": _recipe,
    **dict.fromkeys(("Article", "NewsArticle", "BlogPosting", "TechArticle"), _article),
    **dict.fromkeys(
        ("Product", "ProductGroup", "JobPosting", "Course", "SoftwareApplication", "Book", "Event"), _described
    ),
}


_EMPHASIS = ("b", "strong", "i", "em", "u", "mark", "small", "big", "font", "ins")
_SHORT_PAGE = 80
_MAX_BLOCKS = 12_000
_FURNITURE = sum(1 << LANDMARKS.index(name) for name in ("nav", "footer", "aside", "form"))
_NOISE = sum(1 << ROLES.index(name) for name in ("consent", "promotion", "social"))
# The page may be read strictly or generously: so many readings, equally likely.
_READINGS = tuple((i + 0.5) / 25 for i in range(25))
_MOST = 0.5
_MAX_HEADING = 200
_LOOKED_AHEAD = 2
_MIN_CHANCE = 0.2
_LINKED = 0.95
_MOST_TEASERS = 0.2


@dataclass(frozen=True, slots=True)
class Judged:
    """A block, how likely it belongs to the page's own text, and whether it was taken."""

    block: Block
    chance: float
    is_taken: bool


def main_text(body: Any, facts: Facts, *, is_huge: bool = False, forest: Forest | None = None) -> str:
    """The Markdown of the page's own text in `body`, an lxml element without hidden parts."""
    if is_huge:
        return flat_text(body)
    blocks = segment(body)
    if len(blocks) > _MAX_BLOCKS:
        return markdown(_outside_furniture(blocks))
    text = markdown([judged.block for judged in judge_blocks(body, blocks, facts, forest) if judged.is_taken])
    shown = "\n".join(block.text for block in blocks)
    return "\n\n".join([text, *unseen_passages(facts, shown)]).strip()


def judge_blocks(body: Any, blocks: Sequence[Block], facts: Facts, forest: Forest | None = None) -> list[Judged]:
    """Every block of `body` with its chance and the verdict; on a short page all but the furniture is taken."""
    if not blocks:
        return []
    rows, sizes = describe(blocks, first_opinion(body), facts)
    forest = forest or fitted()
    chances = [forest.probability(row) for row in rows]
    if sum(sizes) <= _SHORT_PAGE:
        kept = {id(block) for block in _outside_furniture(blocks)}
        return [Judged(block, chance, id(block) in kept) for block, chance in zip(blocks, chances, strict=True)]
    taken = rounded_off(blocks, choose(chances, sizes), sizes, chances)
    if facts.is_article:
        taken = without_teasers(blocks, taken, sizes)
    return [Judged(*judged) for judged in zip(blocks, chances, taken, strict=True)]


def first_opinion(body: Any) -> str:
    """Trafilatura's text of a copy of `body`, which it changes, with emphasis undone, which it splits words at."""
    import trafilatura
    from lxml import etree
    from lxml.html import Element

    root = Element("html")
    root.append(copy.deepcopy(body))
    etree.strip_tags(root, *_EMPHASIS)
    return trafilatura.extract(root, output_format="markdown", include_links=False, fast=True) or ""


def _outside_furniture(blocks: Sequence[Block]) -> list[Block]:
    """All but menus, forms, foots and the like; all blocks when nothing is left."""
    kept = [block for block in blocks if not (block.place.landmarks & _FURNITURE or block.place.roles & _NOISE)]
    return kept or list(blocks)


def choose(chances: Sequence[float], sizes: Sequence[int]) -> list[bool]:
    """The set of blocks with the highest expected F1 over words, for each block whether it is in.

    Doubtful blocks stand or fall together: all of a page's comments belong to it, or none. So the truth is taken
    to be one of the sets of blocks above some chance, that chance being drawn evenly from 0 to 1, and not to be
    drawn block by block, which takes too much where the doubtful is longer than the certain. The best set holds
    the likeliest blocks (Lewis, SIGIR 1995), so it is enough to try each length of that ranking.
    """
    ranked = sorted(range(len(chances)), key=lambda i: -chances[i])
    falling = [-chances[i] for i in ranked]
    words = [0, *accumulate(sizes[i] for i in ranked)]
    truths = [words[bisect_left(falling, -reading)] for reading in _READINGS]
    promises = [sum(min(own, truth) / (own + truth) for truth in truths) if own else 0.0 for own in words[1:]]
    floor = -falling[promises.index(max(promises))] if promises else 1.0
    return [chance >= floor for chance in chances]


def rounded_off(
    blocks: Sequence[Block], taken: Sequence[bool], sizes: Sequence[int], chances: Sequence[float]
) -> list[bool]:
    """`taken` with tables made whole, or dropped, by the greater part, and with the headings of what is taken."""
    whole = _whole_tables(blocks, taken, sizes)
    for i in reversed(range(len(blocks))):
        if not whole[i] and chances[i] >= _MIN_CHANCE and _is_heading(blocks[i]):
            whole[i] = _leads_to_text(i, blocks, whole)
        elif blocks[i].place.node.get(LABEL) is not None:
            whole[i] = whole[i + 1] if i + 1 < len(whole) else False
    return whole


def without_teasers(blocks: Sequence[Block], taken: Sequence[bool], sizes: Sequence[int]) -> list[bool]:
    """`taken` without the paragraphs that are nothing but a link: within the text of an article they lead away from it.

    Where they are more than a small part of what is taken, the page is made of them.
    """
    kept = [is_taken and not _leads_away(block) for block, is_taken in zip(blocks, taken, strict=True)]
    words, left = (sum(compress(sizes, chosen)) for chosen in (taken, kept))
    return kept if words - left <= _MOST_TEASERS * words else list(taken)


def _leads_away(block: Block) -> bool:
    if block.link_density < _LINKED or block.place.node.tag in HEADINGS:
        return False
    return not any(node.tag in ("li", "table", "dl") for node in block.place.ancestors)


def _whole_tables(blocks: Sequence[Block], taken: Sequence[bool], sizes: Sequence[int]) -> list[bool]:
    tables = data_tables(blocks)
    of_block = [table_of(block, tables) for block in blocks]
    balance: dict[Any, float] = {}
    for table, is_taken, size in zip(of_block, taken, sizes, strict=True):
        if table is not None:
            balance[table] = balance.get(table, 0.0) + (size * (1 - _MOST) if is_taken else -size * _MOST)
    return [
        balance[table] >= 0 if table is not None else is_taken for table, is_taken in zip(of_block, taken, strict=True)
    ]


def _is_heading(block: Block) -> bool:
    """Whether it heads a section; the page's own title is kept apart, and belongs to the text by its own chance."""
    return HEADINGS.get(block.place.node.tag, 1) > 1 and len(block.text) <= _MAX_HEADING


def _leads_to_text(i: int, blocks: Sequence[Block], taken: Sequence[bool]) -> bool:
    """Whether what is taken follows closely in the section that block i, a heading, opens."""
    level = HEADINGS[blocks[i].place.node.tag]
    for j in range(i + 1, min(len(blocks), i + 1 + _LOOKED_AHEAD)):
        rank = HEADINGS.get(blocks[j].place.node.tag, 9)
        if rank <= level:
            return False
        if taken[j]:
            return True
    return False
