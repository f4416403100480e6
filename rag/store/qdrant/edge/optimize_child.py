"""Script that builds the indexes of a copied shard: `python -m rag.store.qdrant.edge.optimize_child PATH LAYOUT`.

The engine holds the GIL during `optimize()`, for seconds to minutes, so it runs in a separate process, which imports
nothing else of the project, to start quickly. LAYOUT is the result of `translation.layout`. The index is read through
the page cache, so that only points added later use the process's memory. Quantised vectors have one byte per dimension;
candidates are rescored with the originals.
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
_QUANTILE = 0.99  # of the values; the others are clipped
_M, _EF_CONSTRUCT, _FULL_SCAN = 16, 100, 10_000  # the engine's defaults; _FULL_SCAN in KB of vectors


def main(path: str, layout: str) -> int:
    """Optimise the shard at `path`; return the exit code."""
    if sys.platform == "linux":  # end with the parent process
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    shard = edge.EdgeShard.load(path, _config(json.loads(layout)))
    shard.optimize()
    shard.flush()
    shard.close()
    return 0


def _config(layout: dict[str, Any]) -> edge.EdgeConfig:
    """Return a config that uses the page cache: opening would copy pinned data and evict cold data from the cache."""
    cached = edge.Memory.Cached
    scalar = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=_QUANTILE, memory=cached)
    quantisation = scalar if layout["quantised"] else None
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
        hnsw_config=edge.HnswIndexConfig(_M, _EF_CONSTRUCT, _FULL_SCAN, memory=cached),
        id_tracker_memory=cached,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
