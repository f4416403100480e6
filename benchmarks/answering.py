"""Time to the first token of a fast answer, and the graph's overhead over model and search.

    python -m benchmarks.answering [--questions N] [--chunks N] [--json]

First token: a question is asked as the chat page asks it, in a new conversation that is stored. The chat model is the
tests' scripted server, which answers immediately over HTTP from a separate process; the embedding model and the search
are real. Runs over the sample pages, and with --chunks over a synthetic library of that many chunks. Graph: the same
run with a reasoner and a search that return immediately, which leaves LangGraph, the checkpointer, the nodes, the
citation check and the threads in between. Research: four parallel steps, their report and its check, with a chat model
that replies immediately through LangChain, with and without a conversation and its checkpoints.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from benchmarks.serving import ROOT
from benchmarks.startup import load_samples, make_library
from rag.app import App
from rag.config import load_settings
from rag.conversations.checkpoints import Checkpoints
from rag.graphs.modes import MODES
from rag.models.embedding import SparseEncoder
from rag.prompts.requests import Prompt
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.runs.run import Question
from rag.runs.runs import Runs
from rag.types import Answer, Passage, RunMode

_POLL_SECONDS = 0.0005
_TIMEOUT = 60.0
_WARM_UP = 3
_STEPS = 4
_SENTENCE = "The bridge over the Ling was opened in {year} after nine years of work, and its toll was lifted later."


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    graph = graph_overhead(options.questions) | research_overhead(options.questions)
    results: dict[str, Any] = {"questions": options.questions, "graph": graph}
    with chat_server() as address:
        results["samples"] = _over_samples(address, options.questions)
        if options.chunks:
            results[str(options.chunks)] = _over_chunks(address, options.chunks, options.questions)
    print(json.dumps(results))
    return 0


# The first token


@contextmanager
def chat_server(pause: float = 0.0, times: int = 1) -> Iterator[str]:
    """Run the tests' scripted chat model in a separate process; yield its base address."""
    command = [sys.executable, "-m", "benchmarks.verbose_model", "--pause", str(pause), "--times", str(times)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _over_samples(address: str, count: int) -> dict[str, float]:
    rows = json.loads((ROOT / "examples" / "questions.json").read_text(encoding="utf-8"))
    questions = [row["question"] for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        load_samples(Path(folder))
        return _first_tokens(Path(folder), address, [questions[n % len(questions)] for n in range(count + _WARM_UP)])


def _over_chunks(address: str, chunks: int, count: int) -> dict[str, float]:
    from benchmarks.synthetic import CHUNKS_A_PAGE, World

    world = World()
    with tempfile.TemporaryDirectory() as folder:
        make_library(Path(folder), chunks)
        questions = [f"What about {world.question(n, chunks // CHUNKS_A_PAGE)[0]}?" for n in range(count + _WARM_UP)]
        return _first_tokens(Path(folder), address, questions)


def _first_tokens(data: Path, address: str, questions: Sequence[str]) -> dict[str, float]:
    """Return milliseconds from asking to the first token, and to the answer."""
    settings = load_settings(
        None, rag_data_dir=data, qdrant_url="", embedding_model="builtin", llm_model="test", llm_base_url=address
    )
    with closing(App(settings)) as app:
        rows = [_time_question(app, question) for question in questions]
    complete = [row for row in rows[_WARM_UP:] if row is not None]
    if len(complete) < len(questions[_WARM_UP:]) / 2:
        raise RuntimeError("most questions got no token: check the library and the scripted model")
    return _summary("first_token", [first for first, _ in complete]) | _summary("answer", [end for _, end in complete])


def _time_question(app: App, question: str) -> tuple[float, float] | None:
    """Return seconds to the first token and to the answer; None if the run ends without a token."""
    began = time.perf_counter()
    run_id = app.converse(Question(question, ("main",))).run_id
    first = _seconds_until(lambda: any(event.kind == "token" for event in app.events(run_id)), began, app, run_id)
    app.wait(run_id, _TIMEOUT)
    return None if first is None else (first, time.perf_counter() - began)


def _seconds_until(happened: Callable[[], bool], began: float, app: App, run_id: str) -> float | None:
    while not happened():
        if app.answer(run_id) is not None and not happened():
            return None
        if time.perf_counter() - began > _TIMEOUT:
            raise TimeoutError(f"no answer after {_TIMEOUT:.0f} s")
        time.sleep(_POLL_SECONDS)
    return time.perf_counter() - began


# The graph


class InstantReasoner:
    """A reasoner that returns immediately: it searches, grades everything as relevant, quotes the first passage."""

    name = "instant"
    kind: Literal["chat"] = "chat"

    async def decide(self, question: str, history: Sequence[Any], tools: Sequence[Any]) -> Any:
        from langchain_core.messages import AIMessage

        call = {"name": tools[0].name, "args": {"query": question}, "id": uuid4().hex}
        return AIMessage("", tool_calls=[call])

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        return [True] * len(passages)

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        return ""

    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        for word in passages[0].text.split(". ")[0].split():
            yield f"{word} "
        yield "[1]."


class FixedResult:
    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages


class InstantRetriever:
    """A search that always finds the same ten passages of 600 characters."""

    web = reader = vector = None

    def __init__(self) -> None:
        self._passages = {passage.id: passage for passage in map(_passage, range(10))}

    def search(self, question: str, before: Sequence[str] = (), **how: Any) -> FixedResult:
        return FixedResult([*self._passages.values()])

    def titles(self) -> list[str]:
        return []

    def find_name(self, name: str) -> list[Passage]:
        return []

    def find_cached(self, question: str) -> None:
        return None

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        return [self._passages[passage_id] for passage_id in ids if passage_id in self._passages]


def graph_overhead(count: int) -> dict[str, float]:
    """Return the milliseconds of a conversation's first and second question, with instant model and search."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(MODES, saver=Checkpoints(Path(folder) / "conversations.sqlite3").saver)
        with closing(runs):
            modes: tuple[RunMode, ...] = ("fast", "deep")
            for mode in modes:
                rows = [_time_conversation(runs, mode) for _ in range(count + _WARM_UP)][_WARM_UP:]
                figures |= _summary(f"{mode}_first_question", [first for first, _ in rows])
                figures |= _summary(f"{mode}_second_question", [second for _, second in rows])
    return figures


def _time_conversation(runs: Runs, mode: RunMode) -> tuple[float, float]:
    """Return the seconds of two successive questions."""
    thread, seconds = uuid4().hex, []
    for question in ("When was the bridge over the Ling opened?", "When was the toll on the Ling bridge lifted?"):
        began = time.perf_counter()
        run_id = runs.start(
            Question(question, mode=mode), reasoner=InstantReasoner(), retriever=InstantRetriever(), thread=thread
        )
        answer: Answer = runs.wait(run_id, _TIMEOUT)
        seconds.append(time.perf_counter() - began)
        if answer.outcome != "answered":
            raise RuntimeError(f"the run ended as {answer.outcome}: {answer.notice}")
    return seconds[0], seconds[1]


def research_overhead(count: int) -> dict[str, float]:
    """Return the milliseconds of a four-step run, with instant model and search, with and without checkpoints."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(MODES, saver=Checkpoints(Path(folder) / "conversations.sqlite3").saver)
        with closing(runs):
            for name, saves in (("research", False), ("research_kept", True)):
                seconds = [_time_research(runs, uuid4().hex if saves else "") for _ in range(count + _WARM_UP)]
                figures |= _summary(name, seconds[_WARM_UP:])
    return figures


def _time_research(runs: Runs, thread: str) -> float:
    reasoner, question = _instant_chat(), Question("When were the bridges opened?", mode="research")
    quoter = ExtractiveReasoner(SparseEncoder(), lambda terms: dict.fromkeys(terms, 1.0))
    began = time.perf_counter()
    run_id = runs.start(question, reasoner=reasoner, retriever=InstantRetriever(), quoter=quoter, thread=thread)
    answer: Answer = runs.wait(run_id, _TIMEOUT)
    seconds = time.perf_counter() - began
    if answer.outcome != "answered" or len(answer.trail["plan"]) != _STEPS:
        raise RuntimeError(f"the run ended as {answer.outcome}: {answer.notice}")
    return seconds


def _instant_chat() -> ChatReasoner:
    """Return a chat model that plans four steps, finds everything in each, and writes one sentence."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    numbers = range(1, _STEPS + 1)
    sentence = _SENTENCE.format(year=1900)
    forms: dict[str, dict[str, Any]] = {
        "PlanReply": {
            "aspects": [f"bridge {n}" for n in numbers],
            "steps": [{"question": f"When was bridge {n} opened?"} for n in numbers],
        },
        "QueryReply": {"query": "bridge opened", "search": "hybrid"},
        "ReadReply": {"sentences": [{"number": 1, "sentence": sentence}], "summary": sentence, "met": list(numbers)},
        "Judgements": {"verdicts": [{"number": 1, "verdict": "supported", "relevant": True}]},
    }

    class InstantReasoner(ChatReasoner):
        async def fill(self, schema: Any, prompt: Prompt) -> Any:
            await model.ainvoke(prompt.system + prompt.user)
            return schema.model_validate(forms[schema.__name__])

    model = GenericFakeChatModel(messages=(AIMessage(sentence.removesuffix(".") + " [1].") for _ in itertools.count()))
    return InstantReasoner(model)


def _passage(number: int) -> Passage:
    text = " ".join(_SENTENCE.format(year=1900 + 10 * number + k) for k in range(6))
    return Passage(
        id=f"passage-{number}",
        text=text,
        url=f"https://site.example/{number}",
        url_hash=f"{number:032x}",
        title=f"Bridges {number}",
        site="site.example",
        language="en",
        section=(),
        score=1.0 - number / 20,
        start=0,
        end=len(text),
    )


def _summary(name: str, seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    late = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {f"{name}_ms": round(statistics.median(ordered) * 1000, 1), f"{name}_p95_ms": round(late * 1000, 1)}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20, metavar="N")
    parser.add_argument("--chunks", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true", help="as it is: one line of JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
