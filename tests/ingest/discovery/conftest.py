"""A small site without delay, a fetcher that may read it, and the tasks of the parsing process without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rag.ingest.discovery import Robots
from rag.ingest.fetch import Fetcher
from rag.ingest.hosts import HostGates
from rag.ingest.parser_tasks import TASKS
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer


class Tasks:
    """Runs the tasks in this process."""

    def run(self, task: str, body: bytes, **header: Any) -> dict[str, Any]:
        return TASKS[task](body, header)


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


@pytest.fixture
def site() -> Iterator[SiteServer]:
    with SiteServer(30, delay=0.0) as one:
        yield one


@pytest.fixture
def fetcher(site: SiteServer, page_server: PageServer) -> Iterator[Fetcher]:
    """May read the site and the server of single pages."""
    with Fetcher([site.pair, page_server.pair], deadline=2.0, gates=HostGates(4, 0.0)) as one:
        yield one


@pytest.fixture
def robots(fetcher: Fetcher) -> Robots:
    return Robots(fetcher)
