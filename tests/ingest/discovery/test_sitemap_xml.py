"""Sitemaps as sites write them."""

from __future__ import annotations

import time

import pytest

from rag.ingest.discovery.sitemap_xml import entries, root_name


def addresses(text: str) -> list[str]:
    return [entry.texts.get("loc", "") for entry in entries(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<url><loc>a</loc><image:image><image:loc>i</image:loc></image:image></url>", ["a"]),
        ("<URL><LOC>a</LOC></URL>", ["a"]),
        ("<sm:url><sm:loc>a</sm:loc></sm:url>", ["a"]),
        ("<url><loc>a?x=1&y=2&amp;z=&#51;&copy=4</loc></url>", ["a?x=1&y=2&z=3&copy=4"]),
        ("<url><loc> <![CDATA[a?b=1&c=2&amp;d]]> </loc></url>", ["a?b=1&c=2&amp;d"]),
        ("<url><loc>a<!-- b -->c</loc></url>", ["ac"]),
        ("<url><loc>a</loc></url><url><loc>b", ["a", ""]),
        ("<url><loc>a</loc><url><loc>b</loc>", ["a", "b"]),
        ("<url><xhtml:link href='x'/><loc>a</loc></url>", ["a"]),
        ("<url><loc>a</loc><loc>b</loc></url>", ["a"]),
        ("<url/><url><loc>a</loc></url>", ["", "a"]),
        ("<!-- <url><loc>a</loc></url>", []),
        ("<!DOCTYPE x [<!ENTITY e 'boom'>]><url><loc>&e;</loc></url>", ["&e;"]),
    ],
)
def test_entries(text: str, found: list[str]) -> None:
    assert addresses(text) == found


def test_what_a_document_is() -> None:
    assert root_name("<?xml version='1.0'?><!-- a --><x:UrlSet a='b'>") == "urlset"
    assert root_name("no element") == ""


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<![CDATA[", "<url", "<url>", "<url><loc>", "&", "<a ", "</loc>", "<a>"]
)
def test_hostile_ones_take_time_in_proportion(piece: str) -> None:
    began = time.thread_time()
    list(entries(piece * (400_000 // len(piece))))
    assert time.thread_time() - began < 2
