"""A web server on loopback with well-behaved and hostile pages, for every test that fetches.

    with PageServer() as server:
        server.add("/mine", "<p>…</p>")
        fetcher = Fetcher(allow=[server.pair])
        fetcher.fetch(server.url("/mine"))
        assert server.count("/mine") == 1

Built-in paths are the keys of `_ROUTES`, and `/page/N`, `/redirect/N`, `/status/N` for any number N.
"""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler
from typing import Any
from urllib.parse import urlsplit

from tests.support.loopback import Handler, LoopbackServer, WebServer

HTML = "text/html; charset=utf-8"
MEGABYTE = 1024 * 1024

ARTICLE = """<!doctype html><html lang="en"><head><title>The lighthouse of Vik</title>
<meta property="og:site_name" content="Northern Lights"></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h1>The lighthouse of Vik</h1>
<p>The lighthouse of Vik was built in 1910 on a cliff of black basalt above the village. Its lamp can be
seen from a distance of thirty kilometres when the air is clear.</p>
<h2>The keepers</h2>
<p>Eleven families kept the lamp until it was made automatic in 1978. The last keeper, Anna Berg, wrote a
diary of the storms, which the village museum shows every summer.</p>
<ul><li>Height of the tower: 21 metres</li><li>Steps inside: 104</li></ul>
</article><footer>Copyright Northern Lights</footer></body></html>"""

CHINESE = """<!doctype html><html><head>{meta}<title>长江大桥的历史</title></head><body><article>
<h1>长江大桥的历史</h1>
<p>武汉长江大桥于一九五五年九月动工，一九五七年十月建成通车，是长江上的第一座公路铁路两用桥。全桥总长一千六百七十米，
上层为公路，下层为双线铁路，桥身为三联连续桥梁，每联三孔，共八墩九孔。</p>
<h2>建设经过</h2><p>建桥工人采用了大型管柱钻孔法，避免了在水下高气压中施工，既保证了工人的健康，又缩短了工期。
这座桥把武汉三镇连成一体，也把中国南北的铁路连成一体，大大方便了人民的出行。</p></article></body></html>"""


@dataclass(frozen=True)
class Reply:
    """One response; `drip` sends the body in pieces of that many bytes, `pause` seconds apart."""

    body: bytes = b""
    content_type: str | None = HTML
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: int = 0
    pause: float = 0.0


def generated_page(number: int) -> str:
    """Return a unique page for every number, with text that names the number."""
    return (
        f"<!doctype html><html lang='en'><head><title>Report {number}</title></head><body><article>"
        f"<h1>Report {number}</h1><p>This is report number {number} of the station. On that day the "
        f"instruments counted {number * 37 + 11} birds above the northern shore and {number * 5 + 3} seals "
        f"on the rocks below it.</p><h2>Weather of day {number}</h2><p>The wind came from the west with "
        f"{number % 30 + 2} metres a second. The observers of report {number} noted rain in the morning and "
        f"a clear evening, as in most weeks of the season.</p></article></body></html>"
    )


def _text(html: str, encoding: str = "utf-8", **options: Any) -> Reply:
    return Reply(html.encode(encoding), **options)


def _packed(data: bytes, encoding: str) -> Reply:
    return Reply(data, headers={"Content-Encoding": encoding})


def _gzip_bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"<p>" + b"a" * (MEGABYTE - 3)
    return b"".join(packer.compress(block) for _ in range(size)) + packer.flush()


def _scripts_only() -> str:
    code = "window.__STATE__ = " + "[1,2,3,4,5,6,7,8]," * 500
    return (
        "<!doctype html><html><head><title>An app</title></head><body><div id='root'></div>"
        "<noscript>You need to enable JavaScript to run this app.</noscript>"
        f"<script>{code}</script><script src='/app.js'></script></body></html>"
    )


_ROUTES: dict[str, Callable[[], Reply]] = {
    "/article": lambda: _text(ARTICLE),
    "/gbk-header": lambda: _text(CHINESE.format(meta=""), "gbk", content_type="text/html; charset=GB2312"),
    "/gbk-meta": lambda: _text(CHINESE.format(meta="<meta charset=gb2312>"), "gbk", content_type="text/html"),
    "/loop": lambda: Reply(status=302, headers={"Location": "/loop"}),
    "/loop-a": lambda: Reply(status=302, headers={"Location": "/loop-b"}),
    "/loop-b": lambda: Reply(status=302, headers={"Location": "/loop-a"}),
    "/redirect-nowhere": lambda: Reply(status=302),
    "/to-metadata": lambda: Reply(status=302, headers={"Location": "http://169.254.169.254/latest/"}),
    "/missing": lambda: _text("<h1>Not found</h1>", status=404),
    "/broken": lambda: _text("<h1>Error</h1>", status=500),
    "/busy": lambda: _text("<h1>Slow down</h1>", status=429, headers={"Retry-After": "1"}),
    "/forbidden": lambda: _text("<h1>No</h1>", status=403),
    "/drip": lambda: Reply(ARTICLE.encode(), drip=1, pause=0.2),
    "/slow": lambda: Reply(ARTICLE.encode(), drip=200, pause=0.05),
    "/huge": lambda: Reply(b"<p>" + b"word " * (10 * MEGABYTE)),
    "/big-html": lambda: Reply(b"<p>" + b"word " * (3 * MEGABYTE // 5)),
    "/gzip": lambda: _packed(gzip.compress(ARTICLE.encode()), "gzip"),
    "/deflate": lambda: _packed(zlib.compress(ARTICLE.encode()), "deflate"),
    "/deflate-raw": lambda: _packed(zlib.compress(ARTICLE.encode())[2:-4], "deflate"),
    "/gzip-cut": lambda: _packed(gzip.compress(ARTICLE.encode())[:-40], "gzip"),
    "/gzip-not": lambda: _packed(ARTICLE.encode(), "gzip"),
    "/gzip-bomb": lambda: _packed(_gzip_bomb(100), "gzip"),
    "/double-gzip-bomb": lambda: _packed(gzip.compress(_gzip_bomb(300)), "gzip, gzip"),
    "/gzip-in-gzip": lambda: _packed(gzip.compress(_gzip_bomb(300)), "gzip"),
    "/brotli": lambda: _packed(b"\x0b\x02\x80hello\x03", "br"),
    "/image": lambda: Reply(b"\x89PNG\r\n\x1a\n" + b"\x00\x01" * 200, "image/png"),
    "/image-as-html": lambda: Reply(b"\x89PNG\r\n\x1a\n" + b"\x00\x01" * 200),
    "/scripts": lambda: _text(_scripts_only()),
    "/untyped": lambda: Reply(ARTICLE.encode(), None),
    "/untyped-text": lambda: Reply(b"Plain words, one line.\n", None),
    "/untyped-binary": lambda: Reply(b"\x7fELF\x02\x01" + b"\x00" * 100, None),
    "/notes.txt": lambda: Reply(b"Plain notes.\n\nSecond paragraph.\n", "text/plain; charset=utf-8"),
    "/notes.md": lambda: Reply(b"# Notes\n\nSome [link](https://example.com/).\n", "text/markdown"),
    "/json": lambda: Reply(b'{"a": 1}', "application/json"),
}


class PageServer(WebServer):
    """A server of the built-in pages and those that a test adds."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__(_Handler, host)
        self._added: dict[str, Reply | Callable[[], Reply]] = {}

    def add(
        self,
        path: str,
        body: str | bytes = b"",
        *,
        content_type: str | None = HTML,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        pause: float = 0.0,
    ) -> str:
        """Serve `body` at `path` from now on, `pause` seconds after the headers; return its URL."""
        data = body.encode() if isinstance(body, str) else body
        self._added[path] = Reply(data, content_type, status, headers or {}, len(data) or 1, pause)
        return self.url(path)

    def add_reply(self, path: str, make: Callable[[], Reply]) -> str:
        """Serve what `make` returns, called for each request; return the URL."""
        self._added[path] = make
        return self.url(path)

    def count(self, path: str | None = None) -> int:
        """Return the number of requests for a path with its query, or of all requests."""
        return self.counts[path] if path is not None else len(self.requests)

    def note(self, path: str, headers: dict[str, str]) -> None:
        with self._lock:
            self.requests.append((path, headers))

    def reply(self, target: str) -> Reply:
        """Return the response to a request for `target`, a path with its query."""
        path = urlsplit(target).path
        chosen = self._added.get(target) or self._added.get(path)
        if chosen is not None:
            return chosen if isinstance(chosen, Reply) else chosen()
        if path in _ROUTES:
            return _ROUTES[path]()
        kind, _, number = path.strip("/").partition("/")
        return _numbered(kind, int(number)) if number.isdecimal() else Reply(b"<h1>Not found</h1>", status=404)


def _numbered(kind: str, number: int) -> Reply:
    if kind == "page":
        return _text(generated_page(number))
    if kind == "redirect":
        return Reply(status=302, headers={"Location": f"/redirect/{number - 1}" if number > 1 else "/article"})
    if kind == "status":
        return _text("<h1>Status</h1>", status=number)
    return Reply(b"<h1>Not found</h1>", status=404)


class _Handler(Handler):
    def post(self) -> None:
        """Respond as to GET, since some search services are asked by POST; ignore the body."""
        self.read_body()
        self.get()

    def get(self) -> None:
        pages = self.server.owner
        pages.note(self.path, self.given_headers())
        if self.path == "/never":
            pages.closing.wait(120)
            return
        reply = pages.reply(self.path)
        kind = {} if reply.content_type is None else {"Content-Type": reply.content_type}
        self.send_head(reply.status, len(reply.body), {**kind, **reply.headers})
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        step = reply.drip or MEGABYTE
        for start in range(0, len(reply.body), step):
            if reply.pause and self.server.owner.closing.wait(reply.pause):
                return
            self.wfile.write(reply.body[start : start + step])
            self.wfile.flush()


class Listener(LoopbackServer):
    """A server that counts connections and closes them."""

    def __init__(self) -> None:
        super().__init__(BaseRequestHandler)

    def __exit__(self, *_: object) -> None:
        time.sleep(0.1)  # so that a pending connection is counted
        super().__exit__()
