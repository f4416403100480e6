"""The list of libraries, in the embedded engine and from a server's client."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from qdrant_client import QdrantClient

from rag.errors import StoreError
from rag.store.qdrant import records
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import open_library
from rag.store.qdrant.records import (
    FORMAT,
    LIBRARIES,
    RESTORE_PERIOD,
    LibraryInfo,
    check_present,
    check_title,
    create_library,
    free_name,
    library_id,
    library_info,
    library_infos,
    list_libraries,
    purge_library,
    remove_library,
    rename_library,
    restore_library,
)
from rag.store.qdrant.transfer import open_import
from tests.store.support import DIMENSION, MODEL, draft, refused

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")


@pytest.fixture(params=["edge", "memory"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantClient]:
    opened = EdgeClient(tmp_path / "bare") if request.param == "edge" else QdrantClient(":memory:")
    yield opened
    opened.close()


def made(client: QdrantClient, name: str, title: str = "") -> LibraryInfo:
    return create_library(client, LibraryInfo(name, MODEL, DIMENSION, title=title))


def a_day_later(client: QdrantClient, name: str) -> None:
    """Make the library removed a day and a second ago."""
    moment = datetime.now(UTC) - RESTORE_PERIOD - timedelta(seconds=1)
    client.set_payload(LIBRARIES, {"removed_at": moment.isoformat()}, [library_id(name)])


def test_a_library_is_renamed_and_keeps_its_name(client: QdrantClient) -> None:
    made(client, "notes", "Notes")
    rename_library(client, "notes", "  My Second\tLibrary ")
    (info,) = library_infos(client)
    assert (info.name, info.display_name) == ("notes", "My Second Library")
    assert (info.embedding_model, info.dimension) == (MODEL, DIMENSION)


def test_a_title_is_seen(client: QdrantClient) -> None:
    for title in ("", "  ", "x" * 61, "a\x00b", "a\u202eb", "a\u200bb", "a\ud800"):
        with pytest.raises(StoreError, match="1 to 60"):
            check_title(client, title)


def test_a_title_is_one_library_s(client: QdrantClient) -> None:
    made(client, "a", "Wiki")
    made(client, "b", "Manuals")
    remove_library(client, "b")
    for taken in ("wiki", " WIKI ", "manuals"):
        with pytest.raises(StoreError, match="is taken"):
            check_title(client, taken)
    assert check_title(client, "WIKI", library="a") == "WIKI"
    with pytest.raises(StoreError, match="is taken"):
        rename_library(client, "a", "manuals")


def test_a_name_is_made_of_the_title_and_no_other_s(client: QdrantClient) -> None:
    names = {"My Second Library": "my-second-library", "资料": "library", "__Ünï__": "n", "x" * 60: "x" * 32}
    for title, name in names.items():
        assert free_name(client, title) == name
        made(client, name)
        assert free_name(client, title) == f"{name}-2"
        assert free_name(client, title, reserved=[f"{name}-2"]) == f"{name}-3"
        remove_library(client, name)
        assert free_name(client, title) == f"{name}-2"


def test_what_was_removed_is_not_there_and_all_of_it_comes_back(client: QdrantClient) -> None:
    library = open_library(client, "notes", MODEL, DIMENSION)
    given = draft("a")
    given.commit(library)
    remove_library(client, "notes")
    assert list_libraries(client) == [] and library_info(client, "notes") is None
    assert [info.name for info in library_infos(client, removed=True)] == ["notes"]
    for attempt in (
        lambda: open_library(client, "notes", MODEL, DIMENSION),
        lambda: made(client, "notes"),
        lambda: check_present(client, "notes"),
        lambda: open_import(client, LibraryInfo("notes", MODEL, DIMENSION)).__enter__(),
    ):
        with pytest.raises(StoreError, match="Restore it"):
            attempt()
    restore_library(client, "notes")
    back = open_library(client, "notes", MODEL, DIMENSION, create=False)
    assert [page.url_hash for page in back.pages()] == [given.page.url_hash]
    assert back.search(dense=given.dense[0], sparse=None, limit=1, prefetch=5)[0].passage.text == given.chunks[0].text


def test_after_a_day_it_is_gone_and_its_name_is_free(client: QdrantClient) -> None:
    draft("a").commit(open_library(client, "notes", MODEL, DIMENSION))
    kept = open_library(client, "kept", MODEL, DIMENSION)
    draft("b").commit(kept)
    remove_library(client, "notes")
    purge_library(client, "notes")
    assert library_infos(client, removed=True)  # its day is not over
    purge_library(client, "kept")
    a_day_later(client, "notes")
    with pytest.raises(StoreError, match="no library"):
        restore_library(client, "notes")
    purge_library(client, "notes")
    assert library_infos(client, removed=True) == []
    assert not any("notes" in one.name for one in client.get_collections().collections)
    assert open_library(client, "notes", MODEL, DIMENSION).page_count() == 0
    assert kept.page_count() == 1


def test_nothing_is_made_of_a_name_that_is_only_asked_for(client: QdrantClient) -> None:
    made(client, "main")
    before = client.get_collections()
    with pytest.raises(StoreError, match="no library “x”"):
        open_library(client, "x", MODEL, DIMENSION, create=False)
    assert client.get_collections() == before


def test_there_are_so_many_and_no_more(client: QdrantClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_LIBRARIES", 2)
    made(client, "a")
    made(client, "b")
    before = client.get_collections()
    for attempt in (
        lambda: made(client, "c"),
        lambda: open_import(client, LibraryInfo("c", MODEL, DIMENSION)).__enter__(),
    ):
        with pytest.raises(StoreError, match="There are 2 libraries"):
            attempt()
    assert client.get_collections() == before
    assert made(client, "a").name == "a"
    remove_library(client, "a")
    with pytest.raises(StoreError, match="There are 2 libraries"):
        made(client, "c")
    a_day_later(client, "a")
    purge_library(client, "a")
    made(client, "c")


def test_a_name_that_no_library_can_have_is_not_said_in_full(client: QdrantClient) -> None:
    with pytest.raises(StoreError, match=r"There is no library “x{40}…”"):
        check_present(client, "x" * 100_000)


def test_a_library_of_another_version_is_not_opened(client: QdrantClient) -> None:
    made(client, "notes")
    for form, code in ((FORMAT + 1, "library_newer"), (FORMAT - 1, "library_older")):
        client.set_payload(LIBRARIES, {"format": form}, [library_id("notes")])
        with refused(code):
            open_library(client, "notes", MODEL, DIMENSION)
