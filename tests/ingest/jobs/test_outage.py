"""A job whose database is unavailable waits, loses nothing, and resumes automatically, also in the next process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.config import load_settings
from rag.ingest.chunking import get_chunker
from rag.ingest.jobs.service import Jobs
from rag.ingest.pipeline import Ingestor
from rag.models.embedding import SparseEncoder
from rag.reading.parser import Parser
from rag.store.qdrant.client import Server, unavailable_since
from rag.store.qdrant.library import open_library
from rag.web.fetch import Fetcher
from tests.ingest.jobs.conftest import MakeJobs, records, wait_for_job
from tests.support.hashed_model import HashedModel
from tests.support.qdrant_server import QdrantServer
from tests.support.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[QdrantServer]:
    with QdrantServer(tmp_path / "server") as running:
        yield running


@pytest.fixture
def client(server: QdrantServer) -> Iterator[Server]:
    client = Server(load_settings(None, qdrant_url=server.url))
    yield client
    client.close()


def test_a_job_waits_for_its_database_and_survives_a_restart_meanwhile(
    make_jobs: MakeJobs, server: QdrantServer, client: Server, model: HashedModel, fetcher: Fetcher, parser: Parser
) -> None:
    def open_ingestor(name: str) -> Ingestor:
        library = open_library(client, name, model.name, model.dimension)
        return Ingestor(library, model, SparseEncoder(), fetcher, parser, get_chunker())

    def done(jobs: Jobs, job_id: str) -> int:
        return jobs.job(job_id).done

    jobs = make_jobs(open_ingestor)
    job_id = jobs.submit(records(40), library="main")
    stopped = jobs.submit(records(45)[40:], library="main")
    until(lambda: done(jobs, job_id) >= 5)
    server.kill()
    until(lambda: unavailable_since(client))
    jobs.cancel(stopped)
    assert jobs.job(stopped).state == "cancelled"
    jobs.close()
    again = make_jobs(open_ingestor)
    again.start()
    left = again.job(job_id)
    assert left.state == "running"
    assert "failed" not in left.counts
    server.start()
    whole = wait_for_job(again, job_id)
    assert whole.counts == {"added": 40}
    assert unavailable_since(client) is None
    assert open_library(client, "main", model.name, model.dimension).page_count() >= 40
