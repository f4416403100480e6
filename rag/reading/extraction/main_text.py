"""Main text selection: the set of a page's blocks with the best expected score.

Trafilatura extracts articles well and the rest of the web poorly, so the result of its fast mode is only one of the
features by which the classifier scores each block. Once the best set is selected, cards and tables are completed, text
gets the heading above it, and what the page repeats is dropped.

Content that is only in structured data, because scripts draw it or it is collapsed, is added if the visible text lacks
it and its type is the page's main content: a product's description and price, FAQ answers, a recipe, an article body.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress, groupby, islice
from statistics import fmean
from typing import Any, NamedTuple
from urllib.parse import unquote

from rag.reading.extraction.features import HEADINGS, PRICE, Forest, Trigrams, build_features, load_forest, split_words
from rag.reading.extraction.metadata import (
    Byline,
    SchemaObject,
    StructuredData,
    find_iso_date,
    get_types,
    strip_tags,
    to_text,
)
from rag.reading.extraction.render import find_data_tables, find_outermost, find_repeated, format_term, markdown
from rag.reading.extraction.segments import LANDMARKS, ROLES, Block, segment
from rag.reading.extraction.tree import PANEL_LABEL, extract_flat_text
from rag.text import collapse_spaces, lazy_regex, letters_and_digits

_MAX_VISIBLE_SHARE = 0.4
_MIN_WORDS = 4


def find_unseen_passages(structured_data: StructuredData, visible: str) -> list[str]:
    """Return unique Markdown passages of structured content that is missing from `visible`, the page's visible text."""
    existing, passages = Trigrams(visible), list[str]()
    for passage in _iter_passages(structured_data, visible):
        words = split_words(passage)
        is_enough = len(words) >= _MIN_WORDS or not passage.isascii()
        if is_enough and passage not in passages and existing.share(words) < _MAX_VISIBLE_SHARE:
            passages.append(passage)
    return passages


def _iter_passages(structured_data: StructuredData, visible: str) -> Iterator[str]:
    seen: set[str] = set()
    for obj in structured_data.objects:
        for kind in get_types(obj):
            # Further products are only related ones, but all questions count.
            if kind in _READERS and (kind == "Question" or kind not in seen):
                seen.add(kind)
                yield from _READERS[kind](obj)
                if (price := _format_price(obj.get("offers"))) and price.partition(" ")[0] not in visible:
                    yield f"{to_text(obj.get('name'))}: {price}"


def _format_price(offers: object) -> str:
    offer = offers[0] if isinstance(offers, list) and offers else offers
    if not isinstance(offer, dict):
        return ""
    price, currency = to_text(offer.get("price") or offer.get("lowPrice")), to_text(offer.get("priceCurrency"))
    return f"{price} {currency}".strip() if price else ""


def _read_question(obj: SchemaObject) -> Iterator[str]:
    answer = obj.get("acceptedAnswer") or obj.get("suggestedAnswer")
    answer = answer[0] if isinstance(answer, list) and answer else answer
    text = strip_tags(str(answer.get("text") or "")) if isinstance(answer, dict) else ""
    if text:
        yield f"**{to_text(obj.get('name'))}**\n\n{text}"


def _read_recipe(obj: SchemaObject) -> Iterator[str]:
    for name in ("recipeIngredient", "recipeInstructions"):
        values = obj.get(name)
        lines = [_read_step(value) for value in values] if isinstance(values, list) else [to_text(values)]
        yield "\n".join(f"- {line}" for line in lines if line)


def _read_step(value: object) -> str:
    return to_text(value.get("text") or value.get("name")) if isinstance(value, dict) else to_text(value)


_READERS: dict[str, Callable[[SchemaObject], Iterable[str]]] = {
    "Question": _read_question,
    "Recipe": _read_recipe,
    **dict.fromkeys(
        ("Article", "NewsArticle", "BlogPosting", "TechArticle"), lambda obj: [to_text(obj.get("articleBody"))]
    ),
    **dict.fromkeys(
        ("Product", "ProductGroup", "JobPosting", "Course", "SoftwareApplication", "Book", "Event"),
        lambda obj: [to_text(obj.get("description"))],
    ),
}


_EMPHASIS = ("b", "strong", "i", "em", "u", "mark", "small", "big", "font", "ins")
_SHORT_PAGE = 80
_MAX_BLOCKS = 12_000
_BOILERPLATE = sum(1 << LANDMARKS.index(name) for name in ("nav", "footer", "aside", "form"))
_MENU = sum(1 << LANDMARKS.index(name) for name in ("nav", "footer"))
_NOISE = sum(1 << ROLES.index(name) for name in ("consent", "promotion", "social"))
# A uniform prior: the true main text may be strict or generous.
_THRESHOLDS = tuple((i + 0.5) / 25 for i in range(25))
# Lost text answers no question, so doubtful text is selected, except in menus, footers, and articles, in which it is
# teasers of other articles.
_RECALL_WEIGHT = 2.0
_MIN_ROWS, _MIN_TABLE_PROBABILITY = 3, 0.1
_MAX_HEADING = 200
_LOOKAHEAD = 2
_MIN_PROBABILITY = 0.2
_MIN_REPEAT = 120  # characters
_MAX_CARD_LINES, _MAX_PRICE, _MIN_PRICE = 12, 40, 0.15
_MAX_NAME, _MAX_ADDRESS, _MAX_LINKS, _MAX_PIECES, _MAX_LINKS_OF_POST = 100, 2_000, 4, 20, 1.5
_NEAR_START, _MAX_BYLINE, _MAX_DATE = 12, 160, 60  # blocks, characters, characters
_NUMBER = lazy_regex(r"\d+")
_TEASER_DENSITY = 0.95
_MAX_TEASERS = 0.2


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """A block, the probability that it belongs to the main text, and whether it was selected."""

    block: Block
    probability: float
    is_selected: bool


class _Name(NamedTuple):
    """The text of a link, and the address of the folder that it leads to, without numbers."""

    text: str
    folder: str


def extract_main_text(
    body: Any, structured_data: StructuredData, byline: Byline, *, is_huge: bool, forest: Forest | None
) -> str:
    """Return the Markdown of the main text in `body`, an lxml element without hidden parts."""
    if is_huge:
        return extract_flat_text(body)
    blocks = segment(body)
    if len(blocks) > _MAX_BLOCKS:
        return markdown(list(compress(blocks, _select_content(blocks))))
    rows = score_blocks(body, blocks, structured_data, forest)
    if structured_data.is_article:
        rows = add_byline(rows, byline)
    text = markdown(name_posts(rows))
    visible = "\n".join(block.text for block in blocks)
    return "\n\n".join([text, *find_unseen_passages(structured_data, visible)]).strip()


def score_blocks(
    body: Any, blocks: Sequence[Block], structured_data: StructuredData, forest: Forest | None = None
) -> list[ScoredBlock]:
    """Return every block of `body` with its probability and verdict; a short page keeps all but boilerplate."""
    if not blocks:
        return []
    rows, sizes = build_features(blocks, extract_with_trafilatura(body), structured_data)
    forest = forest or load_forest()
    probabilities = [forest.probability(row) for row in rows]
    if sum(sizes) <= _SHORT_PAGE:
        selected = _select_content(blocks)
    else:
        selected = select_blocks(probabilities, sizes)
        if not structured_data.is_article:
            doubtful = select_blocks(probabilities, sizes, _RECALL_WEIGHT)
            selected = [
                is_sure or (is_doubtful and not block.place.landmarks & _MENU)
                for block, is_sure, is_doubtful in zip(blocks, selected, doubtful, strict=True)
            ]
        selected = complete_cards(blocks, selected, probabilities)
        selected = drop_repeats(blocks, complete_selection(blocks, selected, sizes, probabilities))
        if structured_data.is_article:
            selected = drop_teasers(blocks, selected, sizes)
    return [ScoredBlock(*row) for row in zip(blocks, probabilities, selected, strict=True)]


def extract_with_trafilatura(body: Any) -> str:
    """Return trafilatura's text of a copy of `body` without emphasis tags, at which it would split words."""
    import trafilatura
    from lxml import etree
    from lxml.html import Element

    root = Element("html")
    root.append(copy.deepcopy(body))
    etree.strip_tags(root, *_EMPHASIS)
    return trafilatura.extract(root, output_format="markdown", include_links=False, fast=True) or ""


def _select_content(blocks: Sequence[Block]) -> list[bool]:
    """Select the blocks outside menus, forms, footers and the like, or all blocks if there are none."""
    flags = [not (block.place.landmarks & _BOILERPLATE or block.place.roles & _NOISE) for block in blocks]
    return flags if any(flags) else [True] * len(blocks)


def select_blocks(probabilities: Sequence[float], sizes: Sequence[int], recall_weight: float = 1.0) -> list[bool]:
    """Select the set of blocks with the highest expected F-measure over words; return a flag for each block.

    `recall_weight` is its beta (van Rijsbergen 1979): how many times recall counts as much as precision.

    Doubtful blocks are correlated: all of a page's comments are main text, or none. So the true set is modelled as all
    blocks above a threshold drawn uniformly from 0 to 1. Independent blocks would select too much if doubtful text is
    longer than certain text. The best set has the likeliest blocks (Lewis, SIGIR 1995), so it is enough to try each
    prefix of the ranking.
    """
    order = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
    negated = [-probabilities[i] for i in order]
    words = [0, *accumulate(sizes[i] for i in order)]
    truths = [words[bisect_left(negated, -threshold)] for threshold in _THRESHOLDS]
    beta = recall_weight**2
    scores = [sum(min(size, truth) / (size + beta * truth) for truth in truths) if size else 0.0 for size in words[1:]]
    floor = -negated[scores.index(max(scores))] if scores else 1.0
    return [probability >= floor for probability in probabilities]


def complete_selection(
    blocks: Sequence[Block], selected: Sequence[bool], sizes: Sequence[int], probabilities: Sequence[float]
) -> list[bool]:
    """Complete or drop each table, and add the headings and panel names of selected text."""
    result = _complete_tables(blocks, selected, sizes, probabilities)
    for i in reversed(range(len(blocks))):
        if not result[i] and probabilities[i] >= _MIN_PROBABILITY and _is_heading(blocks[i]):
            result[i] = _leads_to_text(i, blocks, result)
        elif blocks[i].place.node.get(PANEL_LABEL) is not None:
            result[i] = result[i + 1] if i + 1 < len(result) else False
    return result


def complete_cards(blocks: Sequence[Block], selected: Sequence[bool], probabilities: Sequence[float]) -> list[bool]:
    """Add the prices of cards, such as products, of which other text is selected."""
    places = {id(block): i for i, block in enumerate(blocks)}
    result = list(selected)
    for lines in find_repeated(blocks, lambda own: 1 < len(own) <= _MAX_CARD_LINES).values():
        card = [places[id(line)] for line in lines]
        prices = [i for i in card if len(blocks[i].text) <= _MAX_PRICE and PRICE.search(blocks[i].text)]
        if any(selected[i] for i in card if i not in prices):
            for i in prices:
                result[i] |= probabilities[i] >= _MIN_PRICE and not blocks[i].place.landmarks & _MENU
    return result


def add_byline(rows: Sequence[ScoredBlock], byline: Byline) -> list[ScoredBlock]:
    """Select the first short line near the beginning of the text that has an author, and that with each of the dates.

    `rows` are those of an article; classifiers of content drop its byline.
    """
    start = next((i for i, row in enumerate(rows) if row.is_selected), 0)
    near = range(max(0, start - _NEAR_START), min(len(rows), start + _NEAR_START))
    names = {i: letters_and_digits(text) for i in near if len(text := rows[i].block.text) <= _MAX_BYLINE}
    days = {i: find_iso_date(text)[:10] for i in near if len(text := rows[i].block.text) <= _MAX_DATE}
    keys = [key for key in map(letters_and_digits, byline.author.split(",")) if len(key) > (2 if key.isascii() else 1)]
    found = [[i for i, name in names.items() if key in name] for key in keys]
    found += [
        [i for i, day in days.items() if day and day == date[:10]] for date in (byline.published, byline.modified)
    ]
    added = {lines[0] for lines in found if lines and not any(rows[i].is_selected for i in lines)}
    added = {i for i in added if not rows[i].block.place.landmarks & _BOILERPLATE}
    return [replace(row, is_selected=True) if i in added else row for i, row in enumerate(rows)]


def name_posts(rows: Sequence[ScoredBlock]) -> list[Block]:
    """Return the selected blocks, those of each post of a discussion after a line with its author, such as "Ann:".

    Posts are repeated elements with one link each that is named as its address, such as `/members/ann.12/`.
    """
    names = {id(row.block): name for row in rows if not row.is_selected and (name := _find_name(row.block))}
    selected = {id(row.block) for row in rows if row.is_selected}

    def is_post(lines: Sequence[Block]) -> bool:
        first = next((line for line in lines if id(line) in selected), None)
        is_headed = first is None or first.place.node.tag in HEADINGS or _find_name(first)
        return not is_headed and any(id(line) in names for line in lines)

    posts: dict[Any, list[Block]] = {node: [] for node in find_repeated([row.block for row in rows], is_post)}
    for row in rows:
        post = next((node for node in reversed(row.block.place.ancestors) if node in posts), None)
        if post is not None:
            posts[post].append(row.block)
    authors = dict[int, Block]()
    for _, group in groupby(posts, key=lambda post: post.getparent()):
        for post, author in _find_authors({post: posts[post] for post in group}, names).items():
            first = next((line for line in posts[post] if id(line) in selected), None)
            if first is not None:
                around = first.place.ancestors[: first.place.ancestors.index(post) + 1]
                place = replace(first.place, node=post, is_code=False, ancestors=around)
                authors[id(first)] = replace(first, text=format_term(author).strip(), place=place)
    blocks = [row.block for row in rows if row.is_selected]
    return [line for block in blocks for line in (authors.get(id(block)), block) if line is not None]


def _find_authors(posts: Mapping[Any, Sequence[Block]], names: Mapping[int, _Name]) -> dict[Any, str]:
    """Return the author of each post with one: the last name that links at one depth to one folder."""
    groups: dict[tuple[int, str], list[tuple[Any, str]]] = {}
    for post, lines in posts.items():
        for line in lines:
            if name := names.get(id(line)):
                groups.setdefault((line.place.depth, name.folder), []).append((post, name.text))
    found = [(len(links), dict(links)) for links in groups.values()]
    authors = [one for count, one in found if len(set(one.values())) > 1 and count <= _MAX_LINKS_OF_POST * len(one)]
    return max(authors, key=len, default={})


def _find_name(block: Block) -> _Name | None:
    """Return the first link of a short block whose address ends in its text, or None."""
    if len(block.text) <= _MAX_NAME:
        for link in block.links[:_MAX_LINKS]:
            text = collapse_spaces("".join(islice(link.itertext(), _MAX_PIECES)))
            key = letters_and_digits(text)
            folder, _, name = (link.get("href") or "")[:_MAX_ADDRESS].rstrip("/").rpartition("/")
            if len(key) > 1 and text in block.text and key in letters_and_digits(unquote(name)):
                return _Name(text, _NUMBER.sub("", folder))
    return None


def drop_repeats(blocks: Sequence[Block], selected: Sequence[bool]) -> list[bool]:
    """Drop long text that an earlier block of its section and tab panel has too; quotations and tables stay whole.

    Some pages have a section once for narrow screens and once for wide ones, or show a post above each reply to it.
    """
    tables, seen = find_data_tables(blocks), set[tuple[object, ...]]()
    section: list[tuple[int, str]] = []
    result = list(selected)
    for i in compress(range(len(blocks)), selected):
        block, text = blocks[i], collapse_spaces(blocks[i].text)
        if level := HEADINGS.get(block.place.node.tag):
            section = [*(above for above in section if above[0] < level), (level, text)]
        elif len(text) >= _MIN_REPEAT and not block.place.is_code and not _is_part(block, tables):
            panel = next((node for node in reversed(block.place.ancestors) if node.get("role") == "tabpanel"), None)
            key = text, panel, *section
            result[i] = key not in seen
            seen.add(key)
    return result


def _is_part(block: Block, tables: Collection[Any]) -> bool:
    """Return whether a block is part of a quotation or of one of these tables."""
    return block.find_above(("blockquote",)) is not None or find_outermost(block, tables) is not None


def drop_teasers(blocks: Sequence[Block], selected: Sequence[bool], sizes: Sequence[int]) -> list[bool]:
    """Drop paragraphs that are only a link: within an article, they point to other pages.

    If they are more than a small part of the selection, the page is a list of links, and all are kept.
    """
    remaining = [is_selected and not _is_teaser(block) for block, is_selected in zip(blocks, selected, strict=True)]
    total, size = (sum(compress(sizes, flags)) for flags in (selected, remaining))
    return remaining if total - size <= _MAX_TEASERS * total else list(selected)


def _is_teaser(block: Block) -> bool:
    if block.link_density < _TEASER_DENSITY or block.place.node.tag in HEADINGS:
        return False
    return not any(node.tag in ("li", "table", "dl") for node in block.place.ancestors)


def _complete_tables(
    blocks: Sequence[Block], selected: Sequence[bool], sizes: Sequence[int], probabilities: Sequence[float]
) -> list[bool]:
    """Complete tables of which most words are selected, and larger ones that aren't unlikely; drop the others.

    Cells of numbers have a low probability, as true texts often lack them.
    """
    tables = find_data_tables(blocks)
    owners = [find_outermost(block, tables) for block in blocks]
    cells: dict[Any, list[int]] = {}
    for i, table in enumerate(owners):
        if table is not None:
            cells.setdefault(table, []).append(i)

    def is_main(table: Any, own: Sequence[int]) -> bool:
        if 2 * sum(sizes[i] for i in own if selected[i]) >= sum(sizes[i] for i in own):
            return True
        is_large = len(list(islice(table.iter("tr"), _MIN_ROWS))) == _MIN_ROWS
        return is_large and fmean(probabilities[i] for i in own) >= _MIN_TABLE_PROBABILITY

    verdicts = {table: is_main(table, own) for table, own in cells.items()}
    return [verdicts.get(table, is_selected) for table, is_selected in zip(owners, selected, strict=True)]


def _is_heading(block: Block) -> bool:
    """Return whether a block heads a section; the page's title is judged by its own probability."""
    return HEADINGS.get(block.place.node.tag, 1) > 1 and len(block.text) <= _MAX_HEADING


def _leads_to_text(i: int, blocks: Sequence[Block], selected: Sequence[bool]) -> bool:
    """Return whether selected text closely follows block i, a heading, within its section."""
    level = HEADINGS[blocks[i].place.node.tag]
    for j in range(i + 1, min(len(blocks), i + 1 + _LOOKAHEAD)):
        rank = HEADINGS.get(blocks[j].place.node.tag, 9)
        if rank <= level:
            return False
        if selected[j]:
            return True
    return False
