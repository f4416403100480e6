"""Sets of questions: kept with the library, brought in and out, made of what people thought, and of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from rag.background import paced
from rag.errors import RagError
from rag.evaluation.cases import (
    Answered,
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
from rag.evaluation.evidence import WHOLE, covered_share, squash
from rag.store.sql.database import Database
from rag.store.sql.evaluation_table import KeptSet
from rag.store.sql.table import ALL
from rag.text import plain, sentence_spans, terms

PageText = Callable[[str], str | None]
"""The text of the page of an address; None where it is not there."""
_AT_ONCE: Final = 20  # cases whose evidence is looked for before others get on
_ALIKE: Final = 0.6
"""Dice's share of terms that two wordings of one sentence have in common; of unlike ones few have a third."""


MOST_CASES: Final = 20_000
"""Questions that a set may have: as many are asked, scored and drawn in the memory and time that there is."""


@dataclass(frozen=True, slots=True)
class SetView:
    """A set as it is listed: how many cases it has, how many of them are drafts, and of how many pages no longer say
    what they said (`lost`)."""

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
    """Of one person, or of all who share an app without sign-in (an empty `owner`); None is everybody's.

    Safe to share between threads. Methods raise RagError("set_unknown") for a set that is not there or somebody else's.
    """

    def __init__(self, database: Database, owner: str | None = "") -> None:
        self._table = database.cases
        self._owner = owner

    def sets(self, library: str) -> list[SetView]:
        return [self._view(kept) for kept in self._table.sets(library, self._owner)]

    def set_of(self, set_id: str) -> SetView:
        return self._view(self._kept(set_id))

    def named(self, library: str, name: str) -> SetView | None:
        """By its name or id."""
        return next((one for one in self.sets(library) if name in (one.name, one.id)), None)

    def cases(self, set_id: str, *, approved: bool = False, offset: int = 0, limit: int = ALL) -> list[Case]:
        """In order, `limit` of them from `offset` on; the approved ones alone, where asked for."""
        kept = self._table.cases(self._kept(set_id).id, approved=approved, offset=offset, limit=limit)
        return list(map(case_of, kept))

    def version(self, set_id: str) -> str:
        """What tells the wording of the approved ones from every other."""
        return version_of(self.cases(set_id, approved=True))

    def ids(self, set_id: str) -> set[str]:
        return self._table.ids(self._kept(set_id).id)

    def create(self, library: str, name: str) -> str:
        """A set of that name, a new one where there is none; returns its id. Raises RagError("set_unnamed")."""
        if not (plain_name := plain(name)[:120]):
            raise RagError("set_unnamed")
        return self._table.add_set(library, self._owner or "", plain_name)

    def put(self, set_id: str, cases: Iterable[Case]) -> None:
        """Keep cases, each in the place of one with the same id. Raises RagError("set_full"), and keeps none."""
        kept, given = self._kept(set_id), {case.id: case for case in cases}
        most = self._table.counts(kept.id).cases + len(given)
        if most > MOST_CASES and len(self._table.ids(kept.id) | given.keys()) > MOST_CASES:
            raise RagError("set_full", most=f"{MOST_CASES:,}")
        self._table.put(kept.id, ((case.id, row_of(case)) for case in given.values()))

    def remove(self, set_id: str, case_ids: Sequence[str]) -> None:
        self._table.remove(self._kept(set_id).id, case_ids)

    def delete(self, set_id: str) -> None:
        """Remove the set; runs over it stay, with their questions."""
        self._table.delete(self._kept(set_id).id)

    def approve(self, set_id: str, case_ids: Sequence[str], approved: bool = True) -> None:
        """Let these take part in runs, or make drafts of them again."""
        wanted = set(case_ids)
        status: Status = "approved" if approved else "draft"
        self.put(set_id, [replace(case, status=status) for case in self.cases(set_id) if case.id in wanted])

    def bring_in(self, library: str, name: str, text: str) -> str:
        """A set of a file's cases (JSONL, CSV, RAGAS's columns); returns its id. Raises IngestError."""
        cases = read_cases(text, name, MOST_CASES)
        set_id = self.create(library, name)
        self.put(set_id, cases)
        return set_id

    def export(self, set_id: str, form: Format, answered: Mapping[str, Answered] | None = None) -> str:
        """The set as a file; RAGAS's rows with what a run `answered`."""
        return write_cases(self.cases(set_id), form, answered)

    def anchor(self, set_id: str, text_of: PageText) -> int:
        """Look for the evidence in the pages as they are now; returns how many cases changed.

        What is said in other words is quoted anew and marked as moved, what is not said any more as lost; such a case
        is a draft again, for a person to look at.
        """
        cases = paced(self.cases(set_id), _AT_ONCE)
        changed = [new for case in cases if (new := anchor(case, text_of)) != case]
        self.put(set_id, changed)
        return len(changed)

    def _kept(self, set_id: str) -> KeptSet:
        found = self._table.set_of(set_id, self._owner)
        if found is None:
            raise RagError("set_unknown")
        return found

    def _view(self, kept: KeptSet) -> SetView:
        return SetView(
            **{name: getattr(kept, name) for name in ("id", "library", "name", "updated_at", "owner")},
            **asdict(self._table.counts(kept.id)),
        )


def anchor(case: Case, text_of: Callable[[str], str | None]) -> Case:
    """The case with its evidence as its pages have it; a draft where a quote moved or was lost.

    Evidence without an address stays as it is: nobody knows where it should stand.
    """
    evidence = tuple(_anchor_row(one, text_of(one.url)) if one.url else one for one in case.evidence)
    if evidence == case.evidence:
        return case
    worse = any(new.state and new != old for new, old in zip(evidence, case.evidence, strict=True))
    return replace(case, evidence=evidence, status="draft" if worse else case.status)


def _anchor_row(evidence: Evidence, text: str | None) -> Evidence:
    if text is None:
        return replace(evidence, state="lost")
    if covered_share(squash(evidence.quote), squash(text)) >= WHOLE:
        return evidence if evidence.state == "moved" else replace(evidence, state="")
    nearest = _nearest(evidence.quote, text)
    return replace(evidence, quote=nearest, state="moved") if nearest else replace(evidence, state="lost")


def _nearest(quote: str, text: str) -> str:
    """The sentences of the text that say most nearly the same, as many as the quote has; "" where none do."""
    size, spans = max(1, len(sentence_spans(quote))), sentence_spans(text)
    wanted = frozenset(terms(quote))
    windows = [(spans[at][0], spans[at + size - 1][1]) for at in range(len(spans) - size + 1)]
    best = max(windows, key=lambda window: _dice(wanted, terms(text[slice(*window)])), default=(0, 0))
    return text[slice(*best)] if _dice(wanted, terms(text[slice(*best)])) >= _ALIKE else ""


def _dice(wanted: frozenset[str], found: Sequence[str]) -> float:
    theirs = set(found)
    return 2 * len(wanted & theirs) / max(1, len(wanted) + len(theirs))
