"""Pictures are valid SVG for any content, and their text is text, not markup."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from rag.conversations.trees import nodes_of
from rag.evaluation.comparison import compare
from rag.evaluation.evaluation import Bin
from rag.evaluation.statistics import Estimate
from rag.ui.chat.diagrams import NARROW, WIDE, TreeLayout, linked_diagrams, node_positions, plan_diagram, tree_diagram
from rag.ui.evaluation.charts import chart_calibration, chart_differences, chart_points, chart_runs
from tests.support.tree_rows import five, row, twelve

HOSTILE = '<script>alert("1")</script> & 《龙井》'


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text")]


def step(number: int, **more: object) -> dict[str, object]:
    told = {"id": f"s{number}", "sub_question": HOSTILE, "status": "done", "needs": [], "by": "plan", "round": 1}
    return {**told, **more}


def test_the_way_of_a_run() -> None:
    steps = [step(1), step(2, status="failed", needs=["s1"], round=2), step(3, by="revision", round=2)]
    never = {key: value for key, value in step(4, status="skipped").items() if key != "round"}
    drawn = plan_diagram(HOSTILE, [*steps, never], "en")
    assert sum(text.startswith("<scri") for text in texts(drawn)) == 5
    boxes = [one for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("rect")]
    columns = sorted({float(box.attrib["x"]) for box in boxes})
    assert len(boxes) == 6 and len(columns) == 5, "the question, two rounds, what never began, the report"
    assert drawn.count("stroke-dasharray") == 2, "the step that was not carried out, and the way to it"


def test_figures_with_intervals() -> None:
    first = {str(n): {"recall@4000": n % 2, "calls": 1.0} for n in range(20)}
    second = {str(n): {"recall@4000": 1.0, "calls": 2.0} for n in range(20)}
    (found,) = compare([first, second], names=["recall@4000", "calls"])
    shown = texts(chart_differences(found, "zh"))
    assert "前 4,000 字包含的证据" in shown and "+0.500" in shown and "+1.000" in shown
    assert "0.250" in texts(chart_runs("contains", [(HOSTILE, Estimate(0.25, 0.1, 0.4)), ("flat", Estimate(1, 1, 1))]))


def test_points_and_calibration() -> None:
    assert len(texts(chart_points("told", [(1.0, 0.5, HOSTILE), (1.0, 0.5, "")]))) == 5
    assert "n = 7" in texts(chart_calibration([Bin(0.1, 0.2, 7, 0.3), Bin(0.9, 1.0, 9, 1.0)], "en"))


@pytest.mark.parametrize("layout", [WIDE, NARROW])
@pytest.mark.parametrize(("rows", "count"), [([row(1)], 1), (five(), 5), (twelve(), 12)])
def test_no_box_of_a_tree_lies_on_another_or_outside(rows: Sequence[Any], count: int, layout: TreeLayout) -> None:
    nodes = nodes_of(rows)
    places = node_positions(nodes, layout)
    drawn = ElementTree.fromstring(tree_diagram(nodes, "zh", layout))
    boxes = [one.attrib for one in drawn.iter() if one.tag.endswith("rect")]
    assert len(places) == len(boxes) == count
    assert all(float(box["y"]) + float(box["height"]) <= float(drawn.attrib["height"]) for box in boxes)
    if layout is NARROW:
        assert float(drawn.attrib["width"]) <= 330
    for node, place in zip(nodes, places.values(), strict=True):
        beside = [other for at, other in places.items() if at != node.number and other[0] == place[0]]
        assert all(abs(other[1] - place[1]) >= 74 for other in beside)


def test_states_of_a_tree_are_told_without_colour() -> None:
    shown = texts(tree_diagram(nodes_of([*five(), row(6, 2, depth=2, status="cut", passage="")]), "en"))
    assert [sign for sign in "✓=×/" if sign in shown] == list("✓=×/")
    assert {"same as 4", "asked above: 1", "not asked", "2", "1", "0"} <= set(shown)


class _Areas(HTMLParser):
    """A parser that collects the attributes of each area, and every other tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.areas: list[dict[str, str | None]] = []
        self.others: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "area":
            self.areas.append(dict(attrs))
        else:
            self.others.add(tag)


def test_a_box_of_a_tree_is_a_link_and_its_words_are_no_markup() -> None:
    seen = _Areas(linked_diagrams(nodes_of(five()), "en", "tree-a", {"wide": WIDE}))
    assert seen.others == {"div", "img", "map"}
    assert [one["href"] for one in seen.areas] == [f"#tree-a-{number}" for number in (1, 2, 4, 5, 3)]
    assert all("<script>" in str(one["alt"]) and "\u202e" not in str(one["alt"]) for one in seen.areas)
