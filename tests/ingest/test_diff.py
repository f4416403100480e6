"""Diffs of two texts: complete, readable, and found in bounded time."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest

from rag.ingest import diff
from rag.ingest.diff import DiffPiece, page_diff


def checked(old: str, new: str) -> list[DiffPiece]:
    """Return the diff, after checking that it contains both texts and that neighbours differ in kind."""
    found = page_diff(old, new)
    assert "".join(piece.text for piece in found if piece.kind != "added") == old
    assert "".join(piece.text for piece in found if piece.kind != "removed") == new
    assert all(piece.text for piece in found)
    assert all(one.kind != other.kind for one, other in pairwise(found))
    return found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("One. Two.", "One. Two.", [("same", "One. Two.")]),
        (  # words within a sentence
            "The bridge opened in 1932 and carries eight lanes. It is red.",
            "The bridge opened in 1934 and carries eight lanes. It is red.",
            [
                ("same", "The bridge opened in "),
                ("removed", "1932"),
                ("added", "1934"),
                ("same", " and carries eight lanes. It is red."),
            ],
        ),
        (  # characters in Chinese
            "龙井茶产于杭州。价格为三百元一斤。",
            "龙井茶产于杭州。价格为五百元一斤。",
            [("same", "龙井茶产于杭州。价格为"), ("removed", "三"), ("added", "五"), ("same", "百元一斤。")],
        ),
        (  # a single unchanged character is kept at the start, but not between changes
            "他去年三月付了三百元。",
            "他今年五月付了三百元。",
            [("same", "他"), ("removed", "去年三"), ("added", "今年五"), ("same", "月付了三百元。")],
        ),
        (  # a sentence that was replaced
            "It rains in spring. The harbour closes at noon on Fridays. Nobody knows why.",
            "It rains in spring. Visitors need a ticket from the old office. Nobody knows why.",
            [
                ("same", "It rains in spring. "),
                ("removed", "The harbour closes at noon on Fridays. "),
                ("added", "Visitors need a ticket from the old office. "),
                ("same", "Nobody knows why."),
            ],
        ),
    ],
)
def test_what_is_marked(old: str, new: str, expected: list[tuple[str, str]]) -> None:
    assert [(piece.kind, piece.text) for piece in checked(old, new)] == expected


@pytest.mark.parametrize("steps", [5, 100, 100_000])
def test_whatever_changes_both_texts_are_in_it(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """This includes giving up the search for the shortest diff immediately."""
    monkeypatch.setattr(diff, "_MAX_STEPS", steps)
    chance = random.Random(steps)
    for _ in range(300):
        old = "".join(chance.choices("ab .\n中文。", k=chance.randint(0, 50)))
        new = list(old) if chance.random() < 0.7 else chance.choices("ab .\n中文。", k=30)
        for _ in range(chance.randint(0, 8)):
            at = chance.randint(0, len(new))
            new[at:at] = chance.choices("ab .\n中文。", k=2)
            del new[chance.randint(0, len(new)) :][:1]
        checked(old, "".join(new))


def test_the_shortest_way_is_found() -> None:
    assert any(piece.kind == "same" for piece in checked("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"))
    old, new = [str(n) for n in range(400)], [str(n) for n in range(400) if n % 7]
    changed = [p for p in page_diff("\n".join(old), "\n".join(new)) if p.kind != "same"]
    assert {p.kind for p in changed} == {"removed"}
    assert "".join(p.text for p in changed).split() == [str(n) for n in range(0, 400, 7)]


LONG = {
    "shuffled": lambda r, s: " ".join(r.sample(s, len(s))),
    "one in ten": lambda r, s: " ".join("Changed it is." if at % 10 == 0 else one for at, one in enumerate(s)),
    "other": lambda r, s: " ".join(one.replace("a", "xy").replace("e", "z") for one in s),
}


@pytest.mark.parametrize("name", [*LONG, "repeated"])
def test_long_pages_take_bounded_time(name: str) -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefgh", k=5)) for _ in range(500)]
    sentences = [" ".join(chance.choices(words, k=12)).capitalize() + "." for _ in range(6000)]
    old = " ".join(sentences)
    new = LONG[name](chance, sentences) if name in LONG else "b\na\n" * 60_000
    began = time.thread_time()
    checked("a\n" * 100_000 if name == "repeated" else old, new)
    assert time.thread_time() - began < 15  # 0.5 to 2 seconds of this thread


def test_a_change_in_a_long_page_is_still_marked_by_words() -> None:
    sentences = [f"Sentence number {n} stands here and says nothing." for n in range(5000)]
    new = [*sentences]
    new[4000] = "Sentence number 4000 stands here and says something."
    changed = [p for p in checked(" ".join(sentences), " ".join(new)) if p.kind != "same"]
    assert changed == [DiffPiece("removed", "nothing"), DiffPiece("added", "something")]
