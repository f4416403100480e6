"""Connections that are kept: fewer handshakes, the same checks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.errors import FetchError
from rag.web import connections
from rag.web.fetch import Fetcher
from rag.web.hosts import HostGates
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer


@pytest.fixture
def site() -> Iterator[SiteServer]:
    with SiteServer(30, delay=0.0) as one:
        yield one


@pytest.fixture
def fetcher(site: SiteServer) -> Iterator[Fetcher]:
    with Fetcher([site.pair], deadline=3.0, gates=HostGates(4, 0.0)) as one:
        yield one


def test_one_connection_serves_many_pages(site: SiteServer, fetcher: Fetcher) -> None:
    for path in site.paths("page")[:10]:
        assert fetcher.fetch(site.url(path)).status == 200
    assert (len(site.requests), site.connections) == (10, 1)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux acknowledges late in this way")
def test_a_server_that_answers_in_two_pieces_is_not_kept_waiting(page_server: PageServer) -> None:
    """Each answer took 44 ms on a kept connection to Python's own server, and half of one on a new one."""
    with Fetcher([page_server.pair], gates=HostGates(1, 0.0)) as fetcher:
        fetcher.fetch(page_server.url("/article"))
        seconds = []
        for _ in range(20):
            began = time.monotonic()
            fetcher.fetch(page_server.url("/article"))
            seconds.append(time.monotonic() - began)
        assert min(seconds) < 0.03


def test_errors_and_redirects_keep_it(site: SiteServer, fetcher: Fetcher) -> None:
    for path in (*site.paths("error", "loop"), "/no-such-page"):
        with pytest.raises(FetchError):
            fetcher.fetch(site.url(path))
    fetcher.fetch(site.url("/old/0"))
    etag = fetcher.fetch(site.url("/")).etag
    assert fetcher.fetch(site.url("/"), etag=etag).status == 304
    assert site.connections == 1


def test_no_more_are_opened_than_were_used_at_once(site: SiteServer, fetcher: Fetcher) -> None:
    with ThreadPoolExecutor(12) as pool:
        paths = site.paths("page")
        fetched = list(pool.map(fetcher.fetch, map(site.url, paths)))
    assert all(f"<h1>Pages of {path}</h1>".encode() in one.body for path, one in zip(paths, fetched, strict=True))
    assert site.connections <= 4


def test_a_page_that_was_given_up_ends_its_connection(site: SiteServer) -> None:
    path = site.paths("timeout")[0]
    with Fetcher([site.pair], deadline=1.5, gates=HostGates(1, 0.0)) as fetcher:
        with pytest.raises(FetchError) as raised:
            fetcher.fetch(site.url(path))
        assert raised.value.code == "timeout"
        assert fetcher.fetch(site.url("/")).status == 200
    assert site.connections == 2


def test_each_fetch_has_its_own_deadline(site: SiteServer) -> None:
    """A kept connection does not live on the budget of the fetch that opened it."""
    with Fetcher([site.pair], deadline=1.5, gates=HostGates(1, 0.0)) as fetcher:
        for _ in range(3):
            assert fetcher.fetch(site.url("/")).status == 200
            time.sleep(0.8)
    assert site.connections == 1


def test_old_ones_are_dropped(site: SiteServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher.fetch(site.url("/"))
    monkeypatch.setattr(connections, "MAX_AGE", 0.0)
    fetcher.fetch(site.url("/"))
    assert site.connections == 2


def test_closing_ends_them(site: SiteServer, fetcher: Fetcher) -> None:
    fetcher.fetch(site.url("/"))
    assert len(fetcher._connections._idle) == 1
    fetcher.close()
    assert not fetcher._connections._idle


def test_the_look_up_happens_once_a_connection() -> None:
    """And a name that has come to mean another place is looked up and judged again for a new one."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with (
        SiteServer(30, delay=0.0) as site,
        Fetcher([("wiki.local", site.port)], resolve=resolve, gates=HostGates(1, 0.0)) as fetcher,
    ):
        url = f"http://wiki.local:{site.port}/"
        assert [fetcher.fetch(url).status for _ in range(3)] == [200] * 3
        assert asked == ["wiki.local"]
        fetcher._connections.close()
        with pytest.raises(FetchError) as raised:
            fetcher.fetch(url)
    assert raised.value.notice.params["cause"] == "metadata"


def test_hosts_do_not_share_one() -> None:
    """Two names at one address: the connection of the first is not for the second, which may not go there."""
    with SiteServer(30, delay=0.0) as site:
        pairs = [("wiki.local", site.port)]
        with Fetcher(pairs, resolve=lambda host, port: ["127.0.0.1"], gates=HostGates(1, 0.0)) as fetcher:
            fetcher.fetch(f"http://wiki.local:{site.port}/")
            with pytest.raises(FetchError):
                fetcher.fetch(f"http://other.local:{site.port}/")
    assert len(site.requests) == 1


class Fickle:
    """A server that answers once on each connection and then closes it, `late` seconds after the answer."""

    def __init__(self, late: float) -> None:
        self.connections = 0
        self._late = late
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nHello")
            time.sleep(self._late)
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("late", [0.0, 0.2])
def test_a_connection_that_its_server_closed_is_replaced(late: float) -> None:
    """Closed before the next request, or just when it is on its way."""
    server = Fickle(late)
    with Fetcher([("127.0.0.1", server.port)], deadline=3.0, gates=HostGates(1, 0.0)) as fetcher:
        for _ in range(3):
            assert fetcher.fetch(f"http://127.0.0.1:{server.port}/").body == b"Hello"
    server.close()
    assert server.connections == 3
