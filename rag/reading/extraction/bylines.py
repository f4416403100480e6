"""Who wrote a page and when: what it states for machines first, then what a reader sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rag.quantities.numerals import chinese_number
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
_MAX = 200


def iso_date(text: str) -> str:
    """The first date in the start of `text` as `2024-03-05`, or with the time and offset it was given; or "".

    Numbers in an order that differs between countries (03/05/2024) tell no date.
    """
    text = text.strip()[:_MAX]
    if match := _ISO.search(text):
        return _with_time(match)
    if match := _RFC.search(text):
        return _from_rfc(match[0])
    for pattern, year, month, day in _ORDERS:
        if match := pattern.search(text):
            return _date(_number(match[year]), _month(match[month]), _number(match[day]))
    return ""


def _with_time(match: re.Match[str]) -> str:
    day = _date(int(match[1]), int(match[2]), int(match[3]))
    if not day or not match[4]:
        return day
    offset = (match[5] or "").replace("Z", "+00:00")
    try:
        return datetime.fromisoformat(f"{day}T{match[4]}{offset}").isoformat()
    except ValueError:
        return day


def _from_rfc(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except ValueError:
        return ""


def _date(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""


def _month(text: str) -> int:
    short = text[:3].lower()
    return _MONTHS.index(short) + 1 if short in _MONTHS else _number(text)


def _number(text: str) -> int:
    """An Arabic number, a year digit by digit (二〇二四), or a number below a hundred (二十一)."""
    return int(text) if text.isascii() else int(chinese_number(text.replace("○", "零")))


_ORDERS = (
    (_CHINESE, 1, 2, 3),
    (_HANZI, 1, 2, 3),
    (_NUMERIC, 1, 2, 3),
    (_MONTH_FIRST, 3, 1, 2),
    (_DAY_FIRST, 3, 2, 1),
    (_COMPACT, 1, 2, 3),
)


# The page itself, ahead of the reviews, replies and related things on it.
_PAGES = frozenset(
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
_LOOKED_AT = 4000
_CHANGED = ("updat", "modif", "edit", "revis", "更新", "修改", "编辑")


def find_author(facts: Facts, tree: Any) -> str:
    """The names of those who wrote it, joined by commas, or ""; `tree` may be None, then only what is stated."""
    for thing in _own_things(facts, "author", "creator"):
        if names := _names(thing.get("author") or thing.get("creator")):
            return names
    for name in _AUTHORS:
        if author := _as_name(facts.meta.get(name, "")):
            return author
    nodes = [] if tree is None else tree.xpath("//a[contains(concat(' ',@rel,' '),' author ')]|//*[@itemprop='author']")
    for node in nodes[:5]:
        if author := _as_name(node.text_content()):
            return author
    return ""


def find_dates(facts: Facts, tree: Any) -> tuple[str, str]:
    """When the page says it was published and last changed, each as ISO 8601 or ""; `tree` may be None."""
    published = _stated(facts, ("datePublished", "dateCreated", "uploadDate", "datePosted"), _PUBLISHED)
    modified = _stated(facts, ("dateModified",), _MODIFIED)
    if (published and modified) or tree is None:
        return published, modified
    seen_published, seen_modified = _seen(tree)
    return published or seen_published, modified or seen_modified


def _stated(facts: Facts, properties: Iterable[str], names: Iterable[str]) -> str:
    for name in properties:
        for thing in _own_things(facts, name):
            if found := iso_date(text_of(thing.get(name))):
                return found
    return next(filter(None, (iso_date(facts.meta[name]) for name in names if name in facts.meta)), "")


def _own_things(facts: Facts, *names: str) -> Iterator[Thing]:
    for thing in facts.things:
        if any(thing.get(name) for name in names) and _PAGES.intersection(kinds_of(thing)):
            yield thing


def _names(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    names = [_as_name(text_of(each)) for each in values[:10]]
    return ", ".join(dict.fromkeys(filter(None, names)))


def _as_name(text: str) -> str:
    """`text` if it can be a name: addresses of profiles and whole sentences are none."""
    name = clean_line(text, 1000).removeprefix("By ").removeprefix("by ").strip(" ,|·")
    return "" if len(name) > _MAX_NAME or "://" in name or name.startswith("@") else name


def _seen(tree: Any) -> tuple[str, str]:
    """The first dates among time elements, then among short texts of elements that are named as bylines."""
    published = modified = ""
    for node in _dated(tree):
        text = node.text_content()[:_MAX_BYLINE] if node.tag != "time" else _time_text(node)
        found = iso_date(node.get("datetime") or "") if node.tag == "time" else ""
        found = found or iso_date(text)
        if not found:
            continue
        around = (text + (node.get("class") or "")).lower()
        if any(word in around for word in _CHANGED):
            modified = modified or found
        else:
            published = published or found
        if published and modified:
            break
    return published, modified


def _time_text(node: Any) -> str:
    above = node.getparent()
    before = (above.text or "")[-40:] if above is not None else ""
    return str(before + node.text_content()[:_MAX_BYLINE])


def _dated(tree: Any) -> Iterator[Any]:
    yield from tree.xpath("//time[not(ancestor::nav or ancestor::aside or ancestor::footer)]")[:5]
    for node in tree.xpath("//*[@class or @id]")[:_LOOKED_AT]:
        names = f"{node.get('class') or ''} {node.get('id') or ''}"
        is_byline = role_bits(names) & _BYLINE and node.tag != "time" and len(node) <= _MAX_PARTS
        if is_byline and len(node.text_content()) <= _MAX_BYLINE:
            yield node
