"""Counts the calls and tokens of a run where they are made, so that repairs and fall-backs count too."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda

from rag.models.failures import UNREACHED, model_error
from rag.models.usage import CallBudget
from rag.text import estimate_tokens
from rag.tracing import Span, Status, Trace, end

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

Told = TypeVar("Told")


class CallCounter(BaseCallbackHandler):
    """Spends from a budget before each call of a chat model, and counts its tokens after it.

    A spent budget stops the call. Tokens are those that the server counted (`usage_metadata`), else
    estimated from the texts; so are those of a call that broke off or was stopped. One that was refused, or never
    reached a server, used nothing.
    """

    raise_error = True
    run_inline = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True

    def __init__(self, budget: CallBudget, trace: Trace | None = None) -> None:
        """Each call is a span of the `trace`."""
        logging.getLogger("langchain_core.callbacks.manager").addFilter(_unexpected)  # once: it is the same one
        self._budget = budget
        self._trace = trace or Trace()
        self._spans: dict[UUID, Span] = {}
        self._asked: dict[UUID, int] = {}
        self._told: dict[UUID, list[str]] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        self._budget.spend()
        self._asked[run_id] = sum(estimate_tokens(message.text) + 4 for batch in messages for message in batch)
        self._told[run_id] = []
        self._spans[run_id] = self._trace.begin(_name(serialized, kwargs), "model")
        self._budget.meter.prompts.update(str(messages[0][0].id or "").split())

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if isinstance(token, str) and run_id in self._told:
            self._told[run_id].append(token)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        asked, told = self._asked.pop(run_id, None), self._told.pop(run_id, [])
        if asked is None:
            return
        message = _message(response)
        counted = getattr(message, "usage_metadata", None)
        if counted and counted.get("input_tokens"):
            self._count(run_id, counted["input_tokens"], counted["output_tokens"])
        else:
            text = message.text if message is not None else "".join(told)
            calls = "".join(str(call) for call in getattr(message, "tool_calls", []))
            self._count(run_id, asked, estimate_tokens(text + calls), estimated=True)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._budget.slow = self._budget.slow or model_error(error).code == "chat_timeout"
        if not self._told.get(run_id) and _was_refused(error):
            self._asked.pop(run_id, None)
            self._told.pop(run_id, None)
        self._close(run_id, "error")

    def close(self) -> None:
        """Count what was under way when the run was stopped."""
        for run_id in tuple(self._asked):
            self._close(run_id, "stopped")

    def _close(self, run_id: UUID, status: Status) -> None:
        asked, told = self._asked.pop(run_id, None), self._told.pop(run_id, [])
        if asked is not None:
            self._count(run_id, asked, estimate_tokens("".join(told)), status, estimated=True)
        elif begun := self._spans.pop(run_id, None):
            end(begun, status)

    def _count(self, run_id: UUID, given: int, told: int, status: Status = "ok", *, estimated: bool = False) -> None:
        self._budget.meter.add(given, told, estimated=estimated)
        end(self._spans.pop(run_id), status, tokens_in=given, tokens_out=told, tokens_estimated=estimated)


async def counted(budget: CallBudget, work: Callable[[], Awaitable[Told]]) -> Told:
    """What `work` gives, in a langchain run of its own, whose callbacks count its calls."""

    async def told(_: Any) -> Told:
        return await work()

    given: Told = await RunnableLambda(told).ainvoke(None, {"callbacks": [CallCounter(budget)]})
    return given


def _unexpected(line: logging.LogRecord) -> bool:
    """False for the warning that LangChain logs of a call which a spent budget stops: the run tells of that."""
    return not line.getMessage().startswith(f"Error in {CallCounter.__name__}.")


def _name(serialized: Mapping[str, Any] | None, given: Mapping[str, Any]) -> str:
    """The model's, as its client tells it."""
    parameters = given.get("invocation_params") or {}
    return str(parameters.get("model") or parameters.get("model_name") or (serialized or {}).get("name") or "model")


def _was_refused(error: BaseException) -> bool:
    return isinstance(getattr(error, "status_code", None), int) or model_error(error).code in UNREACHED


def _message(response: LLMResult) -> Any:
    generations: Sequence[Any] = response.generations[0] if response.generations else ()
    return getattr(generations[0], "message", None) if generations else None
