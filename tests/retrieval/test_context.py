from __future__ import annotations

from dataclasses import replace

import pytest

from rag.retrieval.context import MERGED_SIZE, assemble
from rag.types import Passage

TEXT = (
    "The lamp was wound every four hours. The bell rang twice a minute.\n\nOil came in cans. "
    + "Rope lay in coils. " * 4
)


def piece(name: str, start: int, end: int, *, page: str = "p", score: float = 1.0, text: str = TEXT) -> Passage:
    lead = text[:start][len(text[:start].rstrip()) :]
    return Passage(
        name, f"https://x.example/{page}", page, page, "x.example", "en", ("Top",), text[start:end], start, end,
        score, {"fused": 1}, {"fused": score}, lead,
    )  # fmt: skip


FIRST, SECOND, THIRD = piece("a", 0, 36), piece("b", 37, 66), piece("c", 68, 85)


def test_neighbours_become_one_verbatim_passage_at_the_better_place() -> None:
    far = piece("z", 0, 36, page="q", text="Nothing here is like the other page at all, it says.")
    context = assemble([THIRD, far, SECOND])
    joined, other = context.passages
    assert joined.id == "c"
    assert joined.text == TEXT[37:85] == TEXT[joined.start : joined.end]
    assert other.id == "z"
    assert (context.fates, context.into) == ({"b": "merged"}, {"b": "c"})


def test_a_chain_of_neighbours() -> None:
    (joined,) = assemble([FIRST, SECOND, THIRD]).passages
    assert joined.text == TEXT[0:85]
    assert joined.lead == ""


def test_what_is_not_adjacent_stays_apart() -> None:
    assert [p.id for p in assemble([FIRST, THIRD]).passages] == ["a", "c"]


def test_merging_ends_at_the_size_limit() -> None:
    text = "word " * 400
    half = len(text) // 2
    one, other = piece("a", 0, half - 1, text=text), piece("b", half, len(text) - 1, text=text)
    assert len(one.text) + len(other.text) > MERGED_SIZE
    other = replace(other, text="different " * 100)
    assert len(assemble([one, other]).passages) == 2


def test_the_same_text_on_two_pages_appears_once() -> None:
    twin = replace(piece("t", 0, 36, page="q"), text="The lamp was wound every four hours!")
    context = assemble([FIRST, twin])
    assert [p.id for p in context.passages] == ["a"]
    assert context.fates == {"t": "same_text"}


def test_texts_that_differ_in_a_number_are_not_the_same() -> None:
    long = "The yearly report of the harbour names the number of ships that called at the port: {} in all."
    one = replace(FIRST, text=long.format(1932))
    other = replace(piece("t", 0, 36, page="q"), text=long.format(1947))
    assert len(assemble([one, other]).passages) == 2


def test_one_page_does_not_fill_the_context_alone() -> None:
    chosen = [piece(str(i), i * 100, i * 100 + 5, text=f"{i:05} " * 400, score=1 - i / 100) for i in range(10)]
    good = piece("good", 0, 20, page="q", score=0.7, text="Another page says something else.")
    weak = piece("weak", 0, 20, page="r", score=0.2, text="A third page mumbles something weak.")
    context = assemble(chosen, [good, weak])
    assert [p.id for p in context.passages] == [*map(str, range(9)), "good"]
    assert context.fates == {"9": "page_share"}
    assert len(assemble(chosen, [weak]).passages) == 10


def test_the_budget_drops_the_last_and_keeps_the_first() -> None:
    passages = [piece(str(i), i * 1000, i * 1000 + 400, text=f"word{i} " * 2000) for i in range(5)]
    context = assemble(passages, token_budget=250)
    assert [p.id for p in context.passages] == ["0", "1"]
    assert set(context.fates.values()) == {"budget"}
    assert len(assemble(passages, token_budget=1).passages) == 1


@pytest.mark.parametrize("count", [0, 1])
def test_small_contexts(count: int) -> None:
    assert len(assemble([FIRST][:count]).passages) == count
