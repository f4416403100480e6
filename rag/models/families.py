"""Settings of each family of embedding models, one row each; the first match counts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rag.errors import ModelError

Pooling = Literal["cls", "mean", "last"]

_TO_ZH = "为这个句子生成表示以用于检索相关文章："
_TO_EN = "Represent this sentence for searching relevant passages: "
_TO_WEB = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """The way in which a family turns text into a vector.

    `pattern` is searched in the model's lower-case name without its owner; `query` and `passage` are put before the
    text; `max_tokens` includes special tokens.
    """

    pattern: str
    pooling: Pooling
    query: str = ""
    passage: str = ""
    max_tokens: int = 512


FAMILIES: tuple[ModelFamily, ...] = (
    ModelFamily(r"all-minilm-l6-v2", "mean", max_tokens=256),
    # Trained up to 8 192 tokens; chunks are far below 1 024, and attention costs the square.
    ModelFamily(r"bge-m3", "cls", max_tokens=1024),
    ModelFamily(r"bge-(small|base|large)-zh(-v1\.5)?$", "cls", query=_TO_ZH),
    ModelFamily(r"bge-(small|base|large)-en(-v1\.5)?$", "cls", query=_TO_EN),
    ModelFamily(r"bge-multilingual-gemma2", "last", query=f"<instruct>{_TO_WEB}\n<query>", max_tokens=1024),
    ModelFamily(r"qwen3-embedding", "last", query=f"Instruct: {_TO_WEB}\nQuery:", max_tokens=1024),
    ModelFamily(r"multilingual-e5-large-instruct", "mean", query=f"Instruct: {_TO_WEB}\nQuery: "),
    ModelFamily(r"e5-(small|base|large)(-v2)?$", "mean", query="query: ", passage="passage: "),
    ModelFamily(r"gte-(small|base|large)-zh$", "cls"),
    ModelFamily(r"gte-(small|base|large)$", "mean"),
    ModelFamily(r"bce-embedding", "cls"),
)

# FlagEmbedding's default for a folder that sets nothing.
_UNKNOWN = ModelFamily("", "cls")


def family_of(name: str, folder: Path) -> ModelFamily:
    """Return the family of the model in `folder`, by `name`, else by the folder's own configuration.

    Raises ModelError when the folder asks for a pooling that is not supported.
    """
    origin = str(read_json(folder / "config.json").get("_name_or_path", ""))
    # A fine-tuned model has its base model's name in `_name_or_path`, so a pooling file comes first.
    names = [name] if (folder / "1_Pooling" / "config.json").is_file() else [name, origin]
    for candidate in names:
        base = candidate.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
        for family in FAMILIES:
            if re.search(family.pattern, base):
                return family
    return _family_of_folder(name, folder)


def _family_of_folder(name: str, folder: Path) -> ModelFamily:
    pooling = _pooling(read_json(folder / "1_Pooling" / "config.json"))
    if pooling is None:
        raise ModelError("embedding_pooling", name=name)
    prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    limit = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    return replace(
        _UNKNOWN,
        pooling=pooling,
        query=str(prompts.get("query") or ""),
        passage=str(prompts.get("document") or prompts.get("passage") or ""),
        max_tokens=min(int(limit), 1024) if isinstance(limit, int) and limit > 0 else _UNKNOWN.max_tokens,
    )


def _pooling(config: dict[str, Any]) -> Pooling | None:
    """Read both layouts of sentence-transformers' file: one flag a mode, or the mode's name."""
    if not config:
        return _UNKNOWN.pooling
    poolings: dict[str, Pooling] = {"cls": "cls", "mean": "mean", "lasttoken": "last"}
    if isinstance(config.get("pooling_mode"), str):
        return poolings.get(config["pooling_mode"])
    flags = {"cls_token": "cls", "mean_tokens": "mean", "lasttoken": "lasttoken"}
    modes = [key.removeprefix("pooling_mode_") for key, value in config.items() if value is True]
    modes = [mode for mode in modes if mode != "include_prompt"]
    return poolings.get(flags.get(modes[0], "")) if len(modes) == 1 else None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one if the file is missing, unreadable or something else."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
