"""Metadata of pages and files: title, site, language, canonical URL, authors and dates.

Most of it comes from structured data: schema.org in JSON-LD and microdata, and meta elements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any, ClassVar, NamedTuple
from urllib.parse import unquote

from rag.dates import find_moments
from rag.errors import IngestError
from rag.reading.extraction.segments import COPY, ROLES, role_bits
from rag.reading.parser import ExtractedDocument
from rag.text import (
    clean_line,
    clean_text,
    collapse_spaces,
    detect_language,
    first_heading,
    lazy_regex,
    letters_and_digits,
    terms,
)
from rag.web.guard import printable
from rag.web.media import EXTENSION_TYPES, MAX_CHARACTERS
from rag.web.urls import split_url, web_address

_MAX_SCRIPT = 1_000_000
_MAX_DEPTH = 12
_MAX_OBJECTS = 2000
_MAX_DESCRIPTION = 50_000
_DESCRIPTION_PROPERTIES = ("description", "articleBody", "reviewBody", "text", "headline")
_META_DESCRIPTIONS = ("description", "og:description", "twitter:description")
_TAG = lazy_regex(r"<[a-z/!][^<>]*>", re.IGNORECASE)
_BREAKS = lazy_regex(r"<(?:br|/p|/li|/div|/h[1-6])\b[^<>]{0,200}>", re.IGNORECASE)
_MICRODATA_VALUES = ("content", "datetime", "href", "src")
_FORUM = frozenset(["DiscussionForumPosting", "QAPage"])
_ARTICLE = frozenset(["Article", "NewsArticle", "BlogPosting", "TechArticle", "Report", "ScholarlyArticle"])
_LIST = frozenset(["ItemList", "CollectionPage", "SearchResultsPage", "OfferCatalog"])

SchemaObject = dict[str, Any]


@dataclass(slots=True)
class StructuredData:
    """Structured data of one page. `objects` are schema.org objects, `meta` its meta elements by lower-case name."""

    title: str = ""
    objects: list[SchemaObject] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)

    FLAG_NAMES: ClassVar = ("faq", "product", "offer", "forum", "article", "list", "shared_product", "shared_article")

    @property
    def types(self) -> set[str]:
        """The schema.org types of the objects on the page."""
        return {kind for obj in self.objects for kind in get_types(obj)}

    @property
    def is_article(self) -> bool:
        """True if the page declares itself an article."""
        return bool(_ARTICLE & self.types) or self.meta.get("og:type", "").lower() == "article"

    @property
    def descriptions(self) -> str:
        """All descriptions of the page and the objects on it, one per line."""
        page_texts = [self.meta[name] for name in _META_DESCRIPTIONS if name in self.meta]
        object_texts = (
            obj[name] for obj in self.objects for name in _DESCRIPTION_PROPERTIES if isinstance(obj.get(name), str)
        )
        return "\n".join([*page_texts, *(strip_tags(text) for text in object_texts)])

    def flags(self) -> list[float]:
        """Return 1 or 0 for each of FLAG_NAMES: what the page declares itself to be."""
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


def read_structured_data(tree: Any) -> StructuredData:
    """Read the structured data of an lxml tree that still has its scripts."""
    title = tree.find(".//head/title")
    title = tree.find(".//title") if title is None else title
    structured_data = StructuredData(clean_line(title.text_content()) if title is not None else "")
    for tag in tree.iter("meta"):
        name = tag.get("property") or tag.get("name") or tag.get("itemprop") or ""
        if name and tag.get("content"):
            structured_data.meta.setdefault(name.strip().lower(), clean_line(tag.get("content"), 5000))
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "").lower():
            source = (script.text or "")[:_MAX_SCRIPT].strip().rstrip(";")
            with suppress(ValueError, RecursionError):
                structured_data.objects += _iter_objects(json.loads(source, strict=False))
    structured_data.objects += _read_microdata(tree)
    del structured_data.objects[_MAX_OBJECTS:]
    return structured_data


def get_types(obj: SchemaObject) -> list[str]:
    """Return the types of an object without their namespace."""
    kinds = obj.get("@type")
    names = kinds if isinstance(kinds, list) else [kinds]
    return [name.rpartition("/")[2] for name in names if isinstance(name, str)]


def strip_tags(text: str) -> str:
    """Remove the markup that many sites leave in their descriptions."""
    from html import unescape

    from bs4 import BeautifulSoup

    text = unescape(text[:_MAX_DESCRIPTION])
    if "%20" in text and " " not in text:
        text = unquote(text)
    if _TAG.search(text):
        soup = BeautifulSoup(_BREAKS.sub("\n", text), "lxml")
        for tag in soup(["script", "style"]):
            tag.decompose()
        text = soup.get_text(" ")
    return "\n".join(line for line in map(collapse_spaces, clean_text(unescape(text)).split("\n")) if line)


def to_text(value: Any) -> str:
    """Return a value as plain text: a string, a number, the name of an object, or the first of a list of them."""
    if isinstance(value, list):
        return next(filter(None, map(to_text, value)), "")
    if isinstance(value, dict):
        return to_text(value.get("name") or value.get("@value") or "")
    return strip_tags(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _iter_objects(value: Any, depth: int = 0) -> Iterator[SchemaObject]:
    """Yield every object in a JSON-LD value, outer before inner."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _iter_objects(inner, depth + 1)


def _read_microdata(tree: Any) -> list[SchemaObject]:
    """Return each element with itemscope and itemtype as a flat object, with the first value of each property."""
    objects: dict[Any, SchemaObject] = {}
    for node in tree.xpath("//*[@itemprop or @itemscope]")[:_MAX_OBJECTS]:
        if node.get("itemscope") is not None and node.get("itemtype"):
            objects[node] = {"@type": node.get("itemtype").split()}
        scope = next((above for above in node.iterancestors() if above.get("itemscope") is not None), None)
        if scope in objects:
            value = next((node.get(name) for name in _MICRODATA_VALUES if node.get(name)), None)
            for name in (node.get("itemprop") or "").split():
                objects[scope].setdefault(name, clean_line(value or node.text_content(), 5000))
    return list(objects.values())


_SEPARATORS = lazy_regex(r"(?<!\s)\s++[|–—·»:-]\s++|(?<!\s)\s*+[|｜_]\s*+|[|｜_]\s*+")


_NO_WORD = lazy_regex(r"[\W_]+")
_ENDING = lazy_regex("(?:" + "|".join(map(re.escape, EXTENSION_TYPES)) + ")$", re.IGNORECASE)
_LANGUAGE = lazy_regex(r"\s*([A-Za-z]{2,3})\b")

_ISO = lazy_regex(
    r"(?<!\d)((?:19|20)\d\d)[/.-](\d\d?)[/.-](\d\d?)"
    r"(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)
_COMPACT = lazy_regex(r"(?:D:)?((?:19|20)\d\d)(\d\d)(\d\d)(?:\d{4}.{0,12})?")
"""A date without separators, as in PDF files."""
_AROUND_UNITS = lazy_regex("(?<=[年月]) | (?=[年月日])")
_RFC = lazy_regex(r"[A-Za-z]{3},? \d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(?::\d\d)? (?:GMT|UTC|[+-]\d{4})")
_MAX_TEXT = 200


def find_title(structured_data: StructuredData, site: str) -> str:
    """Return a page's title without the name of its `site`, or ""."""
    meta = structured_data.meta
    return _remove_site(structured_data.title, site) or meta.get("og:title") or meta.get("twitter:title") or ""


def find_site(structured_data: StructuredData, url: str) -> str:
    """Return the name of a page's site, or else its host."""
    meta = structured_data.meta
    names = (to_text(obj.get("name")) for obj in structured_data.objects if "WebSite" in get_types(obj))
    name = meta.get("og:site_name") or meta.get("application-name") or clean_line(next(filter(None, names), ""), 100)
    return name or site_from_url(url)


def find_canonical(tree: Any, url: str) -> str:
    """Return the canonical URL in a tree, or "" if it is on another host: a page can't speak for another site."""
    for tag in tree.iter("link"):
        if tag.get("href") and "canonical" in (tag.get("rel") or "").lower().split():
            target = web_address(url, tag.get("href").strip())
            return target if split_url(target).netloc.lower() == split_url(url).netloc.lower() else ""
    return ""


def site_from_url(url: str) -> str:
    """Return the host of `url` without `www.`, or "" if it has no host."""
    return (split_url(url).hostname or "").removeprefix("www.")


def title_from_url(url: str) -> str:
    """Return the last part of a URL or file name without its extension, as a title of last resort."""
    path = split_url(url).path if "://" in url else url
    name = unquote(path.rstrip("/").replace("\\", "/").rpartition("/")[2])
    stem = _ENDING.sub("", name.removesuffix(".gz"))
    return clean_line(stem) or site_from_url(url) or clean_line(url)


def shorten_title(title: str, heading: str) -> str:
    """Cut `title` at a separator if the part before it equals the page's first heading."""
    for mark in _SEPARATORS.finditer(title):
        if letters_and_digits(title[: mark.start()]) == letters_and_digits(heading) != "":
            return title[: mark.start()].strip()
    return title


def correct_title(title: str, headings: Iterable[str], url: str) -> str:
    """Return the heading whose words the address has, if the title, say the site's slogan, has none of them."""
    address = set(terms(_NO_WORD.sub(" ", unquote(split_url(url).path))))
    words = {heading: set(terms(heading)) for heading in headings}
    named = (one for one, own in words.items() if len(own) > 1 and own <= address and not own & set(terms(title)))
    return next(named, title)


def choose_language(declared: str, text: str) -> str:
    """Return the primary tag of a declared language, unless the text contradicts it, as templates often do."""
    language, detected = _LANGUAGE.match(declared), detect_language(text)
    primary = language[1].lower() if language else ""
    contradicting = {"zh": ("en", "fr", "de", "es"), "en": ("zh",)}.get(detected, ())
    return detected if not primary or primary in contradicting else primary


def _remove_site(title: str, site: str) -> str:
    """Remove a site's name from the end or start of `title`, if a separator sets it off."""
    marks = list(_SEPARATORS.finditer(title))
    if marks and _is_same_name(title[marks[-1].end() :], site):
        return title[: marks[-1].start()].strip()
    is_first = marks and _is_same_name(title[: marks[0].start()], site)
    return title[marks[0].end() :].strip() if is_first else title


def _is_same_name(part: str, site: str) -> bool:
    name, site_name = letters_and_digits(part), letters_and_digits(site)
    return bool(name) and (name == site_name or (len(name) > 3 and site_name.startswith(name) and "." in site))


def find_iso_date(text: str) -> str:
    """Return the first date near the start of `text` as `2024-03-05`, with its time and offset if given; else "".

    Ignores numbers whose order depends on the country (03/05/2024).
    """
    text = collapse_spaces(text)[:_MAX_TEXT]
    with suppress(ValueError):  # there is no such day
        if match := _ISO.search(text):
            return _format_datetime(match)
        if match := _RFC.search(text):
            return parsedate_to_datetime(match[0]).isoformat()
        if match := _COMPACT.fullmatch(text):
            return date(*map(int, match.groups())).isoformat()
    moments = find_moments(_AROUND_UNITS.sub("", text.replace("○", "〇").replace("號", "号")), date.min, ahead=False)
    # As if today were the first day of the calendar, so that only dates with a year count. 初 is the start of a period.
    days = (one.first for one in moments if one.first == one.last and one.first.year >= 1900 and "初" not in one.phrase)
    return next((day.isoformat() for day in days), "")


def _format_datetime(match: re.Match[str]) -> str:
    """Return a date with its time, if it has one and that exists. Raises ValueError for a day that does not exist."""
    day = date(int(match[1]), int(match[2]), int(match[3])).isoformat()
    if match[4]:
        with suppress(ValueError):
            return datetime.fromisoformat(f"{day}T{match[4]}{match[5] or ''}").isoformat()
    return day


# Types of the page itself, not of the reviews, replies and related items on it.
_PAGE_TYPES = frozenset(
    "Article NewsArticle BlogPosting TechArticle Report ScholarlyArticle WebPage DiscussionForumPosting Question "
    "Recipe Product VideoObject Course Event JobPosting Book CreativeWork SocialMediaPosting LiveBlogPosting "
    "HowTo".split()
)
_AUTHOR_META = ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author", "byl")
_PUBLISHED_META = (
    "article:published_time og:published_time og:article:published_time datepublished publishdate pubdate publish_date "
    "publish-date dc.date dc.date.issued dcterms.created dc.date.created parsely-pub-date sailthru.date "
    "date weibo:article:create_at"
).split()
_MODIFIED_META = (
    "article:modified_time og:updated_time og:modified_time datemodified lastmod last-modified dcterms.modified "
    "dc.date.modified weibo:article:update_at"
).split()
_BYLINE = 1 << ROLES.index("byline")
_MAX_NAME = 120
_MAX_BYLINE = 80
_MAX_PARTS = 8
_MAX_ELEMENTS = 4000
_MODIFIED_WORDS = ("updat", "modif", "edit", "revis", "更新", "修改", "编辑")


class Byline(NamedTuple):
    """The authors of a page, joined by commas, and its dates, ISO 8601; "" if unknown."""

    author: str
    published: str
    modified: str


def find_byline(structured_data: StructuredData, tree: Any) -> Byline:
    """Return the authors and dates of a page; searches only metadata if `tree` is None."""
    return Byline(_find_author(structured_data, tree), *_find_dates(structured_data, tree))


def _find_author(structured_data: StructuredData, tree: Any) -> str:
    """Return the authors' names, joined by commas, or "". Searches only metadata if `tree` is None."""
    for obj in _iter_page_objects(structured_data, "author", "creator"):
        value = obj.get("author") or obj.get("creator")
        values = value if isinstance(value, list) else [value]
        names = dict.fromkeys(_clean_name(to_text(item)) for item in values[:10])
        if any(names):
            return ", ".join(filter(None, names))
    for name in _AUTHOR_META:
        if author := _clean_name(structured_data.meta.get(name, "")):
            return author
    nodes = [] if tree is None else tree.xpath("//a[contains(concat(' ',@rel,' '),' author ')]|//*[@itemprop='author']")
    for node in nodes[:5]:
        name_nodes = node.xpath(".//*[@itemprop='name']")  # a card has more than the name
        pieces = (name_nodes or [node])[0].xpath(f".//text()[not(ancestor::*[@{COPY}])]")
        if author := _clean_name("".join(pieces)):
            return author
    return ""


def _find_dates(structured_data: StructuredData, tree: Any) -> tuple[str, str]:
    """Return the dates of publication and modification, ISO 8601 or ""; only from metadata if `tree` is None."""
    published = _find_metadata_date(
        structured_data, ("datePublished", "dateCreated", "uploadDate", "datePosted"), _PUBLISHED_META
    )
    modified = _find_metadata_date(structured_data, ("dateModified",), _MODIFIED_META)
    if (published and modified) or tree is None:
        return published, modified
    visible_published, visible_modified = _find_visible_dates(tree)
    return published or visible_published, modified or visible_modified


def _find_metadata_date(structured_data: StructuredData, properties: Iterable[str], names: Iterable[str]) -> str:
    stated = (to_text(obj[name]) for name in properties for obj in _iter_page_objects(structured_data, name))
    dates = map(find_iso_date, chain(stated, (structured_data.meta.get(name, "") for name in names)))
    return next(filter(None, dates), "")


def _iter_page_objects(structured_data: StructuredData, *names: str) -> Iterator[SchemaObject]:
    for obj in structured_data.objects:
        if any(obj.get(name) for name in names) and _PAGE_TYPES.intersection(get_types(obj)):
            yield obj


def _clean_name(text: str) -> str:
    """Return `text` without "By" if it can be a name; "" for URLs, handles and whole sentences."""
    name = clean_line(text, 1000).removeprefix("By ").removeprefix("by ").strip(" ,|·")
    return "" if len(name) > _MAX_NAME or "://" in name or name.startswith("@") else name


def _find_visible_dates(tree: Any) -> tuple[str, str]:
    """Return the first published and modified dates in time elements, then in short texts of byline elements."""
    published = modified = ""
    for node in _iter_date_nodes(tree):
        text, day = node.text_content()[:_MAX_BYLINE], ""
        if node.tag == "time":
            parent = node.getparent()
            text = ((parent.text or "")[-40:] if parent is not None else "") + text
            day = find_iso_date(node.get("datetime") or "")
        day = day or find_iso_date(text)
        if not day:
            continue
        context = (text + (node.get("class") or "")).lower()
        if any(word in context for word in _MODIFIED_WORDS):
            modified = modified or day
        else:
            published = published or day
        if published and modified:
            break
    return published, modified


def _iter_date_nodes(tree: Any) -> Iterator[Any]:
    yield from tree.xpath("//time[not(ancestor::nav or ancestor::aside or ancestor::footer)]")[:5]
    for node in tree.xpath("//*[@class or @id]")[:_MAX_ELEMENTS]:
        names = f"{node.get('class') or ''} {node.get('id') or ''}"
        is_byline = role_bits(names) & _BYLINE and node.tag != "time" and len(node) <= _MAX_PARTS
        if is_byline and len(node.text_content()) <= _MAX_BYLINE:
            yield node


_UNTITLED = lazy_regex(
    r"(?:untitled|no title|document|(?:powerpoint )?presentation|slide|title|book|microsoft word"
    r"|doc|无标题|未命名|文档)[\s\d._-]*"
    r"|.*\.(?:docx?|pdf|indd|tex|dvi|pptx?|xlsx?|odt|pages|qxd|p65|ps|html?)|[\W\d_]+|about:blank",
    re.IGNORECASE,
)
_PROGRAM_PREFIX = lazy_regex(r"^(?:microsoft (?:word|powerpoint|excel) - )", re.IGNORECASE)
_NOBODY = frozenset(
    "python-docx openpyxl administrator admin user unknown author anonymous owner root".split()
    + "作者 用户 管理员 微软用户".split()
) | {"microsoft office user", "windows user", "windows 用户", "user name"}


def clean_title(text: str) -> str:
    """Return a title, or "" if it is a program's default or a file name."""
    title = _PROGRAM_PREFIX.sub("", clean_line(text))
    return "" if _UNTITLED.fullmatch(title) else title


def clean_author(text: str) -> str:
    """Return an author's name, or "" if it is a program's default."""
    name = clean_line(text, 200)
    return "" if name.lower() in _NOBODY else name


def build_extracted(
    text: str,
    url: str,
    *,
    own_title: str = "",
    title: str = "",
    author: str = "",
    created: str = "",
    modified: str = "",
) -> ExtractedDocument:
    """Build the result for a document from its text, the title in it (`own_title`), and its file properties.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    text = clean_text(text)
    if len(text) > MAX_CHARACTERS:
        raise too_long_error(url)
    if not any(map(str.isalnum, text)):
        raise IngestError("document_no_text", url=printable(url))
    title = clean_line(own_title) or clean_title(title) or first_heading(text) or title_from_url(url)
    days = find_iso_date(created)[:10], find_iso_date(modified)[:10]
    return ExtractedDocument(title, detect_language(text), site_from_url(url), "", text, clean_author(author), *days)


def too_long_error(url: str) -> IngestError:
    return IngestError("document_too_long", url=printable(url), limit=MAX_CHARACTERS // 1_000_000)
