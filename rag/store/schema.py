"""The tables of `rag.store.database`, by version. A new version is a new entry at the end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rag.errors import StoreError

_VERSIONS = (
    """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('running', 'done', 'cancelled')),
        options TEXT NOT NULL
    );
    CREATE INDEX jobs_by_library ON jobs (library, created_at);
    CREATE INDEX jobs_by_state ON jobs (state);
    CREATE TABLE job_items (
        job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        position INTEGER NOT NULL,
        source TEXT NOT NULL,
        stage TEXT NOT NULL,
        payload TEXT,
        result TEXT,
        PRIMARY KEY (job_id, position)
    );
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        title TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    );
    CREATE INDEX conversations_by_library ON conversations (library, owner, updated_at);
    CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        answer TEXT NOT NULL
    );
    CREATE INDEX turns_by_conversation ON turns (conversation_id);
    CREATE TABLE feedback (
        id TEXT PRIMARY KEY,
        turn_id TEXT NOT NULL,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        rating INTEGER NOT NULL CHECK (rating IN (-1, 1)),
        data TEXT NOT NULL
    );
    CREATE INDEX feedback_by_library ON feedback (library);
    """,
)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the newest version; StoreError when it is of one that is newer still."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(_VERSIONS):
        raise StoreError("database_newer", path=str(path))
    for number, script in enumerate(_VERSIONS[version:], start=version + 1):
        # IMMEDIATE keeps two processes from creating the tables at once; the second finds them there.
        try:
            db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
        except sqlite3.OperationalError:
            db.rollback()
            if db.execute("PRAGMA user_version").fetchone()[0] < number:
                raise
