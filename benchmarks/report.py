"""Tables: Markdown and JSON in benchmarks/out, and the results section of a page in docs/."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.run import Row

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "benchmarks" / "out"
BEGIN, END = "<!-- results: written by {} -->", "<!-- end of results -->"
_RETRIEVAL = (
    ("recall@2000", "recall@2000", ".3f"),
    ("recall@4000", "recall@4000", ".3f"),
    ("recall@8000", "recall@8000", ".3f"),
    ("MRR", "MRR", ".3f"),
    ("hit@1", "hit@1", ".3f"),
    ("AUROC", "AUROC", ".3f"),
    ("refused@5%", "refused at 5 %", ".3f"),
    ("chunks", "chunks", ",d"),
    ("encoded", "encoded / source tokens", ".2f"),
    ("ms", "ms per question", ".1f"),
)


def retrieval_tables(rows: Sequence[Row]) -> str:
    """Return a table for each set, in the order in which they ran, without columns that no row has."""
    parts = []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        columns = [column for column in _RETRIEVAL if any(row.get(column[0]) is not None for row in own)]
        cells = [[str(row["system"]), *(_cell(row.get(key), form) for key, _, form in columns)] for row in own]
        parts.append(f"### {name}, {own[0]['questions']} questions\n\n" + table(["", *(c[1] for c in columns)], cells))
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: words in the first column, figures in the others."""
    lines = [list(head), ["---", *["---:"] * (len(head) - 1)], *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def facts(known: Mapping[str, str]) -> str:
    """Return the facts about a run in one line, versions last."""
    words = [form.format(known[name]) for name, form in _IN_WORDS.items() if name in known]
    versions = ", ".join(f"{name} {value}" for name, value in known.items() if name not in _IN_WORDS)
    return "; ".join(part for part in (*words, versions) if part) + "."


_IN_WORDS = {
    "date": "{}",
    "commit": "commit {}",
    "machine": "{}",
    "load when it began": "load {}",
    "limits": "{}",
    "precision": "{}",
}


def save(name: str, known: Mapping[str, str], rows: Sequence[Mapping[str, object]], markdown: str) -> None:
    """Write NAME.json and NAME.md into benchmarks/out."""
    OUT.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"run": dict(known), "rows": list(rows)}, ensure_ascii=False, indent=1)
    (OUT / f"{name}.json").write_text(content + "\n", encoding="utf-8")
    (OUT / f"{name}.md").write_text(f"{facts(known)}\n\n{markdown}\n", encoding="utf-8")


def publish(page: Path, command: str, known: Mapping[str, str] | None = None, markdown: str = "") -> None:
    """Replace the text between the page's two markers; without `known`, only check that they exist.

    Raises ValueError if they don't.
    """
    text = page.read_text(encoding="utf-8")
    begin = BEGIN.format(command)
    before, mark, rest = text.partition(begin)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{page.name} has no place for results: {begin} … {END}")
    if known is not None:
        page.write_text(f"{before}{begin}\n\n{facts(known)}\n\n{markdown}\n\n{END}{after}", encoding="utf-8")


def _cell(value: object, form: str) -> str:
    return format(value, form) if isinstance(value, int | float) else "–"
