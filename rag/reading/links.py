"""The links of a page. Runs in the process that parses, as its task "links"."""

from __future__ import annotations

from typing import Any

from rag.reading.charset import decode
from rag.reading.extraction.tree import parse
from rag.web.site_scope import is_page_name, page_address
from rag.web.url_key import web_address

MAX_LINKS = 2000
_MAX_HREF = 2048
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")


def links_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """{"links", "feeds"} of an HTML body; arguments: url (where it came from in the end), charset (or None).

    Links are the pages that it links to, each once, in order, in the spelling of `page_address`; at most MAX_LINKS.
    `<base href>` is respected. Left out are links marked rel=nofollow, all of a page that says so in its robots meta,
    links to the page itself, what is not http, and files that are not read. Feeds are those that its head names.
    """
    tree = parse(decode(body, header.get("charset"), header["url"]))
    if tree is None:
        return {"links": [], "feeds": []}
    return {"links": _links(tree, header["url"]), "feeds": _feeds(tree, header["url"])}


def _links(tree: Any, url: str) -> list[str]:
    if _says_nofollow(tree):
        return []
    base = _base(tree, url)
    own = page_address(url)
    found: dict[str, None] = {}
    for link in tree.iter("a", "area"):
        href = link.get("href")
        if not href or "nofollow" in _tokens(link.get("rel")):
            continue
        address = _absolute(base, href)
        if address and address != own and is_page_name(address):
            found.setdefault(address)
            if len(found) >= MAX_LINKS:
                break
    return list(found)


def _feeds(tree: Any, url: str) -> list[str]:
    base = _base(tree, url)
    links = (link for link in tree.iter("link") if _is_feed(link))
    return list(dict.fromkeys(address for link in links if (address := _absolute(base, link.get("href")))))


def _is_feed(link: Any) -> bool:
    kind = (link.get("type") or "").partition(";")[0].strip().lower()
    return "alternate" in _tokens(link.get("rel")) and kind in _FEED_TYPES and bool(link.get("href"))


def _says_nofollow(tree: Any) -> bool:
    metas = (meta for meta in tree.iter("meta") if (meta.get("name") or "").strip().lower() in ("robots", "pagelight"))
    said = {word for meta in metas for word in _tokens((meta.get("content") or "").replace(",", " "))}
    return bool(said & {"nofollow", "none"})


def _base(tree: Any, url: str) -> str:
    """The address that relative links start from: the first base element's, if it is one of the web."""
    first = next((base.get("href") for base in tree.iter("base") if base.get("href")), "")
    return web_address(url, first.strip()) or url


def _absolute(base: str, href: str) -> str:
    """The page that `href` leads to, or "" where it leads to none."""
    text = href.strip()
    if not text or len(text) > _MAX_HREF or text.startswith("#"):
        return ""
    address = web_address(base, text)
    return page_address(address) if address else ""


def _tokens(value: str | None) -> set[str]:
    return set((value or "").lower().split())
