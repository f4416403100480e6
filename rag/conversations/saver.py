"""A LangGraph checkpointer that opens and closes its database for each read and write.

Most runs read and write once (`durability="exit"`), so a permanent connection would only bind conversations to one
event loop, and its thread would keep the process from ending.
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

from rag.runs.run import KEEPS_HISTORY_KEY

OpenSaver = Callable[[], AbstractAsyncContextManager[BaseCheckpointSaver[Any]]]
Prune = Callable[[Any, str, str, str], Awaitable[None]]
EnforceLimits = Callable[[Any], Awaitable[None]]


class ConversationSaver(BaseCheckpointSaver[str]):
    """A checkpointer that passes each call to a saver from `open_saver`.

    `prune` (saver, thread, namespace, newest checkpoint) deletes the namespace's earlier checkpoints, unless the run
    keeps its history: the newest has the complete state. `enforce_limits` (saver) deletes histories that are too old or
    too large, whenever a run begins one.
    """

    def __init__(self, open_saver: OpenSaver, prune: Prune, enforce_limits: EnforceLimits) -> None:
        super().__init__()
        self._open_saver = open_saver
        self._prune = prune
        self._enforce_limits = enforce_limits

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        async with self._open_saver() as saver:
            return await saver.aget_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the parent's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async with self._open_saver() as saver:
            async for item in saver.alist(config, filter=filter, before=before, limit=limit):
                yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        async with self._open_saver() as saver:
            new_config = await saver.aput(config, checkpoint, metadata, new_versions)
            options = config["configurable"]
            if not options.get(KEEPS_HISTORY_KEY):
                namespace = str(options.get("checkpoint_ns", ""))
                await self._prune(saver, str(options["thread_id"]), namespace, checkpoint["id"])
            elif metadata.get("source") == "input":
                await self._enforce_limits(saver)
            return new_config

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        async with self._open_saver() as saver:
            await saver.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        async with self._open_saver() as saver:
            await saver.adelete_thread(thread_id)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version in the format of the SQLite and Postgres savers: a counter and a random suffix."""
        count = 0 if current is None else int(str(current).split(".", 1)[0])
        return f"{count + 1:032}.{random.random():016}"
