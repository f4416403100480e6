from __future__ import annotations

from rag.reading.layout.document import Layout
from rag.reading.layout.tables import Line


def test_large_lines_are_one_heading_where_they_stand_together() -> None:
    layout = Layout(size=10.0, width=60.0, words=frozenset())
    lines = [Line("The bridge", 0, 700, 16), Line("over the river", 0, 680, 16), Line("How it was paid", 0, 400, 16)]
    assert layout.blocks(lines) == [("heading", "The bridge over the river"), ("heading", "How it was paid")]
