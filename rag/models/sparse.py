"""BM25 term weights, computed in process: the keyword part of every search, in every language.

The encoder is Qdrant's own. Its multilingual tokenizer segments Chinese, stems English and drops English stop words. It
computes the term-frequency part of BM25; the IDF is the engine's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final

from rag.quantities.numerals import parse_chinese
from rag.text import make_encodable, sentence_spans
from rag.types import SparseVector

_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NUMERALS: Final = "[零〇一二两三四五六七八九十百千万亿]"
_PERCENT: Final = re.compile(f"百分之({_NUMERALS}+)")
_NUMERAL_RUN: Final = re.compile(f"(?<=第){_NUMERALS}+|{_NUMERALS}{{2,}}|{_NUMERALS}(?=[年月日号])")
# These begin with their content and look back only then, so that the engine can skip what cannot match.
_GROUPED: Final = re.compile(r"\d(?<![\d.,]\d)\d{0,2}(?:[\u0020\u00a0\u202f'’]\d{3})+(?![\d])")
_GROUP_MARKS: Final = re.compile(r"\D")
_VERSION: Final = re.compile(r"[vV](?<=\b[vV])(?=\d+\.\d)")


def fold(text: str) -> str:
    """Return `text` in one form of writing, so that words match however they are spelt; the same object if unchanged.

    Traditional Chinese becomes simplified (OpenCC), Chinese numerals become digits, and spaces or apostrophes between
    digits are removed. Only terms are made of it: pages stay as they are.
    """
    if _HAN.search(text):
        text = _simplifier().convert(text)
        text = _PERCENT.sub(lambda match: f"{_to_digits(match[1])}%", text)
        text = _NUMERAL_RUN.sub(lambda match: _to_digits(match[0]), text)
    text = _GROUPED.sub(lambda match: _GROUP_MARKS.sub("", match[0]), text)
    return _VERSION.sub("", text)


def _to_digits(numeral: str) -> str:
    return f"{parse_chinese(numeral):f}"


@cache
def _simplifier() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")


# Measured on xquad-en, xquad-zh and chroma with chunks of 300 to 600 characters: the average length
# of such a chunk in terms gains up to 0.005 MRR over the default of 256; k and b matter less.
AVERAGE_TERMS = 100.0

_WORD_CACHE_SIZE = 1 << 16
_TEXT_CACHE_SIZE = 1 << 13
_PASSAGE_CACHE_SIZE = 1 << 11

# The tokenizer drops numbers, and with them every year and quantity. Spelt in consonants they remain:
# no stemmer changes them, and no word begins like that. Worth 0.004 to 0.011 MRR on the same sets.
_NUMBER = re.compile(r"[0-9０-９]+(?:,[0-9]{3}(?![0-9]))*")
_SPELT = str.maketrans("0123456789０１２３４５６７８９", "bcdfghjkmn" * 2)

_PLAIN = re.compile(r"[A-Za-z0-9\s.,;:?!'\"()\-]*", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Za-z0-9]+")
_END = "\0"  # of a part; no text has it


class SparseEncoder:
    """BM25 (k = 1.2, b = 0.75) over lower-cased, accent-folded terms; deterministic and thread-safe."""

    def __init__(self) -> None:
        from qdrant_edge import Bm25, Bm25Config, TokenizerType

        self._bm25 = Bm25(Bm25Config(tokenizer=TokenizerType.Multilingual, ascii_folding=True, avg_len=AVERAGE_TERMS))
        self.terms_of_word = lru_cache(_WORD_CACHE_SIZE)(self._terms_of_word)
        self.terms = lru_cache(_TEXT_CACHE_SIZE)(self._terms)
        self.terms_within = lru_cache(_PASSAGE_CACHE_SIZE)(self._terms_within)

    def encode_passage(self, text: str) -> SparseVector:
        """Return the passage's terms and their saturated, length-normalised frequencies; empty for no terms."""
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

        In plain text the encoder splits at the same places, so words are looked up one by one: no difference on 7 934
        plain sentences of chroma and xquad. Other scripts and characters go to the encoder.
        """
        if not _PLAIN.fullmatch(text):
            return frozenset(self.encode_query(text).indices)
        return self._terms_of_plain(_spell_numbers(text))

    def sentence_terms(self, text: str) -> tuple[frozenset[int], ...]:
        """Return the `terms` of each sentence of a text, in order."""
        return self.terms_within(text, sentence_spans(text))

    def _terms_within(self, text: str, spans: tuple[tuple[int, int], ...]) -> tuple[frozenset[int], ...]:
        """Return the `terms` of these parts of a text; one pass over plain text takes a third of the time."""
        parts = [text[start:end] for start, end in spans]
        if not _PLAIN.fullmatch(text):
            return tuple(map(self.terms, parts))
        return tuple(map(self._terms_of_plain, _spell_numbers(_END.join(parts)).split(_END)))

    def _terms_of_plain(self, text: str) -> frozenset[int]:
        return frozenset(chain.from_iterable(map(self.terms_of_word, _PLAIN_WORD.findall(text))))

    def _terms_of_word(self, word: str) -> tuple[int, ...]:
        """Return the terms of a word, or of a run of Han characters; cached, since texts repeat their words."""
        return tuple(self.encode_query(word).indices)


def _spell_numbers(text: str) -> str:
    """Return `text` in one form of writing, with each run of digits as a word, so that GPT-4 and GPT4 are the same."""
    return _NUMBER.sub(lambda number: f" zq{number[0].replace(',', '').translate(_SPELT)} ", fold(make_encodable(text)))
