"""Link extraction. Runs in the process that parses, as its task "links"."""

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
    """Return {"links", "feeds"} of an HTML body; arguments: url (after redirects), charset (or None).

    Links are the pages it links to, without duplicates, in order, in the form of `page_address`; at most MAX_LINKS.
    `<base href>` is respected. Excluded are links with rel=nofollow, all links of a page with nofollow in its robots
    meta, links to the page itself, non-HTTP links, and unsupported files. Feeds are those named in the page's head.
    """
    tree = parse(decode(body, header.get("charset"), header["url"]))
    if tree is None:
        return {"links": [], "feeds": []}
    return {"links": _find_links(tree, header["url"]), "feeds": _find_feeds(tree, header["url"])}


def _find_links(tree: Any, url: str) -> list[str]:
    if _is_nofollow(tree):
        return []
    base = _find_base(tree, url)
    own = page_address(url)
    addresses: dict[str, None] = {}
    for link in tree.iter("a", "area"):
        href = link.get("href")
        if not href or "nofollow" in _split_tokens(link.get("rel")):
            continue
        address = _resolve(base, href)
        if address and address != own and is_page_name(address):
            addresses.setdefault(address)
            if len(addresses) >= MAX_LINKS:
                break
    return list(addresses)


def _find_feeds(tree: Any, url: str) -> list[str]:
    base = _find_base(tree, url)
    links = (link for link in tree.iter("link") if _is_feed(link))
    return list(dict.fromkeys(address for link in links if (address := _resolve(base, link.get("href")))))


def _is_feed(link: Any) -> bool:
    kind = (link.get("type") or "").partition(";")[0].strip().lower()
    return "alternate" in _split_tokens(link.get("rel")) and kind in _FEED_TYPES and bool(link.get("href"))


def _is_nofollow(tree: Any) -> bool:
    metas = (meta for meta in tree.iter("meta") if (meta.get("name") or "").strip().lower() in ("robots", "pagelight"))
    words = {word for meta in metas for word in _split_tokens((meta.get("content") or "").replace(",", " "))}
    return bool(words & {"nofollow", "none"})


def _find_base(tree: Any, url: str) -> str:
    """Return the base URL of relative links: that of the first base element, if it is a web address."""
    first = next((base.get("href") for base in tree.iter("base") if base.get("href")), "")
    return web_address(url, first.strip()) or url


def _resolve(base: str, href: str) -> str:
    """Return the page that `href` leads to, or ""."""
    text = href.strip()
    if not text or len(text) > _MAX_HREF or text.startswith("#"):
        return ""
    address = web_address(base, text)
    return page_address(address) if address else ""


def _split_tokens(value: str | None) -> set[str]:
    return set((value or "").lower().split())
