"""The benchmark of fidelity: its checks of a text, and that the app reads every constructed file correctly."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks.fidelity import __main__ as fidelity
from benchmarks.fidelity.case import Case, faults
from rag.reading.parser import Parser

TEXT = b"The lamp  is lit at 7.\n\n| Skerry |  | 310 |\n"


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    with Parser() as made:
        yield made


def of_text(**expected: object) -> Case:
    return Case("plain", "text", TEXT, "text/plain", name="lamp.txt", **expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"must": ("lamp is lit", "lamp  is", ("8", "7")), "must_not": ("~~",), "title": "lamp"}, []),
        ({"must": ("| Skerry | | 310 |",), "once": ("310",)}, []),
        ({"must": ("Holm", ("8", "9"))}, ["lacks 'Holm'", "lacks ('8', '9')"]),
        ({"must_not": ("310",)}, ["has '310'"]),
        ({"once": ("i",)}, ["has 'i' 2 times"]),
        ({"title": "Lamps"}, ["title 'lamp'"]),
        ({"error": "empty"}, ["not refused as empty"]),
        ({"notice": "gate_mojibake"}, ["needs review: ''"]),
    ],
)
def test_faults(parser: Parser, expected: dict[str, object], said: list[str]) -> None:
    assert faults(of_text(**expected), parser) == said


def test_a_refusal(parser: Parser) -> None:
    assert faults(Case("plain", "blank", b" \n", "text/plain", error="empty"), parser) == []
    assert faults(Case("plain", "blank", b" \n", "text/plain"), parser) == ["refused: empty"]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.main(["html", "--only", "ruby", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["set"] == "html" and told["cases"] > 0


@pytest.mark.parametrize("name", fidelity.SETS)
def test_every_file_is_read_right(name: str) -> None:
    """If one is not, `python -m benchmarks.fidelity NAME --faults` lists the errors."""
    assert fidelity.wrong(fidelity.measure(fidelity.SETS[name]())) == {}
