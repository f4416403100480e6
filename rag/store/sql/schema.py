"""The tables of `rag.store.sql.database`, by version. A new version is a new entry at the end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rag.errors import StoreError

VERSIONS = (
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
    """
    ALTER TABLE job_items ADD COLUMN url TEXT NOT NULL DEFAULT '';
    ALTER TABLE job_items ADD COLUMN url_hash TEXT NOT NULL DEFAULT '';
    ALTER TABLE job_items ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE job_items ADD COLUMN parent INTEGER;
    ALTER TABLE job_items ADD COLUMN decision TEXT NOT NULL DEFAULT '';
    ALTER TABLE job_items ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE job_items ADD COLUMN started_at TEXT NOT NULL DEFAULT '';
    ALTER TABLE job_items ADD COLUMN finished_at TEXT NOT NULL DEFAULT '';
    ALTER TABLE job_items ADD COLUMN status TEXT NOT NULL DEFAULT '';
    ALTER TABLE job_items ADD COLUMN data BLOB;
    UPDATE job_items SET
        url = coalesce(json_extract(payload, '$.url'), json_extract(result, '$.url'), ''),
        status = coalesce(json_extract(result, '$.status'), '');
    CREATE TABLE jobs_with_kinds (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        finished_at TEXT NOT NULL DEFAULT '',
        kind TEXT NOT NULL DEFAULT 'pages' CHECK (kind IN ('pages', 'sitemap', 'crawl', 'feed', 'recheck')),
        title TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
        discovery TEXT NOT NULL DEFAULT '' CHECK (discovery IN ('', 'waiting', 'done', 'failed')),
        notice TEXT,
        options TEXT NOT NULL
    );
    INSERT INTO jobs_with_kinds (id, library, owner, created_at, title, state, options)
        SELECT id, library, owner, created_at,
            coalesce((SELECT source FROM job_items WHERE job_id = jobs.id ORDER BY position LIMIT 1), ''),
            state, options
        FROM jobs ORDER BY rowid;
    DROP TABLE jobs;
    ALTER TABLE jobs_with_kinds RENAME TO jobs;
    CREATE INDEX jobs_by_library ON jobs (library, created_at);
    CREATE INDEX jobs_by_state ON jobs (state);
    CREATE UNIQUE INDEX job_items_by_hash ON job_items (job_id, url_hash) WHERE url_hash <> '';
    CREATE INDEX job_items_open ON job_items (job_id, position) WHERE result IS NULL;
    CREATE INDEX job_items_by_status ON job_items (job_id, status, position);
    CREATE TABLE schedules (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        scope TEXT NOT NULL CHECK (scope IN ('all', 'site', 'pages')),
        site TEXT NOT NULL,
        url_hashes TEXT NOT NULL,
        every_hours INTEGER NOT NULL CHECK (every_hours > 0),
        next_at TEXT NOT NULL,
        last_at TEXT NOT NULL DEFAULT '',
        last_job TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX schedules_by_library ON schedules (library);
    CREATE INDEX schedules_by_time ON schedules (next_at);
    """,
    """
    ALTER TABLE conversations ADD COLUMN branch_of TEXT NOT NULL DEFAULT '';
    ALTER TABLE turns ADD COLUMN question TEXT NOT NULL DEFAULT '';
    ALTER TABLE turns ADD COLUMN text TEXT NOT NULL DEFAULT '';
    ALTER TABLE turns ADD COLUMN state TEXT NOT NULL DEFAULT 'done' CHECK (state IN ('running', 'done', 'interrupted'));
    ALTER TABLE turns ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
    ALTER TABLE turns ADD COLUMN process TEXT NOT NULL DEFAULT '';
    ALTER TABLE turns ADD COLUMN seen_at REAL NOT NULL DEFAULT 0;
    ALTER TABLE turns ADD COLUMN extra TEXT NOT NULL DEFAULT '{}';
    UPDATE turns SET
        question = coalesce(json_extract(answer, '$.question'), ''),
        text = coalesce(json_extract(answer, '$.text'), '');
    CREATE INDEX turns_running ON turns (process) WHERE state = 'running';
    CREATE INDEX feedback_by_turn ON feedback (turn_id);
    """,
    """
    CREATE TABLE turn_searches (
        turn_id TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        data BLOB NOT NULL
    );
    """,
    """
    CREATE TABLE job_files (
        job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        position INTEGER NOT NULL,
        name TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (job_id, position)
    );
    """,
    """
    ALTER TABLE turns ADD COLUMN waits TEXT NOT NULL DEFAULT '';
    CREATE TABLE turn_changes (
        id INTEGER PRIMARY KEY,
        turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        kind TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX turn_changes_by_turn ON turn_changes (turn_id);
    """,
    """
    CREATE TABLE spans (
        id INTEGER PRIMARY KEY,
        turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        span_id TEXT NOT NULL,
        parent TEXT NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        started_at REAL NOT NULL,
        ended_at REAL NOT NULL,
        attributes TEXT NOT NULL,
        status TEXT NOT NULL
    );
    CREATE INDEX spans_by_turn ON spans (turn_id);
    CREATE INDEX spans_by_time ON spans (started_at);
    """,
    """
    CREATE TABLE evaluation_sets (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        UNIQUE (library, name)
    );
    CREATE TABLE evaluation_cases (
        set_id TEXT NOT NULL REFERENCES evaluation_sets (id) ON DELETE CASCADE,
        case_id TEXT NOT NULL,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        position INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (set_id, case_id)
    );
    CREATE TABLE evaluation_runs (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        set_id TEXT NOT NULL,
        created_at TEXT NOT NULL,
        finished_at TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
        process TEXT NOT NULL DEFAULT '',
        seen_at REAL NOT NULL DEFAULT 0,
        total INTEGER NOT NULL,
        cases BLOB NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX evaluation_runs_by_library ON evaluation_runs (library, created_at);
    CREATE TABLE evaluation_rows (
        run_id TEXT NOT NULL REFERENCES evaluation_runs (id) ON DELETE CASCADE,
        setting TEXT NOT NULL,
        case_id TEXT NOT NULL,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        scores TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (run_id, setting, case_id)
    );
    CREATE TABLE evaluation_labels (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        judged TEXT NOT NULL,
        label TEXT NOT NULL DEFAULT '',
        data TEXT NOT NULL
    );
    CREATE INDEX evaluation_labels_by_library ON evaluation_labels (library, label);
    """,
    """
    CREATE TABLE route_choices (
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        text TEXT NOT NULL,
        route TEXT NOT NULL
    );
    CREATE INDEX route_choices_by_owner ON route_choices (owner);
    """,
    """
    CREATE TABLE summaries (
        library TEXT NOT NULL,
        url_hash TEXT NOT NULL,
        text_hash TEXT NOT NULL,
        language TEXT NOT NULL,
        author TEXT NOT NULL,
        created_at TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (library, url_hash, text_hash, language, author)
    );
    CREATE INDEX summaries_by_time ON summaries (created_at);
    """,
    "ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;",
    """
    CREATE TABLE sets_by_owner (
        id TEXT PRIMARY KEY,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        UNIQUE (library, owner, name)
    );
    INSERT INTO sets_by_owner SELECT * FROM evaluation_sets;
    DROP TABLE evaluation_sets;
    ALTER TABLE sets_by_owner RENAME TO evaluation_sets;
    CREATE TABLE labels_by_owner (
        id TEXT NOT NULL,
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        judged TEXT NOT NULL,
        label TEXT NOT NULL DEFAULT '',
        data TEXT NOT NULL,
        PRIMARY KEY (owner, id)
    );
    INSERT INTO labels_by_owner SELECT * FROM evaluation_labels;
    DROP TABLE evaluation_labels;
    ALTER TABLE labels_by_owner RENAME TO evaluation_labels;
    CREATE INDEX evaluation_labels_by_library ON evaluation_labels (library, owner, label);
    ALTER TABLE evaluation_cases ADD COLUMN draft INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE evaluation_cases ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE evaluation_cases ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
    UPDATE evaluation_cases SET
        draft = coalesce(json_extract(data, '$.status') = 'draft', 0),
        moved = EXISTS (SELECT 1 FROM json_each(data, '$.evidence') WHERE json_extract(value, '$.state') = 'moved'),
        lost = EXISTS (SELECT 1 FROM json_each(data, '$.evidence') WHERE json_extract(value, '$.state') = 'lost');
    CREATE INDEX evaluation_cases_by_state ON evaluation_cases (set_id, draft, moved, lost);
    CREATE INDEX evaluation_cases_by_position ON evaluation_cases (set_id, position);
    CREATE TABLE evaluation_usage (
        library TEXT NOT NULL,
        owner TEXT NOT NULL,
        day TEXT NOT NULL,
        answers INTEGER NOT NULL,
        PRIMARY KEY (owner, day, library)
    );
    -- Where nobody signs in, sets and runs bore the id of a browser; they are everybody's, as conversations are.
    UPDATE evaluation_sets SET owner = '' WHERE owner NOT IN (SELECT owner FROM conversations);
    UPDATE evaluation_cases SET owner = '' WHERE owner NOT IN (SELECT owner FROM conversations);
    UPDATE evaluation_runs SET owner = '' WHERE owner NOT IN (SELECT owner FROM conversations);
    UPDATE evaluation_rows SET owner = '' WHERE owner NOT IN (SELECT owner FROM conversations);
    """,
)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the newest version; StoreError when it is of one that is newer still."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(VERSIONS):
        raise StoreError("database_newer", path=str(path))
    for number, script in enumerate(VERSIONS[version:], start=version + 1):
        # IMMEDIATE keeps two processes from creating the tables at once; the second finds them there.
        try:
            db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
        except sqlite3.OperationalError:
            db.rollback()
            if db.execute("PRAGMA user_version").fetchone()[0] < number:
                raise
