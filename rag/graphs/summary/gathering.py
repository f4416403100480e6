"""What a summary is made of: which pages, which parts of them, and the sentences that tell each part. It blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, Literal

from rag.graphs.summary.state import PartRecord
from rag.ingest.diff import page_diff
from rag.locales import say
from rag.reasoning.summarising import Section, sections_of, sentences_at, telling, told
from rag.retrieval.page_names import nearest, pages_named, pages_with, topic_of
from rag.retrieval.page_reader import PageReader
from rag.runs.options import Question
from rag.store.values import between
from rag.text import literal
from rag.types import Notice, Page, Passage

ROUTE: Final = "what_changed"
DAYS: Final = 7
"""How far back what changed is looked for where nobody said since when."""
MOST_PAGES: Final = 40
"""Pages that a summary tells of; the others are counted."""
_PARTS: Final = 12  # of all pages together, at least one of each
_LONGEST_HEADING: Final = 200  # characters
_CHANGES: Final = 3  # sentences that are told of one page that changed

Kind = Literal["changed", "shortened", "gone", "new"]
_KINDS: Final[tuple[Kind, ...]] = ("changed", "shortened", "gone", "new")  # in the order in which they are told


@dataclass(slots=True)
class Gathered:
    """Passages in order, the parts that they make up, how many pages of how many they are of, and `page` where it is
    but one, with how many sections of it are `aside`."""

    passages: list[Passage] = field(default_factory=list)
    parts: list[PartRecord] = field(default_factory=list)
    pages: int = 0
    of: int = 0
    page: Page | None = None
    aside: int = 0

    @property
    def notice(self) -> Notice | None:
        """What a person should know of its reach."""
        if self.aside:
            return Notice("summary_sections", {"parts": len(self.parts), "aside": self.aside})
        if self.pages < self.of:
            return Notice("summary_some", {"pages": self.pages, "of": self.of})
        return Notice("summary_all", {"pages": self.pages}) if self.pages > 1 else None

    def add(self, page: Page, pieces: Sequence[Section], heading: str, parts: int) -> None:
        """A part, one of so many, of these pieces of a page."""
        first, said = len(self.passages) + 1, list[str]()
        texts = [page.text[piece.start : piece.end] for piece in pieces]
        for number, (piece, quotes) in enumerate(zip(pieces, telling(texts, parts), strict=True), first):
            self.passages.append(_passage(page, piece))
            said += [f"{line} [{number}]" for one in quotes for line in one.lines]
        numbers = list(range(first, first + len(pieces)))
        self.parts.append({"heading": heading, "numbers": numbers, "quotes": "\n\n".join(said)})


def stands_alone(question: Question, reader: PageReader | None) -> bool:
    """Whether it tells by itself what is wanted: what changed in the library, or pages that it names."""
    if question.options.route == ROUTE or question.scope.pages or reader is None:
        return True
    return bool(pages_named(question.text, list(reader.listed(dated=True))))


def chosen_pages(wished: str, question: Question, reader: PageReader) -> list[Page]:
    """Those of the scope, without their text; by name, where the person chose none beside the question."""
    listed = list(reader.listed(dated=question.options.route != ROUTE))
    chosen = question.scope.pages or question.scope.sites
    return listed if chosen else _named(wished, listed) or listed


def no_such_page(
    wished: str, question: Question, reader: PageReader, search: Callable[[str], Sequence[Passage]]
) -> Notice | None:
    """Return a notice that no page has the given name, with the nearest pages; None if one has it or none is named."""
    topic, listed = topic_of(wished), list(reader.listed())
    chosen = question.scope.pages or question.scope.sites or question.options.route == ROUTE
    if chosen or not topic or not listed or _named(wished, listed):
        return None
    near = nearest(topic, listed, [one.url_hash for one in search(topic)])
    rows = [{"url_hash": page.url_hash, "title": page.title or page.url} for page in near]
    titles = " · ".join(row["title"] for row in rows)
    return Notice(
        "summary_no_page" if rows else "summary_no_such_page", {"name": topic, "titles": titles, "pages": rows}
    )


def _named(wished: str, listed: Sequence[Page]) -> list[Page]:
    """Return the pages named one by one, or all whose names contain every word of the topic."""
    return pages_named(wished, listed) or pages_with(topic_of(wished), listed)


def gather(pages: Sequence[Page], reader: PageReader, *, whole: bool) -> Gathered:
    """Of one page its sections; of several some of each, by site, so that each site is told of.

    All that a page says, if it is read as a `whole`, in passages behind those of the parts.
    """
    if len(pages) == 1:
        return _of_page(reader.read(pages[0].url_hash), reader, whole)
    told_of = _by_site(pages)[:MOST_PAGES]
    sites = list(dict.fromkeys(page.site for page in told_of))
    made, above = Gathered(of=len(pages)), ""
    for page in sorted(told_of, key=lambda page: sites.index(page.site)):
        heading = f"## {_titled(page.site) or '–'}\n\n" if len(sites) > 1 and page.site != above else ""
        if _add_page(made, page, reader, heading, len(told_of)):
            above = page.site
    return made


def _of_page(page: Page | None, reader: PageReader, whole: bool) -> Gathered:
    made = Gathered(pages=1, of=1, page=page)
    if page is None:
        return made
    sections = sections_of(page.text)
    parts = told(sections)
    aside = sorted({*range(len(sections))}.difference(*parts))
    for places in parts:
        name = " › ".join(step for step in sections[places[0]].path if step != page.title)
        made.add(page, [sections[n] for n in places], f"## {_titled(name)}" if name else "", len(parts))
    made.passages += [_passage(page, sections[n]) for n in aside if whole]
    made.aside = 0 if whole else len(aside)
    return _identified(made, {page.url_hash: reader.passages(page.url_hash)})


def _by_site(pages: Sequence[Page]) -> list[Page]:
    """The pages in turns of their sites, each site's in their order."""
    seen: Counter[str] = Counter()
    turns: list[int] = []
    for page in pages:
        turns.append(seen[page.site])
        seen[page.site] += 1
    return [pages[place] for place in sorted(range(len(pages)), key=turns.__getitem__)]


def _add_page(made: Gathered, listed: Page, reader: PageReader, above: str, parts: int) -> bool:
    """A part for a page, one of so many, by the largest of its sections; False where there is nothing to tell."""
    page = reader.read(listed.url_hash)
    sections = sections_of(page.text) if page else []
    if page is None or not sections:
        return False
    pieces = [sections[places[0]] for places in told(sections)[: max(1, _PARTS // parts)]]
    made.add(page, pieces, f"{above}### {_titled(page.title or page.url)}", parts)
    made.pages += 1
    _identified(made, {page.url_hash: reader.passages(page.url_hash)})
    return True


# What changed


def since_of(question: Question) -> str:
    """The date or moment since which changes count (ISO 8601)."""
    return question.scope.since or (datetime.now(UTC) - timedelta(days=DAYS)).date().isoformat()


def changes(pages: Sequence[Page], question: Question, reader: PageReader, language: str) -> Gathered:
    """What is new, changed or gone since then among the pages, each page with the sentences that tell it."""
    since, until = since_of(question), question.scope.until
    found: dict[Kind, list[tuple[Page, list[Section]]]] = {kind: [] for kind in _KINDS}
    made = Gathered()
    for listed in pages:
        kind, touched = _kind(listed, since, until), list[Section]()
        if kind == "changed" and made.of < MOST_PAGES:
            kind, listed, touched = _changed(listed, reader, since)
        if kind:
            made.of += 1
            found[kind].append((listed, touched))
    for kind, its in found.items():
        above = f"## {say(Notice(f'summary_{kind}'), language)}\n\n"
        for page, touched in its[: MOST_PAGES - made.pages]:
            if touched:
                made.add(page, touched, f"{above}### {_titled(page.title or page.url)}", 1)
                made.pages += 1
                _identified(made, {page.url_hash: reader.passages(page.url_hash)})
                above = ""
            elif _add_page(made, page, reader, above, _PARTS):
                above = ""
    return made


def _kind(page: Page, since: str, until: str) -> Kind | None:
    if page.status == "gone":
        return "gone" if between(page.checked_at, since, until) else None
    if between(page.added_at, since, until):
        return "new"
    return "changed" if page.version > 1 and between(page.updated_at, since, until) else None


def _changed(listed: Page, reader: PageReader, since: str) -> tuple[Kind | None, Page, list[Section]]:
    """The sentences of the present text that are not in the one of that time; where there are none, those that stand
    where text was taken out."""
    versions = reader.versions(listed.url_hash)
    before = [one for one in versions if not between(one.since, since, "")]
    page = reader.read(listed.url_hash)
    if not versions or page is None:
        return None, listed, []
    pieces = page_diff((before or versions)[-1 if before else 0].text, page.text)
    ends = list(accumulate(len(one.text) * (one.kind != "removed") for one in pieces))
    told_of = [(one, end) for one, end in zip(pieces, ends, strict=True) if len(re.findall(r"\w", one.text)) > 1]
    added = [(end - len(one.text), end) for one, end in told_of if one.kind == "added"]
    removed = [(end - 1, end + 1) for one, end in told_of if one.kind == "removed"]
    sentences = list(sentences_at(page.text, added or removed))[:_CHANGES]
    kind: Kind | None = "changed" if added else "shortened"
    return kind if sentences else None, page, [Section((), start, end) for start, end in sentences]


# Passages


def _passage(page: Page, piece: Section) -> Passage:
    text = page.text[piece.start : piece.end]
    of = (page.url, page.url_hash, page.title, page.site, page.language)
    return Passage("", *of, piece.path, text, piece.start, piece.end, date=page.modified or page.published)


def _identified(made: Gathered, chunks: Mapping[str, Sequence[Passage]]) -> Gathered:
    """The passages of these pages with the id of the chunk that they begin in, by which they are found again."""
    made.passages = [
        _beginning_in(one, chunks[one.url_hash]) if one.url_hash in chunks and not one.id else one
        for one in made.passages
    ]
    return made


def _beginning_in(passage: Passage, chunks: Sequence[Passage]) -> Passage:
    before = [one for one in chunks if one.start <= passage.start] or chunks[:1]
    return replace(passage, id=before[-1].id, library=before[-1].library) if before else passage


def _titled(heading: str) -> str:
    """A heading of a page as one of the summary, without what reads as a mark."""
    return literal(re.sub(r"\[([\d,\s–-]+)\]", r"(\1)", heading[:_LONGEST_HEADING]))
