"""The chosen kind of memory applies to a conversation in every mode, and can be changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag.background import STREAM_PACER
from rag.graphs.common import collect
from rag.reasoning import RESET
from rag.reasoning.questions import MemoryKind
from rag.runs.run import RunOptions
from tests.conversations.conftest import Talk
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer, Reply, Request
from tests.support.conversing import chat_reasoner
from tests.support.quoting import make_quoter

SUMMARY = "They spoke of a volcano and of a bridge."
EARLY = "When did Mount Aso erupt?"
QUOTER = make_quoter()


class Model:
    """A model that summarises, leaves follow-ups as they are, and else follows the rules; `told`: their histories."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, request: Request) -> Reply:
        if "running summary" in request.rules:
            return Reply(SUMMARY)
        before, _, last = request.last.partition("\n\nLast question: ")
        if not last:
            return rules(request)
        self.told.append(before)
        return Reply(last)


@pytest.mark.parametrize("mode", ["fast", "deep", "research", "judge"])
def test_a_conversation_is_remembered_as_was_chosen(tmp_path: Path, mode: str) -> None:
    talk, model, conversation_id = Talk(tmp_path), Model(), ""

    def ask(question: str, memory: MemoryKind, *, mode: str = mode) -> str:
        nonlocal conversation_id
        options = RunOptions(memory=memory, window=1)
        how = {"mode": mode, "options": options, "conversation_id": conversation_id, "quoter": QUOTER}
        asked, turn = talk.ask(question, chat_reasoner(server.base_url), **how)
        assert turn.answer and turn.answer.outcome in ("answered", "caveat"), turn.answer
        conversation_id = asked.conversation_id
        return model.told[-1] if model.told else ""

    with ChatServer(model) as server:
        for question in (EARLY, "When was the bridge opened?"):
            ask(question, "recent", mode="fast")
        told = ask("When was the bridge opened again?", "summary")
        assert SUMMARY in told and EARLY not in told
        told = ask("When was the bridge opened then?", "window")
        assert SUMMARY not in told and EARLY not in told and "opened again?" in told
        told = ask("When was the bridge opened at last?", "buffer")
        assert SUMMARY not in told and EARLY in told and "opened again?" in told and "opened then?" in told
        told = ask("When did Mount Aso erupt then?", "recent")
        assert SUMMARY not in told and told.count("Person: ") == 4, "what fits is as it was said"
    talk.close()


@pytest.mark.parametrize(("others", "most"), [(0, 5), (9, 5), (30, 2)])
async def test_pieces_are_batched_while_many_texts_stream(others: int, most: int) -> None:
    written, runtime = await _collected([*"abcde"], others)
    assert written == [*"abcde"] and "".join(one["token"] for one in runtime) == "abcde"
    assert len(runtime) <= most and runtime[0] == {"token": "a"}


async def test_what_was_taken_back_is_not_handed_on_later() -> None:
    written, told = await _collected(["a", "b", RESET, "c"], 30)
    assert written == ["c"]
    assert told[told.index({"reset": True}) + 1 :] == [{"token": "c"}]


async def _collected(pieces: list[str], others: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Collect a stream; return its pieces and the events, while `others` are streamed, too."""

    async def source() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    kept: list[str] = []
    told: list[dict[str, Any]] = []
    runtime: Any = SimpleNamespace(stream_writer=told.append)
    with ExitStack() as stack:
        for _ in range(others):
            stack.enter_context(STREAM_PACER.text())
        await collect(source(), runtime, kept)
    assert STREAM_PACER.pause == 0.0
    return kept, told
