"""Conversion of documents to Markdown with headings, lists, tables and code, but without link targets.

Runs in the child process of `rag.reading.parser`, because a hostile page can keep a parser busy for minutes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from rag.errors import IngestError
from rag.reading.charset import decode
from rag.reading.extraction.features import Forest
from rag.reading.extraction.formulas import write_formulas
from rag.reading.extraction.listings import write_listings
from rag.reading.extraction.main_text import extract_main_text
from rag.reading.extraction.metadata import (
    Byline,
    StructuredData,
    choose_language,
    correct_title,
    find_byline,
    find_canonical,
    find_site,
    find_title,
    read_structured_data,
    shorten_title,
    site_from_url,
    title_from_url,
)
from rag.reading.extraction.notation import mark_struck, write_notation
from rag.reading.extraction.render import markdown
from rag.reading.extraction.segments import segment
from rag.reading.extraction.tree import (
    body_of,
    drop,
    drop_contents,
    find_hidden,
    is_hidden,
    is_huge,
    join_frozen_columns,
    mark_copies,
    name_panels,
    name_table_parts,
    open_panels,
    parse,
)
from rag.reading.parser import ExtractedDocument
from rag.reading.quality import find_signals, has_player
from rag.text import (
    clean_line,
    clean_text,
    detect_language,
    first_heading,
    front_matter_title,
    lazy_regex,
    strip_link_targets,
)
from rag.types import because
from rag.web.guard import printable
from rag.web.media import MEDIA_TYPES


def make_reader_view(tree: Any, source: str) -> None:
    """Reduce `tree` to what a reader sees; it is parsed from `source` and still has its scripts."""

    def run(step: Callable[[Any], None], *signs: str) -> None:
        """Search the tree only for constructs with a sign in its source: most pages have none."""
        if any(sign in source for sign in signs):
            step(tree)

    run(name_table_parts, "columnheader", "gridcell", '="cell"', "role=cell")
    run(mark_struck, "line-through", "strike", "deletion")
    # Before hidden elements and scripts are dropped: some formulas are in them.
    run(write_formulas, "math", "athJax", "katex", "latex", 'alt="$', 'alt="\\(')
    hidden = find_hidden(tree)
    open_panels(tree, hidden)
    run(name_panels, "tabpanel", "tab-", "tabs", "tabcontent", "tabbed")
    for node in hidden:
        if is_hidden(node):
            drop(node)
    run(join_frozen_columns, "<table", "<TABLE")
    run(mark_copies, "aria-hidden")
    run(drop_contents, 'href="#', "href='#", "href=#")
    run(write_listings, "<pre", "<PRE", "<code", "white-space", "blob-code", "syntaxhighlighter")
    write_notation(tree, source)


_MAX_TITLE = 80  # max. characters of a title line
_SENTENCE_ENDS = tuple(".!?:;,…。！？：；，|")
_WORD_CHARACTER = lazy_regex(r"\w")


def extract(body: bytes, content_type: str, charset: str | None, url: str) -> ExtractedDocument:
    """Extract an HTML, Markdown or plain-text document; `url` may be a file name.

    Raises IngestError("empty") if it has no text, ("content_type") for any other type.
    """
    kind = MEDIA_TYPES.get(content_type.partition(";")[0].strip().lower())
    if kind == "text/html":
        return extract_html(body, url, charset=charset)
    if kind == "text/markdown":
        return extract_markdown(decode(body, charset, url), url)
    if kind == "text/plain":
        return extract_plain(decode(body, charset, url), url)
    raise IngestError("content_type", url=printable(url), **because("other_type", type=content_type))


def extract_html(
    html: str | bytes, url: str, *, charset: str | None = None, forest: Forest | None = None
) -> ExtractedDocument:
    """Extract the main text that a reader sees, as Markdown; `forest` replaces the built-in classifier.

    Raises IngestError("empty").
    """
    source = decode(html, charset, url) if isinstance(html, bytes) else html
    tree = parse(source)
    structured_data, huge = read_structured_data(tree), is_huge(tree)
    visible = tree if huge else copy.deepcopy(tree)
    has_scripts, plays = tree.find(".//script") is not None, has_player(tree)
    # <noscript> text is not content, but if there is nothing else, the quality gate judges the page by it.
    fallback = clean_text("\n\n".join(" ".join(node.text_content().split()) for node in tree.iter("noscript")))
    make_reader_view(visible, source)
    byline = find_byline(structured_data, None if huge else visible)
    text = extract_main_text(body_of(visible), structured_data, byline, is_huge=huge, forest=forest)
    text = clean_text(text) or fallback
    _check_not_empty(text, url, "player_only" if plays else "scripts_only" if has_scripts else "nothing_to_read")
    return _add_metadata(tree, structured_data, byline, text, url)


def _add_metadata(tree: Any, structured_data: StructuredData, byline: Byline, text: str, url: str) -> ExtractedDocument:
    """Combine the text and the page's metadata."""
    site, heading = find_site(structured_data, url), first_heading(text)
    h1 = next((clean_line(node.text_content()) for node in tree.iter("h1")), "")
    title = correct_title(find_title(structured_data, site), (heading, h1), url)
    title = shorten_title(shorten_title(title, heading), h1)
    declared_language = tree.get("lang") or tree.get("xml:lang") or structured_data.meta.get("og:locale", "")
    return ExtractedDocument(
        title=title or heading or h1 or title_from_url(url),
        language=choose_language(declared_language, text),
        site=site,
        canonical=find_canonical(tree, url),
        text=text,
        author=byline.author,
        published=byline.published,
        modified=byline.modified,
        signals=find_signals(tree, text),
    )


def html_to_markdown(source: str) -> str:
    """Convert HTML that has no boilerplate to Markdown, without its hidden parts."""
    tree = parse(source)
    make_reader_view(tree, source)
    return markdown(segment(body_of(tree)))


def extract_markdown(source: str, url: str) -> ExtractedDocument:
    """Extract Markdown as it is, without front matter and link targets. Raises IngestError("empty")."""
    title, rest = front_matter_title(clean_text(source))
    text = clean_text(strip_link_targets(rest))
    return _build_extracted(title or first_heading(text), text, url)


def extract_plain(source: str, url: str) -> ExtractedDocument:
    """Extract plain text; its title is a short first line before a blank one, or else the file name.

    Raises IngestError("empty").
    """
    text = clean_text(source)
    first, _, rest = text.strip().partition("\n")
    title = clean_line(first)
    is_title = rest.startswith("\n") and len(title) <= _MAX_TITLE and not title.endswith(_SENTENCE_ENDS)
    return _build_extracted(title if is_title and _WORD_CHARACTER.search(title) else "", text, url)


def _build_extracted(title: str, text: str, url: str) -> ExtractedDocument:
    _check_not_empty(text, url)
    return ExtractedDocument(title or title_from_url(url), detect_language(text), site_from_url(url), "", text)


def _check_not_empty(text: str, url: str, cause: str = "nothing_to_read") -> None:
    if not _WORD_CHARACTER.search(text):
        raise IngestError("empty", url=printable(url), **because(cause))
