"""Checkpoints in Postgres: LangGraph's saver over a connection pool, pruned like SQLite's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from rag.runs.run import HISTORY

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    from rag.store.sql.postgres import Postgres


class PostgresCheckpoints:
    """The connections, bound to the event loop that uses them first."""

    def __init__(self, postgres: Postgres) -> None:
        """Create LangGraph's tables in an empty database. Raises StoreError."""
        from langgraph.checkpoint.postgres import PostgresSaver

        with postgres.exclusive_connection() as connection:
            PostgresSaver(connection).setup()
        self._postgres = postgres
        self._pool = postgres.async_pool()

    @asynccontextmanager
    async def open_saver(self) -> AsyncIterator[AsyncPostgresSaver]:
        """Yield a saver for one call: each makes its calls one after another, so conversations do not share one."""
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        with self._postgres.failures():
            await self._pool.open()
            yield AsyncPostgresSaver(self._pool)

    async def close(self) -> None:
        await self._pool.close()

    async def prune(self, _: AsyncPostgresSaver, conversation_id: str, namespace: str, newest: str) -> None:
        """Delete the checkpoints before a namespace's newest, except those of runs with a history."""
        parameters = {"thread": conversation_id, "namespace": namespace, "newest": newest}
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(_EARLIER, parameters)
            for statement in _WITHOUT_CHECKPOINT:
                await connection.execute(statement, parameters)

    async def bound(self, _: AsyncPostgresSaver, oldest: Callable[[], str]) -> None:
        """Delete checkpoints with ids below `oldest`, except each namespace's newest."""
        async with self._pool.connection() as connection, connection.transaction():
            rows = await (await connection.execute(_TOO_OLD, {"oldest": oldest()})).fetchall()
            for thread, namespace in {(row["thread_id"], row["checkpoint_ns"]) for row in rows}:
                for statement in _WITHOUT_CHECKPOINT:
                    await connection.execute(statement, {"thread": thread, "namespace": namespace})


_EARLIER: Final = f"""
    DELETE FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = %(namespace)s
    AND checkpoint_id <> %(newest)s AND NOT coalesce((metadata ->> '{HISTORY}')::boolean, false)
"""
_TOO_OLD: Final = """
    DELETE FROM checkpoints AS one WHERE checkpoint_id < %(oldest)s AND checkpoint_id <> (
        SELECT max(checkpoint_id) FROM checkpoints AS kept
        WHERE kept.thread_id = one.thread_id AND kept.checkpoint_ns = one.checkpoint_ns
    ) RETURNING thread_id, checkpoint_ns
"""
_WITHOUT_CHECKPOINT: Final = (
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
"""The writes of a step may be there before their checkpoint, which is then newer than all others."""
