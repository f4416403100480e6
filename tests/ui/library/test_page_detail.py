from itertools import pairwise

import pytest

from rag.ui.library.page_detail import parts_of


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 1000])
@pytest.mark.parametrize("line", [7, 5000])
def test_parts_of_a_long_text_are_the_whole_of_it(length: int, line: int) -> None:
    text = "".join("\n" if place % line == line - 1 else "x" for place in range(length))
    borders = parts_of(text, size=100)
    assert borders[0] == 0
    assert borders[-1] == length
    assert all(0 < end - start <= 100 for start, end in pairwise(borders))
    if line == 7:
        assert all(text[border - 1] == "\n" for border in borders[1:-1])
