"""Persistent connections: fewer handshakes, the same checks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.errors import FetchError
from rag.web import connections
from rag.web.connections import MAX_PAUSE, Host, RateLimiter
from rag.web.fetch import Fetcher
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer
from tests.web.conftest import refusal


def test_one_connection_serves_many_pages(site: SiteServer, fetcher: Fetcher) -> None:
    for path in site.paths("page")[:10]:
        assert fetcher.fetch(site.url(path)).status == 200
    assert (len(site.requests), site.connections) == (10, 1)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux acknowledges late in this way")
def test_a_server_that_answers_in_two_pieces_is_not_kept_waiting(page_server: PageServer) -> None:
    """Each response took 44 ms on a reused connection to Python's server, and half of that on a new one."""
    with Fetcher([page_server.pair], rate_limiter=RateLimiter(1, 0.0)) as fetcher:
        fetcher.fetch(page_server.url("/article"))
        seconds = []
        for _ in range(20):
            began = time.monotonic()
            fetcher.fetch(page_server.url("/article"))
            seconds.append(time.monotonic() - began)
        assert min(seconds) < 0.03


def test_errors_and_redirects_keep_it(site: SiteServer, fetcher: Fetcher) -> None:
    for path in (*site.paths("error", "loop"), "/no-such-page"):
        refusal(fetcher, site.url(path))
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
    with Fetcher([site.pair], deadline=1.0, rate_limiter=RateLimiter(1, 0.0)) as fetcher:
        assert refusal(fetcher, site.url(path)).code == "timeout"
        assert fetcher.fetch(site.url("/")).status == 200
    assert site.connections == 2


def test_each_fetch_has_its_own_deadline(site: SiteServer) -> None:
    """A reused connection does not count against the deadline of the fetch that opened it."""
    with Fetcher([site.pair], deadline=1.5, rate_limiter=RateLimiter(1, 0.0)) as fetcher:
        for pause in (0.0, 0.8, 0.8):
            time.sleep(pause)
            assert fetcher.fetch(site.url("/")).status == 200
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
    """For a new connection, a name is resolved and checked again."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with (
        SiteServer(30, delay=0.0) as site,
        Fetcher([("wiki.local", site.port)], resolve=resolve, rate_limiter=RateLimiter(1, 0.0)) as fetcher,
    ):
        url = f"http://wiki.local:{site.port}/"
        assert [fetcher.fetch(url).status for _ in range(3)] == [200] * 3
        assert asked == ["wiki.local"]
        fetcher._connections.close()
        assert refusal(fetcher, url).notice.cause == "metadata"


def test_hosts_do_not_share_one() -> None:
    """Two names at one address: the first one's connection isn't reused for the second, which may not go there."""
    with SiteServer(30, delay=0.0) as site:
        pairs = [("wiki.local", site.port)]
        with Fetcher(pairs, resolve=lambda host, port: ["127.0.0.1"], rate_limiter=RateLimiter(1, 0.0)) as fetcher:
            fetcher.fetch(f"http://wiki.local:{site.port}/")
            refusal(fetcher, f"http://other.local:{site.port}/")
    assert len(site.requests) == 1


class Fickle:
    """A server that answers once on each connection and then closes it, `late` seconds after the response."""

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
    """It is closed before the next request, or while that is being sent."""
    server = Fickle(late)
    with Fetcher([("127.0.0.1", server.port)], deadline=3.0, rate_limiter=RateLimiter(1, 0.0)) as fetcher:
        for _ in range(3):
            assert fetcher.fetch(f"http://127.0.0.1:{server.port}/").body == b"Hello"
    server.close()
    assert server.connections == 3


HOST = ("example.com", 443)
OTHER = ("example.org", 443)


def is_busy(limiter: RateLimiter, host: Host) -> bool:
    """Return whether a request to `host` would have to wait now."""
    queue = limiter._queues.get(host)
    return bool(queue and queue.is_busy())


class Crowd:
    """Threads that pass through a limiter, and record how many were inside at once, and their order."""

    def __init__(self, limiter: RateLimiter, stay: Callable[[], object] = lambda: None) -> None:
        self.limiter = limiter
        self.stay = stay
        self.inside = 0
        self.most = 0
        self.order: list[int] = []
        self.starts: list[float] = []
        self._lock = threading.Lock()

    def visit(self, number: int) -> None:
        with self.limiter.slot(HOST, "https://example.com/"):
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                self.order.append(number)
                self.starts.append(time.monotonic())
            self.stay()
            with self._lock:
                self.inside -= 1


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_than_the_limit_and_no_fewer(limit: int) -> None:
    together = threading.Barrier(limit)  # none leaves before the limit is reached
    crowd = Crowd(RateLimiter(limit, 0.0), lambda: together.wait(60))
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(crowd.visit, range(5 * limit)))
    assert crowd.most == limit
    assert sorted(crowd.order) == list(range(5 * limit))


def test_hosts_do_not_wait_for_each_other() -> None:
    limiter = RateLimiter(1, 0.0)
    with limiter.slot(HOST, "u"), limiter.slot(OTHER, "u") as waited, limiter.slot(("example.com", 80), "u"):
        assert waited < 5
        assert is_busy(limiter, HOST)
    assert not is_busy(limiter, HOST)


def test_starts_are_apart() -> None:
    crowd = Crowd(RateLimiter(4, 0.05))
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(crowd.visit, range(5)))
    assert all(start - began >= 0.05 * place for place, start in enumerate(crowd.starts))


def test_first_come_first_served() -> None:
    limiter = RateLimiter(1, 0.0)
    crowd = Crowd(limiter)
    threads = []
    with limiter.slot(HOST, "u"):
        for number in range(8):
            threads.append(threading.Thread(target=crowd.visit, args=(number,)))
            threads[-1].start()
            while len(limiter._queues[HOST]._tickets) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert crowd.order == list(range(8))


def test_a_site_may_ask_for_more_time() -> None:
    limiter = RateLimiter(2, 0.0)
    limiter.slow_down(HOST, 0.15)
    limiter.slow_down(HOST, 0.01)
    began = time.monotonic()
    with limiter.slot(HOST, "u"):
        pass
    with limiter.slot(HOST, "u"):
        assert time.monotonic() - began >= 0.15
    limiter.pause(HOST, MAX_PAUSE)
    with limiter.slot(HOST, "u", is_redirect=True) as waited:
        assert waited < MAX_PAUSE / 2, "where the server leads needs no delay"


def test_a_busy_server_is_left_alone() -> None:
    limiter = RateLimiter(2, 0.0)
    began = time.monotonic()
    limiter.pause(HOST, 1.0)
    assert is_busy(limiter, HOST)
    with limiter.slot(HOST, "u"):
        assert time.monotonic() - began >= 1.0
    limiter.pause(OTHER, 10_000)
    queue = limiter._queues[OTHER]
    assert queue._next_start - time.monotonic() <= MAX_PAUSE


def test_waiting_ends_when_the_import_is_stopped() -> None:
    limiter = RateLimiter(1, 0.0)
    stopped = threading.Event()
    threading.Timer(0.1, stopped.set).start()
    with limiter.slot(HOST, "u"):
        with pytest.raises(FetchError) as raised, limiter.slot(HOST, "u", stopped.is_set):
            raise AssertionError
        assert raised.value.code == "cancelled"
    with limiter.slot(HOST, "u") as waited:
        assert waited < 5, "who gave up holds no place"


def test_closing_turns_away_who_waits() -> None:
    limiter = RateLimiter(1, 0.0)
    threading.Timer(0.1, limiter.close).start()
    with limiter.slot(HOST, "u"), pytest.raises(FetchError), limiter.slot(HOST, "u"):
        raise AssertionError


def test_a_failure_gives_the_place_back() -> None:
    limiter = RateLimiter(1, 0.0)
    with pytest.raises(ZeroDivisionError), limiter.slot(HOST, "u"):
        raise ZeroDivisionError
    with limiter.slot(HOST, "u") as waited:
        assert waited < 5


def test_hosts_are_forgotten_but_those_that_matter() -> None:
    limiter = RateLimiter(1, 0.0)
    limiter.slow_down(HOST, 1.0)
    with limiter.slot(OTHER, "u"):
        for number in range(2000):
            with limiter.slot((f"h{number}.example", 80), "u"):
                pass
        assert len(limiter._queues) < 600
        assert HOST in limiter._queues
        assert OTHER in limiter._queues


def test_waiting_is_not_charged_to_the_deadline() -> None:
    """Four pages of 0.6 s in sequence, with a deadline of 1.7 s each: the last one waits 1.8 s."""
    with PageServer() as server:
        urls = [server.add(f"/slow{number}", "<p>Slow</p>", pause=0.6) for number in range(4)]
        fetcher = Fetcher([server.pair], deadline=1.7, rate_limiter=RateLimiter(1, 0.0))
        with ThreadPoolExecutor(4) as pool:
            fetched = list(pool.map(fetcher.fetch, urls))
    assert [one.status for one in fetched] == [200] * 4
