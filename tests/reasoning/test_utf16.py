"""A character that came in two halves must be stored and drawn as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from rag.reasoning.utf16 import joined, mended


def _joined(pieces: Sequence[str]) -> list[str]:
    async def source() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    async def read() -> list[str]:
        return [piece async for piece in joined(source())]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["A ", "\ud83d", "\ude00", " b"], ["A ", "😀", " b"]),
        (["A \ud83d", "\ude00 b"], ["A ", "😀 b"]),
        (["A \ud83d", "", "\ude00"], ["A ", "😀"]),
        (["\ud83d\ude00\ud83d", "\ude01"], ["😀", "😁"]),
        (["𠮷野", "家"], ["𠮷野", "家"]),
        (["\ud83d", "x"], ["\ufffdx"]),
        (["x", "\ude00"], ["x", "\ufffd"]),
        (["x\ud83d"], ["x", "\ufffd"]),
        ([], []),
    ],
)
def test_pieces(pieces: list[str], expected: list[str]) -> None:
    assert _joined(pieces) == expected
    "".join(expected).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain 灯塔 😀", "plain 灯塔 😀"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_whole_texts(text: str, expected: str) -> None:
    assert mended(text) == expected
