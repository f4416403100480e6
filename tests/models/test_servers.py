"""Chat servers: refused tools, schemas or parameters; text around answers; limits, context window and speed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from rag.errors import ModelError
from rag.locales import say
from rag.models import servers
from rag.models.servers import (
    SAMPLING,
    ServerCapacity,
    answer_text,
    capacity_of,
    drop_reasoning,
    failure_types,
    load_capacity,
    refused_parameters,
    refuses_structured_output,
    refuses_tools,
    remember_no_tools,
    takes_tools,
    with_sampling,
)
from rag.prompts.requests import Prompt
from rag.reasoning.chat import ChatReasoner, Grades
from rag.runs.run import RunOptions
from tests.support.answering import BRIDGE, passage
from tests.support.chat_server import ChatServer, Reply
from tests.support.fake_model import QueueModel

CHOSEN = RunOptions(max_tokens=200, top_p=0.9, presence_penalty=0.0, seed=7, stop=("END", "\n\n\n"))


class StatusError(OSError):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status


def model(name: str = "m", address: str = "http://localhost/v1") -> Any:
    return SimpleNamespace(model_name=name, openai_api_base=address, _llm_type="openai-chat")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: …"),
        (500, "tools param requires --jinja flag"),
        (501, "tool calling is not implemented"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (405, "Function calling is not enabled for this model"),
        (422, "unknown field `tool_choice`"),
        (503, "function_call is not available on this backend"),
        (400, "该模型不支持工具调用"),
        (500, "当前模型暂不支持函数调用"),
    ],
)
def test_no_tools(status: int, text: str) -> None:
    assert refuses_tools(StatusError(status, text), model())


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "The model `m` does not exist"),
        (404, "The model `acme-tool-use-8b` does not exist"),
        (400, "prompt too long; context toolong"),
        (400, "maximum context length is 10 tokens, of which the tools take 8"),
        (401, "This key may not use tools"),
        (429, "Rate limit reached for requests with tools"),
        (502, "<!DOCTYPE html><html><body>Bad gateway. Try our webmaster tools.</body></html>"),
        (500, "Internal Server Error"),
    ],
)
def test_failures_of_another_kind(status: int, text: str) -> None:
    assert not refuses_tools(StatusError(status, text), model("acme-tool-use-8b"))


def test_a_failure_without_a_status_says_nothing_about_tools() -> None:
    assert not refuses_tools(ValueError("tool_calls: invalid"), model())
    assert refuses_tools(NotImplementedError(), model())


@pytest.mark.parametrize(
    ("status", "text", "refused"),
    [
        (404, "No endpoints found that support response_format", True),
        (405, "json_schema is not supported", True),
        (500, "response_format not supported", True),
        (500, "Structured outputs are disabled", True),
        (503, "failed to build the grammar", True),
        (500, "不支持结构化输出", True),
        (404, "No endpoints found that support tool use", True),
        (400, "no", True),
        (422, "no", True),
        (501, "no", True),
        (404, "The model `m` does not exist", False),
        (500, "Internal Server Error", False),
        (401, "response_format is not for this key", False),
        (429, "too many requests with json_schema", False),
    ],
)
def test_no_forms(status: int, text: str, refused: bool) -> None:
    assert refuses_structured_output(StatusError(status, text), model()) is refused


def test_it_is_remembered_of_a_server_and_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_without_tools", set())
    remember_no_tools(model())
    remember_no_tools(model("nowhere", ""))
    assert not takes_tools(model())
    assert takes_tools(model("other"))
    assert takes_tools(model(address="http://elsewhere/v1"))
    assert takes_tools(model("nowhere", ""))  # may be a different server each time


def _answered(server: ChatServer, *chosen: RunOptions) -> list[str]:
    """Return the answers with each of the options, each after a rewrite without them."""
    model = server.model()

    async def one(options: RunOptions) -> str:
        reasoner = ChatReasoner(with_sampling(model, options.sampling), fast=model)
        await reasoner.rewrite("When?", ["when"], [])
        return "".join([piece async for piece in reasoner.answer("When?", [passage(1, BRIDGE)])])

    async def run() -> list[str]:
        return [await one(options) for options in chosen]

    return asyncio.run(run())


def test_what_is_set_goes_with_the_answer_alone_and_nothing_else() -> None:
    with ChatServer(["first", "In 1932. [1]", "first", "In 1932. [1]"]) as server:
        assert _answered(server, CHOSEN, RunOptions()) == ["In 1932. [1]"] * 2
        sent: list[dict[str, Any]] = [
            {name: one.body[name] for name in (*SAMPLING, "max_completion_tokens", "n") if name in one.body}
            for one in server.requests
        ]
    assert sent[1] == CHOSEN.sampling
    assert all(set(one) <= {"max_tokens"} for one in (sent[0], *sent[2:])), "a limit of its own, and nothing chosen"
    assert CHOSEN.sampling == {
        "max_tokens": 200,
        "top_p": 0.9,
        "presence_penalty": 0.0,
        "seed": 7,
        "stop": ["END", "\n\n\n"],
    }


def test_a_parameter_that_is_refused_is_named() -> None:
    refusal = Reply("Unsupported parameter: 'seed' is not supported with this model.", status=400)
    with ChatServer(["first", refusal]) as server, pytest.raises(ModelError) as error:
        _answered(server, CHOSEN)
    assert error.value.code == "chat_parameter_refused"
    assert "seed" in say(error.value.notice, "en") and "seed" in say(error.value.notice, "zh")
    assert len(server.requests) == 2, "a choice is not left out unsaid"


def test_what_a_service_says_is_read_by_whole_names() -> None:
    assert refused_parameters("Invalid top_p, max_completion_tokens", SAMPLING) == "max_tokens, top_p"
    assert refused_parameters("the request was stopped", SAMPLING) == ""
    assert refused_parameters("seed", ("stop",)) == ""


def test_a_model_without_such_a_parameter_says_so_before_it_is_asked() -> None:
    model = QueueModel()
    assert with_sampling(model, {}) == model
    with pytest.raises(ModelError) as error:
        with_sampling(model, {"seed": 1})
    assert error.value.code == "chat_parameter_unknown"


ANSWER = "The mill at Orrin was built in 1790 [1]."
THOUGHT = "The user asks about a mill, so I look at passage 2."

THOUGHTS = [
    f"<think>{THOUGHT}</think>{ANSWER}",
    f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    f"<seed:think>{THOUGHT}</seed:think>{ANSWER}",
    f"<scratchpad>\n{THOUGHT}\n</scratchpad>\n\n{ANSWER}",
    f"<inner_voice>{THOUGHT}</inner_voice>{ANSWER}",
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
    f"analysis{THOUGHT}assistantfinal{ANSWER}",
    f"Thinking...\n{THOUGHT}\n...done thinking.\n\n{ANSWER}",
    f"**Reasoning:** {THOUGHT}\n\n**Final answer:** {ANSWER}",
    f"## Thinking:\n{THOUGHT}\n\n## Answer\n{ANSWER}",
    f'<details type="reasoning" done="true">\n<summary>Thought</summary>\n> {THOUGHT}\n</details>\n{ANSWER}',
    f"<think>{THOUGHT}</think><answer>{ANSWER}</answer>",
]
WRAPPED = [
    f"<answer>{ANSWER}</answer>",
    f"<answer>{ANSWER}",
    f"<result>{ANSWER}</result>",
    f"Answer: {ANSWER}",
    f"**Answer:**\n\n{ANSWER}",
    f"```markdown\n{ANSWER}\n```",
    f"```\n{ANSWER}\n```",
    json.dumps({"answer": ANSWER}),
    json.dumps({"reasoning": THOUGHT * 3, "final_answer": ANSWER, "confidence": 0.9}),
    json.dumps({"answer": ANSWER.replace(" [1]", ""), "citations": [1]}).replace("1790.", "1790 [1]."),
    json.dumps([{"sentence": ANSWER}]),
    f"```json\n{json.dumps({'answer': ANSWER})}\n```",
    *(f"{ANSWER}{token}" for token in ("<|im_end|>", "</s>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>")),
    f"{ANSWER}<|im_end|>\n<|im_start|>user\nAnd who owns it?",
    f"{ANSWER}\n\nReferences:\n[1] Orrin mill, https://example.org/orrin",
    f"{ANSWER}\n\n**Sources:**\n- [1] Orrin mill",
    f"{ANSWER}\n\nSources: [1]",
    f"{ANSWER}\n\n[1]: Orrin mill, https://example.org/orrin",
    f"\ufeff{ANSWER}",
]


@pytest.mark.parametrize("reply", THOUGHTS + WRAPPED)
def test_the_answer_is_what_is_left(reply: str) -> None:
    assert " ".join(answer_text(reply).split()) == ANSWER


@pytest.mark.parametrize("reply", THOUGHTS)
def test_no_beginning_of_a_reply_shows_its_thoughts(reply: str) -> None:
    for size in range(len(reply)):
        shown = answer_text(reply[:size], whole=False).strip()
        assert ANSWER.startswith(shown), shown


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>{THOUGHT}",
        f"<|channel|>analysis<|message|>{THOUGHT}",
        '<tool_call>\n{"name": "retrieve", "arguments": {"query": "mill"}}\n</tool_call>',
        '{"name": "retrieve", "parameters": {"query": "mill"}}',
        '[TOOL_CALLS][{"name": "retrieve", "arguments": {"query": "mill"}}]',
        "<|im_end|>",
        '{"answer": ""}',
    ],
)
def test_a_reply_without_an_answer_is_empty(reply: str) -> None:
    assert not answer_text(reply).strip()


@pytest.mark.parametrize(
    "reply",
    [
        "The token `<|im_end|>` ends a turn [1]. Others end with `</s>` [2].",
        "<p>Built in 1790 [1].</p>",
        "```bash\npip install orrin\n```\nThat installs it [1].",
        "```bash\npip install orrin\n```",
        "Analysis of the mill began in 1790 [1].",
        "[1] says that it was built in 1790.",
        "{name} stands for the person [1].",
        "The mill cites these sources:\n\nSources: the deed of 1790, which the town keeps [1].",
        "[The mill] was built in 1790 [1].",
    ],
)
def test_what_only_looks_alike_stays(reply: str) -> None:
    assert answer_text(reply) == reply


def test_a_summary_keeps_its_labels_and_lists() -> None:
    text = "Answer: two mills.\n- one [1]\n- two [2]"
    assert drop_reasoning(text) == text


class Telling(ChatServer):
    """A server that states more about its model than the name."""

    def __init__(self, fields: Mapping[str, Any], more: Mapping[str, Any] | None = None, **how: Any) -> None:
        super().__init__(**how)
        self._fields, self._more = fields, more or {}

    def listing(self, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        return 200, {"object": "list", "data": [{"id": "m", "object": "model", **self._fields}], **self._more}


LLAMA = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}


@pytest.mark.parametrize(
    ("fields", "more", "window", "slots"),
    [
        ({"max_model_len": 2048}, {}, 2048, None),
        ({"meta": {"n_ctx": 1024, "n_ctx_train": 8192}}, {}, 1024, None),
        ({"owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}, LLAMA, 4096, 1),
        ({}, {}, None, None),
        ({"max_model_len": "many"}, {}, None, None),
    ],
)
def test_a_server_tells_its_window(fields: Any, more: Any, window: int | None, slots: int | None) -> None:
    with Telling(fields, more) as server:
        capacity = asyncio.run(load_capacity(server.model("m")))
    assert (capacity.window, capacity.slots) == (window, slots)


def test_a_refusal_tells_it_too() -> None:
    said = "request (5012 tokens) exceeds the available context size (4096 tokens), try increasing it"
    with ChatServer([Reply(said, status=400)]) as server:
        model = server.model("m")
        with pytest.raises(failure_types()):
            asyncio.run(model.ainvoke("hi"))
        assert len(server.requests) == 1
    assert capacity_of(model).window == 4096
    assert capacity_of(model).fitting_tokens(16_000, 60.0) == 4096


def test_what_is_read_too_slowly_does_not_fit() -> None:
    capacity = ServerCapacity(window=8_192)
    assert capacity.fitting_tokens(16_000, 60.0) == 8_192
    capacity.record(1_000, 50.0, 40, 10.0)
    assert capacity.fitting_tokens(16_000, 60.0) == 1_760
    assert (capacity.estimate_seconds(1_000, 40), capacity.first_token_waits) == (60.0, [50.0])
    capacity.record(20, 5.0, 2, 1.0)  # too little to learn from
    assert capacity.estimate_seconds(1_000, 40) == 60.0


def test_a_server_with_one_slot_is_asked_one_thing_at_a_time() -> None:
    busy: list[int] = []

    async def one(capacity: ServerCapacity) -> None:
        async with capacity.semaphore():
            busy.append(1)
            assert sum(busy) == 1
            await asyncio.sleep(0.01)
            busy.pop()

    async def several() -> None:
        capacity = ServerCapacity(slots=1)
        await asyncio.gather(*(one(capacity) for _ in range(3)))

    asyncio.run(several())


def test_a_model_is_slow_if_the_passages_of_a_question_take_too_long() -> None:
    capacity = ServerCapacity()
    assert not capacity.is_slow(), "nothing is known yet"
    capacity.record(tokens_in=400, seconds=1.0, tokens_out=20, writing=1.0)
    assert not capacity.is_slow()
    capacity.record(tokens_in=400, seconds=4.0, tokens_out=20, writing=1.0)
    assert capacity.is_slow()


PROMPT = Prompt("Rules.", "Question?", max_tokens=100)
CUT = Reply("<think>So the user wants", finish="length")


async def text_of(reasoner: ChatReasoner) -> str:
    return "".join([piece async for piece in reasoner.stream(PROMPT)])


def limits(server: ChatServer) -> list[int]:
    return [request.body["max_tokens"] for request in server.requests]


def test_a_model_that_was_cut_while_it_thought_gets_room_for_it() -> None:
    with ChatServer([CUT, "It is so [1].", "It is so [1]."]) as server:
        reasoner = ChatReasoner(server.model())
        assert asyncio.run(text_of(reasoner)) == "It is so [1]."
        assert asyncio.run(reasoner.ask(PROMPT)) == "It is so [1]."
        assert limits(server) == [100, 4_100, 4_100]


def test_a_form_that_was_cut_is_asked_for_again() -> None:
    with ChatServer([CUT, '{"irrelevant": [2]}', '{"irrelevant": [2]}']) as server:
        reasoner = ChatReasoner(server.model())
        assert asyncio.run(reasoner.fill(Grades, PROMPT)).irrelevant == [2]
        assert limits(server)[-1] in (100, 4_100)


@pytest.mark.parametrize("reply", ['{"irrelevant": [1, 1, 1', '{"irrelevant":\n\n\n\n', "\n\n\n\n"])
def test_a_form_that_a_small_model_never_ends_is_no_thought(reply: str) -> None:
    with ChatServer([Reply(reply, finish="length")] * 9) as server:
        reasoner = ChatReasoner(server.model())
        with pytest.raises(ModelError):
            asyncio.run(reasoner.fill(Grades, PROMPT))
        assert set(limits(server)) == {100}


def test_blanks_without_end_are_no_thought() -> None:
    with ChatServer([Reply("\n \n", finish="length")] * 4) as server:
        reasoner = ChatReasoner(server.model())
        with pytest.raises(ModelError):
            asyncio.run(text_of(reasoner))
        assert asyncio.run(reasoner.ask(PROMPT)).strip() == ""
        assert set(limits(server)) == {100}


def test_an_answer_that_is_too_long_is_not_asked_for_again() -> None:
    with ChatServer([Reply("It is so [1]. And", finish="length")]) as server:
        with pytest.raises(ModelError) as caught:
            asyncio.run(text_of(ChatReasoner(server.model())))
        assert caught.value.code == "answer_too_long" and len(server.requests) == 1


@pytest.mark.parametrize(
    ("replies", "chosen", "sent"),
    [
        ([Reply("", finish="length")], {}, [100, 4_100]),  # the server omits the reasoning
        ([], {"max_tokens": 7}, [7]),
        ([Reply("Unsupported parameter: max_tokens", status=400)], {}, [100, None]),
    ],
)
def test_the_limits_of_a_reply(replies: list[Reply], chosen: dict[str, int], sent: list[int | None]) -> None:
    with ChatServer([*replies, "It is so [1]."]) as server:
        assert asyncio.run(text_of(ChatReasoner(with_sampling(server.model(), chosen)))) == "It is so [1]."
        assert [request.body.get("max_tokens") for request in server.requests] == sent
