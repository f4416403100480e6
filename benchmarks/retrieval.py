"""Retrieval from any set with any chunkers and strategies, compared with common alternatives.

    python -m benchmarks.retrieval [SET …] [--data FOLDER] [--limit N]
        [--chunkers semantic,recursive] [--strategies mmr,hybrid] [--peers tutorial,bm25retriever,llamaindex]
        [--variant cross-language] [-k N] [--around-default] [--reuse]

`all` selects every member of a family; --around-default skips the pairs in which neither is the default. Writes
retrieval.md and retrieval.json into benchmarks/out. Without any sets it runs on the sample pages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from benchmarks import datasets, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, VARIANTS, Dataset
from benchmarks.measured_app import MeasuredApp, ask, import_set, measured_app
from benchmarks.peers import PEERS
from benchmarks.peers.environment import pinned
from benchmarks.peers.running import run_peer
from benchmarks.run import Row, score_run
from benchmarks.samples import find_sets
from rag.errors import RagError
from rag.ingest.chunking import CHUNKERS
from rag.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES

DEFAULT_CHUNKER = "semantic"
_SHARED_KEYS = ("set", "questions")


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folders = find_sets(options.data, options.sets)
    if not folders:
        _log(f"no such sets in {options.data}: give a folder with --data")
        return 2
    facts = {**machine.describe(), **(pinned() if options.peers else {}), "limits": _limits(options)}
    rows: list[Row] = []
    with measured_app() as app:
        for number, data in enumerate(_sets(folders, options)):
            _log(f"{data.name}: {len(data.pages)} pages, {len(data.questions)} questions")
            for row in chain(_ours(app, data, f"set-{number}", options), _peers(data, options)):
                rows.append(row)
                _log("  " + ", ".join(f"{key} {value}" for key, value in row.items() if key not in _SHARED_KEYS))
                report.save("retrieval", facts, rows, report.retrieval_tables(rows))
    print(report.retrieval_tables(rows))
    return 0 if rows else 1


def _sets(folders: Iterable[Path], options: argparse.Namespace) -> Iterator[Dataset]:
    for folder in folders:
        data = datasets.load(folder, options.limit)
        for name in options.variant or [""]:
            try:
                yield datasets.variant(data, name) if name else data
            except ValueError as error:
                _log(f"skipped: {error}")


def _ours(app: MeasuredApp, data: Dataset, library: str, options: argparse.Namespace) -> Iterator[Row]:
    for chunker in options.chunkers:
        imported = import_set(app, data, chunker, f"{library}-{chunker}")
        for strategy in options.strategies:
            if options.around_default and chunker != DEFAULT_CHUNKER and strategy != DEFAULT_STRATEGY:
                continue
            try:
                run = ask(app, data, imported, strategy, options.k)
            except RagError as error:
                _log(f"  skipped: {chunker}, {strategy}: {error}")
                continue
            yield score_run(data, f"{chunker}, {strategy}", run)


def _peers(data: Dataset, options: argparse.Namespace) -> Iterator[Row]:
    for name in options.peers:
        try:
            run = run_peer(PEERS[name], data, options.k, reuse=options.reuse)
        except RuntimeError as error:
            _log(f"  skipped: {name}: {error}")
            continue
        yield score_run(data, f"*{name}*", run)


def _limits(options: argparse.Namespace) -> str:
    questions = f"the first {options.limit} questions of each set" if options.limit else "all questions"
    reuse_note = (
        "; peers from an earlier run on the same sets, so their times are not comparable"
        if options.reuse and options.peers
        else ""
    )
    return f"{questions}, k = {options.k}, no chat model, the built-in embedding model{reuse_note}"


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions of each set")
    parser.add_argument("--chunkers", type=_names_of(CHUNKERS), default=[DEFAULT_CHUNKER], metavar="A,B")
    parser.add_argument("--strategies", type=_names_of(STRATEGIES), default=[DEFAULT_STRATEGY], metavar="X,Y")
    parser.add_argument("--peers", type=_names_of(PEERS), default=[], metavar="P,Q")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="may be repeated")
    parser.add_argument("-k", type=int, default=20, metavar="N", help="passages per question (default 20)")
    parser.add_argument("--around-default", action="store_true", help="only pairs with a default")
    parser.add_argument("--reuse", action="store_true", help="reuse peers' runs from benchmarks/out/runs")
    return parser.parse_args(arguments)


def _names_of(family: Iterable[str]) -> _Names:
    return _Names(tuple(family))


class _Names:
    """An argument type that parses `a,b` as names of a family, and `all` as all of them."""

    def __init__(self, family: tuple[str, ...]) -> None:
        self._family = family

    def __call__(self, text: str) -> list[str]:
        names = list(self._family) if text == "all" else [name for name in text.split(",") if name]
        if unknown := [name for name in names if name not in self._family]:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is not one of {', '.join(self._family)}")
        return names


if __name__ == "__main__":
    sys.exit(main())
