from __future__ import annotations

from dataclasses import replace

import pytest

from rag.models.sparse import SparseEncoder
from rag.retrieval.context import Context, assemble
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


def assembled(chosen: list[Passage], question: str = "", budget: int = 4000) -> Context:
    sparse = SparseEncoder()
    return assemble(chosen, dict.fromkeys(sparse.encode_query(question).indices, 1.0), sparse, 20, budget)


FIRST, SECOND, THIRD = piece("a", 0, 36), piece("b", 37, 66), piece("c", 68, 85)


def test_neighbours_become_one_verbatim_passage_at_the_better_place() -> None:
    far = piece("z", 0, 36, page="q", text="Nothing here is like the other page at all, it says.")
    context = assembled([THIRD, far, SECOND])
    joined, other = context.passages
    assert joined.id == "c"
    assert joined.text == TEXT[37:85] == TEXT[joined.start : joined.end]
    assert other.id == "z"
    assert (context.fates, context.into) == ({"b": "merged"}, {"b": "c"})


def test_a_chain_of_neighbours() -> None:
    (joined,) = assembled([FIRST, SECOND, THIRD]).passages
    assert joined.text == TEXT[0:85]
    assert joined.lead == ""


def test_what_is_not_adjacent_stays_apart() -> None:
    assert {p.id for p in assembled([FIRST, THIRD]).passages} == {"a", "c"}


def test_the_same_text_on_two_pages_appears_once() -> None:
    twin = replace(piece("t", 0, 36, page="q"), text="The lamp was wound every four hours!")
    context = assembled([FIRST, twin])
    assert [p.id for p in context.passages] == ["a"]
    assert context.fates == {"t": "same_text"}


def test_texts_that_differ_in_a_number_are_not_the_same() -> None:
    long = "The yearly report of the harbour names the number of ships that called at the port: {} in all."
    one = replace(FIRST, text=long.format(1932))
    other = replace(piece("t", 0, 36, page="q"), text=long.format(1947))
    assert len(assembled([one, other]).passages) == 2


def test_a_passage_is_cut_to_what_is_asked_and_tells_where_it_stands() -> None:
    (span,) = assembled([piece("a", 0, 66)], "How often does the bell ring?", budget=10).passages
    assert (span.text, span.start, span.end, span.lead) == ("The bell rang twice a minute.", 37, 66, " ")


def test_what_adds_nothing_says_so() -> None:
    other = replace(piece("z", 0, 36, page="q"), text="Nothing here is like the other page.")
    context = assembled([FIRST, other], "When was the lamp wound?", budget=10)
    assert [p.id for p in context.passages] == ["a"] and context.fates == {"z": "says_less"}


def test_parts_that_overlap_become_one() -> None:
    (joined,) = assembled([piece("a", 0, 66), piece("b", 37, 85)]).passages
    assert joined.text == TEXT[0:85] == TEXT[joined.start : joined.end]


@pytest.mark.parametrize("count", [0, 1])
def test_small_contexts(count: int) -> None:
    assert len(assembled([FIRST][:count]).passages) == count
