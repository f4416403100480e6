"""The contract of every embedding model: the built-in one, and folders with either kind of pooling."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.models.embedding import EmbeddingModel, load_embedding_model
from tests.support.tiny_model import build_tiny_model

ENGLISH = [
    "The river is in the city.",
    "a question",
    "The answer of the model is a sentence. " * 8,
    "text",
    "Relevant passages, and the model.",
]


def _tiny(pooling: str) -> Callable[[Path], str]:
    return lambda folder: str(build_tiny_model(folder / pooling, pooling=pooling))  # type: ignore[arg-type]


MAKERS: dict[str, Callable[[Path], str]] = {
    "builtin": lambda _: "builtin",
    "mean": _tiny("mean"),
    "cls": _tiny("cls"),
}


@pytest.fixture(scope="module", params=MAKERS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EmbeddingModel:
    return load_embedding_model(MAKERS[request.param](tmp_path_factory.mktemp("model")))


def test_passages_become_unit_vectors_in_order(model: EmbeddingModel) -> None:
    together = model.encode_passages(ENGLISH)
    assert together.shape == (len(ENGLISH), model.dimension)
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-4)
    alone = np.concatenate([model.encode_passages([text]) for text in ENGLISH])
    assert (together * alone).sum(axis=1).min() > 0.999
    assert np.abs(together @ together.T - np.eye(len(ENGLISH))).max() < 0.9999


def test_no_passages_make_no_vectors(model: EmbeddingModel) -> None:
    assert model.encode_passages([]).shape == (0, model.dimension)


@pytest.mark.parametrize("text", ["", "   ", "\x00", "x" * 20_000, "broken \ud800 surrogate", "🙂" * 50, "\u200b"])
def test_odd_texts_are_encoded(model: EmbeddingModel, text: str) -> None:
    for vector in (model.encode_passages([text])[0], model.encode_query(text)):
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-4)
    assert np.isfinite(model.sentence_vectors([text, "a"])).all()
    assert isinstance(model.can_read(text), bool)


def test_a_query_is_one_vector_that_cannot_be_changed(model: EmbeddingModel) -> None:
    first, again = model.encode_query("the city"), model.encode_query("the city")
    assert first.shape == (model.dimension,)
    assert (first == again).all()
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 2.0


def test_threads_get_what_one_thread_gets(model: EmbeddingModel) -> None:
    texts = [f"{text} {number}" for number in range(6) for text in ENGLISH]
    expected = [model.encode_passages([text])[0] for text in texts]

    def work(place: int) -> float:
        mixed = model.encode_passages(texts[place : place + 3])
        query = model.encode_query(texts[place])
        assert np.isfinite(query).all()
        assert model.can_read(texts[place])
        model.sentence_vectors(texts[place : place + 3])
        return float((mixed[0] * expected[place]).sum())

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(work, list(range(len(texts))) * 2)) > 0.999


def test_it_reads_english(model: EmbeddingModel) -> None:
    assert model.can_read("The river is in the city, and the model answers.")


def test_sentence_vectors_add_up(model: EmbeddingModel) -> None:
    one, other = "The river is in the city.", "The city and the river."
    vectors = model.sentence_vectors([one, other, "a question", f"{one} {other}"])
    assert vectors.dtype == np.float32
    assert cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2])
    assert cosine(vectors[0] + vectors[1], vectors[3]) > 0.98
    assert model.sentence_vectors([]).shape[0] == 0


def test_sentence_vectors_tell_chinese_subjects_apart(model: EmbeddingModel) -> None:
    """A model that cannot read Chinese must still find breakpoints in it."""
    vectors = model.sentence_vectors(["城市中的河流很长。", "这个城市有河流。", "模型检索文本向量。"])
    assert cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2])


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
