"""From a document to its one text: Markdown with headings, lists, tables and code, without link targets.

Runs in the child process of `rag.ingest.parser`, because a hostile page can keep a parser busy for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag.errors import IngestError
from rag.ingest.charset import decode
from rag.ingest.clean import clean_line, clean_text
from rag.ingest.fallback import page_text
from rag.ingest.guard import shown
from rag.ingest.markdown import front_matter_title, without_targets
from rag.ingest.media import KINDS
from rag.ingest.metadata import Head, language_of, name_of, read_head, shorter_title, site_of
from rag.ingest.visible import remove_hidden
from rag.messages.ingest import because

# The main part is trusted unless it is less than this share of all text outside navigation and the like.
_MIN_SHARE = 0.3
# Above this share of a page trafilatura has given up and returned its bare text, navigation and all.
_MAX_SHARE = 0.9
_EMPHASIS = ("b", "strong", "i", "em", "u", "mark", "small", "big", "font", "ins")
_HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$", re.MULTILINE)
_WORD_CHARACTER = re.compile(r"\w")
_WANTS_SCRIPTS = re.compile(
    r"(?:enable|requires?|activate|turn on|without)\b.{0,60}\bjavascript"
    r"|javascript\b.{0,60}\b(?:disabled|required|enable)"
    r"|(?:启用|开启|打开|禁用).{0,12}javascript|javascript.{0,12}(?:启用|开启|打开|禁用)",
    re.IGNORECASE | re.DOTALL,
)
_NOTICE_LENGTH = 400
_SHELL_LENGTH = 40
_APP_ROOTS = "//div[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @id='application']"
_SPACE = re.compile(r"\s+")
_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")
_STRUCTURE = re.compile(r"^(?:#{1,6} |- |\| |```)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The readable part of a document of any kind.

    `language` is a primary BCP 47 tag or empty; `canonical` an address on the page's own host, or empty.
    """

    title: str
    language: str
    site: str
    canonical: str
    text: str


def extract(body: bytes, content_type: str, charset: str | None, url: str) -> Extracted:
    """Read a document of one of the types of `rag.ingest.media`; `url` may be a file's name.

    Raises IngestError("empty") when there is no text in it, ("content_type") for another type.
    """
    kind = KINDS.get(content_type.partition(";")[0].strip().lower())
    if kind == "text/html":
        return extract_html(body, url, charset=charset)
    if kind == "text/markdown":
        return extract_markdown(decode(body, charset), url)
    if kind == "text/plain":
        return extract_plain(decode(body, charset), url)
    raise IngestError("content_type", url=shown(url), **because("other_type", type=content_type))


def extract_html(html: str | bytes, url: str, *, charset: str | None = None) -> Extracted:
    """The main text of a page that a reader sees, as Markdown. Raises IngestError("empty")."""
    source = decode(html, charset) if isinstance(html, bytes) else html
    source = _XML_DECLARATION.sub("", source.replace("\x00", ""))
    tree = _parse(source)
    if tree is None:
        raise _empty(url, "no_text")
    has_scripts, is_shell = bool(tree.xpath("//script")), _is_shell(tree)
    text = _without_repeated_blanks(clean_text(_main_text(tree, source)))
    _check_not_empty(text, url, has_scripts, is_shell)
    head, heading = read_head(source, url), _first_heading(text)
    return _extracted(head, shorter_title(head.title, heading) or heading or name_of(url), text)


def extract_markdown(source: str, url: str) -> Extracted:
    """A Markdown document as it is, without the targets of its links. Raises IngestError("empty")."""
    title, rest = front_matter_title(clean_text(source))
    text = clean_text(without_targets(rest))
    _check_not_empty(text, url)
    return _extracted(Head("", site_of(url), "", ""), title or _first_heading(text) or name_of(url), text)


def extract_plain(source: str, url: str) -> Extracted:
    """Plain text as it is, cleaned; its title is its name. Raises IngestError("empty")."""
    text = clean_text(source)
    _check_not_empty(text, url)
    return _extracted(Head("", site_of(url), "", ""), name_of(url), text)


def as_mapping(extracted: Extracted) -> Mapping[str, str]:
    """The fields by name, for the pipe between the processes."""
    return {name: getattr(extracted, name) for name in Extracted.__slots__}


def _parse(html: str) -> Any:
    """The lxml tree of `html`, or None. lxml gets bytes, since it refuses text that declares a charset."""
    from lxml import etree
    from lxml.html import HTMLParser, document_fromstring

    data = html.encode("utf-8", "replace")
    try:
        return document_fromstring(data, parser=HTMLParser(encoding="utf-8")) if data.strip() else None
    except etree.ParserError:
        return None


def _main_text(tree: Any, source: str) -> str:
    """Trafilatura's main text, or all text outside the furniture when that leaves out too much of it."""
    import trafilatura
    from lxml import etree

    remove_hidden(tree)
    length = _size(tree.text_content())
    etree.strip_tags(tree, *_EMPHASIS)
    main = trafilatura.extract(tree, output_format="markdown", include_links=False) or ""
    size = _size(main)
    is_dump = size > _MAX_SHARE * length and not _STRUCTURE.search(main)
    if main and size >= _MIN_SHARE * length and not is_dump:
        return main
    everything = _all_text(source)
    if is_dump and main:
        return everything if _STRUCTURE.search(everything) else main
    return main if main and size >= _MIN_SHARE * _size(everything) else everything


def _all_text(source: str) -> str:
    """All text outside the furniture; parsed anew, because trafilatura may change the tree it is given."""
    from lxml import etree

    tree = _parse(source)
    remove_hidden(tree)
    return page_text(etree.tostring(tree, encoding="unicode", method="html"))


def _size(text: str) -> int:
    return len(_SPACE.sub("", text))


def _without_repeated_blanks(text: str) -> str:
    """Single spaces inside lines, outside code and the indentation of lists."""
    pieces = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.MULTILINE | re.DOTALL)
    pieces[::2] = [re.sub(r"(?<=\S)[ \t]{2,}", " ", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _is_shell(tree: Any) -> bool:
    return any(not node.text_content().strip() for node in tree.xpath(_APP_ROOTS))


def _check_not_empty(text: str, url: str, has_scripts: bool = False, is_shell: bool = False) -> None:
    length = len(_WORD_CHARACTER.findall(text)) if len(text) <= _NOTICE_LENGTH else len(text)
    asks_for_scripts = length <= _NOTICE_LENGTH and bool(_WANTS_SCRIPTS.search(text))
    if has_scripts and (not length or asks_for_scripts or (is_shell and length < _SHELL_LENGTH)):
        raise _empty(url, "scripts_only")
    if not length:
        raise _empty(url, "no_text")


def _empty(url: str, cause: str) -> IngestError:
    return IngestError("empty", url=shown(url), **because(cause))


def _first_heading(text: str) -> str:
    match = _HEADING.search(text)
    return clean_line(match[1]) if match else ""


def _extracted(head: Head, title: str, text: str) -> Extracted:
    return Extracted(title, language_of(head.language, text), head.site, head.canonical, text)
