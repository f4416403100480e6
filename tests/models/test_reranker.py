"""Cross-encoders through FlagEmbedding's FlagReranker: a tiny one with random weights, in the real layout."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.errors import ModelError
from rag.locales import say
from rag.models import cross_encoders as module
from rag.models.cross_encoders import LazyReranker, load_reranker
from tests.support.tiny_model import build_tiny_model, build_tiny_reranker

QUESTION = "the river in the city"
TEXTS = [
    "the river is in the city",
    "a question about text",
    "城市中的河流",
    "the model of the sentence is text " * 4,
    "answer",
    "searching for relevant passages in a city",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_reranker(tmp_path_factory.mktemp("tiny") / "reranker")


def test_scores_are_those_of_flagembedding(folder: Path) -> None:
    from FlagEmbedding import FlagReranker

    flag = FlagReranker(str(folder), use_fp16=False, devices="cpu", max_length=62)
    expected = flag.compute_score([(QUESTION, text) for text in TEXTS], normalize=True)
    scores = load_reranker(str(folder)).scores(QUESTION, TEXTS)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert len({round(float(score or 0), 4) for score in scores}) == len(TEXTS)
    assert all(score is not None and 0.0 < score < 1.0 for score in scores)


def test_order_and_company_do_not_matter(folder: Path) -> None:
    reranker = load_reranker(str(folder))
    scores = reranker.scores(QUESTION, TEXTS * 5)
    assert scores[: len(TEXTS)] == pytest.approx(scores[-len(TEXTS) :], abs=1e-5)
    assert reranker.scores(QUESTION, TEXTS[::-1]) == pytest.approx(scores[: len(TEXTS)][::-1], abs=1e-5)
    assert reranker.scores(QUESTION, []) == []


def test_long_texts_and_questions_are_cut(folder: Path) -> None:
    (score,) = load_reranker(str(folder)).scores("river " * 2_000, ["city " * 2_000])
    assert score is not None
    (odd,) = load_reranker(str(folder)).scores("lone \ud800 surrogate", ["\ud800"])
    assert odd is not None


def test_out_of_time_the_first_wave_is_scored_and_the_rest_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAVE", 2)
    scores = load_reranker(str(folder)).scores(QUESTION, TEXTS, seconds=0.0)
    assert [score is None for score in scores] == [False, False, True, True, True, True]
    assert None not in load_reranker(str(folder)).scores(QUESTION, TEXTS, seconds=60.0)


def test_many_threads_share_one(folder: Path) -> None:
    reranker = load_reranker(str(folder))
    expected = reranker.scores(QUESTION, TEXTS)
    with ThreadPoolExecutor(6) as pool:
        for scores in pool.map(lambda _: reranker.scores(QUESTION, TEXTS), range(24)):
            assert scores == pytest.approx(expected, abs=1e-5)


def test_a_late_reranker_loads_when_asked_and_not_before(folder: Path) -> None:
    late = LazyReranker(str(folder))
    assert late.name == str(folder)
    assert late.scores(QUESTION, TEXTS) == pytest.approx(load_reranker(str(folder)).scores(QUESTION, TEXTS))
    missing = LazyReranker("/no/such/folder")
    for _ in range(2):
        with pytest.raises(ModelError):
            missing.scores(QUESTION, TEXTS)


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _garbled(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"not weights")


def _two_labels(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    labels = {"id2label": {"0": "A", "1": "B"}, "label2id": {"A": 0, "B": 1}}
    (folder / "config.json").write_text(json.dumps({**config, **labels}))


def _not_finite(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({name: np.full_like(value, np.nan) for name, value in weights.items()}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (_without("config.json"), {"reranker_incomplete"}),
        (_without("model.safetensors"), {"reranker_incomplete"}),
        (_garbled, {"reranker_unreadable"}),
        (_two_labels, {"reranker_wrong_kind", "reranker_unreadable"}),
        (_not_finite, {"reranker_not_finite"}),
    ],
)
def test_what_is_no_reranker_is_one_sentence(tmp_path: Path, change: Any, codes: set[str]) -> None:
    broken = build_tiny_reranker(tmp_path / "reranker")
    change(broken)
    with pytest.raises(ModelError) as caught:
        load_reranker(str(broken)).scores(QUESTION, TEXTS)
    assert caught.value.code in codes
    for language in ("en", "zh"):
        said = say(caught.value.notice, language)
        assert "\n" not in said
        assert "RERANKER_MODEL" in said


def test_an_embedding_model_is_no_reranker(tmp_path: Path) -> None:
    """It would load, with a random head."""
    with pytest.raises(ModelError) as caught:
        load_reranker(str(build_tiny_model(tmp_path / "model")))
    assert caught.value.code == "reranker_wrong_kind"


@pytest.mark.parametrize("name", ["builtin", "/no/such/folder", "./missing", "no such model"])
def test_a_name_that_is_nowhere(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_reranker(name)
    assert caught.value.code == "reranker_no_folder"


def test_loading_is_silent_and_leaves_the_training_half_out(folder: Path) -> None:
    code = (
        "import sys; from rag.models.embedding import load_embedding_model\n"
        "from rag.models.cross_encoders import load_reranker\n"
        "load_embedding_model('builtin').encode_passages(['one', 'two'])\n"
        f"load_reranker({str(folder)!r}).scores('the river', ['a city', 'a model'])\n"
        "wasteful = ('datasets', 'pandas', 'peft', 'sentence_transformers')\n"
        "print([name for name in wasteful if name in sys.modules])\n"
        "import FlagEmbedding; print(bool(FlagEmbedding.FlagReranker))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.stdout.split("\n")[:2] == ["[]", "True"], ended.stderr
    assert ended.stderr == ""


def test_a_hub_out_of_reach_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "from rag.errors import ModelError\n"
        "from rag.models.cross_encoders import load_reranker\n"
        "try: load_reranker('BAAI/bge-reranker-v2-m3')\n"
        "except ModelError as error: print(error.code)"
    )
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.stdout.strip() == "reranker_unreachable", ended.stderr
