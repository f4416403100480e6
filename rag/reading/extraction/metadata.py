"""Metadata of a page: title, site, language, canonical address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from rag.reading.extraction.clean import clean_line
from rag.reading.extraction.structured import Facts, kinds_of, text_of
from rag.text import detect_language
from rag.web.media import ENDINGS
from rag.web.url_key import split_url, web_address

_SEPARATORS = re.compile(r"(?<!\s)\s++[|–—·»:-]\s++|(?<!\s)\s*+[|｜_]\s*+|[|｜_]\s*+")


_ENDING = re.compile("(?:" + "|".join(map(re.escape, ENDINGS)) + ")$", re.IGNORECASE)
_LANGUAGE = re.compile(r"\s*([A-Za-z]{2,3})\b")


@dataclass(frozen=True, slots=True)
class Head:
    """Metadata of a page; empty if the page has none. `canonical` is on the page's own host."""

    title: str = ""
    site: str = ""
    language: str = ""
    canonical: str = ""


def read_head(tree: Any, facts: Facts, url: str) -> Head:
    """Read titles, names and links from an lxml tree and its `facts`."""
    meta = facts.meta
    site = meta.get("og:site_name") or meta.get("application-name") or _find_site(facts)
    language = _LANGUAGE.match(tree.get("lang") or tree.get("xml:lang") or meta.get("og:locale") or "")
    title = clean_line(facts.title)
    return Head(
        title=_remove_site(title, site or site_of(url)) or meta.get("og:title") or meta.get("twitter:title") or "",
        site=site or site_of(url),
        language=language[1].lower() if language else "",
        canonical=_find_canonical(tree, url),
    )


def site_of(url: str) -> str:
    """Return the host of `url` without `www.`, or "" if it has no host."""
    return (split_url(url).hostname or "").removeprefix("www.")


def name_of(url: str) -> str:
    """Return the last part of an address or file name without its extension, as a title of last resort."""
    path = split_url(url).path if "://" in url else url
    name = unquote(path.rstrip("/").replace("\\", "/").rpartition("/")[2])
    stem = _ENDING.sub("", name.removesuffix(".gz"))
    return clean_line(stem) or site_of(url) or clean_line(url)


def shorten_title(title: str, heading: str) -> str:
    """Cut `title` at the separator before which it equals the page's first heading."""
    for mark in _SEPARATORS.finditer(title):
        if _fold(title[: mark.start()]) == _fold(heading) != "":
            return title[: mark.start()].strip()
    return title


def language_of(declared: str, text: str) -> str:
    """Return the declared language, unless the script of the text contradicts it, as templates often do."""
    detected = detect_language(text)
    if not declared or (detected == "zh" and declared in ("en", "fr", "de", "es")):
        return detected
    if declared == "zh" and detected == "en":
        return detected
    return declared


def _find_site(facts: Facts) -> str:
    names = (text_of(thing.get("name")) for thing in facts.things if "WebSite" in kinds_of(thing))
    return clean_line(next(filter(None, names), ""), 100)


def _remove_site(title: str, site: str) -> str:
    """Remove a site's name from the end or start of `title`, if a separator sets it off."""
    parts = _SEPARATORS.split(title)
    marks = list(_SEPARATORS.finditer(title))
    if len(parts) < 2:
        return title
    if _is_same_name(parts[-1], site):
        return title[: marks[-1].start()].strip()
    return title[marks[0].end() :].strip() if _is_same_name(parts[0], site) else title


def _is_same_name(part: str, site: str) -> bool:
    name, site_name = _fold(part), _fold(site)
    return bool(name) and (name == site_name or (len(name) > 3 and site_name.startswith(name) and "." in site))


def _fold(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _find_canonical(tree: Any, url: str) -> str:
    for tag in tree.iter("link"):
        if tag.get("href") and "canonical" in (tag.get("rel") or "").lower().split():
            return _resolve_on_host(tag.get("href").strip(), url)
    return ""


def _resolve_on_host(href: str, url: str) -> str:
    """Return the absolute form of `href` if it is on the host of `url`: a page can't speak for another site."""
    target = web_address(url, href)
    return target if split_url(target).netloc.lower() == split_url(url).netloc.lower() else ""
