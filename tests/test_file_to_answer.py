"""From a file to a quoted answer: its structure carries over, and struck or hidden text does not.

One library of files, read, split and indexed like uploads; each row asks it one question.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from rag.app import App
from tests.support import office
from tests.support.apps import add_files, ask, open_app
from tests.support.pdf_files import lines, make_pdf, rows, text

PROSE = "".join(
    f"<p>Paragraph {n} tells at some length how the shipyard of the town keeps its ledgers in order all year.</p>"
    for n in range(4)
)


def page(title: str, body: str) -> bytes:
    main = f"<main><h1>{title}</h1>{PROSE}{body}{PROSE}</main>"
    return f"<html lang=en><title>{title}</title><body>{main}</body></html>".encode()


def paragraph(line: str) -> str:
    """Return a Word paragraph, which may have a reference to a note."""
    first, mark, rest = line.partition(REFERENCE)
    runs = (f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>" for text in (first, rest))
    return f"<w:p>{next(runs)}{mark}{next(runs)}</w:p>"


BOATS = (
    "<table><tr><th>Boat</th><th>2021</th><th>2022</th><th>2023</th></tr><tr><td>Gannet</td><td></td><td></td><td>520</td></tr>"
    "<tr><td>Dunlin</td><td>130</td><td></td><td>80</td></tr><tr><td>Plover</td><td>25</td><td>26</td><td>27</td></tr></table>"
)
SLIPS = (
    "<table><thead><tr><th rowspan=2>Slip</th><th colspan=2>Summer</th><th colspan=2>Winter</th></tr><tr><th>Depth</th>"
    "<th>Fee</th><th>Depth</th><th>Fee</th></tr></thead><tr><td rowspan=2>Eastern slip</td><td>4 m</td><td>31 EUR</td>"
    "<td>3 m</td><td>19 EUR</td></tr><tr><td>5 m</td><td>35 EUR</td><td>4 m</td><td>22 EUR</td></tr>"
    "<tr><td>Western slip</td><td>7 m</td><td>44 EUR</td><td>6 m</td><td>28 EUR</td></tr></table>"
)
KIT = (
    "<table><tr><td></td><th>Plain kit</th><th>Full kit</th></tr>"
    "<tr><th>Varnish brush</th><td><img alt=No></td><td><img alt=Yes></td></tr></table>"
)
BASIN = "<p>The basin of the yard holds about 3.2×10<sup>6</sup> litres<sup><a href=#n2>2</a></sup>.</p>"
REFERENCE = "<w:r><w:footnoteReference w:id='1'/></w:r>"
LINES = (
    *(f"Paragraph {n} tells at some length how the harbour master of the town keeps the peace." for n in range(4)),
    f"A mooring fee of 45 crowns{REFERENCE} is due on arrival.",
    "The harbour master collects it on the quay.",
)
NOTE = "The mooring fee is waived for vessels under four metres."
OIL: list[list[object]] = [
    ["Oil of the lamps in litres"],
    [],
    ["Lamp", 2021, 2022],
    ["Skerry", None, 310],
    ["Holm", 140],
]
TIDES = (
    ("Gauge", "2021", "2022", "2023"),
    ("Skua rock", "", "412 cm", "398 cm"),
    ("Razorbill pier", "377 cm", "", "365 cm"),
)
READER = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(Marit Olsen)/Rect[190 518 400 536]>>"
GAUGES = make_pdf(
    lines(60, 740, "Highest tides of the coast, by gauge and year", size=16)
    + lines(60, 700, *(f"Paragraph {n} tells at some length how the gauges of the coast are read." for n in range(4)))
    + rows(600, (60, 200, 280, 360), *TIDES)
    + text(60, 524, "Reader of the gauges:"),
    catalog="/AcroForm<</Fields[4 0 R]>>",
    page="/Annots[4 0 R]",
    objects=[READER],
)
CREWS = "".join(f"<tr><td>Skiff {n}</td><td>{200 + n} kg</td><td>{n % 7 + 2} rowers</td></tr>" for n in range(1, 90))
FILES = {
    "boats.html": page("Boats sold by year", BOATS),
    "slips.html": page("Slips of the yard", SLIPS),
    "skiffs.html": page("Register of skiffs", f"<table><tr><th>Skiff<th>Weight<th>Crew</tr>{CREWS}</table>"),
    "fees.html": page(
        "Fees of the yard", "<p>Scraping the hull of a yawl costs <s>99 EUR</s> 79 EUR in any season.</p>"
    ),
    "dates.html": page(
        "Dates of the yard", "<p>Requests for a dry dock close on <del>1 May</del> <ins>8 May</ins>.</p>"
    ),
    "basin.html": page("The basin", BASIN),
    "kit.html": page("What each kit has", KIT),
    "rules.docx": office.docx(
        "".join(paragraph(line) for line in LINES), footnotes=f"<w:footnote w:id='1'>{paragraph(NOTE)}</w:footnote>"
    ),
    "oil.xlsx": office.xlsx(OIL),
    "tides.pdf": GAUGES,
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield an app with FILES."""
    with closing(open_app(tmp_path_factory.mktemp("data"))) as app:
        assert set(add_files(app, *FILES.items())) == {"added"}
        yield app


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("How many Gannet boats were sold in 2023?", "Gannet: 520 (2023)", ()),
        ("How many Dunlin boats were sold in 2021?", "Dunlin: 130 (2021) · 80 (2023)", ()),
        ("How many Plover boats were sold in 2022?", "25 (2021) · 26 (2022) · 27 (2023)", ()),
        ("What is the winter fee of the Western slip?", "28 EUR (Winter Fee)", ()),
        ("What is the summer fee of the Eastern slip at 5 m?", "5 m (Summer Depth) · 35 EUR (Summer Fee)", ()),
        ("What is the weight of skiff 77?", "Skiff 77: 277 kg (Weight) · 2 rowers (Crew)", ()),
        ("What does scraping the hull of a yawl cost?", "costs 79 EUR in any season", ("99 EUR",)),
        ("When do requests for a dry dock close?", "close on 8 May", ("1 May",)),
        ("How much water does the basin hold?", "about 3.2×10^6 litres.", ("106", "[^2]")),
        ("Which vessels is the mooring fee waived for?", "waived for vessels under four metres", ()),
        ("How much is the mooring fee?", "A mooring fee of 45 crowns is due on arrival", ("451",)),
        ("How much oil did the Skerry lamp burn in 2022?", "Skerry: 310 (2022)", ("310 (2021)",)),
        ("How much oil did the Holm lamp burn in 2021?", "Holm: 140 (2021)", ()),
        ("How high was the tide at Skua rock in 2022?", "Skua rock: 412 cm (2022)", ("412 cm (2021)",)),
        ("How high was the tide at Razorbill pier in 2023?", "365 cm (2023)", ("365 cm (2022)",)),
        ("Who is the reader of the gauges?", "Marit Olsen", ()),
        ("Does the plain kit have a varnish brush?", "Varnish brush: No (Plain kit) · Yes (Full kit)", ()),
    ],
)
def test_what_a_file_says_is_quoted(app: App, question: str, said: str, unsaid: tuple[str, ...]) -> None:
    answer = ask(app, question)
    assert said in answer.text
    assert not [words for words in unsaid if words in answer.text]
