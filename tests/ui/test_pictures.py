"""Pictures are whole SVG whatever they show, and what they show is text, not markup."""

from __future__ import annotations

from xml.etree import ElementTree

from rag.evaluation.comparison import compare
from rag.evaluation.evaluation import Bin
from rag.evaluation.statistics import Estimate
from rag.ui.evaluation.charts import by_run, calibration, differences, plot
from rag.ui.research_picture import picture

HOSTILE = '<script>alert("1")</script> & 《龙井》'


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text")]


def step(number: int, text: str = HOSTILE, **more: object) -> dict[str, object]:
    return {"id": f"s{number}", "sub_question": text, "status": "done", "needs": [], "by": "plan", "round": 1, **more}


def test_the_way_of_a_run() -> None:
    steps = [step(1), step(2, status="failed", needs=["s1"], round=2), step(3, by="revision", round=2)]
    never = {key: value for key, value in step(4, status="skipped").items() if key != "round"}
    drawn = picture(HOSTILE, [*steps, never], "en")
    assert sum(text.startswith("<scri") for text in texts(drawn)) == 5
    boxes = [one for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("rect")]
    columns = sorted({float(box.attrib["x"]) for box in boxes})
    assert len(boxes) == 6 and len(columns) == 5, "the question, two rounds, what never began, the report"
    assert drawn.count("stroke-dasharray") == 2, "the step that was not carried out, and the way to it"


def test_figures_with_intervals() -> None:
    first = {str(n): {"recall@4000": n % 2, "calls": 1.0} for n in range(20)}
    second = {str(n): {"recall@4000": 1.0, "calls": 2.0} for n in range(20)}
    (found,) = compare([first, second], names=["recall@4000", "calls"])
    shown = texts(differences(found, "zh"))
    assert "recall@4000" in shown and "+0.500" in shown and "+1.000" in shown
    assert "0.250" in texts(by_run("contains", [(HOSTILE, Estimate(0.25, 0.1, 0.4)), ("flat", Estimate(1, 1, 1))]))


def test_points_and_calibration() -> None:
    assert len(texts(plot("told", [(1.0, 0.5, HOSTILE), (1.0, 0.5, "")]))) == 5
    assert "n = 7" in texts(calibration([Bin(0.1, 0.2, 7, 0.3), Bin(0.9, 1.0, 9, 1.0)], "en"))
