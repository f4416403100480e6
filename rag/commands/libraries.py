"""Whole libraries as files, and what people thought of their answers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from rag.app import App
from rag.commands.output import put
from rag.config import Settings
from rag.errors import ConfigError


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


def feedback(settings: Settings, options: argparse.Namespace) -> int:
    """Write what people thought of answers as a set of questions and pages, everybody's."""
    folder = Path(options.folder)
    with closing(App(settings)) as app:
        questions = app.feedback.questions(settings.rag_library, app.page)
        _write(folder / "questions.jsonl", questions)
        _write(folder / "pages.jsonl", app.feedback.pages(settings.rag_library, app.page))
    put(options, {"folder": options.folder, "questions": len(questions)}, f"{len(questions)} questions in {folder}")
    return 0


def _write(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    except OSError as error:
        raise ConfigError("file_unwritable", name=str(file)) from error


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} pages", end="\n" if done == total else "", file=sys.stderr, flush=True)
