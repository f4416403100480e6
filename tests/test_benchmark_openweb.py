"""The open web's test suites, if they are next to the repository, and an always available part of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from benchmarks import openweb

SLICE = {
    "urls": [
        {
            "input": "http:a",
            "base": "http://e.example/b/c",
            "valid": True,
            "href": "http://e.example/b/a",
            "path": "/b/a",
        },
        {"input": "http://e.example:00080/..", "base": "", "valid": True, "href": "http://e.example/", "path": "/"},
        {
            "input": "https://\uff25.example/?'",
            "base": "",
            "valid": True,
            "href": "https://e.example/?%27",
            "path": "/?%27",
        },
        {"input": "http://e.example:b/", "base": "", "valid": False},
    ],
    "robots": [
        {"robots": "user-agent: A b\ndisallow: /", "agent": "a", "url": "http://e.example/", "allowed": False},
        {"robots": "user-agent: A\nx: y\nuser-agent: *\ndisallow /", "agent": "a", "url": "//e/x", "allowed": False},
        {"robots": "user-agent: *\ndisallow: /a*b$\nallow: /ab", "agent": "a", "url": "//e/abb", "allowed": False},
    ],
    "prescan": [
        {"html_base64": base64.b64encode(b"<!--<meta charset=utf-8>--><meta charset=l2>").decode(), "encoding": "l2"},
        {"html_base64": base64.b64encode(b"<meta charset=l2").decode(), "encoding": "windows-1252"},
    ],
    "sitemaps": [
        {
            "address": "https://e.example/s.xml",
            "body_base64": base64.b64encode(
                b"<X:URL><loc>/a?b=1&c=2</loc><i:i><loc>/d</loc></url><url><loc>/e"
            ).decode(),
            "urls": ["https://e.example/a?b=1&c=2"],
        }
    ],
}


@pytest.mark.skipif(not openweb.CASES.exists(), reason="no ../shared/web beside the repository")
def test_the_suites() -> None:
    assert {score.name: score.wrong for score in openweb.scores() if score.right < score.least} == {}


def test_a_slice(tmp_path: Path) -> None:
    for name, rows in SLICE.items():
        named = [{"hostname": "e.example", **row} for row in rows] if name == "urls" else rows
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, named)), "utf-8")
    assert [score.wrong for score in openweb.scores(tmp_path)] == [[]] * 7


def test_a_wrong_reading_is_seen(tmp_path: Path) -> None:
    for name, rows in SLICE.items():
        (tmp_path / f"{name}.jsonl").write_text("" if name == "urls" else json.dumps(rows[0]), "utf-8")
    (tmp_path / "sitemaps.jsonl").write_text(json.dumps({**SLICE["sitemaps"][0], "urls": []}), "utf-8")
    last = list(openweb.scores(tmp_path))[-1]
    assert (last.right, last.least, len(last.wrong)) == (0, 1, 1)
