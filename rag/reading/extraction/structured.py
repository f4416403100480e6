"""Structured data of a page: schema.org in JSON-LD and microdata, and the meta elements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rag.patterns import lazy_regex
from rag.reading.extraction.clean import clean_line, clean_text

_MAX_SCRIPT = 1_000_000
_MAX_DEPTH = 12
_MAX_THINGS = 2000
_MAX_TEXT = 50_000
_DESCRIBING = ("description", "articleBody", "reviewBody", "text", "headline")
_META_DESCRIPTIONS = ("description", "og:description", "twitter:description")
_TAG = lazy_regex(r"<[a-z/!][^<>]*>", re.IGNORECASE)
_BREAKS = lazy_regex(r"<(?:br|/p|/li|/div|/h[1-6])\b[^<>]{0,200}>", re.IGNORECASE)
_MICRODATA_VALUES = ("content", "datetime", "href", "src")
_FORUM = frozenset(["DiscussionForumPosting", "QAPage"])
_ARTICLE = frozenset(["Article", "NewsArticle", "BlogPosting", "TechArticle", "Report", "ScholarlyArticle"])
_LIST = frozenset(["ItemList", "CollectionPage", "SearchResultsPage", "OfferCatalog"])

Thing = dict[str, Any]


@dataclass(slots=True)
class Facts:
    """Structured data of one page. `things` are schema.org objects, `meta` its meta elements by lower-case name."""

    title: str = ""
    things: list[Thing] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)

    KINDS: ClassVar = ("faq", "product", "offer", "forum", "article", "list", "shared_product", "shared_article")

    @property
    def types(self) -> set[str]:
        """The schema.org types of the page's things."""
        return {kind for thing in self.things for kind in kinds_of(thing)}

    @property
    def is_article(self) -> bool:
        """True if the page declares itself an article."""
        return bool(_ARTICLE & self.types) or self.meta.get("og:type", "").lower() == "article"

    @property
    def descriptions(self) -> str:
        """All descriptions of the page or of a thing on it, line by line."""
        page_texts = [self.meta[name] for name in _META_DESCRIPTIONS if name in self.meta]
        thing_texts = (thing[name] for thing in self.things for name in _DESCRIBING if isinstance(thing.get(name), str))
        return "\n".join([*page_texts, *(strip_tags(text) for text in thing_texts)])

    def flags(self) -> list[float]:
        """Return 1 or 0 for each of KINDS: what the page declares itself to be."""
        types, og_type = self.types, self.meta.get("og:type", "").lower()
        flags = (
            "FAQPage" in types,
            "Product" in types,
            "Offer" in types,
            _FORUM & types,
            _ARTICLE & types,
            _LIST & types,
        )
        return [float(bool(flag)) for flag in (*flags, "product" in og_type, og_type == "article")]


def read_facts(tree: Any) -> Facts:
    """Read the structured data of an lxml tree that still has its scripts."""
    title = tree.find(".//head/title")
    title = tree.find(".//title") if title is None else title
    facts = Facts(clean_line(title.text_content()) if title is not None else "", meta=_read_meta(tree))
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "").lower():
            facts.things += _iter_things(_parse_json(script.text or ""))
    facts.things += _read_microdata(tree)
    del facts.things[_MAX_THINGS:]
    return facts


def kinds_of(thing: Thing) -> list[str]:
    """Return the types of a thing without their namespace."""
    kinds = thing.get("@type")
    names = kinds if isinstance(kinds, list) else [kinds]
    return [name.rpartition("/")[2] for name in names if isinstance(name, str)]


def strip_tags(text: str) -> str:
    """Remove markup, which many sites leave in their descriptions, from a text."""
    from html import unescape

    from bs4 import BeautifulSoup

    text = unescape(text[:_MAX_TEXT])
    if _TAG.search(text):
        soup = BeautifulSoup(_BREAKS.sub("\n", text), "lxml")
        for tag in soup(["script", "style"]):
            tag.decompose()
        text = soup.get_text(" ")
    return "\n".join(line for line in map(_join_words, clean_text(unescape(text)).split("\n")) if line)


def _join_words(text: str) -> str:
    return " ".join(text.split())


def text_of(value: Any) -> str:
    """Return the words of a value: a text, a number, a named thing, or the first of a list of them."""
    if isinstance(value, list):
        return next(filter(None, map(text_of, value)), "")
    if isinstance(value, dict):
        return text_of(value.get("name") or value.get("@value") or "")
    return strip_tags(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _read_meta(tree: Any) -> dict[str, str]:
    meta: dict[str, str] = {}
    for tag in tree.iter("meta"):
        name = tag.get("property") or tag.get("name") or tag.get("itemprop") or ""
        if name and tag.get("content"):
            meta.setdefault(name.strip().lower(), clean_line(tag.get("content"), 5000))
    return meta


def _parse_json(source: str) -> Any:
    try:
        return json.loads(source[:_MAX_SCRIPT].strip().rstrip(";"), strict=False)
    except (ValueError, RecursionError):
        return None


def _iter_things(value: Any, depth: int = 0) -> Iterator[Thing]:
    """Yield every object in a JSON-LD value, outer before inner."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _iter_things(inner, depth + 1)


def _read_microdata(tree: Any) -> list[Thing]:
    """Return each element with itemscope and itemtype as a flat thing, with the first value of each property."""
    things: dict[Any, Thing] = {}
    for node in tree.xpath("//*[@itemprop or @itemscope]")[:_MAX_THINGS]:
        if node.get("itemscope") is not None and node.get("itemtype"):
            things[node] = {"@type": node.get("itemtype").split()}
        scope = next((above for above in node.iterancestors() if above.get("itemscope") is not None), None)
        for name in (node.get("itemprop") or "").split() if scope in things else ():
            things[scope].setdefault(name, _read_microdata_value(node))
    return list(things.values())


def _read_microdata_value(node: Any) -> str:
    value = next((node.get(name) for name in _MICRODATA_VALUES if node.get(name)), None)
    return clean_line(value or node.text_content(), 5000)
