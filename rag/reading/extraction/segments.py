"""Segmentation of a page into blocks: runs of text between block-level tags, with the roles of their elements.

Extraction selects or drops whole blocks, as in boilerplate detection by shallow text features
(Kohlschütter et al., WSDM 2010, https://dl.acm.org/doi/10.1145/1718487.1718542). Roles come from names that web
templates share: landmarks and class-name tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from rag.text import lazy_regex

LANDMARKS = tuple("nav header footer aside form main article table list quote details figure".split())
_LANDMARK_OF = {
    **{name: name for name in ("nav", "header", "footer", "aside", "form", "main", "article", "table", "details")},
    **dict.fromkeys(("ul", "ol", "dl"), "list"),
    "menu": "nav",
    "blockquote": "quote",
    "fieldset": "form",
    **dict.fromkeys(("figure", "figcaption"), "figure"),
}
_LANDMARK_OF_ROLE = {
    **dict.fromkeys(("navigation", "menu", "menubar", "tablist"), "nav"),
    **dict.fromkeys(("form", "search", "dialog", "alertdialog"), "form"),
    **{name: name for name in ("main", "article", "table", "list")},
    "banner": "header",
    "contentinfo": "footer",
    "complementary": "aside",
}
_TOKENS = {
    "nav": "nav navbar navigation navigations menu menus submenu megamenu breadcrumb breadcrumbs crumb "
    "pagination pager paging tabs sitenav topnav mainnav subnav skip links",
    "contents": "toc contents tableofcontents",
    "chrome": "header footer masthead topbar foot footers headers copyright legal colophon banner",
    "side": "sidebar aside rail widget widgets sidenav secondary side",
    "related": "related recommend recommended recommendation recommendations similar also upsell crosssell "
    "cross carousel slider trending popular recent recently suggested suggestions more next prev "
    "previous latest viewed",
    "social": "share sharing social follow facebook twitter like likes socials",
    "consent": "cookie cookies consent gdpr privacy cmp",
    "promotion": "ad ads advert advertisement adverts sponsor sponsored promo promotion promotions newsletter "
    "subscribe subscription signup cta callout popup modal overlay dialog drawer flyout offcanvas "
    "toast alert notice notification announcement",
    "control": "form search filter filters facet facets refine refinement sort sorting login signin account "
    "cart basket checkout toolbar controls control button buttons btn dropdown selector swatch "
    "swatches picker quantity actions action toggle",
    "comment": "comment comments reply replies respond discussion",
    "byline": "meta byline author date time timestamp published tag tags category categories avatar user "
    "username profile stats count badge info",
    "content": "content article post entry story body text main description desc detail details prose markdown "
    "documentation docs doc summary about copy richtext rte wysiwyg rich",
    "item": "item items card cards product products result results listing listings tile tiles grid list "
    "archive collection feed loop",
    "review": "review reviews rating ratings testimonial testimonials stars",
    "message": "message messages thread topic answer answers question questions postbody cooked msg",
    "price": "price prices pricing sale amount",
    "hidden": "hidden hide sr visually screen invisible collapse collapsed",
    "specification": "spec specs specification specifications features feature attributes faq accordion tab panel",
    "title": "title heading headline name subtitle",
    "media": "caption captions credit credits figure figcaption gallery image images img lightbox media photo photos "
    "picture player slide slides slideshow thumb thumbnail video videos",
    "layout": "hero jumbotron section block wrapper container row col column",
}
ROLES = tuple(_TOKENS)
_ROLE_BITS: dict[str, int] = {}
for _bit, _words in enumerate(_TOKENS.values()):
    for _word in _words.split():
        _ROLE_BITS[_word] = _ROLE_BITS.get(_word, 0) | 1 << _bit
_LANDMARK_BITS = {name: 1 << bit for bit, name in enumerate(LANDMARKS)}
_WORD_ENDS = lazy_regex(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")
_MAX_NAME = 400

INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark math nobr output q rp rt ruby s "
    "samp small span strike strong sub sup time tt u var wbr img path picture source br button input option textarea "
    "meta link".split()
)
SKIPPED = frozenset(
    "script style template svg iframe object embed canvas audio video head select datalist map area input "
    "textarea".split()
)
STRUCK = frozenset(["del", "s", "strike"])
_BREAK = "\v"
COPY: Final = "data-copy"
"""The attribute that marks an inline element whose text is that of its neighbour."""
_COPY_START, _COPY_END = "\ufdd0", "\ufdd1"  # noncharacters
_COPIES = lazy_regex(f"{_COPY_START}[^{_COPY_START}{_COPY_END}]*+{_COPY_END}? ?")
_STRUCK_START, _STRUCK_END = "\x0e", "\x0f"
_STRUCK_RUN = lazy_regex("\x0e([^\x0e\x0f]*)\x0f?")
_CURRENCY_SIGN = lazy_regex(r"(?:~~)?[$€£¥₹₩](?:~~)?")
_PRICE_PART = lazy_regex(
    r"(?P<price>[$€£¥₹₩](?P<number>\d[\d,.]*+)?) "
    r"(?P<part>(?(number)(?:(?P<cents>[.,]?\d\d)|/\s?\w{1,12})|\d[\d,.]*+(?:/\w{1,12})?))"
)
_MAX_ANCESTORS = 60
_NEAR_LEVELS = 3
_LEVEL_BITS = 24
_NEAR_MASK = (1 << _NEAR_LEVELS * _LEVEL_BITS) - 1


def landmark_bits(tag: str, role: str | None) -> int:
    """Return a bit mask of the LANDMARKS that an element's tag or ARIA role names."""
    bits = _LANDMARK_BITS.get(_LANDMARK_OF.get(tag, ""), 0)
    return bits | _LANDMARK_BITS.get(_LANDMARK_OF_ROLE.get(role, ""), 0) if role else bits


@lru_cache(maxsize=20_000)
def role_bits(name: str) -> int:
    """Return a bit mask of the ROLES that a class or id attribute names."""
    bits = 0
    for token in _WORD_ENDS.split(name[:_MAX_NAME]):
        bits |= _ROLE_BITS.get(token.lower(), 0)
    return bits


@dataclass(slots=True)
class Place:
    """The position of a block. `near` has the role bits of the closest elements, `roles` those of all ancestors.

    `shape`, a hash of the path of tags and first classes, is the same for blocks of one template.
    """

    node: Any
    landmarks: int = 0
    roles: int = 0
    near: int = 0
    depth: int = 0
    is_code: bool = False
    is_described: bool = False
    shape: int = 0
    ancestors: tuple[Any, ...] = ()

    def enter(self, node: Any) -> Place:
        """Return the place of a child element."""
        name, tag = node.get("class") or "", node.tag
        bits = role_bits(name) | role_bits(node.get("id") or "")
        first = name.split(None, 1)[:1]
        return Place(
            node,
            self.landmarks | landmark_bits(tag, node.get("role")),
            self.roles | bits,
            (self.near << _LEVEL_BITS) & _NEAR_MASK | bits,
            self.depth + 1,
            self.is_code or tag == "pre",
            self.is_described or node.get("itemprop") in _DESCRIPTION_ITEMPROPS,
            hash((self.shape, tag, *first)),
            (*self.ancestors, node) if self.depth < _MAX_ANCESTORS else self.ancestors,
        )

    def closeness(self, role: int) -> int:
        """Return 3 if the block's element has the role, 2 for parent or grandparent, 1 for other ancestors, else 0."""
        if self.near >> role & 1:
            return 3
        if (self.near >> _LEVEL_BITS | self.near >> 2 * _LEVEL_BITS) >> role & 1:
            return 2
        return self.roles >> role & 1


_DESCRIPTION_ITEMPROPS = frozenset(["articleBody", "description", "reviewBody", "text", "name", "headline"])


@dataclass(slots=True)
class Block:
    """A run of text. `link_length` and `button_length` count its characters in `links` and buttons."""

    text: str
    place: Place
    link_length: int
    button_length: int
    links: Sequence[Any]

    @property
    def link_density(self) -> float:
        return self.link_length / len(self.text)

    def find_above(self, tags: Collection[str]) -> Any:
        """Return the innermost element around the block with one of these tags, or None."""
        return next((node for node in reversed(self.place.ancestors) if node.tag in tags), None)


@dataclass(slots=True)
class _Writer:
    """A builder that collects the text of one block at a time; `places` has those of the open block-level elements."""

    places: list[Place]
    blocks: list[Block] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    link_depth: int = 0
    button_depth: int = 0
    struck_depth: int = 0
    links: list[Any] = field(default_factory=list)
    link_length: int = 0
    button_length: int = 0

    def start(self, node: Any, tag: str) -> None:
        """Start an element, and with it a block unless it is inline."""
        if tag not in INLINE:
            self.finish()
            self.places.append(self.places[-1].enter(node))
        else:
            if node.get(COPY) is not None:
                self.pieces.append(_COPY_START)
            self._start_inline(node, tag)
        self.add(node.text)

    def _start_inline(self, node: Any, tag: str) -> None:
        if tag == "a":
            self.link_depth += 1
            self.links.append(node)
        elif tag == "button":
            self.button_depth += 1
        elif tag == "br":
            self.pieces.append(_BREAK)
        elif tag in STRUCK:
            self.struck_depth += 1
            self.pieces.append(_STRUCK_START)

    def end(self, node: Any, tag: str) -> None:
        """End an element, or pass one that was not started because it is in SKIPPED."""
        if tag not in INLINE and tag not in SKIPPED:
            self.finish()
            self.places.pop()
        elif tag not in SKIPPED:
            self._end_inline(tag)
            if node.get(COPY) is not None:
                self.pieces.append(_COPY_END)
        if node.tail:
            self.add(node.tail)
        elif tag in INLINE and tag != "wbr" and not self.places[-1].is_code and node.getnext() is not None:
            self.pieces.append(" ")  # neighbours such as <span>12</span><span>new</span> are drawn apart

    def _end_inline(self, tag: str) -> None:
        if tag == "a":
            self.link_depth -= 1
        elif tag == "button":
            self.button_depth -= 1
        elif tag in STRUCK:
            self.struck_depth -= 1
            self.pieces.append(_STRUCK_END)

    def add(self, text: str | None) -> None:
        if text:
            self.pieces.append(text)
            if self.link_depth or self.button_depth:
                length = len(text.strip())
                self.link_length += length if self.link_depth else 0
                self.button_length += length if self.button_depth else 0

    def finish(self) -> None:
        """Finish the current block, if it has any text."""
        place = self.places[-1]
        if text := _tidy("".join(self.pieces), place.is_code):
            size = len(text)
            lengths = min(self.link_length, size), min(self.button_length, size)
            self.blocks.append(Block(text, place, *lengths, self.links))
        self.pieces = [_STRUCK_START] if self.struck_depth else []
        self.link_length = self.button_length = 0
        self.links = self.links[-1:] if self.link_depth else []


def segment(body: Any) -> list[Block]:
    """Split an lxml element into blocks, in page order."""
    from lxml import etree

    writer = _Writer([Place(body)])
    writer.add(body.text)
    walker = etree.iterwalk(body, events=("start", "end"))
    for event, node in walker:
        tag = node.tag
        if not isinstance(tag, str) or node is body:
            continue
        if event == "end":
            writer.end(node, tag)
        elif tag in SKIPPED:
            walker.skip_subtree()
        else:
            writer.start(node, tag)
    writer.finish()
    return list(_join_prices(writer.blocks))


def strip_copies(text: str) -> str:
    """Return the text of a block without that of elements with a COPY attribute."""
    is_marked = _COPY_START in text or _COPY_END in text
    return _COPIES.sub("", text).replace(_COPY_END, "").strip() if is_marked else text


def _join_prices(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, with the parts of a price that are drawn apart, such as `$`, `299`, `.99` and `/mo`, as one."""
    price: Block | None = None
    for block in blocks:
        if price is not None and (text := _add_to_price(price, block)):
            price = replace(block, text=text, link_length=price.link_length + block.link_length)
            continue
        if price is not None:
            yield price
        is_sign = _CURRENCY_SIGN.fullmatch(block.text) is not None
        price = block if is_sign else None
        if not is_sign:
            yield block
    if price is not None:
        yield price


def _add_to_price(price: Block, part: Block) -> str:
    """Return the text of a price with the part drawn after it, or "" if that is something else."""
    match = _PRICE_PART.fullmatch(f"{price.text.strip('~')} {part.text.strip('~')}")
    if match is None:
        return ""
    is_fraction = match["cents"] is not None and match["cents"].isdigit()
    if is_fraction and price.place.node.getparent() is not part.place.node.getparent():
        return ""
    strike = "~~" if price.text.startswith("~~") and part.text.startswith("~~") else ""
    return f"{strike}{match['price']}{'.' if is_fraction else ''}{match['part']}{strike}"


def _tidy(text: str, is_code: bool) -> str:
    if is_code:
        code = text.replace(_BREAK, "\n").replace(_STRUCK_START, "").replace(_STRUCK_END, "").strip("\n")
        return code if code.strip() else ""
    if _STRUCK_START in text:
        text = _STRUCK_RUN.sub(_mark_struck, text).replace(_STRUCK_END, "")
    lines = (" ".join(line.split()) for line in text.split(_BREAK))
    return "\n".join(line for line in lines if line)


def _mark_struck(run: re.Match[str]) -> str:
    """Wrap struck-out text in `~~`, line by line, with surrounding spaces outside."""
    lines = (
        f"{line[: len(line) - len(line.lstrip())]}~~{line.strip()}~~{line[len(line.rstrip()) :]}"
        if line.strip()
        else line
        for line in run[1].split(_BREAK)
    )
    return _BREAK.join(lines)
