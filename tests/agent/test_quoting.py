from __future__ import annotations

import pytest

from rag.agent.quoting import as_code, as_prose


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
