"""The app as `make run` serves it, in a separate process, for end-to-end benchmarks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_NO_SETTINGS = dict.fromkeys(
    ("QDRANT_URL", "EMBEDDING_MODEL", "LLM_MODEL", "LLM_BASE_URL", "LLM_API_KEY", "FAST_LLM_MODEL", "RAG_LIBRARY"), ""
)
_POLL_SECONDS = 0.01
_TIMEOUT = 120.0


@dataclass(frozen=True)
class ServedApp:
    """A running server; `started_at` is the start of its process (time.perf_counter)."""

    address: str
    started_at: float
    pid: int
    stages_file: Path | None = None

    def wait(self, path: str = "/") -> float:
        """Return seconds from the start of the process to the first response with status 200. Raises TimeoutError."""
        while (elapsed := time.perf_counter() - self.started_at) < _TIMEOUT:
            try:
                with urllib.request.urlopen(self.address + path, timeout=5):
                    return time.perf_counter() - self.started_at
            except (urllib.error.URLError, OSError):
                time.sleep(_POLL_SECONDS)
        raise TimeoutError(f"{self.address} does not answer after {elapsed:.0f} s")

    def stages(self) -> dict[str, dict[str, float]]:
        """Return the `seconds` and `calls` of each part of its work so far. Raises TimeoutError."""
        if self.stages_file is None:
            return {"seconds": {}, "calls": {}}
        self.stages_file.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        until = time.perf_counter() + _TIMEOUT
        while not self.stages_file.exists():
            if time.perf_counter() > until:
                raise TimeoutError("the server does not report its work")
            time.sleep(_POLL_SECONDS)
        work: dict[str, dict[str, float]] = json.loads(self.stages_file.read_text(encoding="utf-8"))
        return work

    def cpu_seconds(self) -> float:
        """Return the processor time of all its threads so far; 0 if the system has no /proc."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return 0.0
        fields = status.rpartition(")")[2].split()  # the name before it may contain anything
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(data: Path, settings: Mapping[str, str] | None = None, stages: Path | None = None) -> Iterator[ServedApp]:
    """Serve the app over the data folder with only these settings, until the block ends.

    With `stages` it writes the time of each part of its work into that file when `ServedApp.stages` asks for it.
    """
    with tempfile.TemporaryDirectory() as elsewhere, (Path(elsewhere) / "log").open("wb") as log:
        port = free_port()
        module = ["benchmarks.stages", str(stages)] if stages else ["streamlit"]
        command = [sys.executable, "-m", *module, "run", str(ROOT / "main.py"), "--server.port", str(port)]
        environment = {**os.environ, **_NO_SETTINGS, **(settings or {}), "RAG_DATA_DIR": str(data)}
        environment |= {"PYTHONPATH": str(ROOT)} if stages else {}
        began = time.perf_counter()
        # Not in the project's folder, whose .env must not be read; Streamlit's settings are copied.
        shutil.copytree(ROOT / ".streamlit", Path(elsewhere) / ".streamlit", ignore=shutil.ignore_patterns("secrets*"))
        process = subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=log, stderr=log)
        try:
            yield ServedApp(f"http://127.0.0.1:{port}", began, process.pid, stages)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
