"""The questions of `benchmarks.listings`."""

from __future__ import annotations

from benchmarks.listings import select_questions

TEXT = "Monitor arms for desks.\n\nM10 Monitor Arm\n\nStarting at $459\n\nIt ships within a week."


def test_an_answer_in_a_short_line_is_an_attribute() -> None:
    answers = [TEXT.index("$459"), TEXT.index("a week")]
    rows = [{"question": "?", "answer": [start, start + 4]} for start in answers] + [{"question": "?"}]
    selected = [(kind, row["answers"]) for kind, row in select_questions(rows, TEXT)]
    assert selected == [("attribute", ["$459"]), ("other", ["a we"]), ("near miss", [])]
