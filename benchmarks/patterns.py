"""Speed of every regular expression of the package on strings made to slow it down.

    python -m benchmarks.patterns [--only WORD] [--json]

Patterns are collected from the imported modules, and those inside functions from the source. The strings are derived
from the pattern (`benchmarks.hostile_strings`). Prints the patterns that exceed a limit: 40,000 characters in 50 ms of
processor time, and ten times the length in up to fifteen times the time, if that is 10 ms or more; then the slowest.
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
from rag.text import LazyPattern

LONG = 40_000
SECONDS = 0.05
GROWTH = 15.0
# Below this, growth is a memory effect: even n²/2 steps, the mildest superlinear pattern, take 200 ms or more.
_NOTABLE_SECONDS = 0.01
_MAX_SECONDS = 4 * SECONDS
_FIRST_LENGTH = 4_000  # long enough for n²/2 steps of a nanosecond to show
_UNSUSPICIOUS = 0.0005
_TRIES = 3
_FIRST_LIMIT = 0.02
# The position of each function's flags among its arguments.
_CALLS = {"re.compile": 1, "re.search": 2, "re.match": 2, "re.fullmatch": 2, "re.findall": 2, "re.finditer": 2}
_CALLS |= {"re.split": 3, "re.sub": 4, "re.subn": 4}
_PATTERNS = (re.Pattern, LazyPattern)
_ANCHORED = frozenset(["match", "fullmatch"])


@dataclass(frozen=True, slots=True)
class PatternUse:
    """A pattern, its location, and its methods: "match", "fullmatch", or "search" for any unanchored use."""

    place: str
    pattern: str | bytes
    flags: int
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlowPattern:
    """A pattern's worst string: seconds for LONG characters, and their ratio to a tenth of the length."""

    place: str
    pattern: str
    text: str
    seconds: float
    growth: float

    @property
    def is_fast(self) -> bool:
        return self.seconds <= SECONDS and self.is_proportionate

    @property
    def is_proportionate(self) -> bool:
        return self.growth <= GROWTH or self.seconds < _NOTABLE_SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="patterns of files whose path contains this word")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    patterns = [one for one in package_patterns() if options.only in one.place]
    rows = sorted(filter(None, map(find_slowest, patterns)), key=lambda row: (row.is_fast, -row.seconds))
    if options.json:
        print("\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows))
    else:
        _print(patterns, rows)
    return int(not all(row.is_fast for row in rows))


def _print(patterns: list[PatternUse], rows: list[SlowPattern]) -> None:
    for row in [row for row in rows if not row.is_fast] or rows[:10]:
        print(f"{row.place}  {row.seconds * 1000:.0f} ms, {row.growth:.1f} times  {row.text}\n    {row.pattern[:150]}")
    print(f"{len(patterns)} patterns, {sum(not row.is_fast for row in rows)} over a limit")


def package_patterns(package: ModuleType = rag) -> list[PatternUse]:
    """Return the distinct patterns of all modules of `package`, except those that calls get as parameters."""
    names = [one.name for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    by_pattern: dict[tuple[str | bytes, int], PatternUse] = {}
    for name in names:
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        for one in _module_patterns(module, tree):
            _add(by_pattern, one)
        for one in _call_patterns(module, tree):
            if one.methods or (one.pattern, one.flags) not in by_pattern:
                _add(by_pattern, one)
    return [replace(one, methods=one.methods or ("search",)) for one in by_pattern.values()]


def _add(by_pattern: dict[tuple[str | bytes, int], PatternUse], item: PatternUse) -> None:
    existing = by_pattern.setdefault((item.pattern, item.flags), item)
    by_pattern[item.pattern, item.flags] = replace(existing, methods=tuple(sorted({*item.methods, *existing.methods})))


def _module_patterns(module: ModuleType, tree: ast.Module) -> Iterator[PatternUse]:
    """Yield the compiled patterns among a module's values, with the methods that its source calls."""
    uses: dict[str, set[str]] = defaultdict(set)
    bases = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses[node.value.id].add(node.attr if node.attr in _ANCHORED else "search")
            bases.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in bases:
            uses[node.id].add("search")
    for name, value in vars(module).items():
        for pattern in _patterns_in(value):
            methods = uses[name] if isinstance(value, _PATTERNS) else {"search"}
            yield PatternUse(f"{module.__name__}.{name}", pattern.pattern, pattern.flags, tuple(methods))


def _patterns_in(value: object, depth: int = 4) -> Iterator[re.Pattern[Any] | LazyPattern]:
    """Yield the compiled patterns in a value, its items and its fields."""
    if isinstance(value, _PATTERNS):
        yield value
    elif depth and isinstance(value, (list, tuple, set, frozenset, Mapping)):
        for item in (*value.keys(), *value.values()) if isinstance(value, Mapping) else value:
            yield from _patterns_in(item, depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _patterns_in(getattr(value, one.name), depth - 1)


def _call_patterns(module: ModuleType, tree: ast.Module) -> Iterator[PatternUse]:
    """Yield the patterns in calls of `re` that the module's names can resolve."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLS and node.args):
            continue
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        flags = [one.value for one in node.keywords if one.arg == "flags"] + node.args[_CALLS[f"re.{method}"] :]
        try:
            pattern = re.compile(_value(node.args[0], module), _value(flags[0], module) if flags else 0)
        except (NameError, AttributeError, TypeError):
            continue  # built from a parameter: escaped, or from a registry whose patterns are found there
        uses = () if method == "compile" else (method if method in _ANCHORED else "search",)
        yield PatternUse(f"{module.__name__}:{node.lineno}", pattern.pattern, pattern.flags, uses)


def _value(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(vars(module)))


def find_slowest(item: PatternUse) -> SlowPattern | None:
    """Return the worst of a pattern's hostile strings, or None if none of them takes notable time."""
    pattern = re.compile(item.pattern, item.flags)
    rows: list[SlowPattern] = []
    for method in item.methods:
        search = _searcher(pattern, method)
        timings = list[tuple[float, Hostile]]()
        for hostile in hostile_strings(item.pattern, item.flags):
            timings.append((_seconds(search, hostile.text(_FIRST_LENGTH), _FIRST_LIMIT), hostile))
            if sum(seconds >= _FIRST_LIMIT for seconds, _ in timings) == _TRIES:
                break  # enough to measure, and none exceeds its limit
        slowest = sorted((pair for pair in timings if pair[0] >= _UNSUSPICIOUS), key=lambda pair: -pair[0])[:_TRIES]
        rows += [_measure(item, search, hostile) for _, hostile in slowest]
    return max(rows, key=lambda row: (not row.is_fast, row.seconds), default=None)


def _measure(item: PatternUse, search: Callable[[Any], None], hostile: Hostile) -> SlowPattern:
    """Measure up to three times while the growth is too large: noise of a busy machine does not repeat that often."""
    rows: list[SlowPattern] = []
    while len(rows) < 3 and not (rows and rows[-1].is_proportionate):
        seconds = _best(search, hostile.text(LONG))
        is_cut_off = seconds >= _MAX_SECONDS
        growth = math.inf if is_cut_off else seconds / max(_best(search, hostile.text(LONG // 10)), 1e-5)
        rows.append(SlowPattern(item.place, str(item.pattern), hostile.description, seconds, growth))
        if is_cut_off:
            break
    return min(rows, key=lambda row: row.growth)


def _searcher(pattern: re.Pattern[Any], method: str) -> Callable[[Any], None]:
    def through(text: Any) -> None:
        for _ in pattern.finditer(text):
            pass

    return getattr(pattern, method) if method in _ANCHORED else through


def _best(search: Callable[[Any], None], text: Any) -> float:
    """Return the minimum of up to three timings, since other work on the machine only adds to them."""
    tries = [_seconds(search, text, _MAX_SECONDS)]
    while len(tries) < 3 and tries[-1] < _MAX_SECONDS:
        tries.append(_seconds(search, text, _MAX_SECONDS))
    return min(tries)


def _seconds(search: Callable[[Any], None], text: Any, limit: float) -> float:
    """Return the processor seconds of a search, which is interrupted soon after `limit`."""
    began = time.thread_time()
    try:
        with _time_limit(limit * 1.5):
            search(text)
    except TimeoutError:
        return max(limit * 1.5, time.thread_time() - began)
    return time.thread_time() - began


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after that much processor time: a match checks for signals periodically."""

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
