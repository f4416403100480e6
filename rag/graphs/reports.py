"""Modes that only report: the result of saving, and the pages that a message asks to remove.

Only the user removes pages, with a button under the answer.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from rag.locales import say
from rag.runs.run import Mode, PreparedGraph, Run, build_answer
from rag.text import question_language
from rag.types import SAVED, Answer, Notice


class State(TypedDict):
    question: str


class ReportMode(Mode):
    """A mode whose answer is a report in one step, without a model."""

    max_calls = 1

    @abstractmethod
    def report(self, run: Run, language: str) -> str:
        """Return the text of the answer in `language`."""

    async def prepare(self, run: Run) -> PreparedGraph:
        return PreparedGraph(await asyncio.to_thread(self._graph, run), {"question": run.question.text})

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        return build_answer(run, "failed" if broken else "conversation", broken, run.text)

    def _graph(self, run: Run) -> Any:
        from langgraph.config import get_stream_writer
        from langgraph.graph import END, START, StateGraph

        language = run.question.options.locale or question_language(run.question.text)

        def tell(state: State) -> State:
            get_stream_writer()({"token": self.report(run, language)})
            return state

        builder = StateGraph(State)
        builder.add_node("tell", tell)
        builder.add_edge(START, "tell")
        builder.add_edge("tell", END)
        return builder.compile()


class SaveMode(ReportMode):
    name = "save"

    def report(self, run: Run, language: str) -> str:
        return saving_message(run.state.get("saved"), language)


class RemoveMode(ReportMode):
    name = "remove"

    def report(self, run: Run, language: str) -> str:
        return say(removal_notice(run.state), language)


def saving_notice(rows: Sequence[Mapping[str, Any]] | None) -> Notice:
    """Return a notice with the number of saved sources, or that saving awaits confirmation."""
    if rows is None:
        return Notice("saving_asks")
    saved = sum(row["status"] in SAVED for row in rows)
    return Notice("saving_done" if saved < len(rows) else "saving_all", {"saved": saved, "all": len(rows)})


def saving_message(rows: Sequence[Mapping[str, Any]] | None, language: str) -> str:
    """Return a sentence about all sources, and a line for each that wasn't saved."""
    failed = [row for row in rows or () if row["status"] not in SAVED and row["notice"]]
    problems = (f"- {row['source']}: {say(Notice(**row['notice']), language)}" for row in failed)
    return "\n".join([say(saving_notice(rows), language), "", *problems]).strip()


def removal_notice(state: Mapping[str, Any]) -> Notice:
    """Return a request to confirm, or that no page has the name; `state` has the pages to remove, or the nearest."""
    if state.get("remove"):
        return Notice("remove_asks", {"count": len(state["remove"])})
    return Notice("remove_near" if state.get("near") else "remove_none")
