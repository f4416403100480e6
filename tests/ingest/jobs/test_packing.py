"""Sources on their way into the database and back."""

from __future__ import annotations

import json

import pytest

from rag.ingest.jobs.packing import new_item, pack, unpack
from rag.ingest.records import record_sources
from rag.ingest.sources import Source, file_sources, web_source

LINE = '{"url": "https://a.example/", "title": "T", "text": "雨"}'
SOURCES = [
    web_source("https://a.example/"),
    *file_sources("note.md", b"# Note\n\x00"),
    *file_sources("picture.tiff", b"II*"),
    *record_sources([LINE, "broken"], "pages.jsonl"),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_source_comes_back_whole(source: Source) -> None:
    item = new_item(source)
    assert item.payload is not None
    again = unpack(json.loads(json.dumps(item.payload)), item.data)
    assert pack(again) == pack(source)
    assert again.data == source.data
    assert str(again.broken) == str(source.broken)


def test_data_of_a_file_of_the_first_version_is_read() -> None:
    source = unpack({"name": "a.md", "url": "file:///a.md", "kind": "file", "data": "Tm90ZQ=="}, None)
    assert source.data == b"Note"
