"""Jobs, schedules, conversations, feedback, evaluations and summaries in one SQLite file under the data folder."""

from __future__ import annotations

from pathlib import Path

from rag.store.sql.conversation_table import (
    Change,
    ChangeTable,
    Conversation,
    ConversationTable,
    RouteTable,
    SpanTable,
    Turn,
)
from rag.store.sql.evaluation_table import CaseTable, LabelTable, RunTable
from rag.store.sql.feedback_table import FeedbackTable
from rag.store.sql.job_table import FileTable, ItemTable, Job, JobItem, JobTable
from rag.store.sql.schedule_table import Schedule, ScheduleTable
from rag.store.sql.sqlite_file import SqliteFile
from rag.store.sql.summary_table import SummaryTable

__all__ = ["Change", "Conversation", "Database", "Job", "JobItem", "Schedule", "Turn"]


class Database(SqliteFile):
    """The file with its tables. Safe to share between threads and processes."""

    def __init__(self, path: Path) -> None:
        """Open or create the file at `path`. StoreError when another version of the program wrote it."""
        super().__init__(path)
        self.items = ItemTable(self)
        self.jobs = JobTable(self, self.items)
        self.files = FileTable(self)
        self.schedules = ScheduleTable(self)
        self.conversations = ConversationTable(self)
        self.changes = ChangeTable(self)
        self.spans = SpanTable(self)
        self.feedback = FeedbackTable(self)
        self.routes = RouteTable(self)
        self.cases = CaseTable(self)
        self.evaluations = RunTable(self)
        self.labels = LabelTable(self)
        self.summaries = SummaryTable(self)

    def forget_library(self, library: str) -> None:
        """Remove all that is kept of a library, everybody's."""
        evaluations = ("evaluation_labels", "evaluation_runs", "evaluation_sets")
        with self.transaction() as db:
            for table in ("route_choices", "feedback", "conversations", "schedules", "jobs", "summaries", *evaluations):
                db.execute(f"DELETE FROM {table} WHERE library = ?", (library,))
