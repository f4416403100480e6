"""A stop rule is judged by the evidence that it would have read."""

from __future__ import annotations

from benchmarks.policy import Rollout, SearchStep, best_stop, fit_stop, rows_of


def rolled(gains_at: int) -> Rollout:
    """Return a rollout of six searches; only the second feature matters, which is 1 until nothing more is gained."""
    return [SearchStep((float(n), float(n < gains_at)), float(n >= gains_at)) for n in range(1, 7)]


def test_a_stop_is_learned_from_what_tells() -> None:
    rollouts = [rolled(place) for place in (1, 2, 3, 4) * 10]
    stop = fit_stop(rollouts)
    assert [stop(rolled(place)) for place in (1, 2, 3, 4)] == [1, 2, 3, 4]
    name, _, searches, fewer, _, beside = rows_of("set", "learned", stop, rollouts)
    assert (name, searches, fewer, beside) == ("set", "2.50", "58%", "the same")


def test_hindsight_stops_where_most_is_held_first() -> None:
    assert best_stop(rolled(3)) == 3
    assert best_stop(rolled(9)) == 1
