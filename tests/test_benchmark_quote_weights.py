"""The fit of the weights for quoted answers."""

from __future__ import annotations

import numpy as np

from benchmarks import quote_weights
from benchmarks.quote_weights import Sample


def drawn(weights: np.ndarray, questions: int, seed: int) -> list[Sample]:
    """Return questions of eight sentences, one of which was drawn by a softmax with `weights`."""
    chance = np.random.default_rng(seed)
    found = []
    for features in chance.random((questions, 8, len(weights))):
        odds = np.exp(features @ weights)
        found.append(Sample(features, np.arange(8) == chance.choice(8, p=odds / odds.sum())))
    return found


def test_the_fit_finds_the_weights_that_sentences_were_drawn_by() -> None:
    weights = np.array([8.0, 3.0, 0.0])
    found = quote_weights.fit([drawn(weights, 400, 1), drawn(weights, 400, 2)])
    assert np.abs(found - weights).max() < 0.6


def test_a_small_set_weighs_as_much_as_a_large_one() -> None:
    one, other = drawn(np.array([6.0, 0.0]), 400, 1), drawn(np.array([0.0, 6.0]), 40, 2)
    first, second = quote_weights.fit([one, other])
    assert abs(first - second) < 1.0


def test_few_questions_give_weights_too() -> None:
    found = quote_weights.fit([drawn(np.array([30.0, 0.0]), 20, seed) for seed in (1, 2)])
    assert np.isfinite(found).all()
    assert found[0] > 10 * abs(found[1])
