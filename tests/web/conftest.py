"""A small site without delay, a fetcher that may read it, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag.errors import FetchError
from rag.locales import say
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer


@pytest.fixture
def fetcher(site: SiteServer, page_server: PageServer) -> Iterator[Fetcher]:
    """Yield a fetcher that may read the site and the page server."""
    with Fetcher([site.pair, page_server.pair], deadline=2.0, rate_limiter=RateLimiter(4, 0.0)) as one:
        yield one


@pytest.fixture
def robots(fetcher: Fetcher) -> Robots:
    return Robots(fetcher)


def refusal(fetcher: Fetcher, url: str) -> FetchError:
    """Return the error of a fetch, which has a sentence in both languages."""
    with pytest.raises(FetchError) as raised:
        fetcher.fetch(url)
    for language in ("en", "zh"):
        assert say(raised.value.notice, language)
    return raised.value
