"""What a page says about itself: title, site, language, canonical address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from rag.ingest.clean import clean_line
from rag.text import detect_language

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_HEAD_END = re.compile(r"</head\s*>|<body[\s>]", re.IGNORECASE)
_MAX_HEAD = 200_000
_LANG = re.compile(r"<html\b[^>]{0,2000}?\b(?:xml:)?lang\s*=\s*[\"']?([A-Za-z]{2,3})\b", re.IGNORECASE)
_SEPARATORS = re.compile(r"\s+[|–—·»:-]\s+|\s*[|｜_]\s*")


@dataclass(frozen=True, slots=True)
class Head:
    """The `head` element's statements; empty where it makes none. `canonical` is on the page's own host."""

    title: str
    site: str
    language: str
    canonical: str


def read_head(html: str, url: str) -> Head:
    """Read titles, names and links from the part of `html` before its body."""
    from bs4 import BeautifulSoup

    end = _HEAD_END.search(html, 0, _MAX_HEAD)
    start = html[: end.start() if end else _MAX_HEAD]
    soup = BeautifulSoup(start, "lxml")
    site = _meta(soup, "og:site_name") or _meta(soup, "application-name")
    language = _LANG.search(start)
    return Head(
        title=_title(soup, site, url),
        site=site or site_of(url),
        language=language[1].lower() if language else "",
        canonical=_canonical(soup, url),
    )


def site_of(url: str) -> str:
    """The host of `url` without `www.`, or nothing for what has no host."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def name_of(url: str) -> str:
    """The last part of an address or file name without its extension, as a title of last resort."""
    path = urlsplit(url).path if "://" in url else url
    name = unquote(path.rstrip("/").replace("\\", "/").rpartition("/")[2])
    stem = re.sub(r"\.(?:gz|html?|xhtml|md|markdown|txt)$", "", name.removesuffix(".gz"), flags=re.IGNORECASE)
    return clean_line(stem) or site_of(url) or clean_line(url)


def shorter_title(title: str, heading: str) -> str:
    """`title` up to the separator before which it says what the page's first heading says."""
    for mark in _SEPARATORS.finditer(title):
        if _letters(title[: mark.start()]) == _letters(heading) != "":
            return title[: mark.start()].strip()
    return title


def language_of(declared: str, text: str) -> str:
    """The declared language, unless the script of the text contradicts it, as templates often do."""
    detected = detect_language(text)
    if not declared or (detected == "zh" and declared in ("en", "fr", "de", "es")):
        return detected
    if declared == "zh" and detected == "en":
        return detected
    return declared


def _meta(soup: BeautifulSoup, name: str) -> str:
    tag = soup.find("meta", attrs={"property": name}) or soup.find("meta", attrs={"name": name})
    return clean_line(str(tag.get("content") or "")) if tag else ""


def _title(soup: BeautifulSoup, site: str, url: str) -> str:
    tag = soup.find("title")
    title = clean_line(tag.get_text()) if tag else ""
    return _without_site(title, site or site_of(url)) or _meta(soup, "og:title") or _meta(soup, "twitter:title")


def _without_site(title: str, site: str) -> str:
    """`title` without a site's name at its end or start, where a separator sets that off."""
    parts = _SEPARATORS.split(title)
    marks = list(_SEPARATORS.finditer(title))
    if len(parts) < 2:
        return title
    if _same_name(parts[-1], site):
        return title[: marks[-1].start()].strip()
    return title[marks[0].end() :].strip() if _same_name(parts[0], site) else title


def _same_name(part: str, site: str) -> bool:
    left, right = _letters(part), _letters(site)
    return bool(left) and (left == right or (len(left) > 3 and right.startswith(left) and "." in site))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _canonical(soup: BeautifulSoup, url: str) -> str:
    for tag in soup.find_all("link", href=True):
        if "canonical" in (value.lower() for value in tag.get_attribute_list("rel") if value):
            return _on_same_host(str(tag["href"]).strip(), url)
    return ""


def _on_same_host(href: str, url: str) -> str:
    """The absolute form of `href` if it stays on the host of `url`: no page may speak for another's."""
    try:
        target = urljoin(url, href)
        same = urlsplit(target).netloc.lower() == urlsplit(url).netloc.lower()
    except ValueError:
        return ""
    return target if same and target.startswith(("http://", "https://")) else ""
