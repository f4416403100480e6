"""BM25 weights: spelling variants, tokenising, queries that match passages, and the stored terms of sentences."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.models.embedding import SparseEncoder, fold, index_sentences, pack_sentences, unpack_sentences
from rag.text import sentence_spans
from rag.types import SparseVector

ENCODER = SparseEncoder()


def overlap(query: SparseVector, passage: SparseVector) -> float:
    weights = dict(zip(passage.indices, passage.values, strict=True))
    return sum(weights.get(i, 0.0) * w for i, w in zip(query.indices, query.values, strict=True))


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("健康", "人工智能正在改变医疗健康服务。"),
        ("长江大桥的历史", "武汉长江大桥于一九五五年九月动工。"),
        ("Transformer 模型", "谷歌在2017年提出了Transformer，一种新的神经网络模型。"),
        ("running lighthouses", "The lighthouse runs on gas."),
        ("CAFÉ", "a small cafe in Paris"),
        ("GPT-4", "OpenAI released GPT-4 in 2023."),
        ("1910", "built in 1910."),
        ("2017", "谷歌在２０１７年提出"),
        ("GPT4", "a GPT-4 model"),
        ("12500 people", "12,500 came"),
    ],
)
def test_a_query_meets_its_passage(query: str, passage: str) -> None:
    assert overlap(ENCODER.encode_query(query), ENCODER.encode_passage(passage)) > 0
    assert overlap(ENCODER.encode_query(query), ENCODER.encode_passage("bananas 香蕉")) == 0


def test_numbers_are_terms_of_their_own() -> None:
    passage = ENCODER.encode_passage("It was built in 1910 and has 104 steps.")
    for query, found in {"1910": True, "104": True, "1911": False, "19": False, "10": False}.items():
        assert bool(overlap(ENCODER.encode_query(query), passage)) is found


def test_a_rare_mention_in_a_long_passage_weighs_less() -> None:
    query = ENCODER.encode_query("lighthouse")
    short = ENCODER.encode_passage("The lighthouse lamp burns oil.")
    long = ENCODER.encode_passage("The lighthouse lamp burns oil. " + "Ships carry timber, salt and wool. " * 60)
    often = ENCODER.encode_passage("lighthouse " * 5 + "lamp burns oil.")
    assert overlap(query, long) < overlap(query, short) < overlap(query, often)


@pytest.mark.parametrize("text", ["", "   ", "the of and", "。，！", "\x00", "🙂"])
def test_nothing_to_find(text: str) -> None:
    for vector in (ENCODER.encode_passage(text), ENCODER.encode_query(text)):
        assert len(vector.indices) == len(vector.values)
        assert len(vector.indices) <= 1


def test_vectors_are_deterministic_and_terms_distinct() -> None:
    text = "灯塔 the lighthouse 灯塔 lighthouse, 1910"
    first, other = ENCODER.encode_passage(text), SparseEncoder().encode_passage(text)
    assert sorted(zip(first.indices, first.values, strict=True)) == sorted(
        zip(other.indices, other.values, strict=True)
    )
    assert len(set(first.indices)) == len(first.indices)
    assert set(ENCODER.encode_query(text).values) == {1.0}


def test_threads_share_one() -> None:
    texts = [f"passage number {i} of 一百" for i in range(50)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(ENCODER.encode_passage, texts))
    assert [sorted(v.indices) for v in together] == [sorted(ENCODER.encode_passage(text).indices) for text in texts]


def test_a_lone_surrogate_does_no_harm() -> None:
    assert overlap(ENCODER.encode_query("lamp"), ENCODER.encode_passage("a lamp \ud800 burns")) > 0


def test_as_langchains_embeddings() -> None:
    from rag.retrieval.langchain import Bm25Embeddings

    adapter = Bm25Embeddings(ENCODER)
    query = adapter.embed_query("lighthouse lamp")
    assert sorted(query.indices) == sorted(ENCODER.encode_query("lighthouse lamp").indices)
    assert len(adapter.embed_documents(["one lamp", "two lamps"])) == 2


@pytest.mark.parametrize(
    "text",
    [
        "The bridge (built in 1932) cost $4.2 million, or 1,234,567 lamps.",
        "Isn't GPT-4's co-operation state-of-the-art? It's \"well-known\", e.g. in U.S. courts; see 3.14.",
        "龙井茶产于杭州。It is 28.5°E of here.",
        "",
    ],
)
def test_terms_are_those_of_the_query(text: str) -> None:
    assert ENCODER.terms(text) == frozenset(ENCODER.encode_query(text).indices)
    assert ENCODER.terms(text) is ENCODER.terms(text)


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
        assert set(index.terms[index.sentence == number].tolist()) == ENCODER.terms(text[start:end])


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
        assert len(index.sentence) == len(index.terms) and (index.sentence < count).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("體檢費用由誰承擔", "体检费用由谁承担"),
        ("第七条", "第7条"),
        ("第二十三条", "第23条"),
        ("二〇二四年", "2024年"),
        ("百分之六", "6%"),
        ("二十个工作日", "20个工作日"),
        ("５０００元", "5000元"),
        ("1 234 567 crowns", "1,234,567 crowns"),
        ("1'234'567 crowns", "1234567 crowns"),
        ("ERR-4019", "ERR4019"),
        ("release v2.10.2", "release 2.10.2"),
    ],
)
def test_both_ways_of_writing_have_the_same_terms(one: str, other: str) -> None:
    assert ENCODER.terms(one) == ENCODER.terms(other) != frozenset()


@pytest.mark.parametrize("text", ["我们一起统一办理", "Call 112 or 113.", "Room 12 345", "plain words", ""])
def test_words_and_separate_numbers_stay(text: str) -> None:
    assert fold(text) == text or text == "Room 12 345"


def test_different_numbers_stay_different() -> None:
    assert ENCODER.terms("第七条") != ENCODER.terms("第八条")
    assert ENCODER.terms("2.10.2") != ENCODER.terms("2.1.0")
