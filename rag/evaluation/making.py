"""Cases made of what is there: what people thought of answers, and the pages themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag.evaluation.cases import Case, case_of


def of_feedback(rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Cases of `Feedback.questions`; what has no answer is a draft."""
    return [
        case_of({**row, "status": "approved" if row["answers"] else "draft", "tags": _tags(row)})
        for row in rows
        if row["question"].strip()
    ]


def _tags(row: Mapping[str, Any]) -> list[str]:
    return [one for one in ("feedback", "good" if row["rating"] > 0 else "bad", row.get("reason", "")) if one]
