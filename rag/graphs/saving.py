"""What a message wanted saved was saved before its run came here: this says what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from rag.messages import say
from rag.runs.run import Mode, Prepared, Run, answer_of
from rag.text import question_language
from rag.types import SAVED, Answer, Notice


class State(TypedDict):
    question: str


class SaveMode(Mode):
    name = "save"
    max_calls = 1

    async def prepare(self, run: Run) -> Prepared:
        return Prepared(await asyncio.to_thread(_graph, run), {"question": run.question.text})

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        return answer_of(run, "failed" if broken else "conversation", broken, run.text)


def told(rows: Sequence[Mapping[str, Any]] | None, language: str) -> str:
    """A sentence on all sources, and one on each that was not saved."""
    if rows is None:
        return say(Notice("saving_asks"), language)
    saved = sum(row["status"] in SAVED for row in rows)
    notice = Notice("saving_done", {"saved": saved, "all": len(rows)})
    failed = [row for row in rows if row["status"] not in SAVED and row["notice"]]
    problems = (f"- {row['source']}: {say(Notice(**row['notice']), language)}" for row in failed)
    return "\n".join([say(notice, language), "", *problems]).strip()


def _graph(run: Run) -> Any:
    from langgraph.config import get_stream_writer
    from langgraph.graph import END, START, StateGraph

    options = run.question.options
    language = options.locale or question_language(run.question.text)

    def tell(state: State) -> State:
        get_stream_writer()({"token": told(run.state.get("saved"), language)})
        return state

    builder = StateGraph(State)
    builder.add_node("tell", tell)
    builder.add_edge(START, "tell")
    builder.add_edge("tell", END)
    return builder.compile()
