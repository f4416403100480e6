"""The app as `make run` serves it, in a process of its own, for benchmarks that need the whole of it."""

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
_LOOK_AGAIN = 0.01
_PATIENCE = 120.0


@dataclass(frozen=True)
class Served:
    """A server: where it is, when its process was started (time.perf_counter), its process id, and the file into which
    it writes the parts of its work, if it counts them."""

    address: str
    began: float
    pid: int
    counted: Path | None = None

    def wait(self, path: str = "/") -> float:
        """Seconds from the start of the process to the first answer with status 200. Raises TimeoutError."""
        while (spent := time.perf_counter() - self.began) < _PATIENCE:
            try:
                with urllib.request.urlopen(self.address + path, timeout=5):
                    return time.perf_counter() - self.began
            except (urllib.error.URLError, OSError):
                time.sleep(_LOOK_AGAIN)
        raise TimeoutError(f"{self.address} does not answer after {spent:.0f} s")

    def stages(self) -> dict[str, dict[str, float]]:
        """Return the `seconds` and `calls` of each part of its work so far. Raises TimeoutError."""
        if self.counted is None:
            return {"seconds": {}, "calls": {}}
        self.counted.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        until = time.perf_counter() + _PATIENCE
        while not self.counted.exists():
            if time.perf_counter() > until:
                raise TimeoutError("the server does not say what it worked on")
            time.sleep(_LOOK_AGAIN)
        found: dict[str, dict[str, float]] = json.loads(self.counted.read_text(encoding="utf-8"))
        return found

    def cpu_seconds(self) -> float:
        """The processor time of all its threads so far; 0 where the system has no /proc."""
        try:
            told = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return 0.0
        fields = told.rpartition(")")[2].split()  # the name before it may hold anything
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(data: Path, settings: Mapping[str, str] | None = None, stages: Path | None = None) -> Iterator[Served]:
    """Start the app over the data folder, with these settings and no others; it ends with the block.

    With `stages` it writes the parts of its work into that file when `Served.stages` asks for them.
    """
    with tempfile.TemporaryDirectory() as elsewhere, (Path(elsewhere) / "log").open("wb") as log:
        port = free_port()
        module = ["benchmarks.stages", str(stages)] if stages else ["streamlit"]
        command = [sys.executable, "-m", *module, "run", str(ROOT / "main.py"), "--server.port", str(port)]
        environment = {**os.environ, **_NO_SETTINGS, **(settings or {}), "RAG_DATA_DIR": str(data)}
        environment |= {"PYTHONPATH": str(ROOT)} if stages else {}
        began = time.perf_counter()
        # The folder is not the project's, so that no .env of a developer is read; Streamlit's settings are.
        shutil.copytree(ROOT / ".streamlit", Path(elsewhere) / ".streamlit", ignore=shutil.ignore_patterns("secrets*"))
        process = subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=log, stderr=log)
        try:
            yield Served(f"http://127.0.0.1:{port}", began, process.pid, stages)
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
