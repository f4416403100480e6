"""Only its owner can read the data folder, whatever created the files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.process import restrict_to_owner
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import open_library
from rag.store.sql.database import Database
from tests.support.hashed_model import HashedModel

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows knows no modes")


@pytest.fixture(autouse=True)
def open_mask() -> Iterator[None]:
    """Set the usual umask: others may read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {str(path): stat.S_IMODE(one.st_mode) for path, one in found.items() if not stat.S_ISLNK(one.st_mode)}


def fill(folder: Path) -> None:
    """Create or reopen the databases."""
    database, client = Database(folder / "app.sqlite3"), EdgeClient(folder / "qdrant")
    database.jobs.create("main", "")
    open_library(client, "main", HashedModel().name, HashedModel().dimension)
    client.close()
    database.close()


def test_existing_and_new_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    fill(folder)
    assert {0o755, 0o644} <= set(modes(folder).values())
    restrict_to_owner(folder)
    fill(folder)
    (folder / "exchange").mkdir()
    (folder / "new.json").write_text("{}")
    assert set(modes(folder).values()) == {0o700, 0o600}


def test_links_lead_out_of_it_and_are_not_followed(tmp_path: Path) -> None:
    folder, other = tmp_path / "data", tmp_path / "other"
    for made in (folder, other):
        made.mkdir()
    (other / "theirs.txt").write_text("shared")
    (folder / "link").symlink_to(other)
    (folder / "file-link").symlink_to(other / "theirs.txt")
    (folder / "broken").symlink_to(tmp_path / "nowhere")
    restrict_to_owner(folder)
    assert set(modes(other).values()) == {0o755, 0o644}


def test_a_data_folder_that_is_a_link_is_shut_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    restrict_to_owner(tmp_path / "data")
    assert stat.S_IMODE((tmp_path / "disk").stat().st_mode) == 0o700


def test_the_temporary_folder_of_all_stays_so(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "theirs").write_text("")
    restrict_to_owner(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert stat.S_IMODE((shared / "theirs").stat().st_mode) == 0o644
