"""What a page states for machines: schema.org in JSON-LD and microdata, and the meta elements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rag.reading.extraction.clean import clean_line, clean_text

_MAX_SCRIPT = 1_000_000
_MAX_DEPTH = 12
_MAX_THINGS = 2000
_MAX_TEXT = 50_000
_DESCRIBING = ("description", "articleBody", "reviewBody", "text", "headline")
_META_DESCRIPTIONS = ("description", "og:description", "twitter:description")
_TAG = re.compile(r"<[a-z/!][^<>]*>", re.IGNORECASE)
_BREAKS = re.compile(r"<(?:br|/p|/li|/div|/h[1-6])\b[^<>]{0,200}>", re.IGNORECASE)
_MICRODATA_VALUES = ("content", "datetime", "href", "src")
_FORUM = frozenset(["DiscussionForumPosting", "QAPage"])
_ARTICLE = frozenset(["Article", "NewsArticle", "BlogPosting", "TechArticle", "Report", "ScholarlyArticle"])
_LIST = frozenset(["ItemList", "CollectionPage", "SearchResultsPage", "OfferCatalog"])

Thing = dict[str, Any]


@dataclass(slots=True)
class Facts:
    """The statements of one page. `things` are schema.org objects, `meta` its meta elements by lower-case name."""

    title: str = ""
    things: list[Thing] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)

    KINDS: ClassVar = ("faq", "product", "offer", "forum", "article", "list", "shared_product", "shared_article")

    @property
    def types(self) -> set[str]:
        """The schema.org types that occur."""
        return {kind for thing in self.things for kind in kinds_of(thing)}

    @property
    def is_article(self) -> bool:
        """Whether the page says that it is one."""
        return bool(_ARTICLE & self.types) or self.meta.get("og:type", "").lower() == "article"

    @property
    def described(self) -> str:
        """Every description of the page or of a thing on it, line by line."""
        own = [self.meta[name] for name in _META_DESCRIPTIONS if name in self.meta]
        stated = (thing[name] for thing in self.things for name in _DESCRIBING if isinstance(thing.get(name), str))
        return "\n".join([*own, *(plain(text) for text in stated)])

    def flags(self) -> list[float]:
        """1 or 0 for each of KINDS: what the page says that it is."""
        types, shared = self.types, self.meta.get("og:type", "").lower()
        told = (
            "FAQPage" in types,
            "Product" in types,
            "Offer" in types,
            _FORUM & types,
            _ARTICLE & types,
            _LIST & types,
        )
        return [float(bool(flag)) for flag in (*told, "product" in shared, shared == "article")]


def read_facts(tree: Any) -> Facts:
    """The statements in an lxml tree that still holds its scripts."""
    title = tree.find(".//head/title")
    title = tree.find(".//title") if title is None else title
    facts = Facts(clean_line(title.text_content()) if title is not None else "", meta=_meta(tree))
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "").lower():
            facts.things += _things(_parsed(script.text or ""))
    facts.things += _microdata(tree)
    del facts.things[_MAX_THINGS:]
    return facts


def kinds_of(thing: Thing) -> list[str]:
    """The types of a thing without their namespace."""
    kinds = thing.get("@type")
    names = kinds if isinstance(kinds, list) else [kinds]
    return [name.rpartition("/")[2] for name in names if isinstance(name, str)]


def plain(text: str) -> str:
    """A stated text without markup, which many sites leave in their descriptions."""
    from html import unescape

    from bs4 import BeautifulSoup

    text = unescape(text[:_MAX_TEXT])
    if _TAG.search(text):
        soup = BeautifulSoup(_BREAKS.sub("\n", text), "lxml")
        for hidden in soup(["script", "style"]):
            hidden.decompose()
        text = soup.get_text(" ")
    return "\n".join(line for line in map(_one_line, clean_text(unescape(text)).split("\n")) if line)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def text_of(value: Any) -> str:
    """The words of a stated value: a text, a number, a named thing, or the first of a list of them."""
    if isinstance(value, list):
        return next(filter(None, map(text_of, value)), "")
    if isinstance(value, dict):
        return text_of(value.get("name") or value.get("@value") or "")
    return plain(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _meta(tree: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for tag in tree.iter("meta"):
        name = tag.get("property") or tag.get("name") or tag.get("itemprop") or ""
        if name and tag.get("content"):
            found.setdefault(name.strip().lower(), clean_line(tag.get("content"), 5000))
    return found


def _parsed(source: str) -> Any:
    try:
        return json.loads(source[:_MAX_SCRIPT].strip().rstrip(";"), strict=False)
    except (ValueError, RecursionError):
        return None


def _things(value: Any, depth: int = 0) -> Iterator[Thing]:
    """Every object in a JSON-LD value, the outer before the inner."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _things(inner, depth + 1)


def _microdata(tree: Any) -> list[Thing]:
    """Each element with itemscope and itemtype as a flat thing of its own properties, the first value of each."""
    things: dict[Any, Thing] = {}
    for node in tree.xpath("//*[@itemprop or @itemscope]")[:_MAX_THINGS]:
        if node.get("itemscope") is not None and node.get("itemtype"):
            things[node] = {"@type": node.get("itemtype").split()}
        scope = next((above for above in node.iterancestors() if above.get("itemscope") is not None), None)
        for name in (node.get("itemprop") or "").split() if scope in things else ():
            things[scope].setdefault(name, _microdata_value(node))
    return list(things.values())


def _microdata_value(node: Any) -> str:
    stated = next((node.get(name) for name in _MICRODATA_VALUES if node.get(name)), None)
    return clean_line(stated or node.text_content(), 5000)
