-- The tables, in words that SQLite and Postgres both read. With every change, raise VERSION in rag/store/sql/schema.py.
-- `rowid`, the order in which rows were added, is SQLite's own; rag/store/sql/postgres.py adds it to each table.
CREATE TABLE IF NOT EXISTS jobs (
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
    options TEXT NOT NULL,
    worker TEXT NOT NULL DEFAULT '',
    token INTEGER NOT NULL DEFAULT 0,
    lease_until DOUBLE PRECISION NOT NULL DEFAULT 0,
    bulk INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS jobs_by_library ON jobs (library, created_at);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state);
CREATE TABLE IF NOT EXISTS job_items (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    position INTEGER NOT NULL,
    source TEXT NOT NULL,
    stage TEXT NOT NULL,
    payload TEXT,
    result TEXT,
    url TEXT NOT NULL DEFAULT '',
    url_hash TEXT NOT NULL DEFAULT '',
    depth INTEGER NOT NULL DEFAULT 0,
    parent INTEGER,
    decision TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL DEFAULT '',
    finished_at TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    data BYTEA,
    PRIMARY KEY (job_id, position)
);
CREATE UNIQUE INDEX IF NOT EXISTS job_items_by_hash ON job_items (job_id, url_hash) WHERE url_hash <> '';
CREATE INDEX IF NOT EXISTS job_items_open ON job_items (job_id, position) WHERE result IS NULL;
CREATE INDEX IF NOT EXISTS job_items_by_status ON job_items (job_id, status, position);
CREATE TABLE IF NOT EXISTS job_files (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (job_id, position)
);
CREATE TABLE IF NOT EXISTS host_slots (
    host TEXT NOT NULL,
    slot INTEGER NOT NULL,
    free_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (host, slot)
);
CREATE TABLE IF NOT EXISTS grants (
    library TEXT NOT NULL,
    subject TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('none', 'reader', 'editor', 'owner')),
    owner TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    PRIMARY KEY (library, subject)
);
CREATE TABLE IF NOT EXISTS audit_log (
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    person TEXT NOT NULL,
    at TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('grant', 'remove_library', 'restore_library', 'remove_pages', 'export')),
    detail TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_log_by_library ON audit_log (library, at);
CREATE TABLE IF NOT EXISTS schedules (
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
CREATE INDEX IF NOT EXISTS schedules_by_library ON schedules (library);
CREATE INDEX IF NOT EXISTS schedules_by_time ON schedules (next_at);
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    branch_of TEXT NOT NULL DEFAULT '',
    pinned INTEGER NOT NULL DEFAULT 0,
    link TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS conversations_by_library ON conversations (library, owner, updated_at);
CREATE UNIQUE INDEX IF NOT EXISTS conversations_by_link ON conversations (link) WHERE link <> '';
CREATE TABLE IF NOT EXISTS turns (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    answer TEXT NOT NULL,
    question TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'done' CHECK (state IN ('running', 'done', 'interrupted')),
    run_id TEXT NOT NULL DEFAULT '',
    process TEXT NOT NULL DEFAULT '',
    seen_at DOUBLE PRECISION NOT NULL DEFAULT 0,
    extra TEXT NOT NULL DEFAULT '{}',
    waits TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS turns_by_conversation ON turns (conversation_id);
CREATE INDEX IF NOT EXISTS turns_running ON turns (process) WHERE state = 'running';
CREATE TABLE IF NOT EXISTS turn_searches (
    turn_id TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    data BYTEA NOT NULL
);
CREATE TABLE IF NOT EXISTS turn_changes (
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS turn_changes_by_turn ON turn_changes (turn_id);
CREATE TABLE IF NOT EXISTS spans (
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    span_id TEXT NOT NULL,
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION NOT NULL,
    attributes TEXT NOT NULL,
    status TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS spans_by_turn ON spans (turn_id);
CREATE INDEX IF NOT EXISTS spans_by_time ON spans (started_at);
CREATE TABLE IF NOT EXISTS feedback (
    id TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    rating INTEGER NOT NULL CHECK (rating IN (-1, 1)),
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS feedback_by_library ON feedback (library);
CREATE INDEX IF NOT EXISTS feedback_by_turn ON feedback (turn_id);
CREATE TABLE IF NOT EXISTS route_choices (
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    text TEXT NOT NULL,
    route TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS route_choices_by_owner ON route_choices (owner);
CREATE TABLE IF NOT EXISTS evaluation_sets (
    id TEXT PRIMARY KEY,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (library, owner, name)
);
CREATE TABLE IF NOT EXISTS evaluation_cases (
    set_id TEXT NOT NULL REFERENCES evaluation_sets (id) ON DELETE CASCADE,
    case_id TEXT NOT NULL,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    position INTEGER NOT NULL,
    data TEXT NOT NULL,
    draft INTEGER NOT NULL DEFAULT 0,
    moved INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (set_id, case_id)
);
CREATE INDEX IF NOT EXISTS evaluation_cases_by_state ON evaluation_cases (set_id, draft, moved, lost);
CREATE INDEX IF NOT EXISTS evaluation_cases_by_position ON evaluation_cases (set_id, position);
CREATE TABLE IF NOT EXISTS evaluation_runs (
    id TEXT PRIMARY KEY,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    set_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    finished_at TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
    process TEXT NOT NULL DEFAULT '',
    seen_at DOUBLE PRECISION NOT NULL DEFAULT 0,
    total INTEGER NOT NULL,
    cases BYTEA NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS evaluation_runs_by_library ON evaluation_runs (library, created_at);
CREATE TABLE IF NOT EXISTS evaluation_rows (
    run_id TEXT NOT NULL REFERENCES evaluation_runs (id) ON DELETE CASCADE,
    setting TEXT NOT NULL,
    case_id TEXT NOT NULL,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    scores TEXT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (run_id, setting, case_id)
);
CREATE TABLE IF NOT EXISTS evaluation_labels (
    id TEXT NOT NULL,
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    judged TEXT NOT NULL,
    label TEXT NOT NULL DEFAULT '',
    data TEXT NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX IF NOT EXISTS evaluation_labels_by_library ON evaluation_labels (library, owner, label);
CREATE TABLE IF NOT EXISTS evaluation_usage (
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    day TEXT NOT NULL,
    answers INTEGER NOT NULL,
    PRIMARY KEY (owner, day, library)
);
CREATE TABLE IF NOT EXISTS summaries (
    library TEXT NOT NULL,
    url_hash TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    language TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (library, url_hash, text_hash, language, author)
);
CREATE INDEX IF NOT EXISTS summaries_by_time ON summaries (created_at);
