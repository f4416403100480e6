"""The settings' models: any failure while loading one is reported in one sentence."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rag.app import libraries as module
from rag.app.libraries import Models
from rag.config import load_settings
from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel
from tests.support.hashed_model import HashedModel


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(load_settings(None, rag_data_dir=tmp_path))


def loading(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | EmbeddingModel) -> None:
    """Make the loads of the model end like these, one after the other."""
    left = iter(outcomes)

    def load(name: str, **options: Any) -> EmbeddingModel:
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(module, "load_embedding_model", load)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device"), "model_failed"),
        (RuntimeError("CUDA out of memory"), "model_failed"),
        (ImportError("libtorch.so is missing"), "model_failed"),
        (ModelError("package_missing", package="none"), "package_missing"),
    ],
)
def test_what_fails_while_a_model_is_loaded_is_told_and_may_pass(
    models: Models, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    model = HashedModel()
    loading(monkeypatch, error, model)
    with pytest.raises(ModelError) as caught:
        _ = models.embedding
    assert caught.value.code == code
    assert (models.problem(), models.ready()) == (caught.value.notice, False)
    assert models.embedding is model
    assert (models.problem(), models.ready()) == (None, True)


def test_models_are_loaded_as_soon_as_the_delay_is_ended(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    loading(monkeypatch, HashedModel())
    loaded = threading.Event()
    models.warm(delay=600.0, then=loaded.set)
    assert not loaded.wait(0.05)
    models.end_delay()
    assert loaded.wait(60)
    assert models.ready()


class Broken(HashedModel):
    """A model that cannot encode."""

    def encode_query(self, text: str) -> Any:
        raise RuntimeError("the device is gone")


@pytest.mark.parametrize("outcome", [OSError("disk"), ModelError("model_failed"), Broken()])
def test_warming_ends_quietly(
    models: Models, monkeypatch: pytest.MonkeyPatch, outcome: Exception | EmbeddingModel
) -> None:
    uncaught: list[object] = []
    monkeypatch.setattr(threading, "excepthook", uncaught.append)
    loading(monkeypatch, outcome)
    models.warm()
    for thread in threading.enumerate():
        if thread.name == "models":
            thread.join(60)
    assert uncaught == []
