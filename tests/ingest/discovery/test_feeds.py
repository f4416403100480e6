"""The feeds of sites, where they are found."""

from __future__ import annotations

import pytest

from rag.errors import IngestError
from rag.ingest.discovery.frontier import read_feed
from rag.web.fetch import Fetcher
from tests.ingest.discovery.conftest import Tasks
from tests.reading.test_feed import RSS
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer


class TestReading:
    def test_a_feed(self, site: SiteServer, fetcher: Fetcher, tasks: Tasks) -> None:
        pages = read_feed(fetcher, tasks, site.url("/feed.xml"))
        assert [page.url for page in pages] == [site.url(path) for path in list(site._numbers)[:10]]

    def test_a_page_that_names_one(self, site: SiteServer, fetcher: Fetcher, tasks: Tasks) -> None:
        assert len(read_feed(fetcher, tasks, site.url("/"))) == 10

    def test_the_first_that_works(self, page_server: PageServer, fetcher: Fetcher, tasks: Tasks) -> None:
        page_server.add("/feed-2", RSS, content_type="text/plain")
        link = "<link rel='alternate' type='application/rss+xml' href='{}'>"
        url = page_server.add("/blog", link.format("/missing") + link.format("/article") + link.format("/feed-2"))
        assert len(read_feed(fetcher, tasks, url)) == 2

    def test_none(self, page_server: PageServer, fetcher: Fetcher, tasks: Tasks) -> None:
        with pytest.raises(IngestError) as raised:
            read_feed(fetcher, tasks, page_server.url("/article"))
        assert raised.value.code == "feed_missing"
