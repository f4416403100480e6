"""A LangGraph checkpointer that opens its database for each read and write, and closes it again.

A run reads once and writes once (`durability="exit"`), so an open connection would serve no one: it would
only tie the conversation to one event loop, and its thread would keep a process from ending.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

Opens = Callable[[], AbstractAsyncContextManager[BaseCheckpointSaver[Any]]]
Prunes = Callable[[Any, str, str], Awaitable[None]]


class ConversationSaver(BaseCheckpointSaver[str]):
    """Hands each call on to a saver that `opens` gives.

    `prunes` (saver, thread, newest checkpoint) removes what came before: a state holds all that is remembered.
    """

    def __init__(self, opens: Opens, prunes: Prunes | None = None) -> None:
        super().__init__()
        self._opens = opens
        self._prunes = prunes

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        async with self._opens() as saver:
            return await saver.aget_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the parent's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async with self._opens() as saver:
            async for one in saver.alist(config, filter=filter, before=before, limit=limit):
                yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        async with self._opens() as saver:
            written = await saver.aput(config, checkpoint, metadata, new_versions)
            if self._prunes is not None:
                await self._prunes(saver, str(config["configurable"]["thread_id"]), checkpoint["id"])
            return written

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        async with self._opens() as saver:
            await saver.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        async with self._opens() as saver:
            await saver.adelete_thread(thread_id)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions that both SQLite and Postgres savers write: a count, and a fraction against clashes."""
        count = 0 if current is None else int(str(current).split(".", 1)[0])
        return f"{count + 1:032}.{random.random():016}"
