"""Books: chapters in the order of reading, under their headings."""

from __future__ import annotations

import pytest

from rag.errors import IngestError
from rag.reading.documents.epub import read_epub
from tests.support import office


def chapter(body: str, title: str = "") -> str:
    head = f"<title>{title}</title>" if title else "<title/>"
    return (
        f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'
    )


def test_chapters_in_their_order() -> None:
    chapters = {
        "two.xhtml": chapter('<h2><a id="x"/>The lamp</h2><p>About 10<sup>6</sup> candelas.</p>', "Book"),
        "a%20first.xhtml": chapter("<p>Nobody came.</p><p hidden='hidden'>unseen</p>", "The tower"),
        "plate.xhtml": chapter('<img src="x.png"/>'),
    }
    book = office.epub(
        chapters,
        ["a%20first.xhtml", "plate.xhtml", "two.xhtml"],
        "<dc:title>Lamps</dc:title><dc:creator>Ines Holm</dc:creator><dc:date>1931-03-05</dc:date>",
    )
    found = read_epub(book, "x.epub")
    assert (found.title, found.author, found.published) == ("Lamps", "Ines Holm", "1931-03-05")
    assert found.text == "# The tower\n\nNobody came.\n\n## The lamp\n\nAbout 10^6 candelas."


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"PK\x03\x04", "office_broken"),
        (office.zipped({"META-INF/container.xml": "<container/>"}, "application/epub+zip"), "office_broken"),
        (office.epub({"a.xhtml": chapter("<img/>")}), "document_no_text"),
        (office.epub({"a.xhtml": chapter("<p>x</p>" + " " * 41_000_000)}), "office_too_large"),
        (
            office.epub(
                {"a.xhtml": "\x01\x02"},
                **{"META-INF/encryption.xml": "<enc:CipherReference xmlns:enc='e' URI='OEBPS/a.xhtml'/>"},
            ),
            "office_locked",
        ),
    ],
)
def test_what_cannot_be_read(body: bytes, code: str) -> None:
    with pytest.raises(IngestError) as raised:
        read_epub(body, "x.epub")
    assert raised.value.code == code
