"""A BERT encoder read from its files: no more of transformers' shape than `transformer.py` and `embedding.py` ask for.

Importing transformers takes two thirds of the time in which the built-in model is ready; nothing else needs it there.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rag.models.families import read_json


def read_bert(folder: Path) -> Any:
    """`.model`, a tree of weights (as stored, on the processor) that cannot be called, and `.tokenizer`.

    The files are trusted: their digest was compared when the folder was found.
    """
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    config = read_json(folder / "config.json")
    model = SimpleNamespace(config=SimpleNamespace(**config))
    for name, weight in load_file(folder / "model.safetensors").items():
        *path, leaf = name.split(".")
        setattr(_at(model, path), leaf, weight)
    for node in _norms(model):
        node.eps = config["layer_norm_eps"]
    model.encoder.layer = [layer for _, layer in sorted(vars(model.encoder.layer).items(), key=lambda one: int(one[0]))]
    model.get_input_embeddings = lambda: model.embeddings.word_embeddings
    read = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = read_json(folder / "tokenizer_config.json")
    ids = {f"{name}_token_id": read.token_to_id(tokens[f"{name}_token"]) for name in ("unk", "pad")}
    return SimpleNamespace(
        model=model, tokenizer=SimpleNamespace(backend_tokenizer=read, get_vocab=read.get_vocab, **ids)
    )


def _at(root: Any, path: list[str]) -> Any:
    for name in path:
        if not hasattr(root, name):
            setattr(root, name, SimpleNamespace())
        root = getattr(root, name)
    return root


def _norms(node: Any) -> list[Any]:
    below = [(name, one) for name, one in vars(node).items() if isinstance(one, SimpleNamespace)]
    return [found for name, one in below for found in ([one] if name == "LayerNorm" else _norms(one))]
