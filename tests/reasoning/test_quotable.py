from __future__ import annotations

import pytest

from rag.reasoning.extractive import MAX_COMMANDS, as_code, as_prose, quotables


def written(text: str) -> list[tuple[str, ...]]:
    return [part.lines for part in quotables(text)]


def test_sentences_stand_for_themselves() -> None:
    assert written("One is **red**. Two is blue.\n- three") == [("One is red.",), ("Two is blue.",), ("three",)]


def test_check_boxes_are_list_marks() -> None:
    assert written("- [ ] one\n- [x] two\n\n[ ] three\n\n[x] is a set.") == [
        ("one",),
        ("two",),
        ("three",),
        ("[x] is a set.",),
    ]


def test_commands_belong_together_and_to_what_leads_to_them() -> None:
    assert written("Run it:\n```\nmake all\nmake \\\n  test\n```\nDone.") == [
        ("Run it:", "`make all`", "`make test`"),
        ("Done.",),
    ]


def test_a_sentence_before_code_is_separate_unless_it_introduces_it() -> None:
    assert written("It is fast.\n~~~sh\nmake all\n~~~") == [("It is fast.",), ("`make all`",)]


def test_other_code_is_quoted_by_lines() -> None:
    indented = "```python\ndef double(n):\n    return 2 * n\n```"
    assert written(indented) == [("`def double(n):`",), ("`return 2 * n`",)]
    long = "\n".join(f"step {n}" for n in range(MAX_COMMANDS + 1))
    assert len(written(f"```\n{long}\n```")) == MAX_COMMANDS + 1


def test_headings_and_questions_are_told_apart_from_code() -> None:
    heading, question, code = quotables("# Usage\n\nIs it safe?\n\n```\n# Is it safe?\n```")
    assert heading.is_heading and not heading.asks
    assert question.asks and not question.is_heading
    assert code.is_code and not code.asks and not code.is_heading


def test_code_without_words_or_end_is_no_trouble() -> None:
    assert written("```\n{\n}\n```") == []
    assert written("Run:\n```\nmake") == [("Run:", "`make`")]
    assert written("") == []


def test_table_rows_get_their_header_from_another_passage() -> None:
    table = "| Boat | 2021 | 2022 |\n|---|---|---|\n| Tern |  | 7 |\n| Auk | a\\|b | 8 |\n|  | 5 | 6 |"
    assert written(table)[2:] == [("Tern: 7 (2022)",), ("Auk: a|b (2021) · 8 (2022)",), ("5 (2021) · 6 (2022)",)]
    header = "| Boat | 2021 | 2022 |\n|---|---|---|"
    assert quotables("| Tern |  | 7 |", header)[0].lines == ("Tern: 7 (2022)",)
    assert written("|  |  |\n|---|---|\n| Height | 21 m |")[-1] == ("Height: 21 m",)


def test_what_is_struck_out_is_not_quoted() -> None:
    assert written("A berth costs ~~99 EUR~~ 79 EUR a night.") == [("A berth costs 79 EUR a night.",)]
    assert written("~~The pier is closed. Come later.~~\n\nIt is open.") == [("It is open.",)]
    assert written("| Pier | Fee |\n|---|---|\n| A | ~~8~~ 6 |")[-1] == ("A: 6 (Fee)",)
    assert written("- ~~Boat at nine~~\n- Boat at ten") == [("Boat at ten",)]


def test_marks_of_notes_stay_behind() -> None:
    assert written("It holds 4500[^2] boats, as `[^2]` says.") == [("It holds 4500 boats, as `[^2]` says.",)]


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("- The **blue** pass costs 9 euros.", "The blue pass costs 9 euros."),
        ("1. Open the lid", "Open the lid"),
        ("- -7 °C in winter", "-7 °C in winter"),
        ("A __bold claim__ and\nmore", "A bold claim and more"),
        ("Call `__enter__` and set `y = 4 ** 2`.", "Call `__enter__` and set `y = 4 ** 2`."),
        ("The value is 4 ** 2 here.", "The value is 4 ** 2 here."),
        ("Methods like __repr__ are called by Python.", "Methods like `__repr__` are called by Python."),
        ("Use snake__case__names freely.", "Use snake__case__names freely."),
        ("| Plan | **9 euros** |", "Plan · 9 euros"),
        ("用 `a ** b` 计算**乘方**。", "用 `a ** b` 计算乘方。"),
    ],
)
def test_prose_loses_emphasis_and_keeps_code(text: str, prose: str) -> None:
    assert as_prose(text) == prose


@pytest.mark.parametrize(
    ("line", "code"),
    [("  ls  -l ", "`ls  -l`"), ("echo `date`", "`` echo `date` ``"), ("a ``b`` c", "```a ``b`` c```")],
)
def test_code_stands_between_enough_backticks(line: str, code: str) -> None:
    assert as_code(line) == code


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("## Not paid\n\n- Fines.\n- Films.", ["## Not paid", "Not paid: Fines.", "Not paid: Films."]),
        (
            "What to bring:\n\n1. A towel.\n2. A lock.",
            ["What to bring:", "What to bring: A towel.", "What to bring: A lock."],
        ),
        ("## 不予报销\n\n- 罚款。", ["## 不予报销", "不予报销：罚款。"]),
        ("## Rules\n\nBe on time.\n\n- No dogs.", ["## Rules", "Be on time.", "No dogs."]),
        ("## What may I bring?\n\n* A dog.", ["## What may I bring?", "What may I bring? A dog."]),
        ("- No dogs.", ["No dogs."]),
        ("## Not paid\n\n- Fines. Never.\n- Films.", ["## Not paid", "Not paid: Fines.", "Never.", "Not paid: Films."]),
    ],
)
def test_a_list_item_begins_with_the_heading_or_introduction_of_its_list(text: str, lines: list[str]) -> None:
    assert [line for unit in quotables(text) for line in unit.lines] == lines
