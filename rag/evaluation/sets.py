"""Question sets: stored with the library, imported and exported, made from feedback and from pages.

Cases made from pages are drafts until a user approves them. Without a model, a question contains the page's words, so
a keyword search finds the page: such questions test chunks, refusals and everything after the search.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from pydantic import BaseModel, Field

from rag.background import throttle
from rag.errors import RagError
from rag.evaluation.cases import (
    Case,
    Evidence,
    Format,
    Status,
    case_of,
    read_cases,
    row_of,
    version_of,
    write_cases,
)
from rag.evaluation.metrics import FULL_COVERAGE, HALF_COVERAGE, quote_coverage
from rag.evaluation.support import normalise_text
from rag.locales import say
from rag.quantities.values import DIGITS
from rag.store.sql.database import Database
from rag.store.sql.evaluation_table import QuestionSet
from rag.store.sql.table import ALL
from rag.text import lazy_regex, question_language, sentence_spans, split_sentences, terms, to_plain_line, weigh
from rag.types import Notice, Page

PageText = Callable[[str], str | None]
"""Returns the text of the page at an address; None if there is none."""
_AT_ONCE: Final = 20  # cases anchored before other threads get a turn
_MIN_DICE: Final = 0.6
"""Minimum Dice coefficient of the terms of two wordings of a sentence; few unrelated pairs reach a third."""
MAX_CASES: Final = 20_000
"""Maximum number of questions in a set, limited by the memory and time to ask, score and resample them."""


class Sets:
    """Sets of one user; owner "" stands for all users of an app without sign-in, None for every owner.

    Safe to share between threads. Methods raise RagError("set_unknown") for a set that is missing or another owner's.
    """

    def __init__(self, database: Database, owner: str | None = "") -> None:
        self._table = database.cases
        self._owner = owner

    def sets(self, library: str) -> list[QuestionSet]:
        return self._table.sets(library, self._owner)

    def get_set(self, set_id: str) -> QuestionSet:
        entry = self._table.get_set(set_id, self._owner)
        if entry is None:
            raise RagError("set_unknown")
        return entry

    def _find(self, set_id: str) -> str:
        if not self._table.has_set(set_id, self._owner):
            raise RagError("set_unknown")
        return set_id

    def find_by_name(self, library: str, name: str) -> QuestionSet | None:
        """Return the set with this name or id, or None."""
        return next((entry for entry in self.sets(library) if name in (entry.name, entry.id)), None)

    def cases(self, set_id: str, *, approved: bool = False, offset: int = 0, limit: int = ALL) -> list[Case]:
        """Return up to `limit` cases in order, from `offset`; with `approved`, no drafts."""
        rows = self._table.cases(self._find(set_id), approved=approved, offset=offset, limit=limit)
        return list(map(case_of, rows))

    def version(self, set_id: str) -> str:
        """Return a hash that identifies the wording of the approved cases."""
        return version_of(self.cases(set_id, approved=True))

    def ids(self, set_id: str) -> set[str]:
        return self._table.ids(self._find(set_id))

    def create(self, library: str, name: str) -> str:
        """Return the id of the set with this name, created if needed. Raises RagError("set_unnamed")."""
        if not (plain_name := to_plain_line(name)[:120]):
            raise RagError("set_unnamed")
        return self._table.add_set(library, self._owner or "", plain_name)

    def put(self, set_id: str, cases: Iterable[Case]) -> None:
        """Store cases, replacing those with the same ids. Raises RagError("set_full") before storing any."""
        entry, by_id = self.get_set(set_id), {case.id: case for case in cases}
        if entry.cases + len(by_id) > MAX_CASES and len(self._table.ids(entry.id) | by_id.keys()) > MAX_CASES:
            raise RagError("set_full", most=f"{MAX_CASES:,}")
        self._table.put(entry.id, ((case.id, row_of(case)) for case in by_id.values()))

    def remove(self, set_id: str, case_ids: Sequence[str]) -> None:
        self._table.remove(self._find(set_id), case_ids)

    def delete(self, set_id: str) -> None:
        """Delete the set; its runs remain, with their questions."""
        self._table.delete(self._find(set_id))

    def approve(self, set_id: str, case_ids: Sequence[str], approved: bool = True) -> None:
        """Approve these cases for runs, or make them drafts again."""
        ids = set(case_ids)
        status: Status = "approved" if approved else "draft"
        self.put(set_id, [replace(case, status=status) for case in self.cases(set_id) if case.id in ids])

    def import_file(self, library: str, name: str, text: str) -> str:
        """Import a file's cases (JSONL or CSV, RAGAS's columns too) into a set; return its id. Raises IngestError."""
        cases = read_cases(text, name, MAX_CASES)
        set_id = self.create(library, name)
        self.put(set_id, cases)
        return set_id

    def export(self, set_id: str, form: Format) -> str:
        """Return the set as a file."""
        return write_cases(self.cases(set_id), form)

    def anchor(self, set_id: str, text_of: PageText) -> int:
        """Find the evidence in the current pages; return how many cases changed.

        Reworded evidence gets the new quote and is marked as moved, missing evidence as lost; such cases become drafts
        for a user to check.
        """
        cases = throttle(self.cases(set_id), _AT_ONCE)
        changes = [new for case in cases if (new := anchor(case, text_of)) != case]
        self.put(set_id, changes)
        return len(changes)


def anchor(case: Case, text_of: PageText) -> Case:
    """Return the case with its evidence as its pages have it now, as a draft if a quote moved or was lost.

    Evidence without an address is unchanged.
    """
    evidence = []
    for item in case.evidence:
        text = text_of(item.url) if item.url else None
        if not item.url:
            evidence.append(item)
        elif text is None:
            evidence.append(replace(item, state="lost"))
        elif quote_coverage(normalise_text(item.quote), normalise_text(text)) >= FULL_COVERAGE:
            evidence.append(item if item.state == "moved" else replace(item, state=""))
        elif nearest := _find_nearest(item.quote, text):
            evidence.append(replace(item, quote=nearest, state="moved"))
        else:
            evidence.append(replace(item, state="lost"))
    worse = any(new.state and new != old for new, old in zip(evidence, case.evidence, strict=True))
    return replace(case, evidence=tuple(evidence), status="draft" if worse else case.status)


def _find_nearest(quote: str, text: str) -> str:
    """Return the sentences of the text most similar to the quote, as many as it has; "" if none are similar enough."""
    size, spans = max(1, len(sentence_spans(quote))), sentence_spans(text)
    quote_terms = set(terms(quote))

    def dice(window: tuple[int, int]) -> float:
        window_terms = set(terms(text[slice(*window)]))
        return 2 * len(quote_terms & window_terms) / max(1, len(quote_terms) + len(window_terms))

    windows = [(spans[i][0], spans[i + size - 1][1]) for i in range(len(spans) - size + 1)]
    best = max(windows, key=dice, default=(0, 0))
    return text[slice(*best)] if dice(best) >= _MIN_DICE else ""


# Cases made from feedback and from pages

_HEADING: Final = lazy_regex(r"^#{2,6}[ \t]+(?P<heading>\S[^\n]*)$", re.MULTILINE)
_NAME: Final = lazy_regex(r"(?<![\w'’-])[A-Z][\w'’-]++(?: [A-Z][\w'’-]++)++|《[^《》\n]{2,40}》")
_DIGITS: Final = lazy_regex(DIGITS)
_MIN_LENGTH, _MAX_LENGTH = 40.0, 240.0  # of a sentence for a question, in the equivalent of Latin characters
_GAP: Final = "____"
_MAX_SHARED: Final = 0.6
"""Maximum share of a question's words in its evidence; above it, a keyword search finds the evidence too easily."""
_PART_SIZE: Final = 6_000  # characters of a page in a model's prompt


def cases_from_feedback(rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Convert rows of `Feedback.questions` to cases; those without an answer are drafts."""
    cases = []
    for row in rows:
        tags = list(filter(None, ("feedback", "good" if row["rating"] > 0 else "bad", row.get("reason", ""))))
        if row["question"].strip():
            cases.append(case_of({**row, "status": "approved" if row["answers"] else "draft", "tags": tags}))
    return cases


# Without a model


def draft_cases(pages: Sequence[Page], limit: int) -> list[Case]:
    """Return up to `limit` drafts, spread evenly over the kinds: headings, numbers, names, names that two pages share,
    and questions whose page is excluded."""
    gaps = [case for page in pages for case in _gap_cases(page)]
    bodies = {page.url: normalise_text(page.text) for page in pages}
    unanswerable = []
    for case in gaps:
        (item,) = case.evidence
        quote, others = normalise_text(item.quote), (body for url, body in bodies.items() if url != item.url)
        if not any(quote_coverage(quote, body) >= HALF_COVERAGE for body in others):
            tags = (*case.tags[:1], "unanswerable")
            excluded = replace(case, id=f"{case.id}-0", answers=(), evidence=(), tags=tags, without=(item.url,))
            unanswerable.append(replace(excluded, answerable=False))
    kinds = [
        [case for page in pages for case in _heading_cases(page)],
        [case for case in gaps if "number" in case.tags],
        [case for case in gaps if "name" in case.tags],
        list(_bridge_cases(pages)),
        unanswerable,
    ]
    drafts = [case for row in zip_longest(*kinds) for case in row if case]
    return list({case.id: case for case in drafts[:limit]}.values())


def _heading_cases(page: Page) -> Iterator[Case]:
    matches = list(_HEADING.finditer(page.text))
    ends = [*(match.start() for match in matches[1:]), len(page.text)]
    for match, end in zip(matches, ends, strict=False):
        sentences = (page.text[slice(*span)] for span in split_sentences(page.text, match.end(), end))
        if quote := next((sentence for sentence in sentences if weigh(sentence) >= _MIN_LENGTH), ""):
            yield _make_case("make_heading", page, quote, heading=match["heading"].strip("# "), title=page.title)


def _gap_cases(page: Page) -> Iterator[Case]:
    """Yield gap questions from the first sentence with a number and from the first with a name."""
    sentences = [page.text[start:end] for start, end in split_sentences(page.text)]
    texts = [s for s in sentences if _MIN_LENGTH <= weigh(s) <= _MAX_LENGTH and "\n" not in s and s[0] not in "#|>-*"]
    for kind, pattern in (("number", _DIGITS), ("name", _NAME)):
        matches = ((text, match) for text in texts for match in pattern.finditer(text))
        if pair := next(matches, None):
            sentence, match = pair
            gap = sentence[: match.start()] + _GAP + sentence[match.end() :]
            yield _make_case(f"make_{kind}", page, sentence, answers=(match[0],), sentence=gap)


def _bridge_cases(pages: Sequence[Page]) -> Iterator[Case]:
    """Yield questions about names that exactly two pages share."""
    mentions: dict[str, list[tuple[Page, str]]] = defaultdict(list)
    for page in pages:
        for name in dict.fromkeys(match[0] for match in _NAME.finditer(page.text)):
            spans = (page.text[slice(*span)] for span in split_sentences(page.text))
            if sentence := next((quote for quote in spans if name in quote and weigh(quote) >= _MIN_LENGTH), ""):
                mentions[name].append((page, sentence))
    for name, ((first, quote), (second, second_quote), *more) in ((n, v) for n, v in mentions.items() if len(v) > 1):
        if not more:
            case = _make_case("make_bridge", first, quote, name=name, title=first.title, other=second.title)
            yield replace(case, evidence=(*case.evidence, Evidence(second.url, second_quote)))


def _make_case(code: str, page: Page, quote: str, answers: tuple[str, ...] = (), **values: str) -> Case:
    question = say(Notice(code, values), question_language(quote))
    return _make_draft(question, page, quote, answers, code.removeprefix("make_"))


def _make_draft(question: str, page: Page, quote: str, answers: tuple[str, ...], kind: str) -> Case:
    name = hashlib.sha256(f"{page.url}\n{question}".encode()).hexdigest()[:12]
    evidence, language = (Evidence(page.url, quote),), question_language(question)
    return Case(name, question, language, answers, evidence, ("made", kind), True, status="draft")


# With a model


class Written(BaseModel):
    """A question that a page answers."""

    question: str = Field(description="the question, in words of its own")
    answer: str = Field(description="the answer, in a few words")
    span: str = Field(description="the sentence of the page that holds the answer, copied to the letter")


def page_part(page: Page, number: int) -> str:
    """Return the part of a page for a model's prompt; consecutive numbers cycle through the parts."""
    parts = max(1, len(page.text) // _PART_SIZE)
    at = (number % parts) * _PART_SIZE
    return page.text[at : at + _PART_SIZE]


def case_from_reply(reply: Written, page: Page) -> Case | None:
    """Return a draft; None if the quote is not in the page or shares too many words with the question."""
    span, question = reply.span.strip(), " ".join(reply.question.split())
    words, span_words = set(terms(question)), set(terms(span))
    if not span or span not in page.text or not words or len(words & span_words) > _MAX_SHARED * len(words):
        return None
    answers = (reply.answer.strip(),) if reply.answer.strip() else ()
    return _make_draft(question, page, span, answers, "written")
