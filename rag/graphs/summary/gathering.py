"""The content of a summary: its pages, their parts, and sentences that summarise each part. All functions may block.

Text is summarised by quoting the first sentence of each section, without a model. Selecting the sentences that together
cover most of the words (Lin and Bilmes 2011) covers no more of what people ask about: `python -m benchmarks.summaries`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import Final, Literal

from typing_extensions import TypedDict

from rag.checking.statements import is_statement
from rag.dates import find_period
from rag.ingest.chunking import MAXIMUM, TextUnit, split_units
from rag.ingest.diff import page_diff
from rag.locales import say
from rag.reasoning.extractive import Quotable, quotables
from rag.reasoning.questions import asks_for_newest
from rag.retrieval.page_names import (
    asks_for_all,
    find_addresses,
    find_named_pages,
    find_nearest,
    find_pages_with,
    topic_of,
)
from rag.retrieval.retriever import PageReader
from rag.runs.run import Question
from rag.store.values import is_between
from rag.text import escape_markdown, lazy_regex, split_sentences, weigh
from rag.types import Notice, Page, Passage
from rag.web.urls import split_url

ROUTE: Final = "what_changed"
_DEFAULT_DAYS: Final = 7
"""Default period for changes, in days."""
_MAX_PAGES: Final = 40
"""Maximum pages that a summary covers; any others are only counted."""
_PARTS: Final = 12  # in total, and at least one per page
_MAX_HEADING: Final = 200  # characters
_MAX_CHANGED_SENTENCES: Final = 3  # sentences quoted from a changed page
_PREPOSITION: Final = lazy_regex(r"\b(?:in|on|to|about)\b|关于|有关", re.IGNORECASE)

Kind = Literal["changed", "shortened", "gone", "new"]
_KINDS_IN_ORDER: Final[tuple[Kind, ...]] = ("changed", "shortened", "gone", "new")  # in the order of the summary


class PartRecord(TypedDict):
    """A part of a summary: its heading as Markdown, its passages by number, and quotes that summarise it."""

    heading: str
    numbers: list[int]
    quotes: str


@dataclass(slots=True)
class SummaryContent:
    """Passages in order, and the parts that they form. `pages` of `total_pages` pages are covered; `page` is
    set if there is only one, and `skipped_sections` counts its sections without a part."""

    passages: list[Passage] = field(default_factory=list)
    parts: list[PartRecord] = field(default_factory=list)
    pages: int = 0
    total_pages: int = 0
    page: Page | None = None
    skipped_sections: int = 0

    @property
    def notice(self) -> Notice | None:
        """A notice about the coverage, or None if there is nothing to say."""
        if self.skipped_sections:
            return Notice("summary_sections", {"parts": len(self.parts), "aside": self.skipped_sections})
        if self.pages < self.total_pages:
            return Notice("summary_some", {"pages": self.pages, "of": self.total_pages})
        return Notice("summary_all", {"pages": self.pages}) if self.pages > 1 else None

    def add(self, page: Page, pieces: Sequence[Section], heading: str, parts: int) -> None:
        """Add one of `parts` parts, made of these sections of a page."""
        first, quoted_lines = len(self.passages) + 1, list[str]()
        texts = [page.text[piece.start : piece.end] for piece in pieces]
        for number, (piece, quotes) in enumerate(zip(pieces, select_sentences(texts, parts), strict=True), first):
            self.passages.append(_as_passage(page, piece))
            quoted_lines += [f"{line} [{number}]" for sentence in quotes for line in sentence.lines]
        numbers = list(range(first, first + len(pieces)))
        self.parts.append({"heading": heading, "numbers": numbers, "quotes": "\n\n".join(quoted_lines)})


def is_standalone(question: Question, reader: PageReader | None) -> bool:
    """Return whether the question needs no conversation: it asks for changes, or its pages are named or selected."""
    if question.options.route == ROUTE or question.scope.pages or reader is None:
        return True
    return bool(find_named_pages(question.text, list(reader.list_pages(dated=True))))


def select_pages(question_text: str, question: Question, reader: PageReader, recent: Sequence[str] = ()) -> list[Page]:
    """Return the pages to summarise, without their text: those selected or named, else the conversation's `recent` ones
    (url_hashes) unless the request is for changes or the whole library, else all."""
    asks_for_changes = question.options.route == ROUTE
    all_pages = list(reader.list_pages(dated=not asks_for_changes))
    if question.scope.pages or question.scope.sites:
        return all_pages
    meant = [] if asks_for_changes or asks_for_all(question_text) else recent
    named = _find_named(question_text, all_pages)
    return named or [page for page in all_pages if page.url_hash in meant] or all_pages


def missing_page(
    question_text: str, question: Question, reader: PageReader, search: Callable[[str], Sequence[Passage]]
) -> Notice | None:
    """Return a notice that no page has the given name, with the nearest pages; None if one has it or none is named."""
    asks_for_changes = question.options.route == ROUTE
    topic = _topic_of_changes(question_text) if asks_for_changes else topic_of(question_text)
    name = topic or next(iter(find_addresses(question_text)), "")
    all_pages = list(reader.list_pages(dated=not asks_for_changes))
    has_scope = question.scope.pages or question.scope.sites
    if has_scope or not name or not all_pages or _find_named(question_text, all_pages):
        return None
    nearest_pages = find_nearest(topic, all_pages, [one.url_hash for one in search(topic)]) if topic else []
    rows = [{"url_hash": page.url_hash, "title": page.title or page.url} for page in nearest_pages]
    titles = " · ".join(row["title"] for row in rows)
    return Notice(
        "summary_no_page" if rows else "summary_no_such_page", {"name": name, "titles": titles, "pages": rows}
    )


def _topic_of_changes(question_text: str) -> str:
    """Return the topic after a preposition, as in "new in the Python docs", ignoring periods of time."""
    period = find_period(question_text, date.today())
    rest = f"{question_text[: period.start]} , {question_text[period.end :]}" if period else question_text
    begin = _PREPOSITION.search(rest)
    return topic_of(rest[begin.start() :]) if begin else ""


def _find_named(question_text: str, pages: Sequence[Page]) -> list[Page]:
    """Return the pages named individually, all whose names contain every word of the topic, or the newest if meant."""
    named = find_named_pages(question_text, pages) or find_pages_with(topic_of(question_text), pages)
    return named or (list(pages[:1]) if asks_for_newest(question_text) else [])


def gather(pages: Sequence[Page], reader: PageReader, *, whole: bool) -> SummaryContent:
    """Gather the sections of one page, or some of each of several pages, so that every site is covered.

    With `whole`, all sections of a single page are read, those without a part last.
    """
    if len(pages) == 1:
        return _gather_page(reader.read(pages[0].url_hash), reader, whole)
    selected = _by_site(pages)[:_MAX_PAGES]
    counts = Counter(map(_site_of, selected))
    sites = [site for site, count in counts.items() if site and 1 < count < len(selected)]
    places = {site: place for place, site in enumerate(sites)}  # pages without a heading come first
    content, last_site = SummaryContent(total_pages=len(pages)), ""
    for page in sorted(selected, key=lambda page: places.get(_site_of(page), -1)):
        site = _site_of(page)
        heading = f"## {_heading(site)}\n\n" if site in places and site != last_site else ""
        if _add_page(content, page, reader, heading, len(selected)):
            last_site = site
    return content


def _site_of(page: Page) -> str:
    """Return the name of the page's site, or its host; "" for a file."""
    return page.site or split_url(page.url).hostname or ""


def _gather_page(page: Page | None, reader: PageReader, whole: bool) -> SummaryContent:
    content = SummaryContent(pages=1, total_pages=1, page=page)
    if page is None:
        return content
    sections = sections_of(page.text)
    parts = select_parts(sections)
    skipped = sorted({*range(len(sections))}.difference(*parts))
    for places in parts:
        name = " › ".join(step for step in sections[places[0]].path if step != page.title)
        content.add(page, [sections[n] for n in places], f"## {_heading(name)}" if name else "", len(parts))
    content.passages += [_as_passage(page, sections[n]) for n in skipped if whole]
    content.skipped_sections = 0 if whole else len(skipped)
    _set_ids(content, page.url_hash, reader)
    return content


def _by_site(pages: Sequence[Page]) -> list[Page]:
    """Return the pages, alternating between sites and in order within each."""
    counts: Counter[str] = Counter()
    turns: list[int] = []
    for page in pages:
        turns.append(counts[_site_of(page)])
        counts[_site_of(page)] += 1
    return [pages[place] for place in sorted(range(len(pages)), key=turns.__getitem__)]


def _add_page(content: SummaryContent, entry: Page, reader: PageReader, above: str, parts: int) -> bool:
    """Add a part for a page, one of `parts`, from its largest sections; return False if it has no text."""
    page = reader.read(entry.url_hash)
    sections = sections_of(page.text) if page else []
    if page is None or not sections:
        return False
    pieces = [sections[places[0]] for places in select_parts(sections)[: max(1, _PARTS // parts)]]
    content.add(page, pieces, f"{above}### {_heading(page.title or page.url)}", parts)
    content.pages += 1
    _set_ids(content, page.url_hash, reader)
    return True


# Changes


def since_of(question: Question) -> str:
    """Return the start of the period for changes (ISO 8601); "" if the question gives only its end."""
    default = "" if question.scope.until else (datetime.now(UTC) - timedelta(days=_DEFAULT_DAYS)).date().isoformat()
    return question.scope.since or default


def changes_notice(count: int, question: Question) -> Notice:
    """Return a notice with the number of pages that changed in the period."""
    since, until = since_of(question)[:10], question.scope.until[:10]
    if not until:
        return Notice("summary_changes" if count else "summary_unchanged", {"count": count, "since": since})
    code = "summary_on" if since == until else "summary_between" if since else "summary_until"
    period = {"code": code, "params": {"since": since, "until": until}}
    return Notice("summary_changes_in" if count else "summary_unchanged_in", {"count": count, "period": period})


def gather_changes(pages: Sequence[Page], question: Question, reader: PageReader, language: str) -> SummaryContent:
    """Gather the new, changed and deleted pages of the period, each with sentences that show the change."""
    since, until = since_of(question), question.scope.until
    rows: dict[Kind, list[tuple[Page, list[Section]]]] = {kind: [] for kind in _KINDS_IN_ORDER}
    content = SummaryContent()
    for entry in pages:
        kind, sections = _kind_of_change(entry, since, until), list[Section]()
        if kind == "changed" and content.total_pages < _MAX_PAGES:
            kind, entry, sections = _find_changes(entry, reader, since)
        if kind:
            content.total_pages += 1
            rows[kind].append((entry, sections))
    for kind, changed_pages in rows.items():
        above = f"## {say(Notice(f'summary_{kind}'), language)}\n\n"
        for page, sections in changed_pages[: _MAX_PAGES - content.pages]:
            if sections:
                content.add(page, sections, f"{above}### {_heading(page.title or page.url)}", 1)
                content.pages += 1
                _set_ids(content, page.url_hash, reader)
                above = ""
            elif _add_page(content, page, reader, above, _PARTS):
                above = ""
    return content


def _kind_of_change(page: Page, since: str, until: str) -> Kind | None:
    if page.status == "gone":
        return "gone" if is_between(page.checked_at, since, until) else None
    if is_between(page.added_at, since, until):
        return "new"
    return "changed" if page.version > 1 and is_between(page.updated_at, since, until) else None


def _find_changes(entry: Page, reader: PageReader, since: str) -> tuple[Kind | None, Page, list[Section]]:
    """Return the kind of change, the page, and its sentences that are new since then or else next to removed text."""
    versions = reader.versions(entry.url_hash)
    earlier = [version for version in versions if not is_between(version.since, since, "")]
    page = reader.read(entry.url_hash)
    if not versions or page is None:
        return None, entry, []
    pieces = page_diff((earlier or versions)[-1 if earlier else 0].text, page.text)
    ends = list(accumulate(len(piece.text) * (piece.kind != "removed") for piece in pieces))
    relevant = [(piece, end) for piece, end in zip(pieces, ends, strict=True) if len(re.findall(r"\w", piece.text)) > 1]
    added = [(end - len(piece.text), end) for piece, end in relevant if piece.kind == "added"]
    removed = [(end - 1, end + 1) for piece, end in relevant if piece.kind == "removed"]
    spans = added or removed
    overlapping = [(a, b) for a, b in split_sentences(page.text) if any(a < end and start < b for start, end in spans)]
    sentences = overlapping[:_MAX_CHANGED_SENTENCES]
    kind: Kind | None = "changed" if added else "shortened"
    return kind if sentences else None, page, [Section((), start, end) for start, end in sentences]


# Passages


def _as_passage(page: Page, piece: Section) -> Passage:
    text = page.text[piece.start : piece.end]
    fields = (page.url, page.url_hash, page.title, page.site, page.language)
    return Passage("", *fields, piece.path, text, piece.start, piece.end, date=page.modified or page.published)


def _set_ids(content: SummaryContent, url_hash: str, reader: PageReader) -> None:
    """Set the ids of a page's passages: each gets the id of the chunk that it starts in."""
    chunks = reader.passages(url_hash)
    for place, passage in enumerate(content.passages):
        if passage.url_hash == url_hash and not passage.id and chunks:
            preceding = [chunk for chunk in chunks if chunk.start <= passage.start] or chunks[:1]
            content.passages[place] = replace(passage, id=preceding[-1].id, library=preceding[-1].library)


def _heading(heading: str) -> str:
    """Return a page's heading for the summary, without text that reads like a citation mark."""
    return escape_markdown(re.sub(r"\[([\d,\s–-]+)\]", r"(\1)", heading[:_MAX_HEADING]))


# Sections and sentences of a text

_MAX_SECTIONS = 10
"""Maximum sections of each depth in a summary."""
_MIN_SECTION, _MAX_SECTION = 500, 3_500  # characters of a section in one piece; a model reads as many of a passage
_SENTENCES = 6  # approximate number if there are few parts
_MAX_PARTS = 16  # parts up to which all are included
_FEW_HEADINGS = 3  # headings up to which a text is divided evenly
_MIN_WEIGHT, _MAX_WEIGHT = 25, 600  # Latin characters' worth
_MIN_FRAGMENT_WEIGHT = 120  # a longer fragment, like a table in one line, is informative
_CANDIDATES = 24  # sentences at the beginning of a page, one of which describes its topic
_OPENING = 6_000  # characters that contain them
_MIN_LEAD, _MAX_LEAD = 45, 240  # Latin characters' worth
_SENTENCE_ENDS, _CLOSING_MARKS = (".", "!", "。", "！"), "*_\"'”’」』)）"


@dataclass(frozen=True, slots=True)
class Section:
    """The part `text[start:end]` under one heading; `path` is its heading path, outermost first."""

    path: tuple[str, ...]
    start: int
    end: int


def sections_of(text: str) -> list[Section]:
    """Return the non-empty sections in order: the text under each heading. Long ones are split, if possible between
    paragraphs."""
    sections: list[Section] = []
    units: list[TextUnit] = []
    threshold = max(_MIN_SECTION, len(text) // (_MAX_SECTIONS + 2))
    for unit in split_units(text, MAXIMUM):
        size = unit.end - units[0].start if units else 0
        if unit.kind == "heading" or size > _MAX_SECTION or (unit.starts_block and size > threshold):
            sections += _section(units)
            units = []
        units.append(unit)
    return [*sections, *_section(units)]


def _section(units: Sequence[TextUnit]) -> list[Section]:
    has_body = any(unit.kind != "heading" for unit in units)  # false without units
    return [Section(units[0].section, units[0].start, units[-1].end)] if has_body else []


def select_parts(sections: Sequence[Section]) -> list[list[int]]:
    """Return the parts of a summary, in order, as indexes of sections.

    A text with few headings is divided evenly; up to `_MAX_PARTS` headings are a part each. More are represented, at
    each depth, by the largest section under each of the largest headings.
    """
    parts: dict[tuple[str, ...], list[int]] = {}
    for place, section in enumerate(sections):
        parts.setdefault(section.path, []).append(place)
    if len(parts) <= _FEW_HEADINGS:
        size = -(-len(sections) // (_MAX_SECTIONS + 2)) or 1
        return [list(range(start, min(start + size, len(sections)))) for start in range(0, len(sections), size)]
    if len(parts) <= _MAX_PARTS:
        return list(parts.values())
    sizes = {path: sum(sections[n].end - sections[n].start for n in places) for path, places in parts.items()}
    selected: set[tuple[str, ...]] = set()
    for depth in range(max(map(len, parts)), 0, -1):
        groups: Counter[tuple[str, ...]] = Counter()
        for path, size in sizes.items():
            groups[path[:depth]] += size
        for group, _ in groups.most_common(_MAX_SECTIONS):
            if not any(path[:depth] == group for path in selected):
                selected.add(max((path for path in sizes if path[:depth] == group), key=sizes.__getitem__))
    return [places for path, places in parts.items() if path in selected]


def leading_sentences(text: str, count: int) -> list[Quotable]:
    """Return the first informative sentences of a section, short fragments last; if it has none, its first table rows
    or lines of code."""
    units = [unit for unit in quotables(text) if any(map(str.isalpha, unit.text))]
    candidates = [unit for unit in units if not (unit.is_table_header or unit.leads)]
    sentences = [unit for unit in candidates if not unit.is_code and all(map(is_statement, unit.lines))]
    informative = [unit for unit in sentences if _MIN_WEIGHT <= weigh(unit.text) <= _MAX_WEIGHT]
    informative.sort(key=lambda unit: weigh(unit.text) < _MIN_FRAGMENT_WEIGHT and not _is_complete(unit.text))
    return (informative or sentences or candidates)[:count]


def _is_complete(text: str) -> bool:
    return text.rstrip(_CLOSING_MARKS).endswith(_SENTENCE_ENDS)


def opening_sentence(text: str) -> str:
    """Return the first informative whole sentence of a page, else its first one of any kind, if any."""
    lines = [unit.lines[0] for unit in leading_sentences(text[:_OPENING], _CANDIDATES) if not unit.is_code]
    whole = (line for line in lines if _MIN_LEAD <= weigh(line) <= _MAX_LEAD and _is_complete(line))
    return next(whole, lines[0] if lines else "")


def select_sentences(texts: Sequence[str], parts: int) -> list[list[Quotable]]:
    """Return the sentences that represent each text of one part of a summary with `parts` parts."""
    remaining = count = -(-_SENTENCES // parts)
    sentences: list[list[Quotable]] = []
    for text in texts:
        limit = min(remaining, -(-count // len(texts)))
        sentences.append(leading_sentences(text, limit) if limit else [])
        remaining -= len(sentences[-1])
    return sentences
