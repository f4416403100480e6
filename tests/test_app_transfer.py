"""Libraries as files, through the app: real store, real models."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rag.app import App
from rag.app.transfer import Transfer
from rag.errors import StoreError
from rag.ingest.sources import record_sources
from tests.support.apps import finish, open_app
from tests.support.waiting import until

LINES = [
    '{"url": "https://a.example/1", "title": "Lamps", "text": "The lamp was wound every four hours, day and night."}',
    '{"url": "https://a.example/2", "title": "灯", "text": "灯每四个小时上一次发条，昼夜不停。"}',
]


def ended(app: App, transfer_id: str) -> Transfer:
    """Return the transfer once it has ended."""
    found: Transfer = until(lambda: (one := app.transfers.transfer(transfer_id)) and one.state != "running" and one)
    return found


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield an app with two pages in its library."""
    with closing(open_app(tmp_path_factory.mktemp("data"))) as opened:
        sources = list(record_sources(LINES, "pages.jsonl"))
        finish(opened, opened.imports.jobs.submit(sources, library="main", chunker="recursive"))
        yield opened


def test_a_library_goes_out_and_comes_in_under_another_name(app: App) -> None:
    out = ended(app, app.transfers.export("main"))
    assert (out.state, out.kind, out.pages) == ("done", "export", 2)
    assert out.path is not None
    assert out.size == out.path.stat().st_size > 0
    with out.path.open("rb") as stream:
        back = ended(app, app.transfers.import_file(stream, "main.pagelight", "second"))
    assert (back.state, back.kind, back.pages, back.path) == ("done", "import", 2, None)
    assert app.library("second").page_count() == 2
    assert app.library("second").chunk_count() == app.library("main").chunk_count()
    found = app.search("four hours", library="second", strategy="keyword")
    assert found.passages[0].url == "https://a.example/1"
    assert {path.suffix for path in out.path.parent.iterdir()} == {".pagelight"}


def test_what_is_no_library_says_so_and_leaves_nothing(app: App) -> None:
    failed = ended(app, app.transfers.import_file(io.BytesIO(b"not a library"), "../../x.pagelight", "third"))
    assert failed.state == "failed"
    assert failed.notice is not None
    assert "x.pagelight" in str(failed.notice.params)
    assert ".." not in str(failed.notice.params)
    assert not app.libraries.has("third")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\0b.pagelight", "ab.pagelight"),
        ("..", ".."),
        ("", "library.pagelight"),
        ("字" * 300 + ".pagelight", "字" * 200),
        ("C:\\Users\\li\\图书馆.pagelight", "图书馆.pagelight"),
    ],
)
def test_a_file_may_have_any_name(app: App, name: str, shown: str) -> None:
    failed = ended(app, app.transfers.import_file(io.BytesIO(b"not a library"), name, "third"))
    assert failed.notice is not None
    assert (failed.notice.code, failed.notice.params["name"]) == ("exchange_unreadable", shown)


class Torn(io.BytesIO):
    """An upload that is cut off."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def read(self, size: int | None = -1, /) -> bytes:
        raise self._error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("read of closed file")])
def test_a_file_that_does_not_arrive_leaves_no_transfer(app: App, error: Exception) -> None:
    before = dict(app.transfers._transfers)
    with pytest.raises(StoreError if isinstance(error, OSError) else ValueError):
        app.transfers.import_file(Torn(error), "a.pagelight", "third")
    assert app.transfers._transfers == before
    ended(app, app.transfers.export("main"))
    assert {path.suffix for path in app.transfers._folder.iterdir()} <= {".pagelight"}


def test_a_draft_may_get_its_name_while_the_folder_is_cleared(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    transfer = app.transfers._new("export", "main", "main", "")
    draft = app.transfers._prepare_folder() / f"{transfer.id}.pagelight.draft"
    draft.touch()
    stat = Path.stat

    def renamed_first(path: Path, **options: bool) -> os.stat_result:
        if path == draft:
            os.rename(draft, draft.with_suffix(""))  # noqa: PTH104 - pathlib would come here again
        return stat(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", renamed_first)
        app.transfers._prepare_folder()
    assert draft.with_suffix("").exists()
    app.transfers._transfers.pop(transfer.id)
    app.transfers._prepare_folder()
    assert not draft.with_suffix("").exists()


@pytest.mark.parametrize("name", ["main", "MAIN ", "", "x" * 61])
def test_a_name_that_is_taken_or_wrong_is_refused_at_once(app: App, name: str) -> None:
    with pytest.raises(StoreError):
        app.transfers.import_file(io.BytesIO(b""), "a.pagelight", name)


def test_old_files_go_with_the_next_one(app: App) -> None:
    first = ended(app, app.transfers.export("main"))
    assert first.path is not None
    stray = first.path.with_name("stray.pagelight")
    stray.write_bytes(b"left by an earlier process")
    ended(app, app.transfers.export("main"))
    assert first.path.exists()
    assert not stray.exists()
    os.utime(first.path, (1, 1))
    ended(app, app.transfers.export("main"))
    assert app.transfers.transfer(first.id) is None
    assert app.transfers.transfer("unknown") is None
