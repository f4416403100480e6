"""Diagrams of plans and search trees.

A plan has the question, its steps in the order in which they could start, and the report. A search tree has a box per
question and a column per depth; on a narrow screen the boxes are stacked. Diagrams are images, since Streamlit allows
no inline SVG; an image map makes each box of a tree a link.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag.conversations.trees import State, TreeNode
from rag.locales import Language, label, say
from rag.text import lazy_regex
from rag.types import Notice
from rag.ui.kit.parts import escape_html, svg

_PLAN_WIDTH, _PLAN_HEIGHT, _PLAN_GAP, _PLAN_ROW = 174, 44, 34, 58
_PLAN_COLORS: Final = {"done": "#1a7f37", "failed": "#cf222e", "empty": "#9a6700", "running": "#0969da"}
_LINE: Final = "#6e7781"
_NO_ROUND: Final = 1_000
_FONT_SIZE: Final = 12
_NODE_HEIGHT, _NODE_ROW, _EDGE = 64, 74, 8
_BULGE: Final = 18
"""Pixels on the right for lines between identical questions."""
SIGNS: Final[dict[State, tuple[str, str]]] = {
    "open": ("○", "#6e7781"),
    "running": ("…", "#0969da"),
    "answered": ("✓", "#1a7f37"),
    "unanswered": ("–", "#57606a"),
    "failed": ("!", "#cf222e"),
    "linked": ("=", "#8250df"),
    "refused": ("×", "#953800"),
    "cut": ("/", "#9a6700"),
}
_NOT_ASKED: Final = ("open", "linked", "refused", "cut")
_SCORES: Final = {2: ("#1a7f37", "#ffffff"), 1: ("#ffffff", "#9a6700"), 0: ("#ffffff", "#57606a")}
_Position = tuple[int, int]
_WIDTHS = tuple(
    (lazy_regex(signs), width)
    for signs, width in (
        (r"[il.,:;'|!jI \[\]()/ft]", 0.4),
        (r"[MWmw@%&…—]", 1.0),
        (r"[A-Z]", 0.74),
        (r"[\u2e80-\U0003ffff]", 1.0),
        (r"(?s:.)", 0.64),
    )
)


def plan_diagram(question: str, steps: Sequence[Mapping[str, Any]], language: Language) -> str:
    """Return an SVG with a column for each round of steps; steps that were not carried out are dashed."""
    columns: dict[int, list[Mapping[str, Any]]] = {}
    for step in steps:
        columns.setdefault(step.get("round", _NO_ROUND), []).append(step)
    height = max(map(len, columns.values())) * _PLAN_ROW + 8
    places = {
        step["id"]: (20 + (_PLAN_WIDTH + _PLAN_GAP) * column_number, _plan_y(row, len(column), height))
        for column_number, (_, column) in enumerate(sorted(columns.items()), 1)
        for row, step in enumerate(column)
    }
    width = (_PLAN_WIDTH + _PLAN_GAP) * (len(columns) + 1) + _PLAN_WIDTH + 40
    first, last = (20, _plan_y(0, 1, height)), (width - _PLAN_WIDTH - 20, _plan_y(0, 1, height))
    prerequisites = {one for step in steps for one in step["needs"]}
    before: dict[int, list[str]] = {}
    lines = []
    for step in steps:
        number, place = step.get("round", _NO_ROUND), places[step["id"]]
        before.setdefault(number, []).append(step["id"])
        earlier = [] if step["by"] != "revision" else before.get(number - 1, [])
        starts = [places[one] for one in [*step["needs"], *earlier] if one in places] or [first]
        lines += [_plan_line(start, place, step["status"] in _PLAN_COLORS) for start in starts]
        if step["id"] not in prerequisites and step["status"] == "done":
            lines.append(_plan_line(place, last, True))
    boxes = "".join(_plan_box(step["sub_question"], places[step["id"]], str(step["status"])) for step in steps)
    ends = _plan_box(question, first, "done") + _plan_box(label("research_report_node", language), last, "done")
    content = f'<g class="boxes">{"".join(lines)}{boxes}{ends}</g>'
    return svg(width, height, label("research_picture", language), content)


def _plan_y(row: int, rows: int, height: int) -> int:
    return height // 2 - rows * _PLAN_ROW // 2 + row * _PLAN_ROW + (_PLAN_ROW - _PLAN_HEIGHT) // 2


def _plan_line(start: tuple[int, int], end: tuple[int, int], solid: bool) -> str:
    x1, y1, x2, y2 = start[0] + _PLAN_WIDTH, start[1] + _PLAN_HEIGHT // 2, end[0], end[1] + _PLAN_HEIGHT // 2
    middle = (x1 + x2) // 2
    dashed = "" if solid else ' stroke-dasharray="4 4"'
    return f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="{_LINE}"{dashed}/>'


def _plan_box(text: str, place: tuple[int, int], status: str) -> str:
    x, y = place
    dashed = "" if status in _PLAN_COLORS else ' stroke-dasharray="4 4"'
    color = _PLAN_COLORS.get(status, _LINE)
    lines = _break_lines(text, _PLAN_WIDTH - 20)
    top = y + (27 if len(lines) == 1 else 19)
    texts = "".join(
        f'<text x="{x + 10}" y="{top + 15 * at}" font-size="{_FONT_SIZE}" fill="#24292f">{escape_html(line)}</text>'
        for at, line in enumerate(lines)
    )
    return (
        f'<g><title>{escape_html(text)}</title><rect x="{x}" y="{y}" width="{_PLAN_WIDTH}" height="{_PLAN_HEIGHT}"'
        f' rx="8" fill="#ffffff" stroke="{color}" stroke-width="1.5"{dashed}/>'
        f"{texts}</g>"
    )


def scrollable_diagram(diagram: str, description: str) -> str:
    """Return HTML of a full-size diagram with a description; on a narrow screen it scrolls, also by keyboard."""
    source, name = b64encode(diagram.encode()).decode(), escape_html(description)
    image = f'<img alt="{name}" src="data:image/svg+xml;base64,{source}">'
    return f'<div class="tree-picture" tabindex="0" role="group" aria-label="{name}">{image}</div>'


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """A layout in pixels: box width, distance of a child from its parent, and whether each box has a separate row."""

    width: int
    step: int
    stacked: bool


WIDE: Final = TreeLayout(166, 190, stacked=False)

NARROW: Final = TreeLayout(244, 16, stacked=True)


def node_positions(nodes: Sequence[TreeNode], layout: TreeLayout) -> dict[int, _Position]:
    """Return the upper left corner of each node's box by node number."""
    if layout.stacked:
        return {
            node.number: (_EDGE + layout.step * node.depth, _EDGE + _NODE_ROW * row) for row, node in enumerate(nodes)
        }
    rows: dict[int, float] = {}
    leaves = 0
    for node in reversed(nodes):
        children = [rows[child.number] for child in nodes if child.parent == node.number]
        rows[node.number] = sum(children) / len(children) if children else leaves
        leaves -= not children
    top = min(rows.values(), default=0)
    return {
        node.number: (_EDGE + layout.step * node.depth, _EDGE + round(_NODE_ROW * (rows[node.number] - top)))
        for node in nodes
    }


def tree_diagram(nodes: Sequence[TreeNode], language: Language, layout: TreeLayout = WIDE) -> str:
    """Return a complete SVG. Questions not asked and links to identical questions are dashed."""
    places = node_positions(nodes, layout)
    width = max((x for x, _ in places.values()), default=0) + layout.width + _BULGE + _EDGE
    height = max((y for _, y in places.values()), default=0) + _NODE_HEIGHT + _EDGE
    lines = "".join(_tree_lines(nodes, places, layout))
    boxes = "".join(_node_box(node, places[node.number], layout, language) for node in nodes)
    return svg(width, height, label("tree_picture", language), f'<g class="boxes">{lines}{boxes}</g>')


def linked_diagrams(
    nodes: Sequence[TreeNode], language: Language, anchor: str, layouts: Mapping[str, TreeLayout]
) -> str:
    """Return HTML with a diagram per layout, in a class of that name.

    Boxes link to `{anchor}-{number}`, unless `anchor` is empty.
    """
    parts = []
    for name, layout in layouts.items():
        source = b64encode(tree_diagram(nodes, language, layout).encode()).decode()
        areas = "".join(
            f'<area shape="rect" coords="{x},{y},{x + layout.width},{y + _NODE_HEIGHT}" href="#{anchor}-{node.number}"'
            f' alt="{escape_html(_describe_node(node, language))}" title="{escape_html(node.question)}">'
            for node, (x, y) in zip(nodes, node_positions(nodes, layout).values(), strict=True)
        )
        map_id = f"{anchor}-{name}"
        map_parts = (f' usemap="#{map_id}"', f'<map name="{map_id}">{areas}</map>') if anchor else ("", "")
        image = f'<img alt="{escape_html(label("tree_picture", language))}" src="data:image/svg+xml;base64,{source}"'
        parts.append(f'<div class="tree-picture {name}">{image}{map_parts[0]}>{map_parts[1]}</div>')
    return "".join(parts)


def _describe_node(node: TreeNode, language: Language) -> str:
    """Return a node in words: its number, question and state."""
    return f"{node.number}. {node.question} · {state_word(node, language)}"


def state_word(node: TreeNode, language: Language) -> str:
    return say(Notice(f"tree_{node.state}", {"number": node.same_as}), language)


def _tree_lines(nodes: Sequence[TreeNode], places: Mapping[int, _Position], layout: TreeLayout) -> Iterator[str]:
    for node in nodes:
        x, y = places[node.number]
        middle = y + _NODE_HEIGHT // 2
        if node.parent in places:
            left, top = places[node.parent]
            begin, bend = left + layout.width, left + layout.width + (layout.step - layout.width) // 2
            path = f"M{begin} {top + _NODE_HEIGHT // 2}C{bend} {top + _NODE_HEIGHT // 2} {bend} {middle} {x} {middle}"
            if layout.stacked:
                path = f"M{left + 7} {top + _NODE_HEIGHT}V{middle}H{x}"
            yield _path(path, dashed=node.state in _NOT_ASKED)
        if node.state == "linked" and node.same_as in places:
            left, top = places[node.same_as]
            right, other = x + layout.width, left + layout.width
            bulge = max(right, other) + _BULGE
            end = top + _NODE_HEIGHT // 2
            path = f"M{right} {middle}C{bulge} {middle} {bulge} {end} {other} {end}"
            yield _path(path, dashed=True, color=SIGNS["linked"][1])


def _path(path: str, *, dashed: bool, color: str = _LINE) -> str:
    dashes = ' stroke-dasharray="4 4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.5"{dashes}/>'


def _node_box(node: TreeNode, place: _Position, layout: TreeLayout, language: Language) -> str:
    (x, y), (sign, color) = place, SIGNS[node.state]
    dashes = ' stroke-dasharray="4 4"' if node.state in _NOT_ASKED else ""
    lines = "".join(
        f'<text x="{x + 10}" y="{y + 19 + 15 * at}" font-size="{_FONT_SIZE}" fill="#24292f">{escape_html(line)}</text>'
        for at, line in enumerate(_break_lines(f"{node.number}. {node.question}", layout.width - 38))
    )
    word = (
        f'<text x="{x + 10}" y="{y + 54}" font-size="11" fill="{color}">'
        f"{escape_html(state_word(node, language))}</text>"
    )
    scores = "".join(_score(verdict["score"], x + 18 + 21 * at, y + 50) for at, verdict in enumerate(node.judged))
    return (
        f"<g><title>{escape_html(_describe_node(node, language))}</title>"
        f'<rect x="{x}" y="{y}" width="{layout.width}" height="{_NODE_HEIGHT}" rx="8" fill="#ffffff" stroke="{color}"'
        f' stroke-width="{2.5 if node.state == "answered" else 1.5}"{dashes}/>{lines}{scores or word}'
        f'<circle cx="{x + layout.width - 14}" cy="{y + 14}" r="9" fill="{color}"/><text x="{x + layout.width - 14}"'
        f' y="{y + 18.5}" font-size="13" font-weight="bold" text-anchor="middle" fill="#ffffff">{sign}</text></g>'
    )


def _score(score: int, x: int, y: int) -> str:
    """Return the SVG of a verdict: a full disc for 2, a ring for 1, the number alone for 0."""
    ground, ink = _SCORES[score]
    ring = f'<circle cx="{x}" cy="{y}" r="8" fill="{ground}" stroke="{_SCORES[score][1 - score // 2]}"/>' * (score > 0)
    return f'{ring}<text x="{x}" y="{y + 4}" font-size="11" text-anchor="middle" fill="{ink}">{score}</text>'


def _break_lines(text: str, width: float) -> list[str]:
    """Break `text` into up to two lines of `width` pixels at a font size of 12 pixels; … ends a cut text.

    A wide font is assumed, since the browser's is unknown.
    """
    lines, line, ems = list[str](), "", width / _FONT_SIZE
    # Words with their trailing space, pieces of long words, and single wide characters.
    for word in re.findall(r"[\u2e80-\U0003ffff]|[^\s\u2e80-\U0003ffff]{1,12} ?| ", " ".join(text.split())):
        if line and _ems(line + word.rstrip()) > ems:
            lines, line = [*lines, line.rstrip()], ""
        line += word
    lines.append(line.rstrip())
    if len(lines) <= 2:
        return lines
    last = f"{lines[1]} {lines[2]}"
    while last and _ems(f"{last}…") > ems:
        last = last[:-1]
    return [lines[0], f"{last.rstrip()}…"]


def _ems(text: str) -> float:
    """Return the width of a text in units of its font size."""
    return sum(next(width for signs, width in _WIDTHS if signs.match(sign)) for sign in text)
