"""A disposable Postgres: the server at TEST_POSTGRES_URL, or a temporary cluster of the installed binaries."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from rag.store.sql.database import Database

_MEMORY = Path("/dev/shm")
_TIMEOUT = 120.0
_OPTIONS = "-F -c listen_addresses='' -c shared_buffers=32MB -c max_connections=200 -c autovacuum=off -k "


class NoPostgresError(Exception):
    """No server is available, and none can be started."""


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a server on which databases may be created."""
    if given := os.environ.get("TEST_POSTGRES_URL"):
        yield given
        return
    tools = _tools()
    folder = Path(tempfile.mkdtemp(prefix="pg", dir=_MEMORY if _MEMORY.is_dir() else None))
    # The server refuses to run as root.
    user = None
    if os.name == "posix" and os.geteuid() == 0:
        user = "postgres" if "postgres" in {one.pw_name for one in pwd.getpwall()} else "nobody"
        shutil.chown(folder, user)
    control = (tools / "pg_ctl", "-w", "-D", folder / "data")
    try:
        _run(user, tools / "initdb", "-A", "trust", "-U", "postgres", "--no-sync", "-D", folder / "data")
        _run(user, *control, "-l", folder / "log", "-o", f"{_OPTIONS}{folder}", "start")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            _run(user, *control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def empty_database(at: str, template: str = "template0") -> Iterator[str]:
    """Yield the URL of a database on the server `at`, a copy of `template` that is dropped at the end."""
    name = f"t{uuid4().hex}"
    with psycopg.connect(at, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield urlsplit(at)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def template(at: str) -> Iterator[str]:
    """Yield the name of a database with the app's tables, to be copied."""
    with empty_database(at) as url:
        Database(url).close()
        yield urlsplit(url).path[1:]


def open_at_once(places: Sequence[Path | str], processes: int) -> list[int | None]:
    """Open each of the databases in all processes at the same time, and add a job; return their exit codes."""
    context = get_context("spawn")
    together = context.Barrier(processes)
    children = [context.Process(target=_open, args=(places, together)) for _ in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join(_TIMEOUT)
    return [child.exitcode for child in children]


def _open(places: Sequence[Path | str], together: Barrier) -> None:
    try:
        for place in places:
            together.wait(_TIMEOUT)
            with closing(Database(place)) as database:
                database.jobs.create("main", "")
    except BaseException:
        together.abort()
        raise


def _tools() -> Path:
    """Return the folder of the newest server's binaries. Raises NoPostgresError."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not installed:
        raise NoPostgresError("No Postgres: install it (apt install postgresql) or set TEST_POSTGRES_URL.")
    return installed[-1].parent


def _run(user: str | None, *command: str | Path) -> None:
    quiet = subprocess.DEVNULL  # the server that pg_ctl starts would keep a pipe open
    done = subprocess.run([*map(str, command)], user=user, cwd="/", stdout=quiet, stderr=quiet, check=False)
    if done.returncode:
        raise NoPostgresError(f"{Path(command[0]).name} failed with status {done.returncode}.")
