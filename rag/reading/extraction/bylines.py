"""Who wrote a page and when: what it states for machines first, then what a reader sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rag.reading.extraction.clean import clean_line
from rag.reading.extraction.dates import iso_date
from rag.reading.extraction.roles import ROLES, role_bits
from rag.reading.extraction.structured import Facts, Thing, kinds_of, text_of

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
