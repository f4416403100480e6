"""Every filter, through every strategy, on the embedded engine and on Qdrant's in-memory mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from qdrant_client import QdrantClient

from rag.models.embedding import SparseEncoder
from rag.retrieval.retriever import Retriever
from rag.retrieval.strategies import STRATEGIES
from rag.store.qdrant import commit as commit_module
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.values import Filters, is_between
from rag.types import Chunk, Page
from tests.store.support import Draft
from tests.support.hashed_model import HashedModel

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")

DAYS = {"a": "2026-01-10", "b": "2026-01-20", "c": "2026-02-01", "d": "2026-02-01"}
SITES = {"a": "one.example", "b": "one.example", "c": "two.example", "d": "two.example"}
SECTIONS = {"a": ("Guide", "Prices"), "b": ("Guide",), "c": ("Prices",), "d": ("Notes",)}
LANGUAGES = {"a": "en", "b": "en", "c": "en", "d": "de"}


@pytest.fixture(scope="module", params=["edge", "memory"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Yield a library of four nearly equal pages, on different days. No test changes it."""
    client = EdgeClient(tmp_path_factory.mktemp("query")) if request.param == "edge" else QdrantClient(":memory:")
    model = HashedModel()
    opened = open_library(client, "main", model.name, model.dimension)
    with pytest.MonkeyPatch.context() as patch:
        for key, day in DAYS.items():
            patch.setattr(commit_module, "now", lambda day=day: f"{day}T15:00:00.000000Z")
            _store(opened, model, key)
    yield opened
    client.close()


def _store(library: Library, model: HashedModel, key: str) -> None:
    text = f"The harbour bridge of town {key} carries eight lanes."
    page = Page(f"https://{SITES[key]}/{key}", key, key, LANGUAGES[key], SITES[key], text, key, "web")
    chunk = Chunk(0, text, 0, len(text), SECTIONS[key])
    Draft(page, [chunk], model.encode_passages([text]), [True], [SparseEncoder().encode_passage(text)]).commit(library)


def found(library: Library, filters: Filters, strategy: str = "mmr") -> set[str]:
    retriever = Retriever(library, HashedModel(), SparseEncoder())
    return {p.title for p in retriever.search("harbour bridge", filters=filters, strategy=strategy).passages}


@pytest.mark.parametrize(
    ("filters", "titles"),
    [
        (Filters(), "abcd"),
        (Filters(pages=("a",)), "a"),
        (Filters(without=("a", "d")), "bc"),
        (Filters(sites=("one.example",), without=("a",)), "b"),
        (Filters(pages=("a", "c")), "ac"),
        (Filters(sites=("one.example",)), "ab"),
        (Filters(languages=("de",)), "d"),
        (Filters(sections=("Prices",)), "ac"),
        (Filters(sections=("Prices", "Notes")), "acd"),
        (Filters(since="2026-01-20"), "bcd"),
        (Filters(until="2026-01-20"), "ab"),
        (Filters(since="2026-01-11", until="2026-01-31"), "b"),
        (Filters(until="2026-01-20T14:00:00+00:00"), "a"),
        (Filters(since="2026-01-20T16:00:00+01:00"), "bcd"),
        (Filters(sites=("two.example",), sections=("Prices",)), "c"),
        (Filters(sites=("nowhere.example",)), ""),
    ],
)
def test_each_filter(library: Library, filters: Filters, titles: str) -> None:
    assert found(library, filters) == set(titles)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_keeps_to_the_filters(library: Library, strategy: str) -> None:
    assert found(library, Filters(sections=("Prices",), since="2026-01-15"), strategy) == {"c"}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-01-20T23:59:59.999999+00:00", True),
        ("2026-01-21T00:00:00+00:00", False),
        ("2026-01-21T00:30:00+01:00", True),
        ("", False),
    ],
)
def test_a_date_as_the_end_includes_that_day_only(moment: str, expected: bool) -> None:
    assert is_between(moment, "2026-01-20", "2026-01-20") is expected


def test_a_time_as_the_end_is_included() -> None:
    assert is_between("2026-01-21T00:00:00+00:00", "", "2026-01-21T00:00:00+00:00")


def test_one_within_the_other() -> None:
    chosen = Filters(pages=("a", "b"), languages=("en",))
    assert chosen.intersect(Filters(pages=("b", "c"), sites=("s",))) == Filters(("b",), ("s",), ("en",))
    assert chosen.intersect(Filters(pages=("c",))) == chosen
    assert Filters().intersect(replace(chosen, since="2026-01-01")) == replace(chosen, since="2026-01-01")


def test_the_pages_differ_in_what_they_are_filtered_by(library: Library) -> None:
    """Otherwise the tests above would prove nothing."""
    added = {page.title: page.added_at[:10] for page in library.pages()}
    assert added == DAYS
