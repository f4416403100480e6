"""Dense and sparse vectors of text: embedding models, loaded by name, and BM25 or learned term weights.

The BM25 encoder is Qdrant's. Its multilingual tokenizer segments Chinese, stems English and drops English stop words.
It computes the term-frequency part of BM25; Qdrant applies the IDF at query time.

BGE-M3's lexical head assigns each token a weight (Chen et al. 2024, "M3-Embedding", arXiv 2402.03216). Tests compare it
with FlagEmbedding's BGEM3FlagModel; unlike there, threads share the tokenizer.

The sentences of a chunk and their terms are stored with the chunk, since computing them takes longer than a search.
"""

from __future__ import annotations

import base64
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.model_files import HEAD, MEANS_FILE, ModelFamily, family_of, find_model, load_flag_model
from rag.models.transformer import (
    CallBatcher,
    Embedders,
    TokenBatch,
    Tokens,
    Workers,
    choose,
    group_by_length,
    has_bfloat16,
    hash_characters,
    map_ahead,
    normalise_rows,
    pad_rows,
    read_bert,
    sum_of_rows,
    usable_positions,
)
from rag.quantities.values import parse_chinese, simplify
from rag.text import (
    fenced_blocks,
    is_chinese,
    lazy_regex,
    make_encodable,
    sentence_spans,
    unit_spans,
)
from rag.types import SparseVector

log = logging.getLogger(__name__)


_HAN: Final = lazy_regex("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NUMERALS: Final = "[零〇一二两三四五六七八九十百千万亿]"
_PERCENT: Final = lazy_regex(f"百分之({_NUMERALS}+)")
_NUMERAL_RUN: Final = lazy_regex(f"(?<=第){_NUMERALS}+|{_NUMERALS}{{2,}}|{_NUMERALS}(?=[年月日号])")
# Lookbehinds come after the first character, so that the regex engine can skip positions that cannot match.
_GROUPED: Final = lazy_regex(r"\d(?<![\d.,]\d)\d{0,2}(?:[\u0020\u00a0\u202f'’]\d{3})+(?![\d])")
_GROUP_MARKS: Final = lazy_regex(r"\D")
_VERSION: Final = lazy_regex(r"[vV](?<=\b[vV])(?=\d+\.\d)")

FIRST_LEARNED_ID: Final = 1 << 31
"""The id of the first learned term; BM25 ids are lower."""
_SPARSE_BATCH_TOKENS = 2048


def fold(text: str) -> str:
    """Return `text` with normalised spelling, so that variants of a word match; the same object if unchanged.

    Traditional Chinese becomes simplified (OpenCC), Chinese numerals become digits, and spaces or apostrophes between
    groups of digits and the v of versions are removed. Used for terms only; stored pages are unchanged.
    """
    if _HAN.search(text):
        text = simplify(text)
        text = _PERCENT.sub(lambda match: f"{_to_digits(match[1])}%", text)
        text = _NUMERAL_RUN.sub(lambda match: _to_digits(match[0]), text)
    text = _GROUPED.sub(lambda match: _GROUP_MARKS.sub("", match[0]), text)
    return _VERSION.sub("", text)


def _to_digits(numeral: str) -> str:
    return f"{parse_chinese(numeral):f}"


# Average number of terms in a chunk of 300 to 600 characters. On xquad-en, xquad-zh and chroma it gains up to 0.005 MRR
# over the default of 256; k and b matter less.
AVERAGE_TERMS = 100.0

_WORD_CACHE_SIZE = 1 << 14
_TEXT_CACHE_SIZE = 1 << 13
_PASSAGE_CACHE_SIZE = 1 << 11

# The tokenizer drops numbers, and with them every year and quantity. Spelt in consonants they are kept: no stemmer
# changes them, and no word starts like that. This gains 0.004 to 0.011 MRR on the same data sets.
_NUMBER = lazy_regex(r"[0-9０-９]+(?:,[0-9]{3}(?![0-9]))*")
_DIGITS = str.maketrans("0123456789０１２３４５６７８９", "bcdfghjkmn" * 2)

_PLAIN = lazy_regex(r"[A-Za-z0-9\s.,;:?!'\"()\-]*", re.ASCII)
_PLAIN_WORD = lazy_regex(r"[A-Za-z0-9]+")
_END = "\0"  # separates parts; does not occur in plain text


class SparseEncoder:
    """A BM25 encoder (k = 1.2, b = 0.75) over lower-cased, accent-folded terms. Deterministic and thread-safe."""

    def __init__(self) -> None:
        from qdrant_edge import Bm25, Bm25Config, TokenizerType

        self._bm25 = Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual, ascii_folding=True, avg_len=AVERAGE_TERMS))
        # the terms of a word, or of a run of Han characters
        self.terms_of_word = lru_cache(_WORD_CACHE_SIZE)(lambda word: tuple(self.encode_query(word).indices))
        self.terms = lru_cache(_TEXT_CACHE_SIZE)(self._terms)
        # the terms of each sentence of a text, in order
        self.sentence_terms = lru_cache(_PASSAGE_CACHE_SIZE)(lambda text: self.terms_within(text, sentence_spans(text)))

    def encode_passage(self, text: str) -> SparseVector:
        """Return the passage's terms and their saturated, length-normalised frequencies; empty without terms."""
        vector = self._bm25.embed_document(_spell_numbers(text))
        return SparseVector(vector.indices, vector.values)

    def encode_query(self, text: str) -> SparseVector:
        """Return the query's distinct terms, each with weight 1."""
        vector = self._bm25.embed_query(_spell_numbers(text))
        return SparseVector(vector.indices, vector.values)

    def _terms(self, text: str) -> frozenset[int]:
        """Return the terms of `encode_query(text)`; `terms` caches them.

        Plain text is split into words, whose cached terms are merged: the encoder splits at the same places, as shown
        by 7 934 plain sentences of chroma and xquad. Text with other characters goes to the encoder.
        """
        if not _PLAIN.fullmatch(text):
            return frozenset(self.encode_query(text).indices)
        return self._terms_of_plain(_spell_numbers(text))

    def terms_within(self, text: str, spans: tuple[tuple[int, int], ...]) -> tuple[frozenset[int], ...]:
        """Return the `terms` of each span of a text. Plain text takes a single pass, which is three times as fast."""
        parts = [text[start:end] for start, end in spans]
        if not _PLAIN.fullmatch(text):
            return tuple(map(self.terms, parts))
        return tuple(map(self._terms_of_plain, _spell_numbers(_END.join(parts)).split(_END)))

    def _terms_of_plain(self, text: str) -> frozenset[int]:
        return frozenset(chain.from_iterable(map(self.terms_of_word, _PLAIN_WORD.findall(text))))


def _spell_numbers(text: str) -> str:
    """Return the folded text with each number as a separate word, so that GPT-4 and GPT4 have the same terms."""
    return _NUMBER.sub(
        lambda number: f" zq{number[0].replace(',', '').translate(_DIGITS)} ", fold(make_encodable(text))
    )


class LexicalHead:
    """BGE-M3's encoder of texts as learned terms. Safe to share between threads."""

    def __init__(self, folder: Path, flag: Any, tokens: Tokens, device: str, *, half: bool) -> None:
        """`flag` is the loaded model; `half` is true if its layers are in bfloat16.

        Raises ModelError if the folder has no head that fits the model.
        """
        import torch

        self._model, self._tokens, self._device, self._half = flag.model, tokens, device, half
        self._pad: int = flag.tokenizer.pad_token_id or 0
        self._special = frozenset(flag.tokenizer.all_special_ids)
        self._linear = torch.nn.Linear(flag.model.config.hidden_size, 1)
        try:
            self._linear.load_state_dict(torch.load(folder / HEAD, map_location="cpu", weights_only=True))
        except (OSError, RuntimeError, ValueError, TypeError, EOFError, UnpicklingError) as error:
            raise ModelError("sparse_head_missing", folder=str(folder), file=HEAD) from error
        self._linear.to(device).eval()
        self._workers = Workers(serial=device != "cpu")

    def encode(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted terms of each text; a repeated token has its largest weight."""
        rows = self._tokens.encode(texts)
        weights = self._workers.map_groups(
            lambda group: self._weights([rows[at] for at in group]), [len(row) for row in rows], _SPARSE_BATCH_TOKENS
        )
        return list(map(self._terms, rows, weights))

    def _weights(self, rows: Sequence[Sequence[int]]) -> Iterator[Sequence[float]]:
        import torch

        batch = pad_rows(rows, self._pad, self._tokens.max_tokens)
        kind = self._device.split(":", 1)[0]
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=self._half):
            ids, mask = (torch.from_numpy(array).to(self._device) for array in (batch.ids, batch.mask))
            hidden = self._model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            weights = torch.relu(self._linear(hidden.float())).squeeze(-1).cpu().numpy()
        if not np.isfinite(weights).all():
            raise ModelError("embedding_not_finite", name=HEAD)
        return (row[: len(tokens)].tolist() for row, tokens in zip(weights, rows, strict=True))

    def _terms(self, tokens: Sequence[int], weights: Sequence[float]) -> SparseVector:
        terms: dict[int, float] = {}
        for token, weight in zip(tokens, weights, strict=True):
            if weight > 0.0 and token not in self._special:
                terms[FIRST_LEARNED_ID + token] = max(weight, terms.get(FIRST_LEARNED_ID + token, 0.0))
        return SparseVector(list(terms), list(terms.values()))


def lexical_head(model: EmbeddingModel) -> LexicalHead | None:
    """Return the model's lexical head; None if its libraries have no learned terms."""
    head: LexicalHead | None = getattr(model, "lexical", None)
    return head


def join_vectors(first: SparseVector, second: SparseVector) -> SparseVector:
    """Return the terms of both vectors, which must have none in common."""
    return SparseVector([*first.indices, *second.indices], [*first.values, *second.values])


def drop_learned(vector: SparseVector) -> SparseVector:
    """Return only the BM25 terms of a vector."""
    terms = [
        (index, value) for index, value in zip(vector.indices, vector.values, strict=True) if index < FIRST_LEARNED_ID
    ]
    return SparseVector([index for index, _ in terms], [value for _, value in terms])


_MAX_LENGTH = 1 << 16  # characters; offsets are stored in 16 bits


class SentenceIndex(NamedTuple):
    """The n sentences of a text and their t terms.

    `start` and `end` are offsets in the text, `first` is the first sentence that each one needs as context, (n,) each.
    `terms` are those of `SparseEncoder.terms`, `sentence` is the sentence of each, (t,) each.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]
    sentence: NDArray[np.int64]
    terms: NDArray[np.int64]


def index_sentences(text: str, encoder: SparseEncoder) -> SentenceIndex:
    """Index the sentences of a text. A code block and an entry count as one; a table row refers to its header."""
    blocks = fenced_blocks(text)
    bounds: list[tuple[int, int, int]] = []
    header: int | None = None
    for start, end in unit_spans(text):
        block = next((block for block in blocks if block[0] <= start < block[1]), None)
        if block and bounds and bounds[-1][1] >= start:
            continue
        if block:
            start, end = start, max(end, block[1])
        is_row = text.startswith("|", start)
        header = (len(bounds) if header is None else header) if is_row else None
        bounds.append((start, end, len(bounds) if header is None else header))
    terms = encoder.terms_within(text, tuple((start, end) for start, end, _ in bounds))
    columns = np.array(bounds, dtype=np.int64).reshape(-1, 3)
    sentence = np.repeat(np.arange(len(bounds)), [len(each) for each in terms])
    flat = np.fromiter((term for each in terms for term in sorted(each)), dtype=np.int64, count=len(sentence))
    return SentenceIndex(columns[:, 0], columns[:, 1], columns[:, 2], sentence, flat)


def pack_sentences(index: SentenceIndex, length: int) -> str:
    """Serialise the index of a text of `length` characters for `unpack_sentences`; empty if the text is too long.

    The format is base64 of little-endian integers: in 16 bits, the length of the text and n, then n starts, ends, first
    sentences and term counts; in 32 bits, all terms.
    """
    if length >= _MAX_LENGTH:
        return ""
    counts = np.bincount(index.sentence, minlength=len(index.start))
    numbers = np.concatenate(([length, len(counts)], index.start, index.end, index.first, counts)).astype("<u2")
    return base64.b64encode(numbers.tobytes() + index.terms.astype("<u4").tobytes()).decode("ascii")


def unpack_sentences(packed: str, text: str) -> SentenceIndex | None:
    """Return the index of `text` from `pack_sentences`; None if it is empty, damaged, or belongs to another text."""
    try:
        data = base64.b64decode(packed)
        length, size = np.frombuffer(data, "<u2", 2).tolist()
        start, end, first, counts = np.frombuffer(data, "<u2", 4 * size, 4).astype(np.int64).reshape(4, size)
        terms = np.frombuffer(data, "<u4", -1, 4 + 8 * size).astype(np.int64)
    except ValueError:
        return None
    numbers, edges = np.arange(size), np.stack((start, end), axis=1).ravel()
    if length != len(text) or counts.sum() != len(terms) or (first > numbers).any():
        return None
    if size and (edges[-1] > length or (edges[1:] < edges[:-1]).any()):  # an archive is untrusted
        return None
    return SentenceIndex(start, end, first, np.repeat(numbers, counts), terms)


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
        query_calls = CallBatcher(self._encode_queries, self._workers.submit, max_items=_MAX_QUERIES)
        self._cached_query = lru_cache(_QUERY_CACHE_SIZE)(query_calls.process)
        sample = self._pad_batch(self._tokens.encode(_SAMPLE))
        engines = Embedders(flag.model, family.pooling, device)
        half = not exact and has_bfloat16(device)
        self._forward, self.choice = choose(engines, sample, half=half, run=self._workers.run)
        is_half = self.choice.kind == "loaded" and self.choice.half
        self.lexical = LexicalHead(lexical, flag, self._tokens, device, half=is_half) if lexical else None

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalised vector per text, (n, d)."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for (places, _), encoded in self._workers.each(lambda work: self._encode(work[1]), self._batches(texts)):
            vectors[places] = encoded
        return self._means.remove(vectors, texts, "passage") if self._means else vectors

    def encode_query(self, text: str) -> Vectors:
        """Return the query's L2-normalised vector, (d,), read-only; recent queries are cached."""
        return self._cached_query(text)

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
    def _reads_latin(self) -> bool:
        return self._can_read(self._tokens.encode([_ASCII], special=False))

    def _can_read(self, ids: Sequence[Sequence[int]]) -> bool:
        flat = [index for row in ids for index in row]
        return bool(flat) and float(self._tokens.unreadable[flat].mean()) < _UNREAD_SHARE

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Yield batches of indexes of `texts` with their tokens, while the next texts are tokenized."""

        def tokenize(begin: int) -> list[list[int]]:
            return self._tokens.encode([self._family.passage + text for text in texts[begin : begin + _WINDOW]])

        budget = _BATCH_TOKENS if self.device == "cpu" else _BATCH_TOKENS_GPU
        for begin, ids in map_ahead(self._tokenizing, tokenize, range(0, len(texts), _WINDOW), 1):
            for group in group_by_length([len(row) for row in ids], budget, self._workers.count):
                yield [begin + place for place in group], [ids[place] for place in group]

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

    def _pad_batch(self, ids: Sequence[Sequence[int]]) -> TokenBatch:
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
    means = None
    if (source.folder / MEANS_FILE).is_file():
        from safetensors.numpy import load_file

        means = LanguageMeans(load_file(source.folder / MEANS_FILE))
    lexical = source.folder if source.lexical else None
    model = FlagEncoder(flag, family, name=source.name, device=device, means=means, exact=exact, lexical=lexical)
    log.info(
        "Embedding model %s: %d dimensions, %s pooling, %s pass in %s on %s, loaded in %.1f s",
        model.name,
        model.dimension,
        family.pooling,
        model.choice.kind,
        model.choice.precision,
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
        return self._model().encode_query(text)

    def can_read(self, text: str) -> bool:
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
