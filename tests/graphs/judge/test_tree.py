from __future__ import annotations

from typing import Any

from rag.graphs.judge.state import Limits, NodeRecord
from rag.graphs.judge.tree import grow


def test_a_question_below_an_unlikely_one_is_less_likely_still() -> None:
    lacking: Any = {"passage": "p1", "score": 1, "missing": "When?", "worth": 0.8}
    root: NodeRecord = {"id": "n1", "parent": "", "passage": "", "question": "Who?", "depth": 0, "worth": 1.0}
    above: NodeRecord = {**root, "id": "n2", "parent": "n1", "question": "Where?", "depth": 1, "worth": 0.5}
    nodes: list[NodeRecord] = [{**root, "status": "open"}, {**above, "status": "done", "judgements": [lacking]}]
    child = grow(nodes, Limits(), lambda question, others: -1)[-1]
    assert (child["parent"], child["question"], child["worth"]) == ("n2", "When?", 0.4)
