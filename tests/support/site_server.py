"""A slow site on loopback with faults and duplicates, and the expected outcome of each address.

    with SiteServer(pages=300, delay=0.15) as site:
        fetcher = Fetcher([site.pair], deadline=2.0)
        … import site.url("/") …
        assert outcomes == site.expected       # path with its query -> Outcome
        assert site.most_open <= 2

The home page links to sections, a section to its articles and to the next section. Some articles return
status 500, some never respond, some redirect in a loop. Some pages have a second address: one that redirects,
one with another query, one with another path; the page's canonical link is its first address. `change` gives
articles a new text. Every response has an ETag, and If-None-Match gets 304.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import select
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from tests.support.loopback import Handler, WebServer
from tests.support.page_server import Reply

Outcome = Literal["page", "duplicate", "error", "timeout", "loop"]
OUTCOME_BY_ERROR: Mapping[str, Outcome] = {"http_error": "error", "timeout": "timeout", "redirects": "loop"}

_XML = "application/xml"
_SYLLABLES = (
    "ba be bi bo da de di do fa fe ga gi ka ke ki ko la le li lo ma me mi mo na ne no pa po ra re ri ro sa so".split()
)
_PARAGRAPHS = 6


class SiteServer(WebServer):
    """A server that also records how many requests were open at once.

    A request is open from when its headers were read until the response begins. `share` is the share of pages that
    return 500; the same share never responds, redirects in a loop, and has each kind of second address.
    """

    def __init__(self, pages: int = 300, *, delay: float = 0.15, share: float = 0.01) -> None:
        super().__init__(_Handler)
        self.delay = delay
        self.max_open = 0
        self.not_modified = 0
        self.bytes_sent = 0
        self.expected: dict[str, Outcome] = {}
        self._versions: Counter[int] = Counter()
        self._open = 0
        self._hanging: list[socket.socket] = []
        self._lay_out(pages, max(1, round(pages * share)))

    def paths(self, *outcomes: Outcome) -> list[str]:
        """Return the paths with one of `outcomes`, in the order of the site."""
        return [path for path, outcome in self.expected.items() if outcome in outcomes]

    def reset_counters(self) -> None:
        """Reset all counters."""
        with self._lock:
            self.requests.clear()
            self.connections = self.max_open = self.not_modified = self.bytes_sent = 0

    def change(self, paths: Iterable[str]) -> None:
        """Give these articles a new sentence in one of their paragraphs."""
        self._versions.update(self._numbers[path] for path in paths)

    # The layout

    def _lay_out(self, pages: int, each: int) -> None:
        sections = max(1, round(pages**0.5 * 0.9))
        articles = pages - 1 - sections
        self._sections = [f"/s{number}/" for number in range(sections)]
        paths = [f"{self._sections[number % sections]}a{number}.html" for number in range(articles)]
        self._numbers = {path: number for number, path in enumerate(paths)}
        self.expected = dict.fromkeys(["/", *self._sections, *paths], "page")
        # Each fault and each second address gets a different page.
        chosen = iter(paths[3 :: max(1, (articles - 3) // (6 * each))])
        self._faults: dict[str, Outcome] = {
            next(chosen): outcome for outcome in ("error", "timeout", "loop") for _ in range(each)
        }
        self.expected.update(self._faults)
        self._copies: dict[str, str] = {}
        self._redirects: dict[str, str] = {}
        for _ in range(each):
            self._redirects[f"/old/{len(self._redirects)}"] = next(chosen)
            path = next(chosen)
            self._copies[f"{path}?view=full"] = path
            self._copies[f"/copies/{len(self._copies)}.html"] = next(chosen)
        self.expected.update(dict.fromkeys([*self._redirects, *self._copies], "duplicate"))

    def links(self, path: str) -> list[str]:
        """Return the links of the page at `path`, without the noise."""
        if path == "/":
            return [*self._sections, *self._redirects, *self._copies]
        if path in self._sections:
            place = self._sections.index(path)
            return [*self._sections[place + 1 : place + 2], *(p for p in self._numbers if p.startswith(path)), "/"]
        return ["/", path.rpartition("/")[0] + "/"]

    # Responses

    def answer(self, target: str) -> Reply:
        """Return the response to a request for `target`, a path with its query."""
        fault = self._faults.get(target)
        if fault == "error":
            return Reply(b"<h1>Error</h1>", status=500)
        if fault == "loop":
            return Reply(status=302, headers={"Location": target + "?again=1"})
        if target.endswith("?again=1"):
            return Reply(status=302, headers={"Location": target.removesuffix("?again=1")})
        if target in self._redirects:
            return Reply(status=301, headers={"Location": self._redirects[target]})
        target = self._copies.get(target, target)
        if self.expected.get(target) == "page":
            return Reply(self._page(target).encode())
        return self._list(target) or Reply(b"<h1>Not found</h1>", status=404)

    def _list(self, target: str) -> Reply | None:
        if target == "/robots.txt":
            rules = f"User-agent: *\nDisallow: /private/\nSitemap: {self.url('/sitemap-index.xml')}\n"
            return Reply(rules.encode(), "text/plain")
        if target == "/sitemap-index.xml":
            inner = "".join(f"<sitemap><loc>{self.url(path)}</loc></sitemap>" for path in ("/map0.xml.gz", "/map1.xml"))
            return Reply(f'<sitemapindex xmlns="{_NAMESPACE}">{inner}</sitemapindex>'.encode(), _XML)
        if target in ("/map0.xml.gz", "/map1.xml"):
            half = [path for place, path in enumerate(self.expected) if place % 2 == int(target[4])]
            entries = "".join(f"<url><loc>{self.url(path)}</loc><lastmod>2024-03-05</lastmod></url>" for path in half)
            data = f'<?xml version="1.0"?><urlset xmlns="{_NAMESPACE}">{entries}</urlset>'.encode()
            return Reply(gzip.compress(data), "application/gzip") if target.endswith(".gz") else Reply(data, _XML)
        if target == "/feed.xml":
            items = "".join(f"<item><title>{p}</title><link>{self.url(p)}</link></item>" for p in [*self._numbers][:10])
            return Reply(f'<rss version="2.0"><channel>{items}</channel></rss>'.encode(), "application/rss+xml")
        return None

    def _page(self, path: str) -> str:
        links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in self.links(path))
        noise = (
            f'<a href="{path}?utm_source=news">This page</a> <a href="#top">Top</a> <a href="mailto:a@b.example">Us</a>'
            '<a href="/private/x">Private</a> <a href="/photo.jpg">Photo</a> <a rel="nofollow" href="/nofollow">No</a>'
        )
        number = self._numbers.get(path)
        text = f"<p>These are the pages under {path}.</p>" if number is None else self._text(number)
        return (
            f'<!doctype html><html lang="en"><head><title>Pages of {path}</title><link rel="canonical" href="{path}">'
            f'<link rel="alternate" type="application/rss+xml" href="/feed.xml"></head><body><nav>{noise}</nav>'
            f"<article><h1>Pages of {path}</h1>{text}</article><ul>{links}</ul></body></html>"
        )

    def _text(self, number: int) -> str:
        """Return paragraphs that no other article has; the last sentence of one differs by version."""
        generator = random.Random(number)
        paragraphs = []
        for place in range(_PARAGRAPHS):
            sentences = [_sentence(generator) for _ in range(6)]
            if place == number % _PARAGRAPHS and self._versions[number]:
                changed = random.Random(f"{number} {self._versions[number]}")
                sentences[-1] = _sentence(changed)
            paragraphs.append(f"<h2>Part {place} of {number}</h2><p>{' '.join(sentences)}</p>")
        return "".join(paragraphs)

    # Counting

    @contextmanager
    def open_request(self, path: str, headers: dict[str, str]) -> Iterator[None]:
        with self._lock:
            self.requests.append((path, headers))
            self._open += 1
            self.max_open = max(self.max_open, self._open - sum(map(_is_gone, self._hanging)))
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1

    def hang(self, connection: socket.socket) -> None:
        """Send nothing until the client has disconnected."""
        with self._lock:
            self._hanging.append(connection)
        while not self.closing.is_set() and not select.select([connection], [], [], 0.5)[0]:
            pass
        with self._lock:
            self._hanging.remove(connection)


_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def merge_duplicates(outcomes: Mapping[str, str]) -> dict[str, str]:
    """Replace pages and duplicates by "read", since it is random which of a page's addresses comes first."""
    return {path: "read" if one in ("page", "duplicate") else one for path, one in outcomes.items()}


def _sentence(generator: random.Random) -> str:
    words = ["".join(generator.choices(_SYLLABLES, k=generator.randint(2, 4))) for _ in range(generator.randint(7, 14))]
    return " ".join(words).capitalize() + "."


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the client of a waiting connection has closed it."""
    return bool(select.select([connection], [], [], 0)[0])


class _Handler(Handler):
    wbufsize = -1

    def get(self) -> None:
        site = self.server.owner
        asked = self.given_headers()
        with site.open_request(self.path, asked):
            if site.expected.get(self.path) == "timeout":
                site.hang(self.connection)
                self.close_connection = True
                return
            if site.closing.wait(site.delay):
                return
            answer = site.answer(self.path)
        self._send(answer, asked.get("if-none-match", ""))

    def _send(self, answer: Reply, known: str) -> None:
        site = self.server.owner
        tag = f'"{hashlib.md5(answer.body, usedforsecurity=False).hexdigest()[:16]}"'
        same = answer.status == 200 and known == tag
        body = b"" if same else answer.body
        self.send_response(304 if same else answer.status)
        for name, value in {"Content-Type": answer.content_type, "ETag": tag, **answer.headers}.items():
            self.send_header(name, value)
        if same:
            site.not_modified += 1
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        site.bytes_sent += len(body)
