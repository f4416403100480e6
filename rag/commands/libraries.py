"""Whole libraries as files."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from rag.app import App
from rag.commands.output import put
from rag.config import Settings


def export(settings: Settings, options: argparse.Namespace) -> int:
    """Write the library to a file."""
    with closing(App(settings)) as app:
        counts = app.libraries.export(settings.rag_library, Path(options.file), _progress)
    put(options, {"file": options.file, **counts}, f"{counts['pages']} pages written to {options.file}")
    return 0


def restore(settings: Settings, options: argparse.Namespace) -> int:
    """Make the library, which must not be there yet, from a file."""
    with closing(App(settings)) as app:
        counts = app.libraries.bring_in(Path(options.file), settings.rag_library, _progress)
    put(options, {"library": settings.rag_library, **counts}, f"{counts['pages']} pages in {settings.rag_library}")
    return 0


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} pages", end="\n" if done == total else "", file=sys.stderr, flush=True)
