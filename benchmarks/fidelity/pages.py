"""Web pages: the fragments of pages.toml, each inside a page of six paragraphs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.fidelity.case import Case, Fact

_FILE = Path(__file__).with_name("pages.toml")
_PROSE = {
    "en": "Paragraph {} says at some length how the lighthouse keepers of the coast write up their logs each day.",
    "zh": "第{}段详细说明沿海灯塔的看守人每天如何记录日志，并在月底交给港务局存档备查。",
    "ja": "第{}段落では、海岸の灯台守が毎日どのように日誌を付けているかを詳しく説明している。",
}


def cases() -> Iterator[Case]:
    """Yield every fragment, by construct. A row with `page` is a whole page."""
    for construct, rows in tomllib.loads(_FILE.read_text("utf-8")).items():
        for row in rows:
            yield _case(construct, row)


def _case(construct: str, row: dict[str, Any]) -> Case:
    page = row.get("page") or in_page(row["html"], row.get("lang", "en"))
    return Case(
        construct,
        row["is"],
        page.encode(),
        must=tuple(map(_fact, row.get("must", ()))),
        must_not=tuple(row.get("not", ())),
        once=tuple(row.get("once", ())),
        notice=row.get("notice", ""),
    )


def in_page(fragment: str, language: str = "en") -> str:
    """Return a page of prose around a fragment."""
    prose = "".join(f"<p>{_PROSE[language].format(number)}</p>" for number in range(1, 4))
    main = f"<h1>Logs</h1>{prose}{fragment}{prose}"
    return f"<html lang={language}><head><title>Logs</title></head><body><main>{main}</main></body></html>"


def _fact(value: str | list[str]) -> Fact:
    return value if isinstance(value, str) else tuple(value)
