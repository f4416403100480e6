"""Numbers in the formats of Word; how they are counted is in the tests of Word files."""

from __future__ import annotations

import pytest

from rag.reading.documents.docx import format_number


@pytest.mark.parametrize(
    ("form", "counts"),
    [
        ("decimal", "1 2 28"),
        ("decimalZero", "01 02 28"),
        ("upperLetter", "A B BB"),
        ("lowerRoman", "i ii xxviii"),
        ("chineseCountingThousand", "一 二 二十八"),
        ("ideographTraditional", "甲 乙 28"),
        ("decimalEnclosedCircle", "① ② 28"),
    ],
)
def test_number_formats(form: str, counts: str) -> None:
    assert " ".join(format_number(count, form) for count in (1, 2, 28)) == counts
