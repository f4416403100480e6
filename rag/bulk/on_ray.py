"""Batches taken in by the machines of a Ray cluster, or by processes of this one if none is named.

Each actor has an app of its own and writes through it. All that comes back are outcomes: what a driver, an actor or a
machine had in hand when it was lost is taken in again, and its pages are found where they are.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from typing import Any

from rag.bulk.runners import Batches
from rag.bulk.work import Outcome, Target
from rag.errors import ConfigError


def run_on_ray(target: Target, batches: Batches, workers: int, gpus: float = 0.0) -> Iterator[tuple[int, Outcome]]:
    """Use `workers` actors, each with so many GPUs. RAY_ADDRESS names the cluster. Raises ConfigError without Ray."""
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ConfigError("bulk_ray") from error
    ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)

    class Actor:
        def __init__(self) -> None:
            self._app = target.open()

        def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
            outcomes = [target.take_in(self._app, pickle.loads(batch)) for batch in rows["batch"]]
            return {"place": rows["place"], "outcome": [pickle.dumps(one) for one in outcomes]}

    rows = [{"place": place, "batch": pickle.dumps(batch)} for place, batch in batches.items()]
    actors = ray.data.ActorPoolStrategy(size=workers)
    given = ray.data.from_items(rows, override_num_blocks=len(rows))
    try:
        for row in given.map_batches(Actor, batch_size=1, compute=actors, num_gpus=gpus or None).iter_rows():
            yield row["place"], pickle.loads(row["outcome"])
    finally:
        ray.shutdown()
