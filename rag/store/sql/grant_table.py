"""Roles in libraries, and a log of grants, deletions and downloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from rag.dates import now
from rag.store.sql.table import Table

Role = Literal["none", "reader", "editor", "owner"]
Action = Literal["grant", "remove_library", "restore_library", "remove_pages", "export"]

_MAX_ENTRIES: Final = 500


@dataclass(frozen=True, slots=True)
class Grant:
    """The role of `subject` in a library; "*" means everyone who is signed in."""

    library: str
    subject: str
    role: Role
    granted_at: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action by `person`, a display name, on a library. `at` is ISO 8601 in UTC."""

    at: str
    person: str
    action: Action
    detail: str


class GrantTable(Table):
    def grants(self, library: str) -> list[Grant]:
        rows = self._file.rows(
            "SELECT library, subject, role, granted_at FROM grants WHERE library = ? ORDER BY subject", library
        )
        return [Grant(**dict(row)) for row in rows]

    def put(self, library: str, subject: str, role: Role, owner: str) -> None:
        """Grant a role, replacing the subject's current one."""
        self._file.write(
            "INSERT INTO grants (library, subject, role, owner, granted_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (library, subject) DO UPDATE SET role = excluded.role, owner = excluded.owner,"
            " granted_at = excluded.granted_at",
            *(library, subject, role, owner, now()),
        )

    def revoke(self, library: str, subject: str) -> None:
        self._file.write("DELETE FROM grants WHERE library = ? AND subject = ?", library, subject)

    def log(self, library: str, owner: str, person: str, action: Action, detail: str) -> None:
        self._file.write(
            "INSERT INTO audit_log (library, owner, person, at, action, detail) VALUES (?, ?, ?, ?, ?, ?)",
            *(library, owner, person, now(), action, detail),
        )

    def entries(self, library: str) -> list[AuditEntry]:
        """Return the log of the library, the newest first."""
        rows = self._file.rows(
            "SELECT at, person, action, detail FROM audit_log WHERE library = ? ORDER BY at DESC, rowid DESC LIMIT ?",
            *(library, _MAX_ENTRIES),
        )
        return [AuditEntry(**dict(row)) for row in rows]
