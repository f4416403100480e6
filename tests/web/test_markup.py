"""Tags found in bytes, without a tree."""

from __future__ import annotations

import time

import pytest

from rag.web.markup import tags


def names(markup: bytes, *, opaque: bool = False) -> list[bytes]:
    return [tag.name for tag in tags(markup, opaque=opaque)]


def test_names_attributes_and_places() -> None:
    markup = b"a<META Http-Equiv=Refresh content='0; URL=/Ok'/>b</P>"
    meta, paragraph = tags(markup)
    assert (meta.name, meta.attributes) == (b"meta", {b"http-equiv": b"Refresh", b"content": b"0; URL=/Ok"})
    assert (markup[: meta.start], markup[meta.end : paragraph.start]) == (b"a", b"b")
    assert (paragraph.name, paragraph.end) == (b"/p", len(markup))


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        (b"<!-- <meta> --><br/>", [b"!", b"br"]),
        (b"<!--><br><!-- <p>", [b"!", b"br"]),
        (b"<!doctype html><?xml ?><html", [b"!", b"!"]),
        (b"<p title='<br>'>5 < 6<b", [b"p"]),
    ],
)
def test_comments_declarations_and_what_is_cut_off(markup: bytes, found: list[bytes]) -> None:
    assert names(markup) == found


def test_opaque_elements() -> None:
    markup = b"<script>if (a<b && \"c>d\") '<meta>'</SCRIPT ><title><b></title><p><style><br>"
    assert names(markup, opaque=True) == [b"script", b"/script", b"title", b"/title", b"p", b"style"]
    assert b"meta" in names(b"<script><meta></script>")


@pytest.mark.parametrize("piece", [b"<script>", b"<!--", b"<a ", b"<a b='", b"</script", b"<script></script>"])
def test_time_in_proportion_to_the_length(piece: bytes) -> None:
    began = time.process_time()
    names(piece * (1_000_000 // len(piece)), opaque=True)
    assert time.process_time() - began < 10
