"""The displayed text must not depend on how a server splits its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from rag.models.servers import drop_reasoning
from rag.reasoning import RESET
from rag.reasoning.chat import ShownText, join_halves

SIGN = "NOT_IN_PAGES"


def _shown(text: str, size: int) -> tuple[str, ShownText]:
    """Feed `text` in pieces of `size` characters; return the text that a user sees in the end."""
    shown = ShownText(SIGN, "passage-81070d")

    async def pieces() -> AsyncIterator[str]:
        for at in range(0, len(text), size):
            yield text[at : at + size]

    async def read() -> str:
        screen = ""
        async for piece in shown.filter(pieces()):
            assert piece == RESET or RESET not in piece
            screen = "" if piece == RESET else screen + piece
        return screen

    return asyncio.run(read()), shown


CASES = [
    ("It erupted in 1953 [1].", "It erupted in 1953 [1]."),
    ("<think>1066? No.</think>\n\nIn 1953 [1].", "In 1953 [1]."),
    ("<thinking>Hm</thinking>In 1953 [1].", "In 1953 [1]."),
    ("  <THINK>a</THINK> <think>b</think>In 1953 [1].", "In 1953 [1]."),
    ("I think it was 1066.</think>In 1953 [1].", "In 1953 [1]."),
    ("<think>never closed", ""),
    ("Models write <think> and </think> around it [1].", "Models write <think> and </think> around it [1]."),
    ("The closing tag `</think>` ends the reasoning [1].", "The closing tag `</think>` ends the reasoning [1]."),
    ('It prints "</thinking>" when done [1].', 'It prints "</thinking>" when done [1].'),
    ("The tag </think> closes what was opened [1].", "The tag </think> closes what was opened [1]."),
    ("Use `<b>` or `</think>`\nin your text [1].", "Use `<b>` or `</think>`\nin your text [1]."),
    ("推理以标签</think>结束[1]。", "推理以标签</think>结束[1]。"),
    ("结束标签是“</think>”[1]。", "结束标签是“</think>”[1]。"),
    (
        "They ask about `</think>`. It closes.\n</think>\n\nThe tag `</think>` ends it [1].",
        "The tag `</think>` ends it [1].",
    ),
    ("so the answer is 1953 </think>\n\nIn 1953 [1].", "In 1953 [1]."),
    ("所以应该是1953年</think>1953年喷发。[1]", "1953年喷发。[1]"),
    ("用户问的是喷发年份。\n</think>\n\n1953年喷发。[1]", "1953年喷发。[1]"),
    ("</think>In 1953 [1].", "In 1953 [1]."),
    ("a < b, and 3 <4 [1] <th", "a < b, and 3 <4 [1] <th"),
    (SIGN, ""),
    (f"  {SIGN}\n", ""),
    (f"**{SIGN}**. The passages speak of tea.", ""),
    (f"<think>hm</think>{SIGN}", ""),
    (f"In 1953 [1]. {SIGN}", "In 1953 [1]. "),
    ("NOT_IN the mood [1]", "NOT_IN the mood [1]"),
    ("NOT_", "NOT_"),
    (f"{SIGN} [81070d]", ""),
    ("In 1953 [81070d].", "In 1953."),
    ("In 1953 [810].", "In 1953 [810]."),
    ("**Yes** [1]", "**Yes** [1]"),
    ("《茶经》写于唐代。[1]", "《茶经》写于唐代。[1]"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_what_is_left_on_the_screen(text: str, expected: str, size: int) -> None:
    screen, shown = _shown(text, size)
    assert screen == expected
    assert shown.text == expected
    assert shown.signed == (SIGN in text)


def test_nothing_thought_is_shown_meanwhile() -> None:
    shown = ShownText(SIGN)

    async def read() -> list[str]:
        async def pieces() -> AsyncIterator[str]:
            for piece in ("<thi", "nk>secret", " thought</th", "ink>", "In 1953"):
                yield piece

        return [piece async for piece in shown.filter(pieces())]

    assert asyncio.run(read()) == ["In 1953"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think> b ", "b"),
        ("a</think>b", "b"),
        ("plain", "plain"),
        ("<think>a", ""),
        ("", ""),
    ],
)
def test_whole_texts(text: str, expected: str) -> None:
    assert drop_reasoning(text).strip() == expected


def _joined(pieces: Sequence[str]) -> list[str]:
    async def source() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    async def read() -> list[str]:
        return [piece async for piece in join_halves(source())]

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
def test_a_character_that_came_in_two_halves_is_one(pieces: list[str], expected: list[str]) -> None:
    assert _joined(pieces) == expected
    "".join(expected).encode()
