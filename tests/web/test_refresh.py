"""Refreshes as the HTML standard reads them, and which of them count as a redirect."""

from __future__ import annotations

import pytest

from rag.web.markup import Refresh, meta_target, parse_refresh, target_of

URL = "https://example.com/a/b"
ARTICLE = "<p>" + "The ferry leaves the north quay at seven. " * 20 + "</p>"


@pytest.mark.parametrize(
    ("value", "refresh"),
    [
        ("0; url=/ok", Refresh(0, "/ok")),
        (" 0 ;\n URL = '/ok' ", Refresh(0, "/ok")),
        ('5,url="/a;b\'c"; x', Refresh(5, "/a;b'c")),
        ("1.9;/ok", Refresh(1, "/ok")),
        (".5 /ok ", Refresh(0, "/ok")),
        ("0;'/ok", Refresh(0, "/ok")),
        ("0; urls/ok", Refresh(0, "urls/ok")),
        ("0; url/ok", Refresh(0, "url/ok")),
        ("300", Refresh(300, "")),
        ("300;", Refresh(300, "")),
        ("9" * 5000 + "; url=/ok", Refresh(float("inf"), "/ok")),
        ("", None),
        ("; url=/ok", None),
        ("url=/ok", None),
        ("-1; url=/ok", None),
        ("5x; url=/ok", None),
        ("٣; url=/ok", None),
    ],
)
def test_values(value: str, refresh: Refresh | None) -> None:
    assert parse_refresh(value) == refresh


@pytest.mark.parametrize(
    ("refresh", "target"),
    [
        (Refresh(0, "c d"), "https://example.com/a/c%20d"),
        (Refresh(10, "//other.example/"), "https://other.example/"),
        (Refresh(60, "/slow"), ""),
        (Refresh(0, "javascript:alert(1)"), ""),
        (Refresh(0, "mailto:a@b.example"), ""),
        (Refresh(0, "file:///etc/passwd"), ""),
        (Refresh(0, ""), URL),
        (None, ""),
    ],
)
def test_targets(refresh: Refresh | None, target: str) -> None:
    assert target_of(refresh, URL) == target


@pytest.mark.parametrize(
    ("page", "target"),
    [
        ("<meta http-equiv=refresh content='0; url=/ok'>", "/ok"),
        ("<body><p>Moved</p><META CONTENT='3;URL=ok' HTTP-EQUIV = \"Refresh\" />", "/a/ok"),
        ("<base href=/x/><base href=/y/><meta http-equiv=refresh content='0; url=ok'>", "/x/ok"),
        ("<meta http-equiv=refresh content='0; url=/ok?a=1&amp;b=2&copy=3&#x2f;'>", "/ok?a=1&b=2&copy=3/"),
        ("<meta http-equiv=refresh content='0; url=/fähre'>", "/fähre"),
        ("<meta http-equiv=refresh content=''><meta http-equiv=refresh content='0; url=/ok'>", "/ok"),
        ("<meta http-equiv=refresh content='600; url=/a'><meta http-equiv=refresh content='0; url=/b'>", ""),
        ("<meta http-equiv=refresh content='900; url=/logout'>" + ARTICLE, ""),
        ("<!-- <meta http-equiv=refresh content='0; url=/ok'> -->", ""),
        ("<script>'<meta http-equiv=refresh content=\"0; url=/ok\">'</script>", ""),
        ("<template><meta http-equiv=refresh content='0; url=/ok'></template>", ""),
        ("<textarea><meta http-equiv=refresh content='0; url=/ok'></textarea>", ""),
        ("<pre>&lt;meta http-equiv=refresh content='0; url=/ok'&gt;</pre>", ""),
        ("<meta name=refresh content='0; url=/ok'>", ""),
        (
            "<noscript><meta http-equiv=refresh content='0; url=/ok'></noscript><script>" + "x" * 900 + "</script>",
            "/ok",
        ),
        (ARTICLE + "<noscript><meta http-equiv=refresh content='0; url=/no-script'></noscript>", ""),
        (ARTICLE, ""),
    ],
)
def test_pages(page: str, target: str) -> None:
    assert meta_target(page.encode(), None, URL) == (f"https://example.com{target}" if target else "")


def test_the_charset_of_a_target() -> None:
    page = "<meta charset=gbk><meta http-equiv=refresh content='0; url=/渡轮'>"
    assert meta_target(page.encode("gbk"), None, URL) == "https://example.com/渡轮"
    assert meta_target(page.encode(), "utf-8", URL) == "https://example.com/渡轮"
    assert meta_target(page.encode("utf-16"), None, URL) == "https://example.com/渡轮"
    assert (
        meta_target(b"<meta http-equiv=refresh content='0; url=/f\xe4hre'>", None, URL) == "https://example.com/fähre"
    )
