"""A question with what is known of its answer, and the forms in which sets of them come and go."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from rag.background import paced
from rag.errors import IngestError
from rag.text import inert, live, question_language, weigh

Status = Literal["draft", "approved"]
EvidenceState = Literal["", "moved", "lost"]
Format = Literal["jsonl", "csv", "ragas"]

_AT_ONCE: Final = 50  # rows that are read before others get on
_SENTENCE: Final = 40.0  # Latin characters' worth: what is shorter names something, and states nothing


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quote from a page that bears the answer out, and how much it is worth beside others.

    It is `moved` where its page says it in other words now, and `lost` where it does not say it any more.
    """

    url: str
    quote: str
    grade: float = 1.0
    state: EvidenceState = ""


@dataclass(frozen=True, slots=True)
class Case:
    """`answers` are those that people gave, any of them right. `answerable` is whether the pages hold the answer, None
    where nobody said. `history` is what was asked and answered before, oldest first; `without` are the addresses of
    pages that are left aside while it is asked.
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
        return [one.quote for one in self.evidence]

    @property
    def reference(self) -> str:
        """The answer as a text of its own, empty where it is but a name or a number."""
        return next((one for one in self.answers if weigh(one) >= _SENTENCE), "")


def version_of(cases: Iterable[Case]) -> str:
    """What tells this wording of a set from every other."""
    rows = sorted(json.dumps(row_of(case), sort_keys=True) for case in cases)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


# As rows of JSONL


def row_of(case: Case) -> dict[str, Any]:
    """The case as JSON values: {"id", "question", "lang", "answers", "evidence": [{"url", "quote"}], "tags"} …"""
    evidence = [{key: value for key, value in asdict(one).items() if value not in ("", 1.0)} for one in case.evidence]
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
        "history": [{"question": asked, "answer": said} for asked, said in case.history] or None,
        "without": list(case.without) or None,
        "status": None if case.status == "approved" else case.status,
    }
    return {**row, **{key: value for key, value in more.items() if value is not None}}


def case_of(row: Mapping[str, Any], number: int = 1) -> Case:
    """Raises KeyError, TypeError, ValueError or AttributeError for a row of another form."""
    question = str(row["question"]).strip()
    if not question:
        raise ValueError("an empty question")
    evidence = tuple(map(_evidence, row.get("evidence") or ()))
    answerable = row.get("answerable")
    return Case(
        id=str(row.get("id") or number),
        question=question,
        language=str(row.get("lang") or question_language(question)),
        answers=_texts(row.get("answers")),
        evidence=evidence,
        tags=_texts(row.get("tags")),
        answerable=answerable if isinstance(answerable, bool) else True if evidence else None,
        history=tuple((str(one["question"]), str(one.get("answer") or "")) for one in row.get("history") or ()),
        without=_texts(row.get("without")),
        status="draft" if row.get("status") == "draft" else "approved",
    )


def _evidence(row: Mapping[str, Any]) -> Evidence:
    states: dict[str, EvidenceState] = {"moved": "moved", "lost": "lost"}
    return Evidence(
        str(row.get("url", "")), str(row["quote"]), float(row.get("grade", 1)), states.get(row.get("state", ""), "")
    )


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list; one text stands for itself."""
    return (value,) if isinstance(value, str) and value else tuple(map(str, value or ()))


# As files


@dataclass(frozen=True, slots=True)
class Answered:
    """What RAGAS's rows hold beside the case: an answer, and the texts it was written from."""

    response: str = ""
    contexts: Sequence[str] = field(default=())


def read_cases(text: str, name: str, most: int | None = None) -> list[Case]:
    """The cases of a file: JSONL, or CSV with a head, each in the columns of `row_of` or RAGAS's.

    Raises IngestError: "set_row_broken" with the row that cannot be read, "set_row_twice" for one that stands there
    twice, "set_full" where there are more than `most`. Takes its time, so that others get on.
    """
    found: dict[str, Case] = {}
    number = 1
    try:
        for number, row in enumerate(paced(_rows(text), _AT_ONCE), 1):
            if most is not None and number > most:
                raise IngestError("set_full", most=f"{most:,}")
            given = json.loads(row) if isinstance(row, str) else row
            case = case_of(_from_ragas(given) if "user_input" in given else given, number)
            if case.id in found:
                raise IngestError("set_row_twice", name=name, line=number, id=case.id)
            found[case.id] = case
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, csv.Error) as error:
        raise IngestError("set_row_broken", name=name, line=number) from error
    return list(found.values())


def _rows(text: str) -> Iterator[str | dict[str, Any]]:
    """Lines of JSON, or the rows of a table with its lists taken apart."""
    text = text.lstrip("\ufeff")
    if text.lstrip()[:1] == "{":
        yield from (line for line in text.split("\n") if line.strip())
        return
    for row in csv.DictReader(io.StringIO(text)):
        yield {key: _cell(key, live(value)) for key, value in row.items() if key and value not in (None, "")}


def _cell(column: str, value: str) -> Any:
    """A cell of a table: lists are JSON, or their parts stand on lines of their own."""
    if column in ("answers", "evidence", "tags", "history", "without", "reference_contexts", "retrieved_contexts"):
        parts = json.loads(value) if value.lstrip()[:1] == "[" else value.split("\n")
        return [{"quote": part} if column == "evidence" and isinstance(part, str) else part for part in parts]
    return json.loads(value.lower()) if column == "answerable" else value


def _from_ragas(row: Mapping[str, Any]) -> dict[str, Any]:
    quotes = [{"quote": quote} for quote in row.get("reference_contexts") or ()]
    answers = [row["reference"]] if row.get("reference") else []
    return {**row, "question": row["user_input"], "answers": answers, "evidence": quotes}


def write_cases(cases: Sequence[Case], form: Format, answered: Mapping[str, Answered] | None = None) -> str:
    """The cases as a file that `read_cases` reads; as RAGAS's rows with what was `answered`, by the case's id."""
    if form == "ragas":
        return _lines(_as_ragas(case, (answered or {}).get(case.id, Answered())) for case in cases)
    rows = [row_of(case) for case in cases]
    if form == "jsonl":
        return _lines(rows)
    out = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({key: inert(_flat(value)) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _as_ragas(case: Case, answered: Answered) -> dict[str, Any]:
    return {
        "id": case.id,
        "user_input": case.question,
        "response": answered.response,
        "retrieved_contexts": list(answered.contexts),
        "reference": case.answers[0] if case.answers else "",
        "reference_contexts": case.quotes,
        "tags": list(case.tags),
    }


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool) else str(value)


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
