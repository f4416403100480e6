"""Mutation testing: which of a random sample of small faults the tests detect.

    python -m benchmarks.mutants [--sample N] [--seed N] [--packages A,B] [--known FILE] [--write]

Each mutant is one change to one function: a comparison, a Boolean or arithmetic operator, a condition, or a number
(DeMillo, Lipton & Sayward 1978, "Hints on Test Data Selection"). It is tested in a copy of the project by the tests of
its package, those named after its module first. Prints the mutants that survive. Survivors that FILE lists as detected
fail the command; --write adds each result to FILE. A mutant is known by its module, function, and change.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
KNOWN = Path(__file__).with_name("mutants.jsonl")
_TESTS = {
    "rag/checking": "tests/checking",
    "rag/retrieval": "tests/retrieval",
    "rag/web": "tests/web",
    "rag/ingest": "tests/ingest",
    "rag/store/qdrant/commit.py": "tests/store",
}
_OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
_MAX_SECONDS = 300


@dataclass(frozen=True)
class Mutant:
    """A change to one expression of a module; `source` is the whole changed module."""

    path: str
    function: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, ...]:
        return self.path, self.function, self.before, self.after


def find_mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if (changed := _mutate(node)) and (before := ast.get_source_segment(source, node)):
                    yield Mutant(path, function.name, before, ast.unparse(changed), _replace(source, node, changed))


def _mutate(node: ast.AST) -> ast.expr | None:
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _OPPOSITE:
            changed.ops[0] = _OPPOSITE[type(operator)]()  # type: ignore[assignment]
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) if type(operator) in _OPPOSITE:
            changed.op = _OPPOSITE[type(operator)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not()):
            return changed.operand
        case ast.Constant(value=bool(value)):
            changed.value = not value
        case ast.Constant(value=int(value)):
            changed.value = value + 1
        case _:
            return None
    return changed


def _replace(source: str, node: ast.AST, changed: ast.expr) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    content = source.encode()
    return (content[:start] + f"({ast.unparse(changed)})".encode() + content[end:]).decode()


def is_detected(mutant: Mutant, folder: Path, tests: Path) -> bool:
    """Return whether the tests fail with this mutant; `folder` is a copy of the project."""
    path = folder / mutant.path
    original = path.read_text(encoding="utf-8")
    own = sorted(tests.rglob(f"test_{path.stem}*.py"))
    path.write_text(mutant.source, encoding="utf-8")
    try:
        return any(_fails(folder, files) for files in ([own] if own else []) + [[tests]])
    finally:
        path.write_text(original, encoding="utf-8")


def _fails(folder: Path, files: Sequence[Path]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, files)]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=_MAX_SECONDS).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def draw_mutants(packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return a random sample of the mutants of all modules in these packages."""
    found: list[Mutant] = []
    for package in packages:
        place = ROOT / package
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found += find_mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    return random.Random(seed).sample(found, min(count, len(found)))


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    known: dict[tuple[str, ...], bool] = {}
    if options.known.exists():
        rows = map(json.loads, options.known.read_text(encoding="utf-8").splitlines())
        known = {tuple(row["mutant"]): row["detected"] for row in rows}
    mutants = draw_mutants(options.packages.split(","), options.sample, options.seed)
    newly_alive = alive = 0
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "project"
        ignored = shutil.ignore_patterns(".git", ".venv", "data", "out", "__pycache__", ".mypy_cache", ".ruff_cache")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for mutant in mutants:
            tests = next(tests for package, tests in _TESTS.items() if mutant.path.startswith(package))
            detected = is_detected(mutant, folder, folder / tests)
            if not detected:
                alive += 1
                newly_alive += known.get(mutant.key, False)
                print(f"{mutant.path} {mutant.function}: {mutant.before!r} as {mutant.after!r}", flush=True)
            known[mutant.key] = detected
            if options.write:
                _write(options.known, known)
    print(f"{alive} of {len(mutants)} survive, {newly_alive} of which were detected before")
    return bool(newly_alive)


def _write(file: Path, known: Mapping[tuple[str, ...], bool]) -> None:
    lines = [json.dumps({"mutant": key, "detected": value}, ensure_ascii=False) for key, value in known.items()]
    file.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sample", type=int, default=300, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--packages", default=",".join(_TESTS), metavar="A,B")
    parser.add_argument("--known", type=Path, default=KNOWN, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
