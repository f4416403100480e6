"""A model's weights and tokenizer, loaded from a folder; the only module that uses FlagEmbedding.

Encoding is not FlagEmbedding's: see `embedding.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag.errors import ModelError
from rag.models.families import Pooling

log = logging.getLogger(__name__)

_import_lock = threading.Lock()
_INFERENCE = ("FlagEmbedding", "FlagEmbedding.inference")
_EMBEDDER = (*_INFERENCE, "FlagEmbedding.inference.embedder", "FlagEmbedding.inference.embedder.encoder_only")
_RERANKER = (*_INFERENCE, "FlagEmbedding.inference.reranker", "FlagEmbedding.inference.reranker.encoder_only")


def load_flag_model(name: str, folder: Path, pooling: Pooling, device: str) -> Any:
    """Load FlagEmbedding's FlagModel of `folder` in float32; callers use `.model` and `.tokenizer`.

    BGE-M3 loads this way too: its dense vector is the normalised first token, and its own class adds only the sparse
    and multi-vector heads. Raises ModelError when the folder has no model.
    """
    flag_model = import_flag_model()
    try:
        with _quiet_and_offline():
            loaded = flag_model(str(folder), use_fp16=False, devices=device, pooling_method=pooling)
    except _load_errors() as error:
        raise ModelError("embedding_unreadable", name=name, folder=str(folder)) from error
    loaded.model.to(device).float().eval()
    return loaded


def load_flag_reranker(name: str, folder: Path, device: str) -> Any:
    """Load FlagEmbedding's FlagReranker of `folder` in float32; callers use `.model` and `.tokenizer`.

    Raises ModelError when the folder cannot be loaded.
    """
    flag_reranker = _import_class(_RERANKER, "BaseReranker", "FlagReranker")
    try:
        with _quiet_and_offline():
            loaded = flag_reranker(str(folder), use_fp16=False, devices=device)
    except _load_errors() as error:
        raise ModelError("reranker_unreadable", name=name, folder=str(folder)) from error
    loaded.model.to(device).float().eval()
    return loaded


def load_classifier(name: str, folder: Path, device: str, *, tokens: bool) -> tuple[Any, Any]:
    """Load a classifier of texts, or of `tokens`, in float32, and its tokenizer; by transformers alone.

    Raises ModelError when the folder cannot be loaded.
    """
    import transformers

    kind = transformers.AutoModelForTokenClassification if tokens else transformers.AutoModelForSequenceClassification
    try:
        with _quiet_and_offline():
            model = kind.from_pretrained(folder, local_files_only=True).to(device).float().eval()
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
    except _load_errors() as error:
        raise ModelError("verifier_unreadable", name=name, folder=str(folder)) from error
    return model, tokenizer


def _load_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the libraries for damaged or foreign files."""
    from safetensors import SafetensorError

    return (OSError, ValueError, TypeError, LookupError, ImportError, RuntimeError, EOFError, SafetensorError)


def import_flag_model() -> Any:
    """Return the class FlagModel, without the training half of the package."""
    return _import_class(_EMBEDDER, "BaseEmbedder", "FlagModel")


def _import_class(packages: tuple[str, ...], name: str, public: str) -> Any:
    """Return the class that FlagEmbedding calls `public`: `name` in the module `base` of the last of `packages`.

    `import FlagEmbedding` also imports its fine-tuning code, and with it datasets, pandas and peft: about two of its
    three seconds. The parent packages of the class are therefore added by their paths alone, and removed again so that
    a later `import FlagEmbedding` works as usual.
    """
    with _import_lock:
        if "FlagEmbedding" in sys.modules:
            return getattr(importlib.import_module("FlagEmbedding"), public)
        spec = importlib.util.find_spec("FlagEmbedding")
        if spec is None or not spec.submodule_search_locations:
            raise ModelError("package_missing", package="FlagEmbedding")
        root = Path(next(iter(spec.submodule_search_locations)))
        try:
            with _bare_packages(root, packages):
                return getattr(importlib.import_module(f"{packages[-1]}.base"), name)
        except (ImportError, AttributeError) as error:
            log.info("FlagEmbedding is laid out differently, importing all of it: %s", error)
        return getattr(importlib.import_module("FlagEmbedding"), public)


@contextmanager
def _bare_packages(root: Path, packages: tuple[str, ...]) -> Iterator[None]:
    for package in packages:
        module = types.ModuleType(package)
        module.__path__ = [str(root.joinpath(*package.split(".")[1:]))]
        sys.modules[package] = module
    try:
        yield
    finally:
        for package in packages:
            del sys.modules[package]


@contextmanager
def _quiet_and_offline() -> Iterator[None]:
    """Hide progress bars and load reports, and ask the hub nothing about local files."""
    from huggingface_hub import constants
    from transformers.utils import logging as transformers_logging

    bars = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    offline = constants.HF_HUB_OFFLINE
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
