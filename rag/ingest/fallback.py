"""The text of a whole page, without its furniture: for pages in which no main part can be made out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_FURNITURE = (
    "nav",
    "footer",
    "aside",
    "form",
    "button",
    "select",
    "svg",
    "head",
    "menu",
    "canvas",
    "audio",
    "video",
)
_FURNITURE_ROLES = frozenset(
    ["navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog"]
)
_FURNITURE_NAME = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|gdpr|breadcrumbs?|newsletter|subscribe|social|share|sharing|navbar|sidebar|site-header"
    r"|site-footer|skip-link|popup|modal|advert(?:isement)?s?)(?:$|[\s_-])",
    re.IGNORECASE,
)
_BLOCKS = [
    "address",
    "article",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "header",
    "hr",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
]
_BREAK, _SPACE = "\ue000", "\ue001"
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def page_text(html: str) -> str:
    """All text of `html` outside navigation and the like, with the headings, lists and code of Markdown."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html.replace(_BREAK, "").replace(_SPACE, ""), "lxml")
    _remove_furniture(soup)
    _mark_structure(soup)
    text = re.sub(r"\s+", " ", soup.get_text())
    text = re.sub(f" ?{_BREAK} ?", "\n", text).replace(_SPACE, " ")
    lines = [line for line in text.split("\n") if line.strip(" -#|>")]
    return _paragraphs(lines)


def _remove_furniture(soup: BeautifulSoup) -> None:
    for tag in soup.find_all(_FURNITURE):
        tag.decompose()
    for tag in soup.find_all(role=_FURNITURE_ROLES):
        tag.decompose()
    for tag in soup.find_all(["div", "section", "ul", "header"]):
        if tag.decomposed:
            continue
        name = " ".join([*tag.get_attribute_list("class"), str(tag.get("id") or "")] if tag.attrs else [])
        if name and _FURNITURE_NAME.search(name) and not tag.find(["article", "main", "h1"]):
            tag.decompose()


def _mark_structure(soup: BeautifulSoup) -> None:
    """Put line breaks and Markdown's marks into the tree as text, so that one pass reads them in order."""
    for pre in soup.find_all("pre"):
        code = pre.get_text().strip("\n")
        pre.string = _BREAK + "```" + _BREAK + code.replace(" ", _SPACE).replace("\n", _BREAK) + _BREAK + "```" + _BREAK
    for tag in soup.find_all("br"):
        tag.replace_with(_BREAK)
    for tag in soup.find_all(_HEADINGS):
        tag.insert(0, _BREAK + _BREAK + "#" * int(tag.name[1]) + _SPACE)
        tag.append(_BREAK)
    for tag in soup.find_all(_BLOCKS):
        tag.insert(0, _BREAK + ("-" + _SPACE if tag.name == "li" else ""))
        tag.append(_BREAK)
    for tag in soup.find_all(["td", "th"]):
        tag.append(" | ")


def _paragraphs(lines: list[str]) -> str:
    """Lines as Markdown blocks: list items, table rows and code stay together, all else stands alone."""
    output: list[str] = []
    in_code = False
    for line in lines:
        joins = in_code or (output and _kind(output[-1]) == _kind(line) != "")
        output.append(line if joins or not output else "\n" + line)
        if line.strip() == "```":
            in_code = not in_code
    return "\n".join(output)


def _kind(line: str) -> str:
    line = line.strip()
    if line.startswith("- "):
        return "list"
    return "row" if line.endswith("|") else ""
