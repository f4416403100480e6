"""Storage of conversation checkpoints: SQLite in the data folder, or the Postgres of DATABASE_URL."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rag.background import BACKGROUND
from rag.runs.run import KEEPS_HISTORY_KEY

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from rag.store.sql.postgres import Postgres

_DELETE_SECONDS: Final = 10.0
_DAYS: Final = 30.0  # for which histories of runs are stored
_MEGABYTES: Final = 500  # of histories in SQLite


class Checkpoints:
    """The checkpointer, created on first use. Thread-safe."""

    def __init__(self, path: Path, postgres: Postgres | None = None) -> None:
        self._path = path
        self._database = postgres
        self._lock = threading.Lock()
        self._saver: BaseCheckpointSaver[Any] | None = None
        self._postgres: PostgresCheckpoints | None = None
        self._ready = False

    def saver(self) -> BaseCheckpointSaver[Any]:
        """Return the process's checkpointer. The first import is slow: call this in a worker thread."""
        from rag.conversations.saver import ConversationSaver

        with self._lock:
            if self._saver is None and self._database:
                self._postgres = pg = PostgresCheckpoints(self._database)
                self._saver = ConversationSaver(pg.open_saver, pg.prune, pg.enforce_limits)
            elif self._saver is None:
                self._saver = ConversationSaver(self._sqlite, _prune, _enforce_limits)
            return self._saver

    def close(self) -> None:
        """Close the connections to Postgres. Blocks, like `delete`."""
        if self._postgres is not None:
            BACKGROUND.wait(self._postgres.close())

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation's checkpoints. Blocks, so it must not be called in the background loop."""
        work = self.saver().adelete_thread(conversation_id)
        asyncio.run_coroutine_threadsafe(work, BACKGROUND.loop()).result(_DELETE_SECONDS)

    def values(self, conversation_id: str, namespace: str) -> dict[str, Any]:
        """Return the newest checkpoint's values of a graph within a run, {} if there is none. Blocks, like `delete`."""
        place: Any = {"configurable": {"thread_id": conversation_id, "checkpoint_ns": namespace}}
        latest = BACKGROUND.wait(self.saver().aget_tuple(place))
        values = latest.checkpoint["channel_values"] if latest else {}
        return {name: value for name, value in values.items() if not name.startswith("__") and ":" not in name}

    @asynccontextmanager
    async def _sqlite(self) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(str(self._path)) as saver:
            saver.is_setup = self._ready  # once per file: setup is slower than most operations
            await saver.setup()  # so that `delete` works before the first question
            self._ready = True
            yield saver


async def _prune(saver: AsyncSqliteSaver, conversation_id: str, namespace: str, newest: str) -> None:
    """Delete earlier states: SQLite's saver writes ten kilobytes per turn that are never read again."""
    async with saver.lock:
        for table in ("checkpoints", "writes"):
            await saver.conn.execute(
                f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id NOT IN ({_KEEP_IDS})",
                (conversation_id, namespace, newest, conversation_id, namespace),
            )
        await saver.conn.commit()


async def _enforce_limits(saver: AsyncSqliteSaver) -> None:
    """Delete checkpoints that are too old, and the oldest that are too many; each namespace keeps its newest.

    A step's writes may precede their checkpoint, so writes newer than all checkpoints are kept.
    """
    limits = {"oldest": first_id(time.time() - _DAYS * 86_400), "most": int(_MEGABYTES * 1_000_000)}
    async with saver.lock:
        await saver.conn.execute(_OUT_OF_BOUNDS, limits)
        await saver.conn.execute(_WITHOUT_CHECKPOINT)
        await saver.conn.commit()


def first_id(seconds: float) -> str:
    """Return the smallest id of a checkpoint made at a Unix time: ids are UUIDs of version 6 (RFC 9562)."""
    ticks = int(seconds * 10_000_000) + 0x01B21DD213814000
    return str(UUID(int=(ticks >> 12) << 80 | 6 << 76 | (ticks & 0xFFF) << 64))


_KEEP_IDS: Final = f"""
    SELECT ? UNION SELECT checkpoint_id FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns = ? AND json_extract(CAST(metadata AS TEXT), '$.{KEEPS_HISTORY_KEY}')
"""
"""Ids to keep: the newest, and those of runs with a history."""

_OUT_OF_BOUNDS: Final = """
    DELETE FROM checkpoints WHERE rowid IN (
        SELECT rowid FROM (
            SELECT rowid, checkpoint_id,
                SUM(LENGTH(checkpoint) + LENGTH(metadata)) OVER (ORDER BY checkpoint_id DESC) AS size,
                MAX(checkpoint_id) OVER (PARTITION BY thread_id, checkpoint_ns) AS newest
            FROM checkpoints
        ) WHERE checkpoint_id <> newest AND (checkpoint_id < :oldest OR size > :most)
    )
"""
_WITHOUT_CHECKPOINT: Final = """
    DELETE FROM writes WHERE (thread_id, checkpoint_ns, checkpoint_id) NOT IN (
        SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints
    ) AND checkpoint_id < (
        SELECT MAX(checkpoint_id) FROM checkpoints AS kept
        WHERE kept.thread_id = writes.thread_id AND kept.checkpoint_ns = writes.checkpoint_ns
    )
"""


class PostgresCheckpoints:
    """Checkpoints in Postgres; the connections are bound to the event loop that uses them first."""

    def __init__(self, postgres: Postgres) -> None:
        """Create LangGraph's tables in an empty database. Raises StoreError."""
        from langgraph.checkpoint.postgres import PostgresSaver

        with postgres.exclusive_connection() as connection:
            PostgresSaver(connection).setup()
        self._postgres = postgres
        self._pool = postgres.async_pool()

    @asynccontextmanager
    async def open_saver(self) -> AsyncIterator[AsyncPostgresSaver]:
        """Yield a saver for one call: a saver serialises its calls, so conversations must not share one."""
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        with self._postgres.translate_errors():
            await self._pool.open()
            yield AsyncPostgresSaver(self._pool)

    async def close(self) -> None:
        await self._pool.close()

    async def prune(self, _: AsyncPostgresSaver, conversation_id: str, namespace: str, newest: str) -> None:
        """Delete the checkpoints before a namespace's newest, except those of runs with a history."""
        parameters = {"thread": conversation_id, "namespace": namespace, "newest": newest}
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(_POSTGRES_EARLIER, parameters)
            for statement in _POSTGRES_UNUSED:
                await connection.execute(statement, parameters)

    async def enforce_limits(self, _: AsyncPostgresSaver) -> None:
        """Delete checkpoints that are too old, except each namespace's newest."""
        oldest = first_id(time.time() - _DAYS * 86_400)
        async with self._pool.connection() as connection, connection.transaction():
            rows = await (await connection.execute(_POSTGRES_TOO_OLD, {"oldest": oldest})).fetchall()
            for thread, namespace in {(row["thread_id"], row["checkpoint_ns"]) for row in rows}:
                for statement in _POSTGRES_UNUSED:
                    await connection.execute(statement, {"thread": thread, "namespace": namespace})


_POSTGRES_EARLIER: Final = f"""
    DELETE FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s
    AND checkpoint_id <> %(newest)s AND NOT coalesce((metadata ->> '{KEEPS_HISTORY_KEY}')::boolean, false)
"""
_POSTGRES_TOO_OLD: Final = """
    DELETE FROM checkpoints AS one WHERE checkpoint_id < %(oldest)s AND checkpoint_id <> (
        SELECT max(checkpoint_id) FROM checkpoints AS kept
        WHERE kept.thread_id = one.thread_id AND kept.checkpoint_ns = one.checkpoint_ns
    ) RETURNING thread_id, checkpoint_ns
"""
_POSTGRES_UNUSED: Final = (
    """
    DELETE FROM checkpoint_writes AS one WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s
    AND checkpoint_id < (
        SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s
    ) AND NOT EXISTS (
        SELECT FROM checkpoints AS kept WHERE kept.thread_id = one.thread_id
        AND kept.checkpoint_ns = one.checkpoint_ns AND kept.checkpoint_id = one.checkpoint_id
    )
    """,
    """
    DELETE FROM checkpoint_blobs AS one WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s
    AND NOT EXISTS (
        SELECT FROM checkpoints AS kept, jsonb_each_text(kept.checkpoint -> 'channel_versions') AS version
        WHERE kept.thread_id = one.thread_id AND kept.checkpoint_ns = one.checkpoint_ns
        AND version.key = one.channel AND version.value = one.version
    )
    """,
)
"""A step's writes may precede their checkpoint, so writes newer than all checkpoints are kept."""
