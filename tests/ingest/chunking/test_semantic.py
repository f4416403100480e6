from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.ingest.chunking import _semantic_chunker, semantic_distances

SENTENCES = [
    "The lamp was wound every four hours.",
    "A keeper who slept lost a week of pay.",
    "Oil came in cans of ten litres.",
    "In fog the bell rang twice a minute.",
    "The rope was changed each spring.",
    "",
]


def counted_letters(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return counts of letters, in which the space that joins two sentences does not count."""
    rows = [[text.lower().count(chr(code)) for code in range(ord("a"), ord("z") + 1)] for text in texts]
    return np.array(rows, dtype=np.float32).reshape(len(texts), 26)


def test_distances_are_those_of_semantic_chunker() -> None:
    """If vectors add up exactly, embedding each sentence once is equivalent to embedding it three times."""
    theirs, _ = _semantic_chunker(counted_letters)._calculate_sentence_distances(SENTENCES)
    ours = semantic_distances(counted_letters(SENTENCES))
    assert ours.tolist() == pytest.approx(theirs, abs=1e-6)


def test_sentences_without_a_vector_are_far_from_all() -> None:
    assert semantic_distances(np.zeros((4, 26), dtype=np.float32)).tolist() == [1.0, 1.0, 1.0]
