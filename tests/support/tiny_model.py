"""A small BERT with random weights in Hugging Face's layout: the real loading path, in milliseconds.

Its vocabulary covers any English word and every character of `CHINESE`, so it reads both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

CHINESE = (
    "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能对小多然于心学"
    "么之都好看起发当没成只如事把还用第样道想作种开美总从无情己面最女但现前些所同日手又行意动方期它头经长儿回位分爱老"
    "因很给名法间斯知世什两次使身者被高已亲其进此话常与活正感检索向量段落问题答案城市河流文本模型句关章示相生成表于"
)
WORDS = (
    *("the", "a", "of", "and", "in", "is", "was", "river", "city", "model", "text", "sentence", "question"),
    *("answer", "represent", "this", "for", "searching", "relevant", "passages"),
)
NLI = ("entailment", "neutral", "contradiction")
LESSONS = [
    ("the river is in the city", "the city is of the river", 0),
    ("the river is in the city", "a question of text", 2),
    ("a sentence is a model of text", "the city is of the river", 2),
    ("a sentence is a model of text", "a question of text", 0),
]
"""For a cross-encoder with the labels NLI."""
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def build_tiny_model(folder: Path, *, pooling: Literal["cls", "mean", "max"] | None = "mean", seed: int = 7) -> Path:
    """Save the model in `folder` and return it; without `pooling` there is no pooling file."""
    _save(folder, "Model", seed, hidden_size=32, intermediate_size=64)
    if pooling is not None:
        modes = {f"pooling_mode_{mode}": key == pooling for key, mode in _MODES.items()}
        file = folder / "1_Pooling" / "config.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"word_embedding_dimension": 32, **modes}), "utf-8")
    return folder


def build_tiny_reranker(folder: Path) -> Path:
    """Save a cross-encoder with one score in `folder` and return it."""
    return _save(folder, "ForSequenceClassification", num_labels=1)


def build_tiny_verifier(
    folder: Path,
    kind: Literal["Sequence", "Token"],
    labels: Sequence[str],
    *,
    positions: int = 64,
    lessons: Sequence[tuple[str, str, int]] = (),
    family: str = "Bert",
) -> Path:
    """Save a classifier of texts or of tokens with these labels in `folder` and return it.

    `family` is transformers' name for its architecture. A classifier of texts is overfitted to its `lessons`: a text,
    a statement, and the number of the label.
    """
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    head = f"For{kind}Classification"
    return _save(folder, head, lessons=lessons, family=family, max_position_embeddings=positions, **named)


def _save(
    folder: Path,
    head: str,
    seed: int = 7,
    *,
    lessons: Sequence[tuple[str, str, int]] = (),
    family: str = "Bert",
    **options: Any,
) -> Path:
    import torch
    import transformers

    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    shape |= {"max_position_embeddings": 64, "pad_token_id": 0}
    tokenizer = _tokenizer()
    tokenizer.model_max_length = options.get("max_position_embeddings", 64)
    if family != "Bert":  # the only one of these with token types
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        shape |= {"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    build = getattr(transformers, f"{family}Config")
    # The range is larger than usual, so that texts differ clearly although the model is untrained.
    config = build(vocab_size=len(tokenizer), initializer_range=0.5, **(shape | options))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = getattr(transformers, f"{family}{head}")(config)
        if lessons:
            _teach(model, tokenizer, lessons)
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _teach(model: Any, tokenizer: Any, lessons: Sequence[tuple[str, str, int]]) -> None:
    import torch

    texts, statements, labels = zip(*lessons, strict=True)
    coded = tokenizer(list(texts), list(statements), padding=True, return_tensors="pt")
    steps = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.eval()  # without dropout it needs fewer steps
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # faster for so little work
    for _ in range(40):
        steps.zero_grad()
        model(**coded, labels=torch.tensor(labels)).loss.backward()
        steps.step()
    torch.set_num_threads(threads)


_MODES = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}


def _tokenizer():  # type: ignore[no-untyped-def]  # transformers has no usable types
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *".,:;!?-。，：；！？"]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys([*pieces, *WORDS, *CHINESE]))}
    backend = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()  # FlagEmbedding decodes pairs of texts and encodes them again
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=64, **names)
