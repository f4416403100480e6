"""Counting of a run's model calls and tokens, by a callback, so that repairs and fallbacks count too."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda

from rag.models.servers import UNREACHABLE_CODES, model_error
from rag.text import estimate_tokens
from rag.tracing import CallBudget, Span, Status, Trace, end

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

Result = TypeVar("Result")


@dataclass(slots=True)
class _Call:
    """A call in progress: its span, the estimated tokens of its prompt, and the text received so far."""

    span: Span
    prompt_tokens: int
    chunks: list[str] = field(default_factory=list)


class CallCounter(BaseCallbackHandler):
    """A callback that charges a budget before each call of a chat model, and counts its tokens afterwards.

    An exhausted budget stops the call. Tokens are counted by the server (`usage_metadata`), or else estimated from the
    text, as for interrupted calls. Calls that were refused or never reached a server use none.
    """

    raise_error = True
    run_inline = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True

    def __init__(self, budget: CallBudget, trace: Trace | None = None) -> None:
        """Record each call as a span of `trace`."""
        logging.getLogger("langchain_core.callbacks.manager").addFilter(_is_unexpected)  # adding it twice has no effect
        self._budget = budget
        self._trace = trace or Trace()
        self._calls: dict[UUID, _Call] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        self._budget.spend()
        tokens = sum(estimate_tokens(message.text) + 4 for batch in messages for message in batch)
        parameters = kwargs.get("invocation_params") or {}
        name = parameters.get("model") or parameters.get("model_name") or (serialized or {}).get("name") or "model"
        self._calls[run_id] = _Call(self._trace.begin(str(name), "model"), tokens)
        self._budget.meter.prompts.update(str(messages[0][0].id or "").split())

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if isinstance(token, str) and run_id in self._calls:
            self._calls[run_id].chunks.append(token)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        call = self._calls.pop(run_id, None)
        if call is None:
            return
        generations: Sequence[Any] = response.generations[0] if response.generations else ()
        message = getattr(generations[0], "message", None) if generations else None
        usage = getattr(message, "usage_metadata", None)
        if usage and usage.get("input_tokens"):
            self._count(call, usage["input_tokens"], usage["output_tokens"])
        else:
            text = message.text if message is not None else "".join(call.chunks)
            tool_calls = "".join(str(one) for one in getattr(message, "tool_calls", []))
            self._count(call, call.prompt_tokens, estimate_tokens(text + tool_calls), estimated=True)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        code, status = model_error(error).code, getattr(error, "status_code", None)
        self._budget.timed_out = self._budget.timed_out or code == "chat_timeout"
        call = self._calls.pop(run_id, None)
        was_refused = isinstance(status, int) or code in UNREACHABLE_CODES
        if call is not None and not call.chunks and was_refused:
            end(call.span, "error")
        elif call is not None:
            self._count_broken(call, "error")

    def close(self) -> None:
        """Count the calls that were running when the run was stopped."""
        while self._calls:
            self._count_broken(self._calls.popitem()[1], "stopped")

    def _count_broken(self, call: _Call, status: Status) -> None:
        self._count(call, call.prompt_tokens, estimate_tokens("".join(call.chunks)), status, estimated=True)

    def _count(self, call: _Call, prompt: int, reply: int, status: Status = "ok", *, estimated: bool = False) -> None:
        self._budget.meter.add(prompt, reply, estimated=estimated)
        end(call.span, status, tokens_in=prompt, tokens_out=reply, tokens_estimated=estimated)


async def count_calls(budget: CallBudget, work: Callable[[], Awaitable[Result]]) -> Result:
    """Run `work` with its model calls charged to the budget, and return its result."""

    async def run(_: Any) -> Result:
        return await work()

    result: Result = await RunnableLambda(run).ainvoke(None, {"callbacks": [CallCounter(budget)]})
    return result


def _is_unexpected(line: logging.LogRecord) -> bool:
    """False for LangChain's warning when an exhausted budget stops a call, which the run reports itself."""
    return not line.getMessage().startswith(f"Error in {CallCounter.__name__}.")
