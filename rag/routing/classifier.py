"""Which route a message is likely to take: a softmax regression over `features`, fitted by `benchmarks.routing`.

What it learned from is `training.jsonl` beside this file. A message that is much like one whose route a person chose
takes that one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag.routing.features import NAMES, SIZE, features, grams, matched
from rag.routing.message import Message
from rag.routing.routes import ROUTES, Route

TRAINING: Final = Path(__file__).parent / "training.jsonl"
WEIGHTS: Final = Path(__file__).parent / "weights.npz"
_ALIKE: Final = 0.8
"""The cosine from which on two messages count as one wish."""
_WITH_ADDRESS: Final = frozenset({"save", "save_then_ask"})


def likelihoods(message: Message) -> dict[Route, float]:
    """How likely each route is, of those that the message can take at all."""
    weights, bias = _weights()
    places, values = features(message.masked)
    scores = weights[:, places].astype(np.float32) @ values + bias
    possible = np.array([_possible(route, message) for route in ROUTES])
    exponents = np.where(possible, np.exp(scores - scores[possible].max()), 0.0)
    return dict(zip(ROUTES, (exponents / exponents.sum()).tolist(), strict=True))


def because(message: Message, route: Route) -> list[str]:
    """The words of the message that speak most for the route, at most three."""
    weights, _ = _weights()
    places, values = features(message.masked)
    gained = {
        int(place): float(weights[ROUTES.index(route), place] * value)
        for place, value in zip(places, values, strict=True)
    }
    fields = [name for place, name in enumerate(NAMES) if gained.get(place, 0.0) > 0]
    words = [matched(message.masked, name) for name in sorted(fields, key=lambda name: -gained[NAMES.index(name)])]
    return list(dict.fromkeys(filter(None, words)))[:3]


def chosen_before(message: Message, rows: Iterable[tuple[str, Route]]) -> Route | None:
    """What a person chose for a message like this one; `rows` are (masked text, route), the latest first."""
    mine = grams(message.masked)
    for text, route in rows:
        theirs = grams(text)
        alike = sum(weight * theirs.get(bucket, 0.0) for bucket, weight in mine.items())
        if alike >= _ALIKE and _possible(route, message):
            return route
    return None


def _possible(route: Route, message: Message) -> bool:
    """With an address something is saved, or it is a site that is asked about; without one nothing can be saved."""
    if message.attached or (message.addresses and not message.only_sites):
        return route in _WITH_ADDRESS
    return route not in _WITH_ADDRESS or bool(message.addresses)


@cache
def _weights() -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """(routes, SIZE) and (routes,)."""
    with np.load(WEIGHTS) as kept:
        return kept["weights"], kept["bias"]


def fitted_on() -> str:
    """The MD5 of the training file that the weights were fitted on."""
    with np.load(WEIGHTS) as kept:
        return str(kept["training"])


def keep(weights: NDArray[np.float64], bias: NDArray[np.float64], routes: Sequence[str], path: Path = WEIGHTS) -> None:
    """Write what was fitted, its rows in the order of `routes`."""
    order = [list(routes).index(route) for route in ROUTES]
    assert weights.shape == (len(ROUTES), SIZE)
    halved, offsets = weights[order].astype(np.float16), bias[order].astype(np.float32)
    np.savez_compressed(path, weights=halved, bias=offsets, training=np.array(digest(TRAINING)))


def digest(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
