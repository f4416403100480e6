"""Batches of texts of similar length."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from rag.models.model_files import BUILTIN, find_model
from rag.models.transformer import Tokens, group_by_length, pad_rows, read_bert, usable_positions


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_each_text_is_in_one_group_and_groups_keep_to_the_budget(count: int, workers: int) -> None:
    rng = random.Random(count)
    lengths = [rng.randint(1, 256) for _ in range(count)]
    groups = group_by_length(lengths, 1024, workers)
    assert sorted(place for group in groups for place in group) == list(range(count))
    for group in groups:
        assert len(group) == 1 or max(lengths[place] for place in group) * len(group) <= 1024 * 1.25
    rectangles = sum(max(lengths[place] for place in group) * len(group) for group in groups)
    assert rectangles <= 1.15 * sum(lengths) + 256


def test_workers_get_the_same_work() -> None:
    groups = group_by_length([100] * 33, 1024, 2)
    assert len(groups) % 2 == 0 or len(groups[-1]) <= 3
    assert len(group_by_length([100] * 12, 1024, 2)) == 2
    assert len(group_by_length([5] * 12, 1024, 2)) == 1, "too little to share"


def test_a_long_text_goes_alone() -> None:
    assert group_by_length([4000, 3, 2], 1024, 1)[0] == [0]


def test_lengths_are_rounded_up_to_shared_ones_within_the_limit_of_the_model() -> None:
    batch = pad_rows([[1, 2, 3], [4]], 9, 62)
    assert batch.ids.tolist() == [[1, 2, 3, 9, 9, 9, 9, 9], [4, 9, 9, 9, 9, 9, 9, 9]]
    assert batch.mask.sum(axis=1).tolist() == batch.lengths.tolist() == [3, 1]
    assert pad_rows([[1] * 61], 9, 62).ids.shape == (1, 62)
    types = pad_rows([[1, 2], [3]], 9, 62, [[0, 1], [1]]).types
    assert types is not None
    assert types.tolist() == [[0, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize(("positions", "has_unused", "usable"), [(514, True, 512), (512, False, 512), (None, True, 62)])
def test_positions_that_roberta_never_uses_are_subtracted(positions: int | None, has_unused: bool, usable: int) -> None:
    config = SimpleNamespace(max_position_embeddings=positions)
    assert usable_positions(config, 64, has_unused=has_unused) == usable


class Backend:
    """A tokenizer that counts how often it is configured."""

    def __init__(self, **truncation: Any) -> None:
        self.truncation: dict[str, Any] | None = truncation or None
        self.padding = None
        self.settings = 0

    def no_padding(self) -> None:
        self.settings += 1

    def enable_truncation(self, limit: int) -> None:
        self.truncation = {"max_length": limit, "stride": 0, "strategy": "longest_first", "direction": "right"}


@pytest.mark.parametrize("before", [{}, {"max_length": 9}, {"max_length": 8, "stride": 0, "direction": "left"}])
def test_a_shared_tokenizer_is_set_once(before: dict[str, Any]) -> None:
    """Configuring it while another thread encodes raises "Already borrowed"."""
    backend = Backend(**before)
    for _ in range(2):
        Tokens(SimpleNamespace(backend_tokenizer=backend), 8)
    assert backend.settings == 1
    assert backend.truncation == {"max_length": 8, "stride": 0, "strategy": "longest_first", "direction": "right"}


def test_the_models_of_a_folder_share_its_tokenizer() -> None:
    folder = find_model(BUILTIN).folder
    one, other = (read_bert(folder).tokenizer.backend_tokenizer for _ in range(2))
    assert one is other
