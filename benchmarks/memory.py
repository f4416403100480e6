"""Memory of a long import: the process's size at the 1,000th page, and its growth to the last.

    python -m benchmarks.memory [--pages N] [--real N] [--json]

Synthetic pages are imported as records, through the pipeline of `import`: split, encoded, committed one at a time. The
vectors of --pages (default 10 000) are hashed words, since only the pipeline and the store may grow, not the model;
--real repeats it with the built-in model and that many pages. Prints megabytes of resident memory at every tenth of the
pages, the growth from the first tenth to the largest, and what holds the memory at the end: the engine, which is
unloaded for that, freed memory that the allocator keeps, and the rest of the process.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import sys
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.synthetic import World
from rag.app import App
from rag.app.libraries import Models
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.sources import Source
from rag.locales import say
from rag.models.embedding import EmbeddingModel
from rag.store.qdrant.client import unload_idle
from tests.support.hashed_model import HashedModel

_CHARACTERS = 2000  # of a page; its words follow Zipf's law, as those of real pages do
_MB = 2**20


class ForgetfulModel(HashedModel):
    """A hashed model with the built-in model's dimension that does not record its inputs."""

    dimension = 384

    def encode_passages(self, texts: Any) -> Any:
        vectors = super().encode_passages(texts)
        self.encoded.clear()
        return vectors


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    result: dict[str, Any] = {"pages": options.pages, **measure_import(options.pages, ForgetfulModel())}
    if options.real:
        result["real"] = {"pages": options.real, **measure_import(options.real, None)}
    print(json.dumps(result))
    return 0


def measure_import(pages: int, model: EmbeddingModel | None) -> dict[str, Any]:
    """Return megabytes at every tenth of the pages, their growth after the first, and the parts at the end."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(None, rag_data_dir=folder, qdrant_url="", embedding_model="builtin")
        with closing(App(settings, _ModelsWith(settings, model) if model else None)) as app:
            ingestor = app.imports.ingestor("main")
            world = World()
            sources = [_source(world, number) for number in range(pages)]
            sizes: list[float] = []
            for count, (_, row) in enumerate(ingest_all(ingestor, sources), 1):
                if row.status != "added":
                    raise RuntimeError(f"{row.source} was not added: {say(row.notice, 'en')}")
                if count % (pages // 10) == 0:
                    gc.collect()
                    sizes.append(round(resident_megabytes(), 1))
            chunks = app.library("main").chunk_count()
            parts = _parts_at_end(app)
    return {"chunks": chunks, "megabytes": sizes, "grown_mb": round(max(sizes) - sizes[0], 1), "parts_mb": parts}


def _parts_at_end(app: App) -> dict[str, float]:
    """Return megabytes by what holds them; waits for an index that is being built, and unloads the engine."""
    for _, builder in app._client.backend._open.values():
        builder.wait()
    sizes = [resident_megabytes()]
    trim = ctypes.CDLL(None).malloc_trim
    trim(0)
    sizes.append(resident_megabytes())
    unload_idle(app._client, 0.0)
    gc.collect()
    trim(0)
    sizes.append(resident_megabytes())
    names = ("freed, kept by the allocator", "engine", "rest of the process")
    return {name: round(size, 1) for name, size in zip(names, [a - b for a, b in pairwise([*sizes, 0.0])], strict=True)}


class _ModelsWith(Models):
    """The app's models with another embedding model."""

    def __init__(self, settings: Any, model: EmbeddingModel) -> None:
        super().__init__(settings)
        self._embedding = model

    def of_library(self, name: str) -> EmbeddingModel:
        return self.embedding


def resident_megabytes() -> float:
    """Return resident megabytes of this process without mapped files, which the system may drop."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024 / _MB


def _source(world: World, number: int) -> Source:
    page = world.page(number).page
    text = page.text[: page.text.rindex(".", 0, _CHARACTERS) + 1]
    record = {"url": page.url, "title": page.title, "lang": "en", "text": text}
    return Source(page.url, page.url, "import", record=record)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000, metavar="N")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="also with the built-in model (default 0)")
    parser.add_argument("--json", action="store_true", help="one line of JSON (always printed)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
