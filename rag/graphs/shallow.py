"""What tutorials build: one search, and an answer from what it found, which nothing judges or checks.

It is offered to nobody: evaluation compares the ways to answer with it.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from rag.checking.marks import find_marks
from rag.reasoning.reasoner import RESET
from rag.runs.run import Mode, Prepared, Run, answer_of
from rag.types import Answer, Citation, Notice, Outcome


class State(TypedDict):
    question: str


class ShallowMode(Mode):
    name = "shallow"
    max_calls = 1

    async def prepare(self, run: Run) -> Prepared:
        return Prepared(await asyncio.to_thread(_graph, run), {"question": run.question.text})

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """Each mark cites the passage of its number, whole."""
        passages = run.shelf.passages_of(run.state.get("found", ()))
        numbers = {n for mark in find_marks(run.text) for n in mark.numbers}
        citations = tuple(
            Citation(n, one.url, one.url_hash, one.title, one.text, one.start, one.end, one.section)
            for n, one in enumerate(passages, 1)
            if n in numbers
        )
        outcome: Outcome = "failed" if broken else "answered" if run.text else "not_in_pages"
        return answer_of(run, outcome, broken, run.text, citations, passages)


def _graph(run: Run) -> Any:
    from langgraph.config import get_stream_writer
    from langgraph.graph import END, START, StateGraph

    async def answer(state: State) -> State:
        write = get_stream_writer()
        with run.budget.keeping(1):  # a search that would have a model translate the question goes without
            passages = await asyncio.to_thread(run.shelf.search, state["question"])
        write({"found": [passage.id for passage in passages]})
        if passages:
            async for piece in run.reasoner.answer(state["question"], passages):
                write({"reset": ""} if piece == RESET else {"token": piece})
        return state

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()
