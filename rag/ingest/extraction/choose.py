"""Which blocks make the page's text: the set that promises most, given how likely each one belongs to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

# The page may be read strictly or generously: so many readings, equally likely.
_READINGS = tuple((i + 0.5) / 25 for i in range(25))


def choose(chances: Sequence[float], sizes: Sequence[int]) -> list[bool]:
    """The set of blocks with the highest expected F1 over words, for each block whether it is in.

    Doubtful blocks stand or fall together: all of a page's comments belong to it, or none. So the truth is taken
    to be one of the sets of blocks above some chance, that chance being drawn evenly from 0 to 1, and not to be
    drawn block by block, which takes too much where the doubtful is longer than the certain. The best set holds
    the likeliest blocks (Lewis, SIGIR 1995), so it is enough to try each length of that ranking.
    """
    ranked = sorted(range(len(chances)), key=lambda i: -chances[i])
    falling = [-chances[i] for i in ranked]
    words = [0, *accumulate(sizes[i] for i in ranked)]
    truths = [words[bisect_left(falling, -reading)] for reading in _READINGS]
    promises = [sum(min(own, truth) / (own + truth) for truth in truths) if own else 0.0 for own in words[1:]]
    floor = -falling[promises.index(max(promises))] if promises else 1.0
    return [chance >= floor for chance in chances]
