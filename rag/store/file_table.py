"""The files that people handed in with jobs, until each of their sources is an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.store.sqlite_file import SqliteFile


class FileTable:
    """Every method raises StoreError when the database's file fails."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, job_id: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Keep the files (name, content) of a job."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO job_files (job_id, library, owner, position, name, data)"
                " SELECT id, library, owner, ?, ?, ? FROM jobs WHERE id = ?",
                [(position, name, data, job_id) for position, (name, data) in enumerate(files)],
            )

    def names(self, job_id: str) -> list[str]:
        rows = self._file.rows("SELECT name FROM job_files WHERE job_id = ? ORDER BY position", job_id)
        return [row["name"] for row in rows]

    def files(self, job_id: str) -> Iterator[tuple[str, bytes]]:
        """The files in their order, one in memory at a time."""
        for position in range(len(self.names(job_id))):
            statement = "SELECT name, data FROM job_files WHERE job_id = ? AND position = ?"
            for row in self._file.rows(statement, job_id, position):
                yield row["name"], row["data"]

    def clear(self, job_id: str) -> None:
        with self._file.transaction() as db:
            db.execute("DELETE FROM job_files WHERE job_id = ?", (job_id,))
