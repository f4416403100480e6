"""A scripted reasoner, a fake retriever over a few passages, and a helper to ask them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool

from rag.errors import ModelError, RagError
from rag.locales import say, sentences
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.questions import make_call
from rag.runs.run import Mode, PassageCache, Question, Run
from rag.runs.runs import Runs
from rag.tracing import CallBudget
from rag.types import Answer, Event, Passage

VOLCANO = "Mount Aso erupted in 1953. Its crater is 24 kilometres wide. The town of Aso lies inside it."
BRIDGE = "The bridge was opened in 1932. It carries eight lanes of traffic and two railway lines."
TEA = "龙井茶产于杭州。清明前采摘的称为明前茶。炒制需要十道手法。"


def passage(number: int, text: str = VOLCANO, *, title: str = "", score: float = 0.0) -> Passage:
    return Passage(
        id=f"p{number}",
        url=f"https://example.org/{number}",
        url_hash=f"hash{number}",
        title=title or f"Page {number}",
        site="example.org",
        language="en",
        section=("Top", f"Part {number}"),
        text=text,
        start=100,
        end=100 + len(text),
        score=score or 1.0 / number,
        ranks={"fused": number},
        scores={"fused": 1.0 / number},
    )


@dataclass
class SearchResult:
    passages: list[Passage]


@dataclass
class FakeRetriever:
    """A retriever that returns `by_query[query]` or `default`, raises `error` if set, and records its calls."""

    default: list[Passage] = field(default_factory=lambda: [passage(1), passage(2, BRIDGE)])
    by_query: dict[str, list[Passage]] = field(default_factory=dict)
    error: RagError | None = None
    queries: list[str] = field(default_factory=list)
    histories: list[list[str]] = field(default_factory=list)
    before: Callable[[], object] | None = None
    options: list[dict[str, Any]] = field(default_factory=list)
    web: Callable[[str], list[Passage]] | None = None
    reader: Any = None

    def vector(self, question: str) -> Any:
        raise ModelError("chat_failed")

    def is_empty(self) -> bool:
        return False

    def titles(self) -> list[str]:
        return []

    def find_name(self, name: str) -> list[Passage]:
        return [one for one in self.default if name in one.text]

    def find_cached(self, question: str) -> None:
        return None

    def search(self, question: str, before: Sequence[str] = (), **options: Any) -> SearchResult:
        self.queries.append(question)
        self.options.append(options)
        self.histories.append(list(before))
        if self.before:
            self.before()
        if self.error:
            raise self.error
        return SearchResult(self.by_query.get(question, self.default))

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        known = {p.id: p for found in [self.default, *self.by_query.values()] for p in found}
        return [known[wanted] for wanted in ids if wanted in known]


@dataclass
class ScriptedReasoner:
    """A reasoner that takes its next decision, verdicts, rewrite and answer from queues; the last item is reused.

    An exception in a queue is raised. An answer is a list of pieces, in which a number is a pause in seconds and an
    exception ends the stream.
    """

    decisions: list[Any] = field(default_factory=list)
    verdicts: list[Any] = field(default_factory=list)
    rewrites: list[Any] = field(default_factory=list)
    answers: list[Any] = field(default_factory=lambda: [["Mount Aso erupted ", "in 1953 [1]."]])
    kind: Literal["extractive", "chat"] = "chat"
    name: str = "scripted"
    asked: list[tuple[str, Any]] = field(default_factory=list)

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        self.asked.append(("decide", [m.text for m in history]))
        return _next(self.decisions, make_call([question]))

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        self.asked.append(("grade", [p.id for p in passages]))
        verdict = _next(self.verdicts, True)
        return verdict if isinstance(verdict, list) else [verdict] * len(passages)

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        self.asked.append(("rewrite", list(tried)))
        return _next(self.rewrites, f"{question} {len(tried)}")

    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        self.asked.append(("answer", [p.id for p in passages]))
        for piece in _next(self.answers, []):
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, int | float):
                await asyncio.sleep(piece)
            else:
                yield piece

    def count(self, method: str) -> int:
        return sum(1 for name, _ in self.asked if name == method)


def _next(queue: list[Any], default: Any) -> Any:
    value = queue.pop(0) if len(queue) > 1 else queue[0] if queue else default
    if isinstance(value, Exception):
        raise value
    return value


def ask(
    runs: Runs,
    reasoner: Any,
    retriever: Any = None,
    *,
    question: str = "When did Mount Aso erupt?",
    mode: str = "fast",
    history: Sequence[tuple[str, str]] = (),
    quoter: ExtractiveReasoner | None = None,
) -> tuple[Answer, list[Event]]:
    """Run a question to its end; return the answer and all events."""
    retriever = retriever or FakeRetriever()
    run_id = runs.start(
        Question(question, mode=mode), reasoner=reasoner, retriever=retriever, history=history, quoter=quoter
    )
    answer = runs.wait(run_id, 20)
    assert all(f"step_{step.detail['decision']}" in sentences("en") for step in answer.steps)
    assert answer.notice is None or say(answer.notice, "en") != say(answer.notice, "zh")
    return answer, runs.events(run_id)


def make_run(mode: Mode, reasoner: Any, retriever: Any, calls: int = 12) -> Run:
    """Return a run as the context of a graph that is called without `Runs`."""
    return Run("r", Question("", mode=mode.name), mode, reasoner, PassageCache(retriever), CallBudget(calls), ())


def nodes_of(answer: Answer) -> list[str]:
    return [step.node for step in answer.steps]
