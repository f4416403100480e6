"""Shared fixtures: a library without weights or network, the parser's child process, test servers, Postgres."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from rag.app import App, imports, libraries
from rag.commands import pages
from rag.graphs.modes import MODES
from rag.ingest.chunking import get_chunker
from rag.ingest.pipeline import Ingestor
from rag.models import model_files, openai_chat, servers, structured
from rag.models.embedding import EmbeddingModel, SparseEncoder
from rag.models.model_files import BUILTIN
from rag.reading.parser import Parser
from rag.runs.runs import Runs
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.sql.database import Database
from rag.ui.serving.startup import skip_component_scan
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from tests.support import postgres
from tests.support.apps import finish, open_app
from tests.support.hashed_model import HashedModel, use_hashed_model
from tests.support.page_server import PageServer
from tests.support.quoting import builtin_model
from tests.support.site_server import SiteServer

# The time of one example depends more on the machine than on the tested code.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")

_IN_MEMORY = Path("/dev/shm")
_ENOUGH = 8 << 30  # bytes


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Put temporary folders in memory if there is enough space: each library syncs to disk dozens of times."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers keep all cores busy; more threads would wait
    skip_component_scan()  # each AppTest would scan
    sys.modules.setdefault("fastembed", None)  # type: ignore[arg-type]  # each Qdrant client would search for it
    if _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free >= _ENOUGH:
        tempfile.tempdir = os.environ.setdefault("TMPDIR", str(_IN_MEMORY))


def pytest_collection_finish() -> None:
    """Exempt what was collected from garbage collections: walking it takes a tenth of the suite's time."""
    gc.collect()
    gc.freeze()


class PersistentParser(Parser):
    """A parser whose children survive `close`, since starting them takes half a second of processor time."""

    def close(self) -> None:
        pass


WORKER_GROUPS = {
    "tests/e2e/": "browser",
    "tests/bulk/test_runners.py": "killed",
    "tests/graphs/judge/test_going_on.py": "killed",
    "tests/graphs/research/test_resuming.py": "killed",
    "tests/ingest/test_jobs_kill.py": "killed",
    "tests/ingest/test_jobs_replicas.py": "killed",
    "tests/store/test_kill.py": "killed",
    "tests/bulk/test_runs.py": "postgres",
    "tests/conversations/test_checkpoints.py": "postgres",
    "tests/conversations/test_memory.py": "postgres",
    "tests/evaluation/test_runs.py": "postgres",
    "tests/evaluation/test_sets.py": "postgres",
    "tests/ingest/test_schedule.py": "postgres",
    "tests/store/test_host_table.py": "postgres",
    "tests/store/test_conversation_table.py": "postgres",
    "tests/store/test_database.py": "postgres",
    "tests/store/test_small_tables.py": "postgres",
    "tests/store/test_job_table.py": "postgres",
    "tests/test_app_postgres.py": "postgres",
    "tests/test_app_roles.py": "postgres",
    "tests/test_app.py": "samples",
    "tests/test_app_small_models.py": "samples",
    "tests/test_app_web_passages.py": "samples",
}
"""Files that share one xdist worker.

Otherwise each would serve an app, preload killed processes, start Postgres, or import the sample pages.
"""


class GroupScheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        scopes = (scope for start, scope in WORKER_GROUPS.items() if nodeid.startswith(start))
        return next(scopes, None) or super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def shared_parser() -> Iterator[Parser]:
    """Share the built-in model and the parser among all apps and commands of a process."""
    load, parser = libraries.load_embedding_model, PersistentParser()

    def load_once(name: str) -> EmbeddingModel:
        return builtin_model() if name in (BUILTIN, model_files.E5) else load(name)

    with pytest.MonkeyPatch.context() as patch:
        for module in (libraries, pages):
            patch.setattr(module, "load_embedding_model", load_once)
        for user in (imports, pages):
            patch.setattr(user, "Parser", lambda **_: parser)
        yield parser
    Parser.close(parser)


@pytest.fixture(scope="module", autouse=True)
def hashed_model(request: pytest.FixtureRequest, shared_parser: Parser) -> Iterator[None]:
    """Replace the built-in model by a hashed one, except for modules that are marked with `weights`."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("weights"):
            use_hashed_model(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def forget_chat_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the capabilities of chat servers, since the system reuses their ports; shorten the pauses of retries."""
    for memory in (openai_chat._refused_fields, servers._capacities, structured._first_methods):
        memory.clear()
    monkeypatch.setattr(openai_chat, "_PAUSES", (0.01, 0.01))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the URL of a Postgres server; without one, skip the test, or fail in CI."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgres.server())
        except postgres.NoPostgresError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    with postgres.template(postgres_server) as name:
        yield name


@pytest.fixture
def postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """Yield the URL of a separate database with the app's tables."""
    with postgres.empty_database(postgres_server, postgres_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def database_location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Return the location of a database for `Database`: tests that use it run with SQLite and with Postgres."""
    return tmp_path / "app.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def database(database_location: Path | str) -> Iterator[Database]:
    """Yield a database with empty tables, in SQLite and in Postgres."""
    opened = Database(database_location)
    yield opened
    opened.close()


@pytest.fixture
def model() -> HashedModel:
    return HashedModel()


@pytest.fixture
def small_library(tmp_path: Path, model: HashedModel) -> Iterator[Library]:
    client = EdgeClient(tmp_path / "qdrant")
    yield open_library(client, "main", model.name, model.dimension)
    client.close()


@pytest.fixture(scope="session")
def parser(shared_parser: Parser) -> Parser:
    return shared_parser


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Yield an app with an empty library."""
    with closing(open_app(tmp_path)) as opened:
        yield opened


@pytest.fixture(scope="session")
def samples_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder, to be copied, of an app with the sample pages and the built-in model."""
    folder = tmp_path_factory.mktemp("samples")
    with closing(open_app(folder)) as app:
        finish(app, app.imports.add_examples(library="main"))
    return folder


@pytest.fixture
def page_server() -> Iterator[PageServer]:
    with PageServer() as server:
        yield server


@pytest.fixture
def site() -> Iterator[SiteServer]:
    """Yield a small site without delay."""
    with SiteServer(30, delay=0.0) as one:
        yield one


@pytest.fixture
def ingestor(small_library: Library, model: HashedModel, parser: Parser, page_server: PageServer) -> Ingestor:
    fetcher = Fetcher([page_server.pair], deadline=5.0, rate_limiter=RateLimiter(delay=0.0))
    return Ingestor(small_library, model, SparseEncoder(), fetcher, parser, get_chunker())


@pytest.fixture
def results_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the test, to which benchmarks now write their results."""
    for module in ("report", "samples"):
        monkeypatch.setattr(f"benchmarks.{module}.OUT", tmp_path)
    return tmp_path


@pytest.fixture
def runs() -> Iterator[Runs]:
    """Yield separate runs for each test, stopped after it."""
    all_runs = Runs(MODES)
    yield all_runs
    all_runs.close()
