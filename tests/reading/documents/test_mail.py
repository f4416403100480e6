"""Mail: its headers, the richest readable text, and each attachment under its name."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from rag.reading.documents import read_document
from rag.reading.parser import ExtractedDocument
from rag.web.media import EML
from tests.support import office


def read(body: bytes, name: str) -> ExtractedDocument:
    return read_document(body, EML, None, name)


def mail(subject: str = "Berth fees", text: str = "The ferry leaves at seven.\n") -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = subject, "Anna Berg <anna@example.org>", "bo@example.org, Ines"
    made["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"
    made.set_content(text)
    return made


def test_the_head_and_the_text() -> None:
    found = read(mail("Grüße: 停泊费").as_bytes(), "x.eml")
    assert (found.title, found.author, found.published) == ("Grüße: 停泊费", "Anna Berg", "2024-03-05")
    assert found.text == (
        "# Grüße: 停泊费\n\n- From: Anna Berg <anna@example.org>\n- To: bo@example.org, Ines\n"
        "- Date: Tue, 05 Mar 2024 10:00:00 +0100\n\nThe ferry leaves at seven."
    )


def test_the_richest_form_that_has_a_text() -> None:
    made = mail(text="Open this in a browser.")
    made.add_alternative("<p>It costs <s>88</s> 64.<span style='display:none'>unseen</span></p>", subtype="html")
    assert read(made.as_bytes(), "x.eml").text.endswith("\n\nIt costs ~~88~~ 64.")
    made = mail(text="Read this.")
    made.add_alternative("<img src='x.png'>", subtype="html")
    assert read(made.as_bytes(), "x.eml").text.endswith("\n\nRead this.")


def test_attachments_by_their_kind() -> None:
    made, inner = mail(), mail("Older", "The ferry left at nine.\n")
    made.add_attachment(b"Pier,2021,2022\nNorth,,3\n", maintype="text", subtype="csv", filename="fees 停泊.csv")
    slides = office.pptx(office.shape("<a:p><a:r><a:t>Four boats.</a:t></a:r></a:p>"))
    made.add_attachment(slides, maintype="application", subtype="octet-stream", filename="boats.pptx")
    made.add_attachment(b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", filename="tern.png")
    made.add_attachment(inner)
    text = read(made.as_bytes(), "x.eml").text.partition("at seven.\n\n")[2]
    assert text == (
        "## Attachment: fees 停泊.csv\n\n| Pier | 2021 | 2022 |\n| --- | --- | --- |\n| North |  | 3 |\n\n"
        "## Attachment: boats.pptx\n\n### Slide 1\n\nFour boats.\n\n## Attachment: tern.png\n\n(not read)\n\n"
        "## Older\n\n- From: Anna Berg <anna@example.org>\n- To: bo@example.org, Ines\n"
        "- Date: Tue, 05 Mar 2024 10:00:00 +0100\n\nThe ferry left at nine."
    )


def test_mails_within_mails_end() -> None:
    made = mail("Mail 9", "Text 9.\n")
    for depth in range(8, -1, -1):
        outer = mail(f"Mail {depth}", f"Text {depth}.\n")
        outer.add_attachment(made)
        made = outer
    text = read(made.as_bytes(), "x.eml").text
    assert "#### Mail 3" in text and "Mail 4" not in text


@pytest.mark.parametrize("codec", ["gbk", "utf-8"])
def test_letters_in_the_head_as_they_are(codec: str) -> None:
    head = "Subject: 关于 停泊费 Re: 2024\r\nFrom: 王根 <w@example.org>\r\n"
    head += f"Content-Type: text/plain; charset={codec}\r\n\r\n"
    found = read((head + "每晚六十四元，由港务局收取。").encode(codec), "x.eml")
    assert (found.title, found.author) == ("关于 停泊费 Re: 2024", "王根")
    assert found.text.endswith("\n\n每晚六十四元，由港务局收取。")


def test_lines_that_flow_and_no_head() -> None:
    flowed = b"Content-Type: text/plain; format=flowed\n\nThe ferry \nleaves.\n> quoted \n> again\n"
    assert read(flowed, "note.eml").text == "The ferry leaves.\n> quoted\n> again"
