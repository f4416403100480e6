"""Slides: titles, lists, tables, charts and notes, in their order."""

from __future__ import annotations

from typing import Any

import pptx
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE

from rag.reading.documents.pptx import read_pptx
from tests.support import office


def text_of(presentation: Any) -> str:
    return read_pptx(office.saved(presentation), "x.pptx").text


def paragraph(text: str, properties: str = "", run: str = "") -> str:
    return f"<a:p><a:pPr {properties}</a:pPr><a:r><a:rPr {run}/><a:t>{text}</a:t></a:r></a:p>"


def test_slides_with_their_titles_bodies_and_notes() -> None:
    presentation = pptx.Presentation()
    first = presentation.slides.add_slide(presentation.slide_layouts[0])
    first.shapes.title.text, first.placeholders[1].text = "The harbour\vin 2024", "A report"
    second = presentation.slides.add_slide(presentation.slide_layouts[1])
    second.shapes.title.text, second.placeholders[1].text = "Fees", "by day\nby night"
    second.placeholders[1].text_frame.paragraphs[1].level = 1
    second.notes_slide.notes_text_frame.text = "Say it slowly.\nTwice."
    presentation.slides.add_slide(presentation.slide_layouts[5])._element.set("show", "0")
    found = read_pptx(office.saved(presentation), "x.pptx")
    assert found.title == "The harbour in 2024"
    assert found.text == (
        "## Slide 1 · The harbour in 2024\n\nA report\n\n## Slide 2 · Fees\n\n- by day\n  - by night\n\n"
        "Notes: Say it slowly. Twice.\n\n## Slide 3 (hidden)"
    )


def test_paragraphs_and_lists_of_a_shape() -> None:
    numbered, marked = "<a:buAutoNum type='arabicPeriod'/>", "<a:buChar char='•'/>"
    shape = office.shape(
        paragraph("Steps", ">")
        + paragraph("open", f">{numbered}")
        + paragraph("slowly", f"lvl='1'>{marked}")
        + paragraph("close", f">{numbered}")
        + paragraph("88", ">", "strike='sngStrike'")
        + "<a:p/>"
        + paragraph("open", f">{numbered}")
    )
    text = read_pptx(office.pptx(shape, office.shape(paragraph("7", ">"), role="sldNum")), "x.pptx").text
    assert text == "## Slide 1\n\nSteps\n\n1. open\n  - slowly\n2. close\n\n~~88~~\n\n1. open\n\n## Slide 2"


def test_a_table_with_merged_cells() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(3, 3, 0, 0, 900, 900).table
    for row, texts in enumerate((("Coast", "2021", "2022"), ("North", "", "3"), ("", "5", "7"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    assert text_of(presentation) == (
        "## Slide 1\n\n| Coast | 2021 | 2022 |\n|---|---|---|\n| North |  | 3 |\n| North | 5 | 7 |"
    )


def test_the_figures_of_charts() -> None:
    presentation = pptx.Presentation()
    shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
    bars, points = CategoryChartData(), XyChartData()
    bars.categories = ["North", "South"]
    bars.add_series("2021", (3, None))
    bars.add_series("2022", (0.1 + 0.2, 4))
    points.add_series("Depth").add_data_point(1.5, 2)
    drawn = shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 900, 900, bars).chart
    drawn.has_title = True
    drawn.chart_title.text_frame.text = "Berths"
    shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, 900, 900, points)
    assert text_of(presentation) == (
        "## Slide 1\n\nBerths\n\n|  | 2021 | 2022 |\n|---|---|---|\n| North | 3 | 0.3 |\n| South |  | 4 |\n\n"
        "|  | Depth |\n|---|---|\n| 1.5 | 2 |"
    )
