"""Fidelity of extracted text: constructed files, with facts that must and must not appear in it.

    python -m benchmarks.fidelity [SET ...] [--only WORD] [--faults] [--json]

Every file is read as an import reads it, in the parser's child process. Prints how many spellings of each construct are
read correctly; --faults prints the faults of the others, and --text the text of each.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from benchmarks.fidelity import office, pages, pdf
from benchmarks.fidelity.case import Case, faults
from benchmarks.report import table
from rag.reading.parser import Parser

SETS: dict[str, Callable[[], Iterable[Case]]] = {"html": pages.cases, "pdf": pdf.cases, "office": office.cases}
Result = tuple[Case, list[str]]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    for name in options.sets or SETS:
        cases = [case for case in SETS[name]() if options.only in f"{case.construct}: {case.spelling}"]
        results = measure(cases)
        if options.json:
            print(json.dumps({"set": name, "wrong": wrong(results), "cases": len(results)}, ensure_ascii=False))
            continue
        print(f"\n{name}\n\n{by_construct(results)}")
        for case, messages in wrong(results).items() if options.faults else ():
            print("\n".join([case, *(f"    {fault}" for fault in messages)]))
    return 0


def measure(cases: Iterable[Case]) -> list[Result]:
    """Return each case with its faults."""
    with Parser() as parser:
        return [(case, faults(case, parser)) for case in cases]


def wrong(results: Sequence[Result]) -> dict[str, list[str]]:
    """Return the cases with faults, by `construct: spelling`."""
    return {f"{case.construct}: {case.spelling}": messages for case, messages in results if messages}


def by_construct(results: Sequence[Result]) -> str:
    """Return a table with the number of spellings, and of those read correctly, per construct and in total."""
    rights: dict[str, list[bool]] = defaultdict(list)
    for case, messages in results:
        rights[case.construct].append(not messages)
    rights["all"] = [not messages for _, messages in results]
    rows = [[construct, str(len(flags)), str(sum(flags))] for construct, flags in rights.items()]
    return table(["construct", "spellings", "right"], rows)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", choices=[*SETS, []], help="kinds of files (default: all)")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains this")
    parser.add_argument("--faults", action="store_true", help="print the faults of each wrong case")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
