"""The answer modes by name, with their limits and the way they build answers.

This module doesn't import LangGraph, which takes a second: each mode imports its graph on first use.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, TypedDict

from rag.checking.citations import check
from rag.locales import Language, say
from rag.runs.run import (
    STOP_GRACE,
    Mode,
    PreparedGraph,
    Run,
    RunOptions,
    answer_of_state,
    build_answer,
    from_json,
    passage_of,
)
from rag.text import question_language, trim_to_sentences
from rag.types import SAVED, Answer, Notice, Outcome, Passage, ToolUse
from rag.web.urls import mentions_any

_COMPOSING_CALLS: Final = 10  # additional calls for an answer composed passage by passage, one for each
_CODES_WITH_USABLE_TEXT: Final = frozenset({"run_stopped", "run_too_long", "budget_seconds", "quoted_budget_seconds"})


class GraphMode(Mode):
    """A mode whose graph is in the module `graph_path`, imported on first use since LangGraph takes a second."""

    def __init__(
        self, name: str, graph_path: str, max_calls: int, *, calls_cap: int | None = None, max_tokens: int | None = None
    ) -> None:
        self.name = name
        self.graph_path = graph_path
        self.max_calls = max_calls
        self.calls_cap = calls_cap
        self.max_tokens = max_tokens

    @property
    def graph_module(self) -> Any:
        return import_module(self.graph_path)

    def graph_of(self, saver: Any) -> Any:
        """Return the graph, built on first use."""
        return self.graph_module.graph_of(saver)

    def warm(self, saver: Any) -> None:
        self.graph_of(saver)

    async def prepare(self, run: Run) -> PreparedGraph:
        """Return the graph with its input, to which the module's `extra_input` adds, if it has one."""
        module = await asyncio.to_thread(lambda: self.graph_module)
        from rag.graphs.common import prepare_graph  # has LangGraph, too

        return await prepare_graph(run, self.graph_of, getattr(module, "extra_input", None))

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        """Return the answer from the run's last state, completed with its text so far if it was interrupted while
        writing, or else with the module's `rescue`, if it has one."""
        rescue = getattr(self.graph_module, "rescue", None)
        if rescue and interruption is not None and not run.state.get("outcome"):
            from rag.graphs.common import check_text_so_far

            run.state = {**run.state, **(await check_text_so_far(run) or await rescue(run))}
        return answer_of_state(run, [passage_of(data) for data in run.state.get("passages", ())], interruption)


class LoopMode(GraphMode):
    """A mode that searches, grades the passages if it is deep, and answers."""

    def default_calls(self, options: RunOptions, *, in_conversation: bool) -> int:
        """Return the mode's limit, plus one within a conversation, plus those for composing passage by passage."""
        return self.max_calls + in_conversation + (0 if options.compose in ("auto", "stuff") else _COMPOSING_CALLS)

    def graph_of(self, saver: Any) -> Any:
        return self.graph_module.graph_of(self.name, saver)

    async def remember(self, run: Run) -> None:
        await self.graph_module.remember(run)

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        """Return the answer from the run's final state or, if it was interrupted, from its text and passages so far."""
        passages = await self._passages(run, STOP_GRACE if interruption else None)
        if interruption is None:
            return await asyncio.to_thread(answer_of_state, run, passages)
        if interruption.code == "budget_seconds" and not run.text and run.quoter is not None and passages:
            question = run.state.get("standalone") or run.question.text
            if quotes := "".join([piece async for piece in run.quoter.answer(question, passages)]):
                run.text, interruption = quotes, Notice("quoted_budget_seconds", interruption.params)
        return await asyncio.to_thread(_partial_answer, run, passages, interruption)

    async def _passages(self, run: Run, seconds: float | None) -> list[Passage]:
        """Return the passages of the answer; none if they can't be read, or not within `seconds`."""
        refs = run.state.get("passages") or []
        if not refs:
            return []
        reading = asyncio.create_task(self.graph_module.read_passages(refs, run.cache.passages_of))
        await asyncio.wait({reading}, timeout=seconds)
        return reading.result() if reading.done() and reading.exception() is None else []


def _partial_answer(run: Run, passages: list[Passage], notice: Notice) -> Answer:
    """Return an answer with the text so far, which is usable unless the run failed.

    Only quotes have verdicts on their statements, since the model's text was not checked as a whole.
    """
    checked = check(trim_to_sentences(run.text) or run.text, passages)
    outcome: Outcome = "caveat" if checked.text and notice.code in _CODES_WITH_USABLE_TEXT else "failed"
    statements = checked.statements if notice.code == "quoted_budget_seconds" else ()
    return build_answer(run, outcome, notice, checked.text, checked.citations, passages, statements)


class TrailMode(GraphMode):
    """A mode that stores a trail of its work with the answer."""

    keeps_history = True

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        answer = await super().finish(run, interruption)
        return replace(answer, trail=await asyncio.to_thread(self.graph_module.trail, run))


class ToolMode(GraphMode):
    """A mode that answers with tools, chosen by the route of the message, in up to four tool calls."""

    def default_calls(self, options: RunOptions, *, in_conversation: bool) -> int:
        """Return one call per tool call, one for the answer and one for its check, and two more in a conversation."""
        return self.max_calls + 2 * in_conversation

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        answer = await super().finish(run, interruption)
        uses = tuple(from_json(ToolUse, use) for use in run.state.get("uses", ()))
        return replace(answer, tools=uses, outcome="failed" if interruption else answer.outcome)


class _ReportState(TypedDict):
    question: str


class ReportMode(Mode):
    """A mode that answers with a report, in one step and without a model.

    `report` returns the text from the run's state in a language.
    """

    def __init__(self, name: str, report: Callable[[Mapping[str, Any], str], str]) -> None:
        self.name = name
        self._report = report

    async def prepare(self, run: Run) -> PreparedGraph:
        return PreparedGraph(await asyncio.to_thread(self._graph, run), {"question": run.question.text})

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        return build_answer(run, "failed" if interruption else "conversation", interruption, run.text)

    def _graph(self, run: Run) -> Any:
        from langgraph.config import get_stream_writer
        from langgraph.graph import END, START, StateGraph

        language = run.question.options.locale or question_language(run.question.text)

        def tell(state: _ReportState) -> _ReportState:
            get_stream_writer()({"token": self._report(run.state, language)})
            return state

        builder = StateGraph(_ReportState)
        builder.add_node("tell", tell)
        builder.add_edge(START, "tell")
        builder.add_edge("tell", END)
        return builder.compile()


def say_saving(rows: Sequence[Mapping[str, Any]] | None, language: Language) -> str:
    """Return sentences with the number of sources per outcome, or one that adding awaits confirmation."""
    if rows is None:
        return say(Notice("saving_asks"), language)
    statuses = [row["status"] if row["status"] in SAVED else "failed" for row in rows]
    counts = Counter("here" if status in ("unchanged", "duplicate") else status for status in statuses)
    order = ("added", "updated", "here", "failed")
    notices = [Notice(f"saving_{outcome}", {"count": counts[outcome]}) for outcome in order if counts[outcome]]
    return ("" if language == "zh" else " ").join(say(notice, language) for notice in notices)


def _report_saving(state: Mapping[str, Any], language: Language) -> str:
    """Return a sentence about all sources, and a line for each that wasn't saved."""
    rows = state.get("saved")
    lines = [say_saving(rows, language), ""]
    for row in rows or ():
        if row["status"] not in SAVED and row["notice"]:
            sentence = say(Notice(**row["notice"]), language)
            is_named = mentions_any(sentence, row["source"], row["url"])
            lines.append(f"- {sentence}" if is_named else f"- {row['source']}: {sentence}")
    return "\n".join(lines).strip()


def removal_notice(state: Mapping[str, Any]) -> Notice:
    """Return a request to confirm the removal of the pages in `state`, or a notice that no page has the name."""
    if state.get("remove"):
        return Notice("remove_asks", {"count": len(state["remove"])})
    return Notice("remove_near" if state.get("near") else "remove_none")


_ALL_MODES: Final[tuple[Mode, ...]] = (
    LoopMode("fast", "rag.graphs.answer", 3),
    LoopMode("deep", "rag.graphs.answer", 12),
    TrailMode("research", "rag.graphs.research.graph", 16, calls_cap=24, max_tokens=60_000),
    TrailMode("judge", "rag.graphs.judge.graph", 24, calls_cap=48, max_tokens=60_000),
    ToolMode("tool", "rag.graphs.tools", 6, max_tokens=40_000),
    ReportMode("remove", lambda state, language: say(removal_notice(state), language)),
    ReportMode("save", _report_saving),
    GraphMode("summary", "rag.graphs.summary.graph", 16, max_tokens=250_000),
)
MODES: Final[Mapping[str, Mode]] = MappingProxyType({mode.name: mode for mode in _ALL_MODES})
