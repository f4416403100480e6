"""The page's own text: its blocks, what trafilatura would keep of them, the fitted judge, the best set.

Trafilatura is a strong reader of articles and a weak one of the rest of the web, so it is asked for a first
opinion, in its fast mode, and that is one of the features by which each block is judged.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag.ingest.extraction.choose import choose
from rag.ingest.extraction.cohesion import rounded_off
from rag.ingest.extraction.features import describe
from rag.ingest.extraction.forest import Forest, fitted
from rag.ingest.extraction.huge import flat_text
from rag.ingest.extraction.render import markdown
from rag.ingest.extraction.roles import LANDMARKS, ROLES
from rag.ingest.extraction.segments import Block, segment
from rag.ingest.extraction.structured import Facts
from rag.ingest.extraction.unseen import unseen_passages

_EMPHASIS = ("b", "strong", "i", "em", "u", "mark", "small", "big", "font", "ins")
_SHORT_PAGE = 80
_MAX_BLOCKS = 12_000
_FURNITURE = sum(1 << LANDMARKS.index(name) for name in ("nav", "footer", "aside", "form"))
_NOISE = sum(1 << ROLES.index(name) for name in ("consent", "promotion", "social"))


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
