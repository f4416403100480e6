"""A library as one file: what is restored, what is refused, and what a hostile file can do."""

from __future__ import annotations

import errno
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import QdrantClient, models

from rag.errors import ModelMismatchError, StoreError
from rag.locales import say
from rag.store.qdrant.archive import parse_page
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import LIBRARIES, library_id, list_libraries, page_id, pages_collection
from rag.store.qdrant.transfer import export_library, import_library
from rag.store.values import text_hash
from rag.types import Page, SparseVector
from tests.store.support import DIMENSION, MODEL, draft, open_edge, refused

PAGES = 23


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Yield pages in several parts: one changed twice, one excluded, one without dense vectors, one without chunks.

    No test changes it.
    """
    client, library = open_edge(tmp_path_factory.mktemp("filled") / "qdrant")
    for number in range(PAGES):
        draft(f"p{number}", chunks=3 + number % 4, site=f"s{number % 3}.example").commit(library)
    for version in (1, 2):
        changed = draft("p5", version=version, site="s2.example").commit(library)
    library.update_record(replace(changed, etag='"e"', aliases=("https://old.example/p5",), failures=1))
    library.set_excluded([draft("p6", site="s0.example").page.url_hash], True)
    odd = draft("zh", chunks=4)
    odd.dense_ok[:] = [False] * 4
    odd.sparse[2] = SparseVector([], [])
    odd.commit(library)
    draft("bare", chunks=0).commit(library)
    yield library
    client.close()


@pytest.fixture(scope="module")
def exported(filled: Library, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("exported") / "library.pagelight"
    export_library(filled, path)
    return path.read_bytes()


@pytest.fixture
def archive(exported: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "library.pagelight"
    path.write_bytes(exported)
    return path


@pytest.fixture(params=["edge", "memory"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantClient]:
    client: QdrantClient = EdgeClient(tmp_path / "other") if request.param == "edge" else QdrantClient(":memory:")
    yield client
    client.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
def test_a_library_comes_back_as_it_was(filled: Library, archive: Path, elsewhere: QdrantClient) -> None:
    steps: list[tuple[int, int]] = []
    counts = import_library(elsewhere, archive, "copy", on_progress=lambda done, total: steps.append((done, total)))
    assert counts == {"pages": PAGES + 2, "chunks": filled.client.count(filled.chunks_collection).count, "versions": 2}
    assert steps[-1] == (PAGES + 2, PAGES + 2)
    copy = open_library(elsewhere, "copy", MODEL, DIMENSION)
    assert copy.pages() == filled.pages()
    assert (copy.chunk_count(), copy.excluded_pages()) == (filled.chunk_count(), filled.excluded_pages())
    for page in filled.pages():
        assert copy.page(page.url_hash) == filled.page(page.url_hash)
        assert copy.chunks(page.url_hash) == filled.chunks(page.url_hash)
        assert copy.versions(page.url_hash) == filled.versions(page.url_hash)
        mine, theirs = copy.reusable_vectors(page.url_hash), filled.reusable_vectors(page.url_hash)
        assert mine.keys() == theirs.keys()
        for key, (dense, sparse) in mine.items():
            assert (dense is None) == (theirs[key][0] is None)
            assert dense is None or dense == pytest.approx(theirs[key][0], abs=1e-6)
            assert set(sparse.indices) == set(theirs[key][1].indices)
    assert copy.resolve(["x", filled.pages()[0].url_hash]).keys() == {filled.pages()[0].url_hash}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
def test_searches_answer_alike(filled: Library, archive: Path, elsewhere: QdrantClient) -> None:
    import_library(elsewhere, archive, "copy")
    copy = open_library(elsewhere, "copy", MODEL, DIMENSION)
    for number in range(0, PAGES, 4):
        given = draft(f"p{number}", chunks=3 + number % 4, site=f"s{number % 3}.example")
        ours, theirs = (
            one.search(dense=given.dense[1], sparse=given.sparse[1], limit=8, prefetch=30) for one in (filled, copy)
        )
        assert [(hit.passage.id, hit.sentences) for hit in ours] == [(hit.passage.id, hit.sentences) for hit in theirs]
        assert all(hit.sentences for hit in theirs)
        assert [hit.passage.score for hit in ours] == pytest.approx([hit.passage.score for hit in theirs])


def test_an_imported_page_can_change_and_go(archive: Path, tmp_path: Path) -> None:
    client = EdgeClient(tmp_path / "other")
    import_library(client, archive, "copy")
    copy = open_library(client, "copy", MODEL, DIMENSION)
    changed = draft("p5", version=3, site="s2.example").commit(copy)
    assert [one.number for one in copy.versions(changed.url_hash)] == [1, 2, 3, 4]
    assert copy.remove([page.url_hash for page in copy.pages()]) == PAGES + 2
    assert copy.page_count() == 0
    copy.sweep()
    for name in (copy.pages_collection, copy.chunks_collection, copy.versions_collection):
        assert client.count(name).count == 0
    client.close()


def test_an_export_that_fails_leaves_no_file(filled: Library, tmp_path: Path) -> None:
    path = tmp_path / "library.pagelight"
    path.write_text("what was there before")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_library(filled, path, stop)
    assert path.read_text() == "what was there before"
    assert [one.name for one in tmp_path.glob("library*")] == ["library.pagelight"]
    with pytest.raises(StoreError):
        export_library(filled, tmp_path / "no" / "folder")


def test_another_model_is_refused(archive: Path, client: EdgeClient) -> None:
    with pytest.raises(ModelMismatchError, match=f"EMBEDDING_MODEL={MODEL}"):
        import_library(client, archive, "copy", embedding_model="other", dimension=DIMENSION)
    with pytest.raises(ModelMismatchError):
        import_library(client, archive, "copy", embedding_model=MODEL, dimension=DIMENSION + 1)
    assert list_libraries(client) == []
    import_library(client, archive, "copy", embedding_model=MODEL, dimension=DIMENSION)
    with pytest.raises(StoreError, match="already"):
        import_library(client, archive, "copy")
    with pytest.raises(StoreError, match="library name"):
        import_library(client, archive, "No good")


def test_an_import_that_is_cut_off_is_not_seen_and_cleared(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = EdgeClient(tmp_path / "other")

    def stop(done: int, total: int) -> None:
        if done > 15:
            # As after kill -9: this process's clean-up does not happen.
            monkeypatch.setattr(client, "delete_collection", lambda *_, **__: None)
            monkeypatch.setattr(client, "delete", lambda *_, **__: None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_library(client, archive, "copy", on_progress=stop)
    client.close()
    client = EdgeClient(tmp_path / "other")
    assert client.collection_exists(pages_collection("copy"))
    assert list_libraries(client) == []
    fresh = open_library(client, "copy", MODEL, DIMENSION)
    assert (fresh.page_count(), fresh.chunk_count()) == (0, 0)
    client.close()


def test_an_import_that_fails_leaves_nothing(archive: Path, client: EdgeClient) -> None:
    broken = rebuilt(archive, lambda name, data: None if name == "000003.chunks.jsonl" else data)
    before = {one.name for one in client.get_collections().collections}
    with pytest.raises(StoreError):
        import_library(client, broken, "copy")
    assert {one.name for one in client.get_collections().collections} - before == {LIBRARIES}
    assert client.retrieve(LIBRARIES, [library_id("copy")]) == []
    import_library(client, archive, "copy")
    assert list_libraries(client) == ["copy"]


def rebuilt(archive: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Return the file with its parts changed; None drops one."""
    path = archive.with_name("changed.pagelight")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if (data := change(name, old.read(name))) is not None:
                new.writestr(name, data)
    return path


def change_rows(kind: str, **values: object) -> Callable[[str, bytes], bytes]:
    def change(name: str, data: bytes) -> bytes:
        if not name.endswith(f"{kind}.jsonl"):
            return data
        rows = [{**json.loads(line), **values} for line in data.splitlines()]
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return change


def manifest(**values: object) -> Callable[[str, bytes], bytes]:
    return lambda name, data: json.dumps({**json.loads(data), **values}).encode() if name == "manifest.json" else data


DAMAGED: dict[str, Callable[[str, bytes], bytes | None]] = {
    "a name that is none": manifest(name=None),
    "a dimension that is none": manifest(dimension=True),
    "counts without end": manifest(counts={"pages": float("inf"), "chunks": float("inf"), "versions": float("-inf")}),
    "counts that are no numbers": manifest(counts={"pages": float("nan"), "chunks": "1", "versions": 1.5}),
    "a large dimension": manifest(dimension=10**9),
    "another dimension": manifest(dimension=DIMENSION + 1),
    "counts that lie": manifest(counts={"pages": 1, "chunks": 1, "versions": 0}),
    "counts of another kind": manifest(counts=[]),
    "a manifest without end": lambda n, d: b"[" * 100_000 if n == "manifest.json" else d,
    "a large manifest": lambda n, d: d + b" " * 10**6 if n == "manifest.json" else d,
    "a text too short": lambda n, d: d[:-1] if n.endswith("texts.u1") else d,
    "a text that was changed": lambda n, d: b"x" + d[1:] if n.endswith("texts.u1") else d,
    "lengths below zero": change_rows("pages", bytes=-1),
    "a page without a key": change_rows("pages", url_hash="../../etc"),
    "a title that is a number": change_rows("pages", title=7),
    "a number without end": change_rows("pages", bytes=float("inf")),
    "a number beyond all bounds": change_rows("pages", characters=10**30),
    "failures below zero": change_rows("pages", failures=-1),
    "a moment of junk": change_rows("pages", added_at="yesterday"),
    "no moment": change_rows("pages", added_at=""),
    "a moment without zone": change_rows("pages", added_at="2025-01-01T00:00:00"),
    "a moment that never was": change_rows("pages", added_at="2025-02-31T00:00:00Z"),
    "a moment by week": change_rows("pages", added_at="2025-W01-1T00:00:00Z"),
    "a check at a moment of junk": change_rows("pages", checked_at="never"),
    "a claim that is none": change_rows("pages", claim=["x"]),
    "an address that cannot be split": change_rows("pages", url="http://[::1/x"),
    "an address of a script": change_rows("pages", url="javascript:alert(1)"),
    "an address with a control character": change_rows("pages", url="https://a.example/\x1b[2J"),
    "an address that turns round": change_rows("pages", url="https://a.example/\u202egnp"),
    "half a character in an address": change_rows("pages", url="https://a.example/\ud800"),
    "an address without a host": change_rows("pages", url="https:///x"),
    "an address without end": change_rows("pages", url="https://a.example/" + "x" * 2048),
    "a port that is none": change_rows("pages", url="https://a.example:99999/"),
    "a page of the web that is a file": change_rows("pages", url="file:///etc/passwd", source="web"),
    "a file with a control character": change_rows("pages", url="file:///a\n.md", source="file"),
    "an unknown state": change_rows("pages", status="deleted"),
    "a chunk of no page": change_rows("chunks", page="f" * 32),
    "a chunk beyond its page": change_rows("chunks", end=10**9),
    "a chunk too many": change_rows("chunks", index=10**6),
    "terms without number": change_rows("chunks", terms=10**7),
    "a version to come": change_rows("versions", number=9),
    "vectors cut short": lambda n, d: d[:-4] if n.endswith("dense.f4") else d,
    "rows that are no objects": lambda n, d: b"[1]\n" if n.endswith("pages.jsonl") else d,
    "rows that are no JSON": lambda n, d: b"{{{\n" if n.endswith("chunks.jsonl") else d,
}
HOSTILE: dict[str, tuple[str, Callable[[str, bytes], bytes | None]]] = {
    "no manifest": ("exchange_unreadable", lambda name, data: None if name == "manifest.json" else data),
    "another format": ("exchange_unreadable", manifest(format="something")),
    "a newer version": ("exchange_newer", manifest(version=2)),
    "a version that is none": ("exchange_unreadable", manifest(version=True)),
    **{name: ("exchange_damaged", change) for name, change in DAMAGED.items()},
}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_not_as_it_should_be_is_refused(archive: Path, name: str) -> None:
    client = QdrantClient(":memory:")  # which checks nothing itself
    code, change = HOSTILE[name]
    with refused(code):
        import_library(client, rebuilt(archive, change), "copy")
    assert list_libraries(client) == []


def test_vectors_that_are_no_numbers_are_refused_by_the_engine(archive: Path, client: EdgeClient) -> None:
    empty = rebuilt(
        archive, lambda n, d: np.full(len(d) // 4, np.nan, "<f4").tobytes() if n.endswith("dense.f4") else d
    )
    with refused("vector_invalid"):
        import_library(client, empty, "copy")
    assert list_libraries(client) == []


def test_a_file_keeps_its_address_and_invalid_aliases_are_dropped(archive: Path, client: EdgeClient) -> None:
    aliases = ["https://old.example/x", "http://[::1/x", "javascript:alert(1)", "\u202e", "x" * 5000]
    changes = change_rows("pages", source="file", url="file:///a%20b.md?2", aliases=aliases, claim="http://[")
    import_library(client, rebuilt(archive, changes), "copy")
    copy = open_library(client, "copy", MODEL, DIMENSION)
    assert {(page.url, page.aliases) for page in copy.pages()} == {("file:///a%20b.md?2", ("https://old.example/x",))}


@pytest.mark.parametrize("moment", ["2025-01-01T00:00:00Z", "2025-01-01T08:00:00.123456+08:00"])
def test_a_time_of_another_spelling_is_taken(archive: Path, client: EdgeClient, moment: str) -> None:
    import_library(client, rebuilt(archive, change_rows("pages", added_at=moment, checked_at="")), "copy")
    copy = open_library(client, "copy", MODEL, DIMENSION)
    assert len(copy.pages()) == PAGES + 2


def test_what_is_too_long_to_be_true_comes_back_as_far_as_it_is_read(
    library: Library, client: EdgeClient, tmp_path: Path
) -> None:
    """Thousands of aliases and headings as long as a book: the file of such a library can still be read."""
    odd = draft("odd", chunks=300)
    aliases = tuple(f"https://a.example/odd?session={number:060d}" for number in range(4000))
    page = replace(odd.page, aliases=aliases, site="s" * 300_000, author="\x01" * 300_000)
    heading = ("\x01" * 100_000, *["Heading"] * 40)
    replace(odd, page=page, chunks=[replace(chunk, section=heading) for chunk in odd.chunks]).commit(library)
    unbounded = {"aliases": list(aliases)}  # as stored before there was a limit
    library.client.set_payload(library.pages_collection, unbounded, points=[page_id(page.url_hash)])
    export_library(library, tmp_path / "x.pagelight")
    assert import_library(client, tmp_path / "x.pagelight", "copy") == {"pages": 1, "chunks": 300, "versions": 0}
    (back,) = open_library(client, "copy", MODEL, DIMENSION).pages()
    assert back.aliases == aliases[-len(back.aliases) :] != ()


def test_what_could_not_be_read_is_not_written(library: Library, tmp_path: Path) -> None:
    odd = draft("odd")
    replace(odd, page=replace(odd.page, url="https://a.example/" + "x" * 300_000)).commit(library)
    with refused("exchange_oversized") as caught:
        export_library(library, tmp_path / "x.pagelight")
    assert "https://a.example/xxx" in str(caught.value)
    assert not list(tmp_path.glob("x.pagelight*"))


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("no/such/folder/x.pagelight", "exchange_unwritable"),
        ("", "exchange_folder"),
        ("folder", "exchange_folder"),
        ("file/x.pagelight", "exchange_unwritable"),
        ("x" * 300, "exchange_unwritable"),
    ],
)
def test_a_place_that_nothing_can_be_written_to_is_told(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with refused(code) as caught:
        export_library(library, target)
    assert all("add the pages again" not in say(caught.value.notice, language) for language in ("en", "zh"))


def test_a_full_disk_is_told_as_one(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with refused("store_disk_full"):
        export_library(library, tmp_path / "x.pagelight")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x05\x06", b"PK\x05\x06" + b"\xff" * 18, b"\x00" * 70_000])
def test_what_is_no_zip_is_refused(client: EdgeClient, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.pagelight"
    path.write_bytes(content)
    with pytest.raises(StoreError):
        import_library(client, path, "copy")
    with pytest.raises(StoreError):
        import_library(client, tmp_path / "none", "copy")


def test_a_file_that_was_cut_is_refused(archive: Path, client: EdgeClient) -> None:
    whole = archive.read_bytes()
    for length in (len(whole) // 2, len(whole) - 10):
        archive.write_bytes(whole[:length])
        with pytest.raises(StoreError):
            import_library(client, archive, "copy")


def test_a_part_that_unpacks_without_end_is_given_up(archive: Path, client: EdgeClient) -> None:
    bomb = rebuilt(archive, lambda n, d: bytes(200_000_000) if n == "000001.pages.jsonl" else d)
    assert bomb.stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(StoreError, match="damaged"):
        import_library(client, bomb, "copy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64_000_000


def test_a_list_of_parts_that_is_too_long_is_not_read(client: EdgeClient, tmp_path: Path) -> None:
    path = tmp_path / "x.pagelight"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("manifest.json", "{}")
    data = bytearray(path.read_bytes())
    data[-10:-6] = (0x7FFFFFFF).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with refused("exchange_damaged"):
        import_library(client, path, "copy")


def test_other_methods_of_packing_are_refused(archive: Path, client: EdgeClient) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    archive.write_bytes(packed.getvalue())
    with pytest.raises(StoreError):
        import_library(client, archive, "copy")


def test_memory_stays_flat(client: EdgeClient, tmp_path: Path) -> None:
    """Twice the pages need no more memory."""
    peaks = []
    for pages in (30, 90):
        library = open_library(client, f"lib{pages}", MODEL, DIMENSION)
        for number in range(pages):
            given = draft(f"p{number}", chunks=2)
            text = f"{number} " + "word " * 20_000
            chunks = [replace(chunk, text=text[chunk.start : chunk.end]) for chunk in given.chunks]
            replace(given, page=replace(given.page, text=text, text_hash=text_hash(text)), chunks=chunks).commit(
                library
            )
        tracemalloc.start()
        export_library(library, tmp_path / "x.pagelight")
        import_library(client, tmp_path / "x.pagelight", f"copy{pages}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_library_is_made_once_by_many_threads(client: EdgeClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: open_library(client, "main", MODEL, DIMENSION), range(4)))
    assert len({library.pages_collection for library in made}) == 1
    assert client.count(LIBRARIES, count_filter=models.Filter(must=[])).count == 1


def test_names_that_come_in_turn_nothing_round() -> None:
    text = "One."
    moment = "2026-01-01T00:00:00Z"
    page = Page(
        "u", "0" * 32, "a\u202eb\x1b[2J", "en", "s", text, text_hash(text), "web", "g", added_at=moment, author="x\x07y"
    )
    came = parse_page(json.loads(json.dumps(asdict(page))), text)
    assert (came.title, came.author) == ("ab[2J", "xy")
