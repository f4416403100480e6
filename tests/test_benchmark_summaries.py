"""The alternatives to summaries have the same budget, and the measure can tell them apart."""

from __future__ import annotations

from benchmarks.datasets import Dataset
from benchmarks.summaries import CHOICES, pieces, score, split_page
from rag.evaluation.support import normalise_text

TEXT = "\n\n".join(
    f"## Part {n}\n\nThe first rule of part {n} is short. The second rule of part {n} is not." for n in range(8)
)


def test_each_choice_has_the_room_of_the_apps_and_evidence_counts() -> None:
    page = split_page(TEXT)
    assert page.sentences[page.ours[0]].text == "The first rule of part 0 is short."
    assert len(page.ours) == 8
    for choice in CHOICES.values():
        chosen = choice(page)
        assert chosen and sum(len(page.sentences[place].text) for place in chosen) <= page.budget
    first, second = map(normalise_text, ("The first rule of part 3 is short.", "The second rule of part 3 is not."))
    assert (score(page, page.ours, [first]), score(page, page.ours, [second])) == (1.0, 0.0)


def test_long_documents_are_split_into_parts_with_their_evidence() -> None:
    rows = [{"evidence": [{"url": "a", "quote": "The end is here."}]}]
    long = Dataset("long", [{"url": "a", "text": "Words before. " * 1_000 + "The end is here."}], rows)
    assert [quotes for _, quotes in pieces(long)] == [[normalise_text("The end is here.")]]
