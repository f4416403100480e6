"""What people chose for messages whose way was read wrongly: from these the next ones are read."""

from __future__ import annotations

from rag.dates import now
from rag.store.sql.sqlite_file import Table

_MOST = 500  # rows of one person that are kept, the latest


class RouteTable(Table):
    def add(self, library: str, owner: str, text: str, route: str) -> None:
        """Keep what this person chose for the text, in the place of what they chose for the same before.

        It goes with the `library` that it was chosen in.
        """
        with self._file.transaction() as db:
            db.execute("DELETE FROM route_choices WHERE owner = ? AND text = ?", (owner, text))
            db.execute(
                "INSERT INTO route_choices (library, owner, created_at, text, route) VALUES (?, ?, ?, ?, ?)",
                (library, owner, now(), text, route),
            )
            db.execute(
                "DELETE FROM route_choices WHERE owner = ? AND rowid NOT IN"
                " (SELECT rowid FROM route_choices WHERE owner = ? ORDER BY rowid DESC LIMIT ?)",
                (owner, owner, _MOST),
            )

    def of(self, owner: str) -> list[tuple[str, str]]:
        """(text, route), the latest first."""
        rows = self._file.rows("SELECT text, route FROM route_choices WHERE owner = ? ORDER BY rowid DESC", owner)
        return [(row["text"], row["route"]) for row in rows]
