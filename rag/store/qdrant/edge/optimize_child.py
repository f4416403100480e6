"""Build the indexes of a copied shard: `python -m rag.store.qdrant.edge.optimize_child PATH LAYOUT`.

The engine holds Python's lock for the whole of `optimize()`, seconds to minutes, so it runs in a
separate process. Nothing of the project is imported, which keeps the start short. LAYOUT is what
`rag.store.qdrant.edge.config.layout` gives. What is built is read through the page cache, so that a process's
own memory holds only what came since; quantised vectors are searched by one byte a dimension and
scored again by themselves.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from typing import Any

import qdrant_edge as edge

_PR_SET_PDEATHSIG = 1
_NICENESS = 19
_QUANTILE = 0.99  # of the values; what lies outside is clipped
_M, _EF_CONSTRUCT, _SCANNED = 16, 100, 10_000  # the engine's own; the last in KB of vectors


def main(path: str, layout: str) -> int:
    """Optimise the shard at `path`; returns the exit code."""
    _end_with_parent()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    shard = edge.EdgeShard.load(path, _config(json.loads(layout)))
    shard.optimize()
    shard.flush()
    shard.close()
    return 0


def _config(layout: dict[str, Any]) -> edge.EdgeConfig:
    """All in the page cache: what is pinned is copied at opening, what is cold empties the cache at opening."""
    cached = edge.Memory.Cached
    bytes_ = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=_QUANTILE, memory=cached)
    quantisation = bytes_ if layout["quantised"] else None
    return edge.EdgeConfig(
        vectors={
            name: edge.EdgeVectorParams(
                size, getattr(edge.Distance, distance), quantization_config=quantisation, memory=cached
            )
            for name, (size, distance) in layout["dense"].items()
        },
        sparse_vectors={
            name: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if idf else None, memory=cached)
            for name, idf in layout["sparse"].items()
        },
        hnsw_config=edge.HnswIndexConfig(_M, _EF_CONSTRUCT, _SCANNED, memory=cached),
        id_tracker_memory=cached,
    )


def _end_with_parent() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
