"""A question with its reference answer, the settings under which it is asked, and the file formats of question sets."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, Final, Literal

from rag.background import throttle
from rag.errors import IngestError
from rag.runs.run import Question, RunOptions
from rag.store.values import Filters
from rag.text import escape_formula, question_language, unescape_formula, weigh
from rag.web.urls import url_hash

Status = Literal["draft", "approved"]
EvidenceState = Literal["", "moved", "lost"]
Format = Literal["jsonl", "csv", "ragas"]

_AT_ONCE: Final = 50  # rows read before other threads get a turn
_MIN_SENTENCE: Final = 40.0  # in the equivalent of Latin characters; shorter text is a name, not a statement


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quote from a page that supports the answer; `grade` is its weight relative to others.

    Its `state` is "moved" if the page was reworded, and "lost" if the page no longer says it.
    """

    url: str
    quote: str
    grade: float = 1.0
    state: EvidenceState = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A question; any of its reference `answers` is right. `answerable` is whether the pages have the answer, None if
    unknown. `history` has earlier questions with answers, oldest first; `without` has the addresses of excluded pages.
    """

    id: str
    question: str
    language: str = ""
    answers: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    tags: tuple[str, ...] = ()
    answerable: bool | None = None
    history: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()
    status: Status = "approved"

    @property
    def quotes(self) -> list[str]:
        return [item.quote for item in self.evidence]

    @property
    def reference(self) -> str:
        """The first answer that is a sentence, "" if all are just names or numbers."""
        return next((answer for answer in self.answers if weigh(answer) >= _MIN_SENTENCE), "")


def version_of(cases: Iterable[Case]) -> str:
    """Return a hash that identifies the wording of a set."""
    rows = sorted(json.dumps(row_of(case), sort_keys=True) for case in cases)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


# As rows of JSONL


def row_of(case: Case) -> dict[str, Any]:
    """Return a case as JSON values: {"id", "question", "lang", "answers", "evidence": [{"url", "quote"}], "tags"} …"""
    evidence = [{key: value for key, value in asdict(item).items() if value not in ("", 1.0)} for item in case.evidence]
    row = {
        "id": case.id,
        "question": case.question,
        "lang": case.language,
        "answers": list(case.answers),
        "evidence": evidence,
        "tags": list(case.tags),
    }
    more = {
        "answerable": case.answerable,
        "history": [{"question": question, "answer": answer} for question, answer in case.history] or None,
        "without": list(case.without) or None,
        "status": None if case.status == "approved" else case.status,
    }
    return {**row, **{key: value for key, value in more.items() if value is not None}}


def case_of(row: Mapping[str, Any], number: int = 1) -> Case:
    """Parse a row of JSON values. Raises KeyError, TypeError, ValueError or AttributeError if it is invalid."""
    question = str(row["question"]).strip()
    if not question:
        raise ValueError("an empty question")
    states: dict[str, EvidenceState] = {"moved": "moved", "lost": "lost"}
    evidence = tuple(
        Evidence(str(e.get("url", "")), str(e["quote"]), float(e.get("grade", 1)), states.get(e.get("state", ""), ""))
        for e in row.get("evidence") or ()
    )
    answerable = row.get("answerable")
    return Case(
        id=str(row.get("id") or number),
        question=question,
        language=str(row.get("lang") or question_language(question)),
        answers=_read_texts(row.get("answers")),
        evidence=evidence,
        tags=_read_texts(row.get("tags")),
        answerable=answerable if isinstance(answerable, bool) else True if evidence else None,
        history=tuple((str(turn["question"]), str(turn.get("answer") or "")) for turn in row.get("history") or ()),
        without=_read_texts(row.get("without")),
        status="draft" if row.get("status") == "draft" else "approved",
    )


def _read_texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; a single text is a list of one."""
    return (value,) if isinstance(value, str) and value else tuple(map(str, value or ()))


# As files


@dataclass(frozen=True, slots=True)
class RagasAnswer:
    """The fields of a RAGAS row that a case lacks: an answer, and the texts it was written from."""

    response: str = ""
    contexts: Sequence[str] = field(default=())


def read_cases(text: str, name: str, limit: int | None = None) -> list[Case]:
    """Parse the cases of a file: JSONL, or CSV with a header, with the columns of `row_of` or RAGAS.

    Raises IngestError: "set_row_broken" with the number of an invalid row, "set_row_twice" for a duplicate id,
    "set_full" for more than `limit` rows. Pauses regularly so that other threads can run.
    """
    cases: dict[str, Case] = {}
    number = 1
    try:
        for number, row in enumerate(throttle(_iter_rows(text), _AT_ONCE), 1):
            if limit is not None and number > limit:
                raise IngestError("set_full", most=f"{limit:,}")
            data = json.loads(row) if isinstance(row, str) else row
            if "user_input" in data:  # a row of RAGAS
                quotes = [{"quote": quote} for quote in data.get("reference_contexts") or ()]
                answers = [data["reference"]] if data.get("reference") else []
                data = {**data, "question": data["user_input"], "answers": answers, "evidence": quotes}
            case = case_of(data, number)
            if case.id in cases:
                raise IngestError("set_row_twice", name=name, line=number, id=case.id)
            cases[case.id] = case
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, csv.Error) as error:
        raise IngestError("set_row_broken", name=name, line=number) from error
    return list(cases.values())


def _iter_rows(text: str) -> Iterator[str | dict[str, Any]]:
    """Yield lines of JSON, or the rows of a table with their lists parsed."""
    text = text.lstrip("\ufeff")
    if text.lstrip()[:1] == "{":
        yield from (line for line in text.split("\n") if line.strip())
        return
    for row in csv.DictReader(io.StringIO(text)):
        yield {
            key: _parse_cell(key, unescape_formula(value))
            for key, value in row.items()
            if key and value not in (None, "")
        }


def _parse_cell(column: str, value: str) -> Any:
    """Parse a cell of a table: lists are JSON, or have one part per line."""
    if column in ("answers", "evidence", "tags", "history", "without", "reference_contexts", "retrieved_contexts"):
        parts = json.loads(value) if value.lstrip()[:1] == "[" else value.split("\n")
        return [{"quote": part} if column == "evidence" and isinstance(part, str) else part for part in parts]
    return json.loads(value.lower()) if column == "answerable" else value


def write_cases(cases: Sequence[Case], form: Format, answers: Mapping[str, RagasAnswer] | None = None) -> str:
    """Return the cases as a file for `read_cases`; RAGAS's rows include the `answers`, by the case's id."""
    rows = [row_of(case) for case in cases]
    if form == "ragas":
        pairs = [(case, (answers or {}).get(case.id, RagasAnswer())) for case in cases]
        rows = [
            {
                "id": case.id,
                "user_input": case.question,
                "response": answer.response,
                "retrieved_contexts": list(answer.contexts),
                "reference": case.answers[0] if case.answers else "",
                "reference_contexts": case.quotes,
                "tags": list(case.tags),
            }
            for case, answer in pairs
        ]
    if form != "csv":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    for row in rows:
        cells = {
            key: json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool) else str(value)
            for key, value in row.items()
        }
        table.writerow({key: escape_formula(cell) for key, cell in cells.items()})
    return out.getvalue()


# Settings

NO_MODEL: Final = "none"
"""The model name for no model: answers are quotes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A point in the grid. `library` replaces the run's, for example by one with another chunker; `model` is a chat
    model of the service in the settings, or NO_MODEL. `k` of `fetch_k` candidates are used. "" and 0 mean the default.
    """

    mode: str = "fast"
    strategy: str = ""
    library: str = ""
    model: str = ""
    k: int = 0
    fetch_k: int = 0

    @property
    def name(self) -> str:
        """A name that is unique among the settings of a run."""
        if self == CLASSIC:
            return self.strategy
        numbers = [f"{name}={number}" for name, number in (("k", self.k), ("fetch_k", self.fetch_k)) if number]
        return "/".join(filter(None, [self.mode, self.strategy, self.library, self.model, *numbers]))

    def question(self, case: Case, library: str) -> Question:
        options = RunOptions(strategy=self.strategy, k=self.k, fetch_k=self.fetch_k)
        scope = Filters(without=tuple(map(url_hash, case.without)))
        return Question(case.question, (self.library or library,), self.mode, scope, options)


CLASSIC: Final = Setting("fast", "classic", k=10, fetch_k=20)
"""The usual setup of tutorials: answers from ten of the twenty nearest passages, selected by MMR (λ = 0.7)."""


def grid(
    modes: Sequence[str] = (),
    strategies: Sequence[str] = (),
    libraries: Sequence[str] = (),
    models: Sequence[str] = (),
    *,
    classic: bool = False,
) -> list[Setting]:
    """Return all combinations; an empty axis has only the default."""
    axes = (modes or ["fast"], strategies or [""], libraries or [""], models or [""])
    return [*(Setting(*point) for point in product(*axes)), *([CLASSIC] if classic else [])]
