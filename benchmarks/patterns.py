"""Every regular expression of the package against strings that are made to be slow for it.

    python -m benchmarks.patterns [--only WORD] [--json]

Patterns are collected while each module is imported, and those inside functions from the source. The strings
come from the pattern itself (`benchmarks.hostile_strings`). Printed is what misses a limit: 40,000 characters
in 50 ms of processor time, and ten times the length in at most fifteen times the time, where that is 10 ms
or more; then the slowest.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import math
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import rag
from benchmarks.hostile_strings import Hostile, hostile_strings

LONG = 40_000
SECONDS = 0.05
GROWTH = 15.0
# Growth over less time is that of memory: n²/2 steps, the mildest pattern out of proportion, take 200 ms and more.
_NOTABLE_SECONDS = 0.01
_MAX_SECONDS = 4 * SECONDS
_FIRST = 4_000  # so long that n²/2 steps of a nanosecond stand out
_UNSUSPICIOUS = 0.0005
_MEASURED = 3
_MOST = 0.02
# Where each function's flags stand among its arguments.
_CALLS = {"re.compile": 1, "re.search": 2, "re.match": 2, "re.fullmatch": 2, "re.findall": 2, "re.finditer": 2}
_CALLS |= {"re.split": 3, "re.sub": 4, "re.subn": 4}
_ANCHORED = frozenset(["match", "fullmatch"])


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, where it stands, and how it is asked: "match", "fullmatch", else "search" all through a text."""

    place: str
    pattern: str | bytes
    flags: int
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slow:
    """A pattern's worst string: seconds for LONG characters, and their ratio to a tenth of the length."""

    place: str
    pattern: str
    text: str
    seconds: float
    growth: float

    @property
    def holds(self) -> bool:
        return self.seconds <= SECONDS and self.is_proportionate

    @property
    def is_proportionate(self) -> bool:
        return self.growth <= GROWTH or self.seconds < _NOTABLE_SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="patterns of files whose path holds this word")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [one for one in package_patterns() if options.only in one.place]
    rows = sorted(filter(None, map(worst, found)), key=lambda row: (row.holds, -row.seconds))
    if options.json:
        print("\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows))
    else:
        _print(found, rows)
    return int(not all(row.holds for row in rows))


def _print(found: list[Found], rows: list[Slow]) -> None:
    for row in [one for one in rows if not one.holds] or rows[:10]:
        print(f"{row.place}  {row.seconds * 1000:.0f} ms, {row.growth:.1f} times  {row.text}\n    {row.pattern[:150]}")
    print(f"{len(found)} patterns, {sum(not row.holds for row in rows)} over a limit")


def package_patterns(package: ModuleType = rag) -> list[Found]:
    """The patterns of all modules of `package`, each once, and those of calls whose pattern is handed to them not."""
    names = [one.name for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    found: dict[tuple[str | bytes, int], Found] = {}
    for name in names:
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        for one in _kept(module, tree):
            _add(found, one)
        for one in _called(module, tree):
            if one.methods or (one.pattern, one.flags) not in found:
                _add(found, one)
    return [replace(one, methods=one.methods or ("search",)) for one in found.values()]


def _add(found: dict[tuple[str | bytes, int], Found], one: Found) -> None:
    known = found.setdefault((one.pattern, one.flags), one)
    found[one.pattern, one.flags] = replace(known, methods=tuple(sorted({*one.methods, *known.methods})))


def _kept(module: ModuleType, tree: ast.Module) -> Iterator[Found]:
    """The compiled patterns among a module's values, with what its own source asks of them."""
    asked: dict[str, set[str]] = defaultdict(set)
    bases = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            asked[node.value.id].add(node.attr if node.attr in _ANCHORED else "search")
            bases.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in bases:
            asked[node.id].add("search")
    for name, value in vars(module).items():
        for pattern in _patterns_in(value):
            methods = asked[name] if isinstance(value, re.Pattern) else {"search"}
            yield Found(f"{module.__name__}.{name}", pattern.pattern, pattern.flags, tuple(methods))


def _patterns_in(value: object, depth: int = 4) -> Iterator[re.Pattern[Any]]:
    """The compiled patterns in a value, its items and its fields."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, (list, tuple, set, frozenset, Mapping)):
        for item in (*value.keys(), *value.values()) if isinstance(value, Mapping) else value:
            yield from _patterns_in(item, depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _patterns_in(getattr(value, one.name), depth - 1)


def _called(module: ModuleType, tree: ast.Module) -> Iterator[Found]:
    """The patterns written in calls of `re`, as far as the module's own names tell them."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLS and node.args):
            continue
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        flags = [one.value for one in node.keywords if one.arg == "flags"] + node.args[_CALLS[f"re.{method}"] :]
        try:
            pattern = re.compile(_value(node.args[0], module), _value(flags[0], module) if flags else 0)
        except (NameError, AttributeError, TypeError):
            continue  # made from what a function was given; escaped there, or a registry's and found in it
        asked = () if method == "compile" else (method if method in _ANCHORED else "search",)
        yield Found(f"{module.__name__}:{node.lineno}", pattern.pattern, pattern.flags, asked)


def _value(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(vars(module)))


def worst(found: Found) -> Slow | None:
    """The worst of a pattern's hostile strings that are looked at, or None where none of them takes notable time."""
    pattern = re.compile(found.pattern, found.flags)
    rows: list[Slow] = []
    for method in found.methods:
        ask = _asking(pattern, method)
        tried = list[tuple[float, Hostile]]()
        for made in hostile_strings(found.pattern, found.flags):
            tried.append((_seconds(ask, made.text(_FIRST), _MOST), made))
            if sum(seconds >= _MOST for seconds, _ in tried) == _MEASURED:
                break  # so many will be measured, and none takes longer than it may
        slowest = sorted((pair for pair in tried if pair[0] >= _UNSUSPICIOUS), key=lambda pair: -pair[0])[:_MEASURED]
        rows += [_measured(found, ask, made) for _, made in slowest]
    return max(rows, key=lambda row: (not row.holds, row.seconds), default=None)


def _measured(found: Found, ask: Callable[[Any], None], made: Hostile) -> Slow:
    """Measured again while the growth is too large: chance, on a busy machine, does not come three times."""
    rows: list[Slow] = []
    while len(rows) < 3 and not (rows and rows[-1].is_proportionate):
        seconds = _best(ask, made.text(LONG))
        is_cut_off = seconds >= _MAX_SECONDS
        growth = math.inf if is_cut_off else seconds / max(_best(ask, made.text(LONG // 10)), 1e-5)
        rows.append(Slow(found.place, str(found.pattern), made.shown, seconds, growth))
        if is_cut_off:
            break
    return min(rows, key=lambda row: row.growth)


def _asking(pattern: re.Pattern[Any], method: str) -> Callable[[Any], None]:
    def through(text: Any) -> None:
        for _ in pattern.finditer(text):
            pass

    return getattr(pattern, method) if method in _ANCHORED else through


def _best(ask: Callable[[Any], None], text: Any) -> float:
    """The least seconds of up to three tries: other work on the machine only ever adds to them."""
    tries = [_seconds(ask, text, _MAX_SECONDS)]
    while len(tries) < 3 and tries[-1] < _MAX_SECONDS:
        tries.append(_seconds(ask, text, _MAX_SECONDS))
    return min(tries)


def _seconds(ask: Callable[[Any], None], text: Any, limit: float) -> float:
    """Processor seconds, cut off soon after `limit`."""
    began = time.thread_time()
    try:
        with _cut_off(limit * 1.5):
            ask(text)
    except TimeoutError:
        return max(limit * 1.5, time.thread_time() - began)
    return time.thread_time() - began


@contextmanager
def _cut_off(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so much processor time: a match looks for signals now and then."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


if __name__ == "__main__":
    raise SystemExit(main())
