"""Stored answers get the texts of their passages back, where the library still has them as they were."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import file_sources
from rag.types import Answer, Passage
from rag.ui.kit.answers import answer_of

TEXT = "\n\n".join(f"Section {n} tells of lamp number {n}, which burns {n} hours. " * 12 for n in range(6))


def take_in(ingestor: Ingestor, text: str) -> list[Passage]:
    (source,) = file_sources("lamps.txt", text.encode())
    ingestor.settle(ingestor.read(source, lambda _: None), lambda _: None)
    return ingestor.library.chunks(ingestor.key(source))


def shown(ingestor: Ingestor, *passages: Passage) -> list[str]:
    answer = Answer("q", "fast", "not_in_pages", "", passages=tuple(replace(one, text="") for one in passages))
    app: Any = SimpleNamespace(library=lambda _: ingestor.library)
    turn: Any = SimpleNamespace(run_id="", state="done", answer=answer)
    found = answer_of(app, "main", turn)
    assert found is not None
    return [one.text for one in found.passages]


def test_a_passage_that_was_merged_with_its_neighbour_comes_back_whole(ingestor: Ingestor) -> None:
    first, second, third, *_ = take_in(ingestor, TEXT)
    merged = replace(first, end=second.end)
    page = ingestor.library.page(first.url_hash)
    assert page is not None
    assert shown(ingestor, merged, third) == [page.text[first.start : second.end], third.text]


def test_what_changed_is_not_made_up(ingestor: Ingestor) -> None:
    first, *_ = take_in(ingestor, TEXT)
    take_in(ingestor, TEXT.replace("lamp", "bell"))
    assert shown(ingestor, first) == []
    ingestor.library.clear()
    assert shown(ingestor, first) == []
