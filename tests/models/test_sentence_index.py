from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.models.sparse import SparseEncoder, index_sentences, pack_sentences, unpack_sentences
from rag.text import sentence_spans

ENCODER = SparseEncoder()
TEXTS = (
    "The harbour was dug by hand. Its lamp burned whale oil.",
    "港口是人工挖的。灯塔烧鲸油，每船收两枚硬币。",
    "| a | b |\n|---|---|\n| one | 1 |\n| two | 2 |",
    "Run it:\n\n```\nload()\nask()\n```\n\nDone.",
    "",
)


@pytest.mark.parametrize("text", TEXTS)
def test_an_index_survives_packing(text: str) -> None:
    index = index_sentences(text, ENCODER)
    again = unpack_sentences(pack_sentences(index, len(text)), text)
    assert again is not None
    assert all(np.array_equal(one, other) for one, other in zip(index, again, strict=True))


def test_an_index_has_the_terms_of_each_sentence() -> None:
    text = TEXTS[1]
    index = index_sentences(text, ENCODER)
    assert list(zip(index.start.tolist(), index.end.tolist(), strict=True)) == list(sentence_spans(text))
    for number, (start, end) in enumerate(sentence_spans(text)):
        assert set(index.terms[index.of == number].tolist()) == ENCODER.terms(text[start:end])


def test_a_row_needs_the_header_of_its_table() -> None:
    assert index_sentences(TEXTS[2], ENCODER).first.tolist() == [0, 0, 0, 0]


def test_the_index_of_another_text_is_refused() -> None:
    packed = pack_sentences(index_sentences(TEXTS[0], ENCODER), len(TEXTS[0]))
    assert unpack_sentences(packed, TEXTS[0] + " Gulls nest there.") is None


def test_a_text_with_offsets_beyond_16_bits_has_no_packed_index() -> None:
    text = "Gulls nest there. " * 4000
    assert pack_sentences(index_sentences(text, ENCODER), len(text)) == ""
    assert unpack_sentences("", text) is None


@given(at=st.integers(0, 10_000), value=st.integers(0, 255), cut=st.integers(0, 40))
def test_a_damaged_index_is_refused_or_stays_within_the_text(at: int, value: int, cut: int) -> None:
    text = TEXTS[0]
    data = bytearray(base64.b64decode(pack_sentences(index_sentences(text, ENCODER), len(text))))
    data[at % len(data)] = value
    index = unpack_sentences(base64.b64encode(data[: len(data) - cut]).decode(), text)
    if index is not None:
        count = len(index.start)
        edges = np.stack((index.start, index.end), axis=1).ravel()
        assert (edges <= len(text)).all() and (np.diff(edges) >= 0).all() and (index.first <= np.arange(count)).all()
        assert len(index.of) == len(index.terms) and (index.of < count).all()
