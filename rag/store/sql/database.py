"""Database of jobs, schedules, conversations, feedback, evaluations and summaries, in SQLite or Postgres."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rag.errors import ConfigError
from rag.store.sql.conversation_table import (
    ChangeTable,
    ConversationTable,
    RouteTable,
    SpanTable,
)
from rag.store.sql.evaluation_table import CaseTable, LabelTable, RunTable
from rag.store.sql.job_table import FileTable, ItemTable, JobTable
from rag.store.sql.small_tables import FeedbackTable, GrantTable, HostTable, ScheduleTable, SummaryTable
from rag.store.sql.table import SqliteFile

if TYPE_CHECKING:
    from rag.store.sql.postgres import Postgres


class Database:
    """All tables. Safe to share between threads and processes."""

    def __init__(self, location: Path | str) -> None:
        """Open or create the SQLite file at a path, or the tables in Postgres at a URL.

        Raises StoreError if another version of the program created them, ConfigError if Postgres packages are missing.
        """
        self.postgres: Postgres | None = None
        if isinstance(location, str):
            if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
                raise ConfigError("postgres_package")
            from rag.store.sql.postgres import Postgres  # an optional package

            self.postgres = Postgres(location)
        db_file = self.postgres or SqliteFile(Path(location))
        self.rows, self.transaction, self.close = db_file.rows, db_file.transaction, db_file.close
        self.items = ItemTable(db_file)
        self.jobs = JobTable(db_file, self.items)
        self.files = FileTable(db_file)
        self.grants = GrantTable(db_file)
        self.hosts = HostTable(db_file)
        self.schedules = ScheduleTable(db_file)
        self.conversations = ConversationTable(db_file)
        self.changes = ChangeTable(db_file)
        self.spans = SpanTable(db_file)
        self.feedback = FeedbackTable(db_file)
        self.routes = RouteTable(db_file)
        self.cases = CaseTable(db_file)
        self.evaluations = RunTable(db_file)
        self.labels = LabelTable(db_file)
        self.summaries = SummaryTable(db_file)

    def forget_library(self, library: str) -> None:
        """Delete all data of a library, for every owner."""
        tables = ("route_choices", "feedback", "conversations", "schedules", "jobs", "summaries", "grants")
        evaluations = ("evaluation_labels", "evaluation_runs", "evaluation_sets")
        with self.transaction() as db:
            for table in (*tables, *evaluations):
                db.execute(f"DELETE FROM {table} WHERE library = ?", (library,))
