"""Sparse terms of text: BM25 vectors for every language, the learned weights of BGE-M3, and the terms of sentences.

The BM25 encoder is Qdrant's. Its multilingual tokenizer segments Chinese, stems English and drops English stop words.
It computes the term-frequency part of BM25; Qdrant applies the IDF at query time.

BGE-M3's lexical head assigns each token a weight (Chen et al. 2024, "M3-Embedding", arXiv 2402.03216). Tests compare it
with FlagEmbedding's BGEM3FlagModel; unlike there, threads share the tokenizer.

The sentences of a chunk and their terms are stored with the chunk, since computing them takes longer than a search.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.engines import Workers
from rag.models.model_files import HEAD
from rag.models.tokens import Tokens, group_by_length, pad_rows
from rag.patterns import lazy_regex
from rag.quantities.numerals import parse_chinese, simplify
from rag.text import fenced_blocks, make_encodable, sentence_spans, split_sentences
from rag.types import SparseVector

if TYPE_CHECKING:
    from rag.models.embedding import EmbeddingModel

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
_BATCH_TOKENS = 2048


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
        self.terms_of_word = lru_cache(_WORD_CACHE_SIZE)(self._terms_of_word)
        self.terms = lru_cache(_TEXT_CACHE_SIZE)(self._terms)
        self.sentence_terms = lru_cache(_PASSAGE_CACHE_SIZE)(self._sentence_terms)

    def encode_passage(self, text: str) -> SparseVector:
        """Return the passage's terms and their saturated, length-normalised frequencies; empty without terms."""
        vector = self._bm25.embed_document(_spell_numbers(text))
        return SparseVector(vector.indices, vector.values)

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self.encode_passage(text) for text in texts]

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

    def _sentence_terms(self, text: str) -> tuple[frozenset[int], ...]:
        """Return the `terms` of each sentence of a text, in order; `sentence_terms` caches them."""
        return self.terms_within(text, sentence_spans(text))

    def terms_within(self, text: str, spans: tuple[tuple[int, int], ...]) -> tuple[frozenset[int], ...]:
        """Return the `terms` of each span of a text. Plain text takes a single pass, which is three times as fast."""
        parts = [text[start:end] for start, end in spans]
        if not _PLAIN.fullmatch(text):
            return tuple(map(self.terms, parts))
        return tuple(map(self._terms_of_plain, _spell_numbers(_END.join(parts)).split(_END)))

    def _terms_of_plain(self, text: str) -> frozenset[int]:
        return frozenset(chain.from_iterable(map(self.terms_of_word, _PLAIN_WORD.findall(text))))

    def _terms_of_word(self, word: str) -> tuple[int, ...]:
        """Return the terms of a word, or of a run of Han characters; `terms_of_word` caches them."""
        return tuple(self.encode_query(word).indices)


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
        vectors: list[SparseVector] = [SparseVector([], [])] * len(rows)
        groups = group_by_length([len(row) for row in rows], _BATCH_TOKENS, self._workers.count)
        for places, weights in self._workers.each(lambda group: self._weights([rows[at] for at in group]), groups):
            for place, token_weights in zip(places, weights, strict=True):
                vectors[place] = self._terms(rows[place], token_weights)
        return vectors

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
    """Index the sentences of a text: a code block is a single sentence, and a table row refers to its header."""
    bounds = _find_bounds(text)
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


def _find_bounds(text: str) -> list[tuple[int, int, int]]:
    blocks = fenced_blocks(text)
    bounds: list[tuple[int, int, int]] = []
    header: int | None = None
    for start, end in split_sentences(text):
        block = next((block for block in blocks if block[0] <= start < block[1]), None)
        if block and bounds and bounds[-1][1] >= start:
            continue
        if block:
            start, end = start, max(end, block[1])
        is_row = text.startswith("|", start)
        header = (len(bounds) if header is None else header) if is_row else None
        bounds.append((start, end, len(bounds) if header is None else header))
    return bounds
