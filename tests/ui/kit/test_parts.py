"""Sources as a reader recognises them."""

from __future__ import annotations

import pytest

from rag.ui.kit.parts import short_source, site_of


@pytest.mark.parametrize(
    ("source", "short", "site"),
    [
        ("https://a.example/b%20c/?q=1", "a.example/b c?q=1", "a.example"),
        ("file:///notes%20one.md", "notes one.md", "notes one.md"),
        ("http://[::1/x", "http://[::1/x", "http://[::1/x"),
        ("a.txt", "a.txt", "a.txt"),
    ],
)
def test_short_names(source: str, short: str, site: str) -> None:
    assert (short_source(source), site_of(source)) == (short, site)
