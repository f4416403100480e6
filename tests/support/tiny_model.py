"""A small BERT with random weights in Hugging Face's layout: the real loading path, in milliseconds.

Its vocabulary spells any English word and holds every character of `CHINESE`, so it reads both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

CHINESE = (
    "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能对小多然于心学"
    "么之都好看起发当没成只如事把还用第样道想作种开美总从无情己面最女但现前些所同日手又行意动方期它头经长儿回位分爱老"
    "因很给名法间斯知世什两次使身者被高已亲其进此话常与活正感检索向量段落问题答案城市河流文本模型句关章示相生成表于"
)
WORDS = (
    *("the", "a", "of", "and", "in", "is", "was", "river", "city", "model", "text", "sentence", "question"),
    *("answer", "represent", "this", "for", "searching", "relevant", "passages"),
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def build_tiny_model(
    folder: Path,
    *,
    pooling: Literal["cls", "mean", "max"] | None = "mean",
    dimension: int = 32,
    seed: int = 7,
) -> Path:
    """Save the model in `folder` and return it; without `pooling` there is no pooling file."""
    import torch
    from transformers import BertConfig, BertModel

    tokenizer = _tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=dimension,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=dimension * 2,
        max_position_embeddings=64,
        pad_token_id=0,
        # Larger than usual, so that texts differ clearly although nothing was learned.
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if pooling is not None:
        modes = {f"pooling_mode_{mode}": key == pooling for key, mode in _MODES.items()}
        file = folder / "1_Pooling" / "config.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"word_embedding_dimension": dimension, **modes}), "utf-8")
    return folder


def build_tiny_reranker(folder: Path, *, dimension: int = 32, seed: int = 7) -> Path:
    """Save a cross-encoder with one score in `folder` and return it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = _tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=dimension,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=dimension * 2,
        max_position_embeddings=64,
        pad_token_id=0,
        initializer_range=0.5,
        num_labels=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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
    backend.decoder = decoders.WordPiece()  # FlagEmbedding takes pairs of texts apart and puts them together again
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=64, **names)
