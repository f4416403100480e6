"""The size and structure of the code, its dependencies, and the modules that a question and a page pass through.

    python -m benchmarks.code_metrics [--json] [--tree rag]

Counted from the source: files, lines, lines of a function (median, ninth decile, longest), share of fully typed
functions, own packages imported inside functions, cycles of imports without and with those for types, and the number of
modules that import each external library. Profiled while the sample pages are imported and two questions asked in fast
and in research mode, without a chat model: the modules that each passes, the calls between modules, and the longest
call chain, the largest number of files on the call stack.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = ("How much does the Team plan cost?", "地铁票价是多少？")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """The modules of a tree by name, each with its syntax tree."""

    trees: Mapping[str, ast.Module]
    lines: int

    @classmethod
    def of(cls, package: str) -> Source:
        paths = sorted((ROOT / package).rglob("*.py"))
        texts = {_name(path): path.read_text("utf-8") for path in paths}
        return cls({name: ast.parse(text) for name, text in texts.items()}, sum(t.count("\n") for t in texts.values()))

    def functions(self) -> Iterator[Function]:
        for tree in self.trees.values():
            yield from (node for node in ast.walk(tree) if isinstance(node, Function))

    def module_of(self, name: str) -> str:
        """Return the module of an imported name: `rag.types.Page` is of `rag.types`; "" if it is external."""
        while name and name not in self.trees:
            name = name.rpartition(".")[0]
        return name

    def imports(self, *, late: bool) -> dict[str, set[str]]:
        """Return which of our modules each one imports at module level or, if `late`, in functions; not for types."""
        return {
            module: {self.module_of(name) for node in _imports_in(tree, late) for name in _names(node)} - {"", module}
            for module, tree in self.trees.items()
        }

    def all_imports(self) -> dict[str, set[str]]:
        """Return which of our modules each one imports, also only for types; not a part of a package the package."""
        return {
            module: {
                other
                for node in ast.walk(tree)
                for other in map(self.module_of, _names(node))
                if other and other != module and not module.startswith(f"{other}.")
            }
            for module, tree in self.trees.items()
        }

    def outside(self) -> Counter[str]:
        """Return how many modules import each library that is neither ours nor Python's."""
        tops = (
            {name.partition(".")[0] for node in ast.walk(tree) for name in _names(node)} for tree in self.trees.values()
        )
        ours = {name.partition(".")[0] for name in self.trees}
        return Counter(top for libraries in tops for top in libraries - ours if top not in sys.stdlib_module_names)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_in(parent: ast.AST, late: bool, in_function: bool = False) -> Iterator[ast.AST]:
    """Yield the imports inside functions, or those outside, without blocks for types only."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.Import | ast.ImportFrom) and in_function == late:
            yield node
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case) and not _is_for_types(node):
            yield from _imports_in(node, late, in_function or isinstance(node, Function))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_typed(function: Function) -> bool:
    spec = function.args
    arguments = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    return function.returns is not None and all(
        one is None or one.annotation is not None or one.arg in ("self", "cls") for one in arguments
    )


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other: the graph's strongly connected components."""
    names = sorted(graph.keys() | set().union(*graph.values()))
    edges = np.array([[other in graph.get(name, ()) for other in names] for name in names])
    _, groups = connected_components(edges, connection="strong")
    members = [[name for name, group in zip(names, groups, strict=True) if group == one] for one in set(groups)]
    return [group for group in members if len(group) > 1]


def measure_code(package: str) -> dict[str, Any]:
    source = Source.of(package)
    sizes = sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in source.functions())
    typed = [_is_typed(function) for function in source.functions()]
    at_import, in_functions = source.imports(late=False), source.imports(late=True)
    both = {module: at_import[module] | in_functions[module] for module in source.trees}
    return {
        "files": len(source.trees),
        "lines": source.lines,
        "functions": {
            "count": len(sizes),
            "median": statistics.median(sizes),
            "p90": sizes[len(sizes) * 9 // 10],
            "max": sizes[-1],
        },
        "typed": round(sum(typed) / len(typed), 4),
        "own imports inside functions": sum(map(len, in_functions.values())),
        "cycles": cycles(both),
        "cycles with types": cycles(source.all_imports()),
        "modules that import": dict(source.outside().most_common()),
    }


@dataclass
class Profile:
    """The modules that a profiled task passes. Calls between modules count once per call.

    Calls of threads that started in the module `other_task` are ignored.
    """

    other_task: str = ""
    modules: set[str] = field(default_factory=set)
    calls: int = 0
    longest_chain: list[str] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not (module := _module_of_frame(frame)):
            return
        line = _stack_modules(frame)
        if line[0] == self.other_task:
            return
        self.modules.add(module)
        self.calls += len(line) > 1 and _module_of_frame(frame.f_back) != module
        if len(set(line)) > len(set(self.longest_chain)):
            self.longest_chain = line

    def report(self) -> dict[str, Any]:
        return {
            "modules": len(self.modules),
            "calls between modules": self.calls,
            "longest call chain": len(set(self.longest_chain)),
            "modules named": sorted(self.modules),
            "call chain": self.longest_chain,
        }


def _module_of_frame(frame: FrameType | None) -> str:
    name = frame.f_globals.get("__name__", "") if frame else ""
    return name if name.startswith("rag.") else ""


def _stack_modules(frame: FrameType | None) -> list[str]:
    """Return our modules on the stack, the outermost first; successive calls within a module count once."""
    modules: list[str] = []
    while frame:
        if module := _module_of_frame(frame):
            modules.append(module)
        frame = frame.f_back
    return [module for module, inner in pairwise([*reversed(modules), ""]) if module != inner]


def profile_tasks() -> dict[str, Any]:
    """Return the profile of each task in an App whose threads all run under the profiler."""
    from rag.app import App, Question
    from rag.config import load_settings
    from rag.types import RunMode

    importer = "rag.ingest.jobs.worker"  # its threads also run while a question is answered
    by_task = {"page": Profile(), "question": Profile(importer), "research": Profile(importer)}
    current = [Profile()]  # the active profile; the first one absorbs opening the app and loading the models

    def profile(frame: FrameType, event: str, argument: object) -> None:
        current[0](frame, event, argument)

    threading.setprofile(profile)
    with tempfile.TemporaryDirectory() as folder:
        app = App(load_settings(None, rag_data_dir=folder, qdrant_url="", embedding_model="builtin", llm_model=""))
        app.models.embedding  # noqa: B018 - loaded first, so that no profile includes it
        app.library("main")
        current[0] = by_task["page"]
        job = app.imports.add_examples(library="main")
        while app.imports.jobs.job(job).state == "running":
            time.sleep(0.1)
        modes: dict[str, RunMode] = {"question": "fast", "research": "research"}
        for task, mode in modes.items():
            current[0] = by_task[task]
            for question in QUESTIONS:
                app.wait(app.converse(Question(question, ("main",), mode=mode)).run_id, 60)
        current[0] = Profile()  # closing wakes the threads that read ahead for imports
        app.close()
    threading.setprofile(None)
    return {name: road.report() for name, road in by_task.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", default="rag", help="the package to count")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = {**measure_code(options.tree), **profile_tasks()}
    if options.json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        if name in ("page", "question", "research"):
            value = {
                key: value[key] for key in ("modules", "calls between modules", "longest call chain", "call chain")
            }
        print(f"{name}: {json.dumps(value, ensure_ascii=False)}")


if __name__ == "__main__":
    main()
