"""Conformance of the app's web code to the test suites of browsers and crawlers.

    python -m benchmarks.openweb [--json] [--wrong]

Cases are read from ../shared/web: addresses (web-platform-tests), robots.txt (google/robotstxt), encoding declarations
(html5lib-tests) and sitemaps. `--wrong` prints every case that the app reads differently.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag.errors import FetchError
from rag.reading.links import parse_sitemap
from rag.web.guard import check_url
from rag.web.markup import codec_of, find_declaration
from rag.web.robots import parse_rules
from rag.web.urls import join_url, split_url, url_key

CASES = Path(__file__).resolve().parents[2] / "shared" / "web"
_FALLBACK = "windows-1252"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one kind of case: how many match their suite, the required minimum, and the wrong ones."""

    name: str
    right: int
    cases: int
    least: int
    wrong: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    results = list(scores())
    for score in results:
        if options.json:
            print(json.dumps(asdict(score), ensure_ascii=False))
            continue
        print(f"{score.name:34} {score.right:4} of {score.cases:4}   at least {score.least}")
        for case in score.wrong if options.wrong else ():
            print(f"    {case}")
    return int(any(score.right < score.least for score in results))


def scores(folder: Path = CASES) -> Iterator[Score]:
    """Yield a score for each kind of case; raises FileNotFoundError if a file of cases is missing."""
    addresses = _rows(folder / "urls.jsonl")
    valid = [row for row in addresses if row["valid"]]
    yield _score("addresses: keys", valid, has_same_key, 0.98)
    yield _score("addresses: fetched URL", valid, is_fetched_alike, 1.0)
    yield _score("addresses: invalid ones refused", [row for row in addresses if not row["valid"]], is_refused, 1.0)
    yield _score("addresses: key of a key", addresses, has_stable_key, 1.0)
    yield _score("robots.txt", _rows(folder / "robots.jsonl"), obeys_robots, 138 / 141)
    yield _score("encoding declarations", _rows(folder / "prescan.jsonl"), has_same_encoding, 1.0)
    yield _score("sitemaps", _rows(folder / "sitemaps.jsonl"), has_same_pages, 1.0)


def has_same_key(row: Row) -> bool:
    """Return whether the address as written and as a browser normalises it have the same key."""
    return url_key(_address(row)) == url_key(row["href"])


def is_fetched_alike(row: Row) -> bool:
    """Return whether the fetcher requests what a browser would, or the guard refuses the address."""
    parts = split_url(row["href"])
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        checked = check_url(_address(row), {(row["hostname"].strip("[]"), port)})
    except FetchError:
        return True
    return (checked.host, checked.port, checked.target) == (row["hostname"].strip("[]"), port, row["path"])


def is_refused(row: Row) -> bool:
    """Return whether an address that browsers cannot read is refused, joined with its base or alone."""
    return not any(_is_accepted(address) for address in (row["input"], _address(row)))


def has_stable_key(row: Row) -> bool:
    key = url_key(_address(row))
    return url_key(key) == key


def obeys_robots(row: Row) -> bool:
    """Return whether permission to fetch a page equals the suite's, for the agent of the case."""
    return parse_rules(row["robots"].encode()).can_fetch(row["url"], row["agent"]) == bool(row["allowed"])


def has_same_encoding(row: Row) -> bool:
    """Return whether the effective declaration is the browser's; without one, Western European is expected."""
    return codec_of(find_declaration(base64.b64decode(row["html_base64"])) or _FALLBACK) == codec_of(row["encoding"])


def has_same_pages(row: Row) -> bool:
    _, pages = parse_sitemap(base64.b64decode(row["body_base64"]), row["address"])
    return [address for address, _ in pages] == row["urls"]


def _address(row: Row) -> str:
    return join_url(row["base"], row["input"]) if row["base"] else row["input"]


def _is_accepted(address: str) -> bool:
    try:
        check_url(address)
    except FetchError:
        return False
    return True


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def _score(name: str, rows: list[Row], is_right: Callable[[Row], bool], share: float) -> Score:
    wrong = [json.dumps(row, ensure_ascii=False) for row in rows if not is_right(row)]
    return Score(name, len(rows) - len(wrong), len(rows), -int(-share * len(rows) // 1), wrong)


if __name__ == "__main__":
    raise SystemExit(main())
