from __future__ import annotations

from rag.agent.quotable import MOST_COMMANDS, quotables


def written(text: str) -> list[tuple[str, ...]]:
    return [part.lines for part in quotables(text)]


def test_sentences_stand_for_themselves() -> None:
    assert written("One is **red**. Two is blue.\n- three") == [("One is red.",), ("Two is blue.",), ("three",)]


def test_commands_belong_together_and_to_what_leads_to_them() -> None:
    assert written("Run it:\n```\nmake all\nmake \\\n  test\n```\nDone.") == [
        ("Run it:", "`make all`", "`make test`"),
        ("Done.",),
    ]


def test_a_sentence_before_code_stays_apart_where_it_does_not_lead_to_it() -> None:
    assert written("It is fast.\n~~~sh\nmake all\n~~~") == [("It is fast.",), ("`make all`",)]


def test_other_code_is_quoted_by_lines() -> None:
    indented = "```python\ndef double(n):\n    return 2 * n\n```"
    assert written(indented) == [("`def double(n):`",), ("`return 2 * n`",)]
    long = "\n".join(f"step {n}" for n in range(MOST_COMMANDS + 1))
    assert len(written(f"```\n{long}\n```")) == MOST_COMMANDS + 1


def test_headings_and_questions_are_told_apart_from_code() -> None:
    heading, question, code = quotables("# Usage\n\nIs it safe?\n\n```\n# Is it safe?\n```")
    assert heading.is_heading and not heading.asks
    assert question.asks and not question.is_heading
    assert code.is_code and not code.asks and not code.is_heading


def test_code_without_words_or_end_is_no_trouble() -> None:
    assert written("```\n{\n}\n```") == []
    assert written("Run:\n```\nmake") == [("Run:", "`make`")]
    assert written("") == []
