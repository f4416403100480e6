"""Structured output from any chat model, by the strictest method that its server supports.

The methods are json_schema, a forced function call, JSON mode, and finally plain text. If a server rejects one,
the next one is tried, and later requests start there.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from rag.errors import ModelError
from rag.models.servers import (
    ServerKey,
    drop_reasoning,
    failure_types,
    model_error,
    refuses_structured_output,
    server_key,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

log = logging.getLogger(__name__)

Method = Literal["json_schema", "function_calling", "json_mode", "text"]
Schema = TypeVar("Schema", bound=BaseModel)

_ALL_METHODS: tuple[Method, ...] = ("json_schema", "function_calling", "json_mode", "text")
_METHODS_OF_OTHERS: tuple[Method, ...] = ("function_calling", "text")

# The first method to try, by server address and model; for the lifetime of the process.
_first_methods: dict[ServerKey, Method] = {}


async def fill_schema(model: BaseChatModel, schema: type[Schema], messages: Sequence[BaseMessage]) -> Schema:
    """Ask the model to fill `schema`, with one repair if the reply does not fit.

    Raises ModelError: `chat_unusable` if the repair does not fit either, or the reason for a failed request.
    """
    from langchain_core.messages import AIMessage, HumanMessage

    try:
        method, reply = await _try_methods(model, schema, list(messages))
        filled = read_reply(schema, reply)
        if isinstance(filled, schema):
            return filled
        log.info("A structured reply by %s did not fit: asking for a repair", method)
        text = reply.text or json.dumps([call.get("args") for call in reply.invalid_tool_calls or reply.tool_calls])
        ask = f"That did not fit: {filled}. Write it again for the schema {schema.__name__}."
        talk = [*messages, AIMessage(text[:4000] or "-"), HumanMessage(ask)]
        repaired = await _ask(model, schema, talk, "text")
    except failure_types() as error:
        raise model_error(error) from error
    filled = read_reply(schema, repaired)
    if isinstance(filled, schema):
        return filled
    raise ModelError("chat_unusable", status="") from (filled if isinstance(filled, Exception) else None)


def read_reply(schema: type[Schema], reply: AIMessage) -> Schema | ValueError:
    """Parse the schema from the reply's tool call or text, ignoring text around it; return an error if that fails."""
    problem, names = ValueError("the reply contains no JSON object"), list(schema.model_fields)
    broken = (call.get("args") or "" for call in reply.invalid_tool_calls)
    in_texts = (value for text in (*broken, drop_reasoning(reply.text)) for value in _json_in(text))
    for value in chain((call["args"] for call in reply.tool_calls), in_texts):
        is_bare = isinstance(value, list) and len(names) == 1  # many models omit the only field around a list
        try:
            return schema.model_validate({names[0]: value} if is_bare else value)
        except ValidationError as error:
            # without the values, which can be page text
            faults = error.errors(include_input=False, include_url=False)[:3]
            parts = (f"{'.'.join(map(str, fault['loc'])) or 'reply'}: {fault['msg']}" for fault in faults)
            problem = ValueError("; ".join(parts))
    return problem


async def _try_methods(
    model: BaseChatModel, schema: type[BaseModel], messages: list[BaseMessage]
) -> tuple[Method, AIMessage]:
    expected: tuple[type[Exception], ...] = (*failure_types(), NotImplementedError)
    key = server_key(model)
    methods = _ALL_METHODS if model._llm_type == "openai-chat" else _METHODS_OF_OTHERS
    methods = methods[methods.index(_first_methods[key]) :] if _first_methods.get(key) in methods else methods
    for method in methods[:-1]:
        try:
            reply = await _ask(model, schema, messages, method)
        except expected as error:
            if not refuses_structured_output(error, model) or model_error(error).code == "chat_too_long":
                raise
            log.info("The chat server refused %s (%s)", method, type(error).__name__)
            continue
        _first_methods[key] = method
        return method, reply
    reply = await _ask(model, schema, messages, methods[-1])
    _first_methods[key] = methods[-1]
    return methods[-1], reply


async def _ask(model: BaseChatModel, schema: type[BaseModel], messages: list[BaseMessage], method: Method) -> AIMessage:
    from langchain_core.messages import HumanMessage
    from langchain_core.utils.function_calling import convert_to_openai_function

    asked: Any = model
    if method == "json_schema":
        function = convert_to_openai_function(schema, strict=True)
        form = {"name": function["name"], "strict": True, "schema": function["parameters"]}
        asked = model.bind(response_format={"type": "json_schema", "json_schema": form})
    elif method == "function_calling":
        asked = model.bind_tools([schema], tool_choice=schema.__name__)
    elif method == "json_mode":
        asked = model.bind(response_format={"type": "json_object"})
    if method in ("json_mode", "text"):
        fields = json.dumps(schema.model_json_schema(), ensure_ascii=False)
        ask = f"Reply with one JSON object that fits this JSON schema, and nothing else:\n{fields}"
        # in the last message, since many chat templates accept no second system or user message
        if messages and isinstance(messages[-1], HumanMessage):
            messages = [*messages[:-1], HumanMessage(f"{messages[-1].text}\n\n{ask}")]
        else:
            messages = [*messages, HumanMessage(ask)]
    return await asked.ainvoke(messages)  # type: ignore[no-any-return]


def _json_in(text: str) -> Iterator[Any]:
    """Yield each outermost JSON object or list in `text`, first to last."""
    decoder = json.JSONDecoder(strict=False)
    place = 0
    while match := re.compile(r"[{\[]").search(text, place):
        try:
            value, place = decoder.raw_decode(text, match.start())
        except ValueError:
            place = match.start() + 1
        except RecursionError:  # thousands of nested brackets: each would be read to that depth
            return
        else:
            yield value
