"""Embedding models: their protocol, and loading one by name."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.e5 import MEANS_FILE
from rag.models.engines import CallBatcher, Embedders, Workers, choose, has_bfloat16, map_ahead
from rag.models.model_files import ModelFamily, family_of, find_model, load_flag_model
from rag.models.sparse import LexicalHead
from rag.models.tokens import (
    Batch,
    Tokens,
    group_by_length,
    hash_characters,
    normalise_rows,
    pad_rows,
    sum_of_rows,
    usable_positions,
)
from rag.models.transformer import read_bert
from rag.patterns import lazy_regex
from rag.text import is_chinese

log = logging.getLogger(__name__)

Kind = Literal["passage", "query"]


class LanguageMeans:
    """Means of unit vectors, (d,), by kind of text, for Chinese and for languages in Latin script.

    In a multilingual model a question is closer to all passages of its language than to an answer in another.
    Subtracting the means leaves the content (Libovický et al. 2020, "On the Language Neutrality of Pre-trained
    Multilingual Representations", arXiv 2004.05160). `python -m benchmarks.language_means` computes them.
    """

    def __init__(self, means: dict[str, Vectors]) -> None:
        """`means` has the keys `passage.zh`, `passage.en`, `query.zh` and `query.en`."""
        self._means = {kind: np.stack((means[f"{kind}.en"], means[f"{kind}.zh"])) for kind in ("passage", "query")}

    def remove(self, vectors: Vectors, texts: Sequence[str], kind: Kind) -> Vectors:
        """Subtract the mean of their language from the unit vectors of `texts`, (n, d), and normalise them again."""
        chinese = np.fromiter(map(is_chinese, texts), dtype=np.int64, count=len(texts))
        return normalise_rows(vectors - self._means[kind][chinese])


def read_language_means(folder: Path) -> LanguageMeans | None:
    """Return the means in a model's folder, or None if it has none."""
    if not (folder / MEANS_FILE).is_file():
        return None
    from safetensors.numpy import load_file

    return LanguageMeans(load_file(folder / MEANS_FILE))


# Tokens in one forward pass. On a CPU 512 to 2048 are within four per cent of each other.
_BATCH_TOKENS = 1024
_BATCH_TOKENS_GPU = 32768
_WINDOW = 512  # texts to tokenize while those before them are encoded
_QUERY_CACHE_SIZE = 512
_MAX_QUERIES = 32
_QUERY_TOKENS = 512  # in one forward pass: queries of similar lengths share one
_UNREAD_SHARE = 0.25
_ASCII = "".join(map(chr, range(33, 127)))  # a vocabulary that can read these can read all their combinations
_VISIBLE = lazy_regex("[!-~]")
_SAMPLE = (
    "The river rises in the mountains and reaches the sea after four hundred kilometres, and the bridge that "
    "crosses it below the old town was the longest of its time when it was opened to traffic in 1910.",
    "What does the treaty of 1648 say about trade?",
    "检索系统先找到段落，再根据段落回答问题。",
    "a",
)

Vectors = NDArray[np.float32]


class FlagEncoder:
    """An EmbeddingModel over a model loaded by FlagEmbedding or `read_bert` (`flag.model`, `flag.tokenizer`)."""

    def __init__(
        self,
        flag: Any,
        family: ModelFamily,
        *,
        name: str,
        device: str,
        means: LanguageMeans | None = None,
        exact: bool = False,
        lexical: Path | None = None,
    ) -> None:
        """Subtract `means` from the vectors of their languages; `lexical` is the folder of a lexical head.

        See `load_embedding_model` for `exact`.
        """
        self.name = name
        self.device = device
        self.dimension: int = flag.model.config.hidden_size
        self._family = family
        self._means = means
        self._max_tokens = min(family.max_tokens, max(usable_positions(flag.model.config, family.max_tokens), 8))
        self._tokens = Tokens(flag.tokenizer, self._max_tokens)
        self._pad: int = flag.tokenizer.pad_token_id or 0
        self._table = flag.model.get_input_embeddings().weight.detach()
        self._workers = Workers(serial=device != "cpu")
        self._tokenizing = ThreadPoolExecutor(1, "tokens")
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self._queries_lock = threading.Lock()
        self._query_calls: CallBatcher[str, Vectors] = CallBatcher(
            self._encode_queries, self._workers.submit, max_items=_MAX_QUERIES
        )
        sample = self._pad_batch(self._tokens.encode(_SAMPLE))
        engines = Embedders(flag.model, family.pooling, device)
        half = not exact and has_bfloat16(device)
        self._forward, self.choice = choose(engines, sample, half=half, run=self._workers.run)
        is_half = self.choice.kind == "loaded" and self.choice.half
        self.lexical = LexicalHead(lexical, flag, self._tokens, device, half=is_half) if lexical else None

    @property
    def precision(self) -> str:
        """The number format of the forward pass: `bfloat16` or `float32`."""
        return self.choice.precision

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalised vector per text, (n, d)."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for (places, _), encoded in self._workers.each(lambda work: self._encode(work[1]), self._batches(texts)):
            vectors[places] = encoded
        return self._means.remove(vectors, texts, "passage") if self._means else vectors

    def encode_query(self, text: str) -> Vectors:
        """Return the query's L2-normalised vector, (d,), read-only; recent queries are cached."""
        with self._queries_lock:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        vector = self._query_calls.process(text)
        with self._queries_lock:
            self._queries[text] = vector
            while len(self._queries) > _QUERY_CACHE_SIZE:
                self._queries.popitem(last=False)
        return vector

    def can_read(self, text: str) -> bool:
        """True if less than a quarter of the tokens are unknown or in a script that is rare in the vocabulary."""
        if self._reads_latin and text.isascii() and _VISIBLE.search(text):
            return True
        return self._can_read(self._tokens.encode([text], special=False))

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return additive static vectors for chunking only, (n, m); m is the same within a call.

        These are sums of the tokens' input embeddings, or hashed characters if the model cannot read the texts.
        """
        ids = self._tokens.encode(texts, special=False)
        return sum_of_rows(self._look_up_rows, self.dimension, ids) if self._can_read(ids) else hash_characters(texts)

    def _look_up_rows(self, ids: NDArray[np.int64]) -> Vectors:
        """Look up rows of the input embeddings; the table may be in half precision."""
        import torch

        rows: Vectors = self._table[torch.from_numpy(ids)].float().cpu().numpy()
        return rows

    @cached_property
    def _unreadable(self) -> NDArray[np.bool_]:
        """The flags of `Tokens.find_unreadable`, computed on first use: reading the vocabulary takes half a second."""
        return self._tokens.find_unreadable()

    @cached_property
    def _reads_latin(self) -> bool:
        return self._can_read(self._tokens.encode([_ASCII], special=False))

    def _can_read(self, ids: Sequence[Sequence[int]]) -> bool:
        flat = [index for row in ids for index in row]
        return bool(flat) and float(self._unreadable[flat].mean()) < _UNREAD_SHARE

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Yield batches of indexes of `texts` with their tokens, while the next texts are tokenized."""
        budget = _BATCH_TOKENS if self.device == "cpu" else _BATCH_TOKENS_GPU
        windows = range(0, len(texts), _WINDOW)
        for begin, ids in map_ahead(self._tokenizing, lambda at: self._tokenize(texts[at : at + _WINDOW]), windows, 1):
            for group in group_by_length([len(row) for row in ids], budget, self._workers.count):
                yield [begin + place for place in group], [ids[place] for place in group]

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return self._tokens.encode([self._family.passage + text for text in texts])

    def _encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        ids = self._tokens.encode([self._family.query + text for text in texts])
        vectors = np.empty((len(ids), self.dimension), dtype=np.float32)
        for group in group_by_length([len(row) for row in ids], _QUERY_TOKENS, 1):
            vectors[group] = self._encode([ids[place] for place in group])
        vectors = self._means.remove(vectors, texts, "query") if self._means else vectors
        vectors.setflags(write=False)
        return list(vectors)

    def _encode(self, ids: Sequence[Sequence[int]]) -> Vectors:
        vectors = self._forward(self._pad_batch(ids))
        if not np.isfinite(vectors).all():
            raise ModelError("embedding_not_finite", name=self.name)
        return vectors

    def _pad_batch(self, ids: Sequence[Sequence[int]]) -> Batch:
        return pad_rows(ids, self._pad, self._max_tokens)


class EmbeddingModel(Protocol):
    """An encoder of texts as vectors. Safe to share between threads.

    `name` identifies the model in a library: vectors of models with different names must never mix.
    """

    name: str

    @property
    def dimension(self) -> int:
        """The length of a vector. Raises ModelError if the model's service fails."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one L2-normalised vector per text, (n, dimension)."""
        ...

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the query's L2-normalised vector, (dimension,), with the model's query instruction."""
        ...

    def can_read(self, text: str) -> bool:
        """True if the model supports the language of this text; otherwise it must take no part in ranking the text."""
        ...

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return cheap static vectors for chunking only, (n, m); m may differ between calls.

        The vectors of several sentences add up to that of their joined text.
        """
        ...


def load_embedding_model(name: str, *, exact: bool = False) -> EmbeddingModel:
    """Load a model from the hub or a local folder by FlagEmbedding, or a shipped one directly from its files.

    `exact` uses float32 on any processor. The suffix `model_files.LEXICAL` of a name adds the model's learned sparse
    vectors (`lexical_head`).

    Takes seconds (torch is imported here), and longer if the model has to be downloaded from the hub. Raises ModelError
    if the model is unknown or incomplete, or the hub cannot be reached.
    """
    began = time.perf_counter()
    source = find_model(name)
    family = family_of(source.origin, source.folder)
    device = best_device()
    plain = source.shipped and device == "cpu"
    flag = read_bert(source.folder) if plain else load_flag_model(name, source.folder, family.pooling, device)
    means = read_language_means(source.folder)
    lexical = source.folder if source.lexical else None
    model = FlagEncoder(flag, family, name=source.name, device=device, means=means, exact=exact, lexical=lexical)
    log.info(
        "Embedding model %s: %d dimensions, %s pooling, %s pass in %s on %s, loaded in %.1f s",
        model.name,
        model.dimension,
        family.pooling,
        model.choice.kind,
        model.precision,
        device,
        time.perf_counter() - began,
    )
    return model


def best_device() -> str:
    """Return the device for models on this machine, as torch names it."""
    import torch

    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


_CACHE_SIZE = 20_000  # vectors: 15 MB in half precision


class SentenceModel:
    """An embedding model that is loaded on first use, and caches the vectors of sentences.

    Safe to share between threads. Methods raise ModelError.
    """

    def __init__(self, model: Callable[[], EmbeddingModel]) -> None:
        """`model` is called on first use."""
        self._model = model
        self._vectors: OrderedDict[str, NDArray[np.float16]] = OrderedDict()
        self._lock = threading.Lock()

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Same as `EmbeddingModel.encode_query`."""
        return self._model().encode_query(text)

    def can_read(self, text: str) -> bool:
        """Same as `EmbeddingModel.can_read`."""
        return self._model().can_read(text)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Same as `EmbeddingModel.encode_passages`, to within half precision."""
        with self._lock:
            vectors = {text: self._vectors[text] for text in texts if text in self._vectors}
        if missing := [text for text in dict.fromkeys(texts) if text not in vectors]:
            vectors.update(zip(missing, self._model().encode_passages(missing).astype(np.float16), strict=True))
        with self._lock:
            for text in texts:
                self._vectors[text] = vectors[text]
                self._vectors.move_to_end(text)
            while len(self._vectors) > _CACHE_SIZE:
                self._vectors.popitem(last=False)
        return np.stack([vectors[text] for text in texts]).astype(np.float32)
