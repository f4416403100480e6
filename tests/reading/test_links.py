"""The links of pages, feeds and sitemaps, however they are written."""

from __future__ import annotations

import gzip
import time

import pytest

from rag.reading.links import MAX_LINKS, iter_entries, links_task, parse_feed, parse_sitemap, root_name, sitemap_task
from rag.reading.parser import Parser

BASE = "https://example.com/docs/page.html"


def found_in(html: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = links_task(html.encode(), {"url": BASE, "charset": "utf-8"})
    return found


def links(body: str, head: str = "") -> list[str]:
    html = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return [link.removeprefix("https://example.com") for link in found_in(html)["links"]]


@pytest.mark.parametrize(
    ("href", "found"),
    [
        ("a.html", "/docs/a.html"),
        ("../a", "/a"),
        ("/b?x=1&amp;y=2#part", "/b?x=1&y=2"),
        ("//other.example/c", "https://other.example/c"),
        (" /spaced \n", "/spaced"),
        ("?page=2", "/docs/page.html?page=2"),
        ("/路径/页", "/%E8%B7%AF%E5%BE%84/%E9%A1%B5"),
        ("https://例え.example/", "https://xn--r8jz45g.example/"),
        ("/report.pdf", "/report.pdf"),
        ("/a?utm_source=x", "/a"),
        ("HTTPS://EXAMPLE.COM/Upper", "/Upper"),
    ],
)
def test_addresses(href: str, found: str) -> None:
    assert links(f"<a href='{href}'>x</a>") == [found]


@pytest.mark.parametrize(
    "href",
    [
        "",
        "#part",
        "page.html#part",
        "mailto:a@b.example",
        "javascript:void(0)",
        "data:text/html,x",
        "tel:123",
        "ftp://example.com/x",
        "http://[::1",
        "http://",
        "/photo.jpg",
        "/archive.tar.gz",
        "/" + "a" * 3000,
    ],
)
def test_what_leads_to_no_page(href: str) -> None:
    assert links(f"<a href='{href}'>x</a>") == []


def test_each_once_in_order() -> None:
    areas = "<map><area href='/c'></map>"
    assert links(f"<a href='/b'>1</a><a href='/a'>2</a><a href='/b#x'>3</a>{areas}") == ["/b", "/a", "/c"]


@pytest.mark.parametrize("rel", ["nofollow", "external NOFOLLOW", "ugc nofollow"])
def test_nofollow(rel: str) -> None:
    assert links(f"<a rel='{rel}' href='/a'>x</a><a rel='next' href='/b'>y</a>") == ["/b"]


@pytest.mark.parametrize(("content", "found"), [("index, NoFollow", []), ("none", []), ("noindex", ["/a"])])
def test_a_page_that_wants_no_links_followed(content: str, found: list[str]) -> None:
    assert links("<a href='/a'>x</a>", f"<meta name='Robots' content='{content}'>") == found


@pytest.mark.parametrize(
    ("base", "found"),
    [
        ("<base href='/v2/'>", "/v2/a"),
        ("<base target='_top'><base href='v3/'><base href='/v4/'>", "/docs/v3/a"),
        ("<base href='https://cdn.example/x/'>", "https://cdn.example/x/a"),
        ("<base href='javascript:1'>", "/docs/a"),
        ("<base href='http://[bad'>", "/docs/a"),
    ],
)
def test_base(base: str, found: str) -> None:
    assert links("<a href='a'>x</a>", base) == [found]


def test_no_more_than_the_limit() -> None:
    assert len(links("".join(f"<a href='/{number}'>x</a>" for number in range(MAX_LINKS + 50)))) == MAX_LINKS


@pytest.mark.parametrize(
    "html", ["", "   ", "\x00", "just words", "<", "<!-- -->", "<a href='/x'", "<?xml version='1.0'?>"]
)
def test_what_is_hardly_a_page(html: str) -> None:
    assert found_in(html)["links"] == []


def test_a_declaration_does_not_spoil_it() -> None:
    html = "<?xml version='1.0' encoding='gbk'?><html><body><a href='/a'>x</a></body></html>"
    assert found_in(html)["links"] == ["https://example.com/a"]


@pytest.mark.parametrize("html", ["<p>" * 100_000, "<div>" * 100_000 + "<a href='/a'>x</a>", "<a href='/a'>" * 100_000])
def test_hostile_pages_end(html: str) -> None:
    began = time.thread_time()
    found_in(html)
    assert time.thread_time() - began < 5


def test_feeds() -> None:
    html = (
        "<head><link rel='stylesheet alternate' type='application/rss+xml; charset=utf-8' href='/feed'>"
        "<link rel='alternate' type='APPLICATION/ATOM+XML' href='atom.xml'>"
        "<link rel='alternate' type='application/json' href='/feed.json'>"
        "<link rel='alternate' hreflang='de' href='/de'><link rel=alternate type='application/rss+xml'></head>"
    )
    assert found_in(html)["feeds"] == ["https://example.com/feed", "https://example.com/docs/atom.xml"]


def test_the_task_decodes() -> None:
    body = "<meta charset=gbk><a href='/维基'>x</a>".encode("gbk")
    made = links_task(body, {"url": BASE, "charset": None})
    assert made == {"links": ["https://example.com/%E7%BB%B4%E5%9F%BA"], "feeds": []}
    assert links_task(b"", {"url": BASE}) == {"links": [], "feeds": []}


FEED = "https://example.com/blog/feed.xml"
RSS = """<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>News</title><link>/</link>
<item><title>One</title><link>https://example.com/one?utm_source=rss</link>
<pubDate>Tue, 05 Mar 2024 12:00:00 +0800</pubDate></item>
<item><title>Two</title><link>/two#comments</link></item>
<item><title>One again</title><link>https://example.com/one</link></item>
<item><title>No page</title><link>javascript:alert(1)</link></item>
<item><title>Sound</title><link>https://example.com/show.mp3</link></item>
<item><title>No link</title></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.com/blog/"><title>News</title>
<entry><title>一</title><link rel="edit" href="edit/1"/><link href="posts/1"/>
<published>2024-03-01T00:00:00Z</published>
<updated>2024-03-05T08:00:00+08:00</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel/><item><title>Old</title><link>https://example.com/old</link></item></rdf:RDF>"""
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><rss version="2.0"><channel><item><title>&i;</title><link>https://example.com/x</link></item></channel></rss>'
)


ONE = ("https://example.com/one", "2024-03-05T04:00:00Z")


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        (RSS.encode(), [ONE, ("https://example.com/two", "")]),
        (ATOM.encode(), [("https://example.com/blog/posts/1", "2024-03-05T00:00:00Z")]),
        (RDF.encode(), [("https://example.com/old", "")]),
        (
            RSS.replace("UTF-8", "gb2312").replace("/two", "/二").encode("gbk"),
            [ONE, ("https://example.com/%E4%BA%8C", "")],
        ),
        (RSS.replace("/two", "http://[bad/x").encode(), [ONE]),
        (RSS[:420].encode(), [ONE, ("https://example.com/two", "")]),  # damaged
    ],
    ids=["rss", "atom", "rdf", "gbk", "bad address", "damaged"],
)
def test_pages_of_feeds(body: bytes, pages: list[tuple[str, str]]) -> None:
    assert parse_feed(body, FEED) == pages


@pytest.mark.parametrize(
    "body", [b"", b"<html><p>Hello</p></html>", b"{}", b"\x00\x01", b"<rss", b"https://example.com/feed"]
)
def test_what_is_no_feed(body: bytes) -> None:
    assert parse_feed(body, FEED) == []


def test_entities_do_not_explode(parser: Parser) -> None:
    pages = parser.run("feed", BOMB.encode(), url=FEED)["pages"]
    assert pages in ([], [["https://example.com/x", ""]])


def test_a_file_of_the_machine_is_not_read() -> None:
    body = RSS.replace("<rss", '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss').replace("/two", "/&x;")
    assert not any("root" in url for url, _ in parse_feed(body.encode(), FEED))


SITEMAP = "https://example.com/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def page_map(*paths: str, base: str = "https://example.com", more: str = "") -> str:
    urls = "".join(f"<url><loc>{base}{path}</loc>{more}</url>" for path in paths)
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset {NAMESPACE}>{urls}</urlset>'


def index(*urls: str) -> str:
    return f"<sitemapindex {NAMESPACE}>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


DATE = "2024-03-05T08:00:00+08:00"
LINES = "\ufeffhttps://example.com/a\r\n\r\nwords\nhttps://example.com/b\nftp://example.com/c\n"
CUT_GZIP = gzip.compress(page_map("/a").encode(), mtime=0)[:30]


class TestParsing:
    @pytest.mark.parametrize(
        ("body", "maps", "pages"),
        [
            (
                page_map("/a", "/b?x=1&amp;y=2", more=f"<lastmod>{DATE}</lastmod>"),
                [],
                [("/a", DATE), ("/b?x=1&y=2", DATE)],
            ),
            (gzip.compress(page_map("/a").encode(), mtime=0), [], [("/a", "")]),
            (index("/one.xml", "https://example.com/two.xml.gz"), ["/one.xml", "/two.xml.gz"], []),
            (LINES, [], [("/a", ""), ("/b", "")]),
            (RSS, [], [("/one", "2024-03-05T04:00:00Z"), ("/two", "")]),
        ],
        ids=["pages", "gzip", "index", "plain text", "feed"],
    )
    def test_kinds(self, body: str | bytes, maps: list[str], pages: list[tuple[str, str]]) -> None:
        found = parse_sitemap(body.encode() if isinstance(body, str) else body, SITEMAP)
        site = "https://example.com"
        assert found == ([site + path for path in maps], [(site + path, modified) for path, modified in pages])

    @pytest.mark.parametrize("date", ["2024", "2024-03", "2024-03-05", "2024-03-05T12:00Z", "2024-03-05T12:00:01.5Z"])
    def test_dates(self, date: str) -> None:
        text = page_map("/a", more=f"<lastmod> {date}\n</lastmod>")
        assert parse_sitemap(text.encode(), SITEMAP)[1][0][1] == date
        assert parse_sitemap(text.replace("2024", "yesterday").encode(), SITEMAP)[1][0][1] == ""

    def test_a_damaged_one_gives_what_it_can(self) -> None:
        cut = page_map(*(f"/{number}" for number in range(100)))[:1000]
        found = parse_sitemap(cut.encode(), SITEMAP)[1]
        assert 5 < len(found) < 100

    @pytest.mark.parametrize(
        "body", [b"", b"<html><body>404</body></html>", b"<urlset/>", b"<", b"\x1f\x8bnot gzip", CUT_GZIP]
    )
    def test_nothing(self, body: bytes) -> None:
        assert sitemap_task(body, {"url": SITEMAP}) == {"sitemaps": [], "pages": []}

    def test_no_more_than_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rag.reading.links.MAX_URLS", 10)
        assert len(parse_sitemap(page_map(*(f"/{number}" for number in range(100))).encode(), SITEMAP)[1]) == 10

    def test_bombs_are_harmless(self, parser: Parser) -> None:
        packed = gzip.compress(b"<urlset>" + b"<url>" * 12_000_000)
        for body in (BOMB.encode(), packed, BOMB.replace("rss", "urlset").encode()):
            made = parser.run("sitemap", body, url=SITEMAP)
            assert len(made["pages"]) <= 1
        assert parser.run("sitemap", page_map("/a").encode(), url=SITEMAP)["pages"] == [["https://example.com/a", ""]]

    def test_files_of_the_machine_are_not_read(self) -> None:
        text = page_map("/&x;").replace("<urlset", '<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset')
        assert not any("root" in url for url, _ in parse_sitemap(text.encode(), SITEMAP)[1])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<url><loc>a</loc><image:image><image:loc>i</image:loc></image:image></url>", ["a"]),
        ("<SITEMAP><LOC>a</LOC></SITEMAP>", ["a"]),
        ("<sm:url><sm:loc>a</sm:loc></sm:url>", ["a"]),
        ("<url><loc>a?x=1&y=2&amp;z=&#51;&copy=4</loc></url>", ["a?x=1&y=2&z=3&copy=4"]),
        ("<url><loc> <![CDATA[a?b=1&c=2&amp;d]]> </loc></url>", ["a?b=1&c=2&amp;d"]),
        ("<url><loc>a<!-- b -->c</loc></url>", ["ac"]),
        ("<url><loc>a</loc></url><url><loc>b", ["a", ""]),
        ("<url><loc>a</loc><url><loc>b</loc>", ["a", "b"]),
        ("<url><xhtml:link href='x'/><loc> a </loc></url>", ["a"]),
        ("<url><loc>a</loc><loc>b</loc></url>", ["a"]),
        ("<url/><url><loc>a</loc></url>", ["", "a"]),
        ("<!-- <url><loc>a</loc></url>", []),
        ("<!DOCTYPE x [<!ENTITY e 'boom'>]><url><loc>&e;</loc></url>", ["&e;"]),
    ],
)
def test_entries(text: str, found: list[str]) -> None:
    assert [texts.get("loc", "") for _, texts in iter_entries(text)] == found


def test_what_a_document_is() -> None:
    assert root_name("<?xml version='1.0'?><!-- a --><x:UrlSet a='b'>") == "urlset"
    assert root_name("no element") == ""


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<![CDATA[", "<url", "<url>", "<url><loc>", "&", "<a ", "</loc>", "<a>"]
)
def test_hostile_ones_take_time_in_proportion(piece: str) -> None:
    began = time.thread_time()
    list(iter_entries(piece * (400_000 // len(piece))))
    assert time.thread_time() - began < 2
