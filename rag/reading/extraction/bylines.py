"""Authors and dates of a page: from its metadata first, then from what a reader sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rag.quantities.numerals import parse_chinese
from rag.reading.extraction.clean import clean_line
from rag.reading.extraction.roles import ROLES, role_bits
from rag.reading.extraction.structured import Facts, Thing, kinds_of, text_of

_ISO = re.compile(
    r"(?<!\d)((?:19|20)\d\d)-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)
_NUMERIC = re.compile(r"(?<!\d)((?:19|20)\d\d)[/.-](\d{1,2})[/.-](\d{1,2})(?!\d)")
_COMPACT = re.compile(r"\A((?:19|20)\d\d)(\d\d)(\d\d)\Z")
_CHINESE = re.compile(r"((?:19|20)\d\d)\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号號]")
_HANZI = re.compile(
    "([一二][〇零○一二三四五六七八九]{3})年([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})[日号號]"
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+((?:19|20)\d\d)\b", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\.?(?:\s+of)?\s+{_MONTH},?\s+((?:19|20)\d\d)\b", re.IGNORECASE)
_RFC = re.compile(r"[A-Za-z]{3},? \d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(?::\d\d)? (?:GMT|UTC|[+-]\d{4})")
_MAX_TEXT = 200


def iso_date(text: str) -> str:
    """Return the first date near the start of `text` as `2024-03-05`, with its time and offset if given; else "".

    Ignores numbers whose order differs between countries (03/05/2024).
    """
    text = text.strip()[:_MAX_TEXT]
    if match := _ISO.search(text):
        return _format_datetime(match)
    if match := _RFC.search(text):
        return _parse_rfc_date(match[0])
    for pattern, year, month, day in _ORDERS:
        if match := pattern.search(text):
            return _format_date(_parse_number(match[year]), _parse_month(match[month]), _parse_number(match[day]))
    return ""


def _format_datetime(match: re.Match[str]) -> str:
    day = _format_date(int(match[1]), int(match[2]), int(match[3]))
    if not day or not match[4]:
        return day
    offset = (match[5] or "").replace("Z", "+00:00")
    try:
        return datetime.fromisoformat(f"{day}T{match[4]}{offset}").isoformat()
    except ValueError:
        return day


def _parse_rfc_date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except ValueError:
        return ""


def _format_date(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""


def _parse_month(text: str) -> int:
    short = text[:3].lower()
    return _MONTHS.index(short) + 1 if short in _MONTHS else _parse_number(text)


def _parse_number(text: str) -> int:
    """Parse Arabic digits, a year digit by digit (二〇二四), or a number below a hundred (二十一)."""
    return int(text) if text.isascii() else int(parse_chinese(text.replace("○", "零")))


_ORDERS = (
    (_CHINESE, 1, 2, 3),
    (_HANZI, 1, 2, 3),
    (_NUMERIC, 1, 2, 3),
    (_MONTH_FIRST, 3, 1, 2),
    (_DAY_FIRST, 3, 2, 1),
    (_COMPACT, 1, 2, 3),
)


# Types of the page itself, not of the reviews, replies and related items on it.
_PAGE_TYPES = frozenset(
    "Article NewsArticle BlogPosting TechArticle Report ScholarlyArticle WebPage DiscussionForumPosting Question "
    "Recipe Product VideoObject Course Event JobPosting Book CreativeWork SocialMediaPosting LiveBlogPosting "
    "HowTo".split()
)
_AUTHORS = ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author", "byl")
_PUBLISHED = (
    "article:published_time og:published_time og:article:published_time datepublished publishdate pubdate publish_date "
    "publish-date dc.date dc.date.issued dcterms.created dc.date.created parsely-pub-date sailthru.date "
    "date weibo:article:create_at"
).split()
_MODIFIED = (
    "article:modified_time og:updated_time og:modified_time datemodified lastmod last-modified dcterms.modified "
    "dc.date.modified weibo:article:update_at"
).split()
_BYLINE = 1 << ROLES.index("byline")
_MAX_NAME = 120
_MAX_BYLINE = 80
_MAX_PARTS = 8
_MAX_ELEMENTS = 4000
_MODIFIED_WORDS = ("updat", "modif", "edit", "revis", "更新", "修改", "编辑")


def find_author(facts: Facts, tree: Any) -> str:
    """Return the authors' names, joined by commas, or "". Searches only metadata if `tree` is None."""
    for thing in _iter_page_things(facts, "author", "creator"):
        if names := _join_names(thing.get("author") or thing.get("creator")):
            return names
    for name in _AUTHORS:
        if author := _clean_name(facts.meta.get(name, "")):
            return author
    nodes = [] if tree is None else tree.xpath("//a[contains(concat(' ',@rel,' '),' author ')]|//*[@itemprop='author']")
    for node in nodes[:5]:
        if author := _clean_name(node.text_content()):
            return author
    return ""


def find_dates(facts: Facts, tree: Any) -> tuple[str, str]:
    """Return the dates of publication and last change, each ISO 8601 or ""; from metadata only if `tree` is None."""
    published = _find_metadata_date(facts, ("datePublished", "dateCreated", "uploadDate", "datePosted"), _PUBLISHED)
    modified = _find_metadata_date(facts, ("dateModified",), _MODIFIED)
    if (published and modified) or tree is None:
        return published, modified
    visible_published, visible_modified = _find_visible_dates(tree)
    return published or visible_published, modified or visible_modified


def _find_metadata_date(facts: Facts, properties: Iterable[str], names: Iterable[str]) -> str:
    for name in properties:
        for thing in _iter_page_things(facts, name):
            if day := iso_date(text_of(thing.get(name))):
                return day
    return next(filter(None, (iso_date(facts.meta[name]) for name in names if name in facts.meta)), "")


def _iter_page_things(facts: Facts, *names: str) -> Iterator[Thing]:
    for thing in facts.things:
        if any(thing.get(name) for name in names) and _PAGE_TYPES.intersection(kinds_of(thing)):
            yield thing


def _join_names(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    names = [_clean_name(text_of(item)) for item in values[:10]]
    return ", ".join(dict.fromkeys(filter(None, names)))


def _clean_name(text: str) -> str:
    """Return `text` if it can be a name: not a profile's address or a whole sentence."""
    name = clean_line(text, 1000).removeprefix("By ").removeprefix("by ").strip(" ,|·")
    return "" if len(name) > _MAX_NAME or "://" in name or name.startswith("@") else name


def _find_visible_dates(tree: Any) -> tuple[str, str]:
    """Return the first published and modified dates in time elements, then in short texts of byline elements."""
    published = modified = ""
    for node in _iter_date_nodes(tree):
        text = node.text_content()[:_MAX_BYLINE] if node.tag != "time" else _read_time(node)
        day = iso_date(node.get("datetime") or "") if node.tag == "time" else ""
        day = day or iso_date(text)
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


def _read_time(node: Any) -> str:
    parent = node.getparent()
    before = (parent.text or "")[-40:] if parent is not None else ""
    return str(before + node.text_content()[:_MAX_BYLINE])


def _iter_date_nodes(tree: Any) -> Iterator[Any]:
    yield from tree.xpath("//time[not(ancestor::nav or ancestor::aside or ancestor::footer)]")[:5]
    for node in tree.xpath("//*[@class or @id]")[:_MAX_ELEMENTS]:
        names = f"{node.get('class') or ''} {node.get('id') or ''}"
        is_byline = role_bits(names) & _BYLINE and node.tag != "time" and len(node) <= _MAX_PARTS
        if is_byline and len(node.text_content()) <= _MAX_BYLINE:
            yield node
