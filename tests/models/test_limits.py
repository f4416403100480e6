"""Token limits of each task, and the extra tokens for reasoning models."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag.config import load_settings
from rag.errors import ModelError
from rag.models.chat import build_chat_model
from rag.models.servers import with_sampling
from rag.prompts.requests import Prompt
from rag.reasoning.chat import ChatReasoner, Grades
from tests.support.chat_server import ChatServer, Reply

PROMPT = Prompt("Rules.", "Question?", max_tokens=100)
CUT = Reply("<think>So the user wants", finish="length")


def model_of(server: ChatServer) -> Any:
    return build_chat_model(load_settings(env_file=None, llm_model="m", llm_base_url=server.base_url))


async def text_of(reasoner: ChatReasoner) -> str:
    return "".join([piece async for piece in reasoner.stream(PROMPT)])


def limits(server: ChatServer) -> list[int]:
    return [request.body["max_tokens"] for request in server.requests]


def test_a_model_that_was_cut_while_it_thought_gets_room_for_it() -> None:
    with ChatServer([CUT, "It is so [1].", "It is so [1]."]) as server:
        reasoner = ChatReasoner(model_of(server))
        assert asyncio.run(text_of(reasoner)) == "It is so [1]."
        assert asyncio.run(reasoner.ask(PROMPT)) == "It is so [1]."
        assert limits(server) == [100, 4_100, 4_100]


def test_a_form_that_was_cut_is_asked_for_again() -> None:
    with ChatServer([CUT, '{"irrelevant": [2]}', '{"irrelevant": [2]}']) as server:
        reasoner = ChatReasoner(model_of(server))
        assert asyncio.run(reasoner.fill(Grades, PROMPT)).irrelevant == [2]
        assert limits(server)[-1] in (100, 4_100)


@pytest.mark.parametrize("reply", ['{"irrelevant": [1, 1, 1', '{"irrelevant":\n\n\n\n', "\n\n\n\n"])
def test_a_form_that_a_small_model_never_ends_is_no_thought(reply: str) -> None:
    with ChatServer([Reply(reply, finish="length")] * 9) as server:
        reasoner = ChatReasoner(model_of(server))
        with pytest.raises(ModelError):
            asyncio.run(reasoner.fill(Grades, PROMPT))
        assert set(limits(server)) == {100}


def test_blanks_without_end_are_no_thought() -> None:
    with ChatServer([Reply("\n \n", finish="length")] * 4) as server:
        reasoner = ChatReasoner(model_of(server))
        with pytest.raises(ModelError):
            asyncio.run(text_of(reasoner))
        assert asyncio.run(reasoner.ask(PROMPT)).strip() == ""
        assert set(limits(server)) == {100}


def test_thoughts_that_a_server_leaves_out_get_room() -> None:
    with ChatServer([Reply("", finish="length"), "It is so [1]."]) as server:
        assert asyncio.run(text_of(ChatReasoner(model_of(server)))) == "It is so [1]."
        assert limits(server) == [100, 4_100]


def test_an_answer_that_is_too_long_is_not_asked_for_again() -> None:
    with ChatServer([Reply("It is so [1]. And", finish="length")]) as server:
        with pytest.raises(ModelError) as caught:
            asyncio.run(text_of(ChatReasoner(model_of(server))))
        assert caught.value.code == "answer_too_long" and len(server.requests) == 1


def test_a_persons_own_limit_stays() -> None:
    with ChatServer(["It is so [1]."]) as server:
        asyncio.run(text_of(ChatReasoner(with_sampling(model_of(server), {"max_tokens": 7}))))
        assert limits(server) == [7]


def test_a_server_that_refuses_the_limit_is_asked_without_it() -> None:
    refusal = Reply("Unsupported parameter: max_tokens", status=400)
    with ChatServer([refusal, "It is so [1]."]) as server:
        assert asyncio.run(text_of(ChatReasoner(model_of(server)))) == "It is so [1]."
        assert "max_tokens" not in server.requests[1].body
