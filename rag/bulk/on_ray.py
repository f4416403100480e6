"""A runner on the machines of a Ray cluster, or in processes of this machine if none is configured.

Each actor has its own app and writes with it. Only outcomes are returned: batches that a driver, an actor or a machine
loses are imported again, and their stored pages are recognised.
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
    """Use `workers` actors with `gpus` GPUs each. RAY_ADDRESS is the cluster. Raises ConfigError without Ray."""
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
            outcomes = [target.import_batch(self._app, pickle.loads(batch)) for batch in rows["batch"]]
            return {"place": rows["place"], "outcome": [pickle.dumps(outcome) for outcome in outcomes]}

    rows = [{"place": place, "batch": pickle.dumps(batch)} for place, batch in batches.items()]
    actors = ray.data.ActorPoolStrategy(size=workers)
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows))
    try:
        for row in dataset.map_batches(Actor, batch_size=1, compute=actors, num_gpus=gpus or None).iter_rows():
            yield row["place"], pickle.loads(row["outcome"])
    finally:
        ray.shutdown()
