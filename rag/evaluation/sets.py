"""Question sets: stored with the library, imported and exported, made from feedback and from pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from rag.background import throttle
from rag.errors import RagError
from rag.evaluation.cases import (
    Case,
    Evidence,
    Format,
    RagasAnswer,
    Status,
    case_of,
    read_cases,
    row_of,
    version_of,
    write_cases,
)
from rag.evaluation.evidence import WHOLE, quote_coverage, squash
from rag.store.sql.database import Database
from rag.store.sql.evaluation_table import StoredSet
from rag.store.sql.table import ALL
from rag.text import sentence_spans, terms, to_plain_line

PageText = Callable[[str], str | None]
"""Returns the text of the page at an address; None if there is none."""
_AT_ONCE: Final = 20  # cases whose evidence is searched for before other work gets a turn
_MIN_DICE: Final = 0.6
"""The Dice coefficient of the terms of two wordings of a sentence; few other pairs of sentences reach a third."""


MOST_CASES: Final = 20_000
"""Most questions in a set: so many are asked, scored and resampled in the available memory and time."""


@dataclass(frozen=True, slots=True)
class SetView:
    """A set as listed: its number of cases, of drafts, and of cases whose pages now say their evidence in other words
    (`moved`) or no longer (`lost`)."""

    id: str
    library: str
    name: str
    updated_at: str
    cases: int
    drafts: int
    moved: int
    lost: int
    owner: str = ""


class Sets:
    """Sets of one person, or of all who share an app without sign-in (an empty `owner`); None means everybody's.

    Safe to share between threads. Methods raise RagError("set_unknown") for a set that is missing or somebody else's.
    """

    def __init__(self, database: Database, owner: str | None = "") -> None:
        self._table = database.cases
        self._owner = owner

    def sets(self, library: str) -> list[SetView]:
        return [self._view(entry) for entry in self._table.sets(library, self._owner)]

    def set_of(self, set_id: str) -> SetView:
        return self._view(self._find(set_id))

    def named(self, library: str, name: str) -> SetView | None:
        """Return a set by its name or id, or None."""
        return next((view for view in self.sets(library) if name in (view.name, view.id)), None)

    def cases(self, set_id: str, *, approved: bool = False, offset: int = 0, limit: int = ALL) -> list[Case]:
        """Return cases in order, up to `limit` of them from `offset`; only the approved ones if `approved`."""
        rows = self._table.cases(self._find(set_id).id, approved=approved, offset=offset, limit=limit)
        return list(map(case_of, rows))

    def version(self, set_id: str) -> str:
        """Return a hash that identifies the wording of the approved cases."""
        return version_of(self.cases(set_id, approved=True))

    def ids(self, set_id: str) -> set[str]:
        return self._table.ids(self._find(set_id).id)

    def create(self, library: str, name: str) -> str:
        """Return the id of the set of that name, which is created if needed. Raises RagError("set_unnamed")."""
        if not (plain_name := to_plain_line(name)[:120]):
            raise RagError("set_unnamed")
        return self._table.add_set(library, self._owner or "", plain_name)

    def put(self, set_id: str, cases: Iterable[Case]) -> None:
        """Store cases, each replacing one with the same id. Raises RagError("set_full"), and stores none."""
        entry, by_id = self._find(set_id), {case.id: case for case in cases}
        total = self._table.counts(entry.id).cases + len(by_id)
        if total > MOST_CASES and len(self._table.ids(entry.id) | by_id.keys()) > MOST_CASES:
            raise RagError("set_full", most=f"{MOST_CASES:,}")
        self._table.put(entry.id, ((case.id, row_of(case)) for case in by_id.values()))

    def remove(self, set_id: str, case_ids: Sequence[str]) -> None:
        self._table.remove(self._find(set_id).id, case_ids)

    def delete(self, set_id: str) -> None:
        """Delete the set; runs over it remain, with their questions."""
        self._table.delete(self._find(set_id).id)

    def approve(self, set_id: str, case_ids: Sequence[str], approved: bool = True) -> None:
        """Let these cases take part in runs, or make them drafts again."""
        ids = set(case_ids)
        status: Status = "approved" if approved else "draft"
        self.put(set_id, [replace(case, status=status) for case in self.cases(set_id) if case.id in ids])

    def bring_in(self, library: str, name: str, text: str) -> str:
        """Create a set from a file's cases (JSONL, CSV, RAGAS's columns); return its id. Raises IngestError."""
        cases = read_cases(text, name, MOST_CASES)
        set_id = self.create(library, name)
        self.put(set_id, cases)
        return set_id

    def export(self, set_id: str, form: Format, answered: Mapping[str, RagasAnswer] | None = None) -> str:
        """Return the set as a file; RAGAS's rows include what a run `answered`."""
        return write_cases(self.cases(set_id), form, answered)

    def anchor(self, set_id: str, text_of: PageText) -> int:
        """Find the evidence in the current pages; return how many cases changed.

        Evidence that is now in other words is quoted again and marked as moved, evidence that is gone as lost; such a
        case becomes a draft, for a person to check.
        """
        cases = throttle(self.cases(set_id), _AT_ONCE)
        changes = [new for case in cases if (new := anchor(case, text_of)) != case]
        self.put(set_id, changes)
        return len(changes)

    def _find(self, set_id: str) -> StoredSet:
        entry = self._table.set_of(set_id, self._owner)
        if entry is None:
            raise RagError("set_unknown")
        return entry

    def _view(self, entry: StoredSet) -> SetView:
        return SetView(
            **{name: getattr(entry, name) for name in ("id", "library", "name", "updated_at", "owner")},
            **asdict(self._table.counts(entry.id)),
        )


def anchor(case: Case, text_of: Callable[[str], str | None]) -> Case:
    """Return the case with its evidence as its pages have it; a draft if a quote moved or was lost.

    Evidence without an address stays unchanged: nobody knows where it should be.
    """
    evidence = tuple(_anchor_row(item, text_of(item.url)) if item.url else item for item in case.evidence)
    if evidence == case.evidence:
        return case
    worse = any(new.state and new != old for new, old in zip(evidence, case.evidence, strict=True))
    return replace(case, evidence=evidence, status="draft" if worse else case.status)


def _anchor_row(evidence: Evidence, text: str | None) -> Evidence:
    if text is None:
        return replace(evidence, state="lost")
    if quote_coverage(squash(evidence.quote), squash(text)) >= WHOLE:
        return evidence if evidence.state == "moved" else replace(evidence, state="")
    nearest = _find_nearest(evidence.quote, text)
    return replace(evidence, quote=nearest, state="moved") if nearest else replace(evidence, state="lost")


def _find_nearest(quote: str, text: str) -> str:
    """Return the most similar sentences of the text, as many as the quote has; "" if none are similar enough."""
    size, spans = max(1, len(sentence_spans(quote))), sentence_spans(text)
    quote_terms = frozenset(terms(quote))
    windows = [(spans[i][0], spans[i + size - 1][1]) for i in range(len(spans) - size + 1)]
    best = max(windows, key=lambda window: _dice(quote_terms, terms(text[slice(*window)])), default=(0, 0))
    return text[slice(*best)] if _dice(quote_terms, terms(text[slice(*best)])) >= _MIN_DICE else ""


def _dice(first: frozenset[str], second: Sequence[str]) -> float:
    others = set(second)
    return 2 * len(first & others) / max(1, len(first) + len(others))
