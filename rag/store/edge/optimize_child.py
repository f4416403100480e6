"""Build the indexes of a copied shard: `python -m rag.store.edge.optimize_child PATH`.

The engine holds Python's lock for the whole of `optimize()`, seconds to minutes, so it runs in a
process of its own. Nothing of the project is imported, which keeps the start short.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

import qdrant_edge as edge

_PR_SET_PDEATHSIG = 1
_NICENESS = 10


def main(path: str) -> int:
    """Optimise the shard at `path`; returns the exit code."""
    _end_with_parent()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    shard = edge.EdgeShard.load(path)
    shard.optimize()
    shard.flush()
    shard.close()
    return 0


def _end_with_parent() -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
