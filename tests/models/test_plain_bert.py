"""A shipped model read from its files: equal to what FlagEmbedding loads from them, but faster."""

import subprocess
import sys

import numpy as np
import pytest

from rag.models import model_files
from rag.models.embedding import FlagEncoder
from rag.models.model_files import MINILM, family_of, find_model, load_flag_model
from rag.models.transformer import read_bert

TEXTS = [
    "The lighthouse of Vik was built in 1910.",
    "café naïve, Ünïcode, ﬁ, İ, emoji 😀",
    "检索系统先找到段落。",
    "[CLS] [SEP] [UNK] [MASK] <mask>",
    " \n\ttabs\t",
    "word " * 600,
    "",
]


@pytest.mark.parametrize("name", [model_files.E5, MINILM])
def test_tokens_and_vectors_are_those_of_the_loaded_model(name: str) -> None:
    found = find_model(name)
    family = family_of(found.origin, found.folder)
    plain, loaded = (
        FlagEncoder(flag, family, name=name, device="cpu", exact=True)
        for flag in (read_bert(found.folder), load_flag_model(name, found.folder, family.pooling, "cpu"))
    )
    assert plain._tokens.encode(TEXTS) == loaded._tokens.encode(TEXTS)
    assert np.array_equal(plain._unreadable, loaded._unreadable)
    assert (plain.dimension, plain._max_tokens, plain._pad) == (loaded.dimension, loaded._max_tokens, loaded._pad)
    np.testing.assert_allclose(plain.encode_passages(TEXTS), loaded.encode_passages(TEXTS), atol=1e-5)
    np.testing.assert_allclose(plain.sentence_vectors(TEXTS), loaded.sentence_vectors(TEXTS), atol=1e-5)


def test_the_built_in_model_is_ready_without_transformers() -> None:
    script = (
        "import sys\nfrom rag.models.embedding import load_embedding_model\nload_embedding_model('builtin')\n"
        "sys.exit(bool({'transformers', 'FlagEmbedding'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 0
