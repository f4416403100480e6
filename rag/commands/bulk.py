"""Imports of whole dumps."""

from __future__ import annotations

import argparse
import os
from contextlib import closing

from rag.app import App
from rag.bulk.driver import RunnerName, choose_runner, run_bulk
from rag.commands.output import put_result
from rag.config import Settings


def bulk(settings: Settings, options: argparse.Namespace) -> int:
    """Import JSONL files, web archives and sitemaps; the same command again resumes an interrupted import."""
    runner: RunnerName = options.runner or ("processes" if settings.qdrant_url else "here")
    workers = options.workers or max(1, (os.cpu_count() or 1) // 2)
    with closing(App(settings)) as app:
        library = settings.rag_library
        run = choose_runner(app, library, "keep_both" if options.anyway else "", runner, workers, options.gpus)
        rows = run_bulk(app, library, options.input, options.batch, run)
        return max((put_result(options, row) for row in rows), default=0)
