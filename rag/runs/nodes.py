"""What the nodes of several modes do alike: they are timed, ask a model before the rules, and stream a text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from langgraph.runtime import Runtime

from rag.errors import ModelError
from rag.reasoning.reasoner import RESET
from rag.runs.kept import NoticeRecord, record
from rag.tracing import span
from rag.types import Notice

log = logging.getLogger(__name__)

Result = tuple[dict[str, Any], dict[str, Any]]
"""What changes in a state, and what was decided, for the trace."""
Said = TypeVar("Said")


def timed(name: str, function: Callable[[Any, Any], Awaitable[Result]]) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Wrap a step so that it is a span, with its decision, and that is streamed."""

    async def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        runtime.stream_writer({"step": {"node": name, "state": "started"}})
        with span(name, "node") as done:
            update, detail = await function(state, runtime)
            done.attributes.update(detail)
        shown = {"node": name, "ms": done.ms, "detail": done.attributes}
        runtime.stream_writer({"step": {**shown, "state": "finished"}})
        return update

    return node


async def either(
    seconds: float, model: Callable[[], Awaitable[Said]] | None, rules: Callable[[], Awaitable[Said]]
) -> tuple[Said, list[NoticeRecord]]:
    """What the model says within so many seconds; where there is none, it fails or is slow, the rules, with a note."""
    if model is None:
        return await rules(), []
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await model(), []
    except (ModelError, TimeoutError) as error:
        notice = error.notice if isinstance(error, ModelError) else Notice("research_model_slow")
        log.info("rules take a step of the model (%s)", notice.code)
        return await rules(), [record(notice)]


async def collect(source: AsyncIterator[str], runtime: Runtime[Any], pieces: list[str]) -> None:
    """Stream a text, and keep its pieces: what came before a failure is not lost."""
    async for piece in source:
        take(piece, runtime, pieces)


def take(piece: str, runtime: Runtime[Any], pieces: list[str]) -> None:
    """Stream one piece of a text, which may be RESET."""
    if piece == RESET:
        pieces.clear()
        runtime.stream_writer({"reset": True})
    elif piece:
        pieces.append(piece)
        runtime.stream_writer({"token": piece})
