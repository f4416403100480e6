"""Learned sparse vectors: as FlagEmbedding computes them, stored next to BM25's terms, searched, and moved."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.app import App
from rag.config import load_settings
from rag.errors import ModelError
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.models.embedding import FIRST_LEARNED_ID, LexicalHead, SparseEncoder, lexical_head, load_embedding_model
from rag.models.model_files import HEAD, LEXICAL
from rag.retrieval.strategies import learned_query
from rag.types import SparseVector
from tests.support.tiny_model import build_tiny_model

TEXTS = ["the river is in the city", "检索向量段落 a model", "", "a question of text and a sentence of the model"]
PAGES = [
    {"url": "https://a.example/1", "title": "River", "text": "the river is in the city and the model is in the text"},
    {"url": "https://a.example/2", "title": "Answer", "text": "a question is the answer of a sentence in this text"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny-m3", pooling="cls")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        linear = torch.nn.Linear(32, 1)
        torch.nn.init.constant_(linear.bias, 1.0)  # so that most tokens have some weight
        torch.save(linear.state_dict(), folder / HEAD)
        torch.save(torch.nn.Linear(32, 32).state_dict(), folder / "colbert_linear.pt")
    return folder


@pytest.fixture(scope="module")
def head(folder: Path) -> LexicalHead:
    head = lexical_head(load_embedding_model(f"{folder}{LEXICAL}"))
    assert head is not None
    return head


def weights(vector: SparseVector) -> dict[int, float]:
    return dict(zip(vector.indices, vector.values, strict=True))


def test_the_weights_are_those_of_flagembedding(folder: Path, head: LexicalHead) -> None:
    from FlagEmbedding import BGEM3FlagModel

    theirs: Any = BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")
    separator = theirs.tokenizer.sep_token_id  # appended by BGE-M3's own tokenizer, and left out of its weights
    found = theirs.encode(TEXTS, return_sparse=True)["lexical_weights"]
    for ours, expected in zip(head.encode(TEXTS), found, strict=True):
        wanted = {
            FIRST_LEARNED_ID + int(token): float(weight)
            for token, weight in expected.items()
            if int(token) != separator
        }
        assert weights(ours).keys() == wanted.keys()
        assert weights(ours) == pytest.approx(wanted, abs=1e-5)


def test_texts_of_any_number_come_back_in_order(head: LexicalHead) -> None:
    several = [TEXTS[number % 4] * (1 + number % 3) for number in range(40)]
    for text, found in zip(several, head.encode(several), strict=True):
        assert weights(found) == pytest.approx(weights(head.encode([text])[0]), abs=1e-5)
    assert head.encode([]) == []


def test_without_the_suffix_there_are_none(folder: Path) -> None:
    plain, learned = load_embedding_model(str(folder)), load_embedding_model(f"{folder}{LEXICAL}")
    assert lexical_head(plain) is None and learned.name == plain.name + LEXICAL
    assert np.allclose(plain.encode_query(TEXTS[0]), learned.encode_query(TEXTS[0]))


@pytest.mark.parametrize("broken", [None, b"no weights", "other"])
def test_a_model_without_a_head_that_fits_says_so(tmp_path: Path, folder: Path, broken: bytes | str | None) -> None:
    folder = shutil.copytree(folder, tmp_path / "tiny-m3")
    (folder / HEAD).unlink()
    if broken == "other":
        import torch

        torch.save(torch.nn.Linear(16, 1).state_dict(), folder / HEAD)
    elif isinstance(broken, bytes):
        (folder / HEAD).write_bytes(broken)
    with pytest.raises(ModelError, match=r"sparse_linear\.pt.*\+sparse"):
        load_embedding_model(f"{folder}{LEXICAL}")


def test_a_question_is_weighed_as_learned_whatever_its_terms_rarity(head: LexicalHead) -> None:
    encoder, (alone,) = SparseEncoder(), head.encode([TEXTS[0]])
    halved = learned_query(TEXTS[0], (), head, encoder, lambda terms: dict.fromkeys(terms, 2.0))
    assert weights(halved) == pytest.approx({term: value / 2 for term, value in weights(alone).items()})
    after = learned_query(TEXTS[0], (TEXTS[3],), head, encoder, lambda terms: dict.fromkeys(terms, 1.0))
    assert weights(after).keys() > weights(alone).keys()
    assert all(value >= weights(alone)[term] - 1e-6 for term, value in weights(after).items() if term in weights(alone))


def opened(place: Path, model: str) -> App:
    given = {"qdrant_url": "", "llm_model": "", "llm_base_url": "", "embedding_model": model}
    return App(load_settings(None, rag_data_dir=place, **given))


def stored_terms(app: App) -> list[SparseVector]:
    library = app.library("main")
    found = [library.reusable_vectors(page.url_hash) for page in library.pages()]
    return [sparse for one in found for _, sparse in one.values()]


def test_a_library_has_both_kinds_of_terms_and_moves_to_and_from_them(tmp_path: Path, folder: Path) -> None:
    with closing(opened(tmp_path, str(folder))) as app:
        list(ingest_all(app.imports.ingestor("main"), list(record_sources(map(json.dumps, PAGES), "pages"))))
        before = sorted(map(str, stored_terms(app)))
        assert all(max(one.indices) < FIRST_LEARNED_ID for one in stored_terms(app))
    with closing(opened(tmp_path, f"{folder}{LEXICAL}")) as app:
        app.moves.begin("main", app.models.embedding.name)
        move = app.moves.wait("main", 60)
        assert (move.state, move.notice) == ("done", None)
        assert all(min(one.indices) < FIRST_LEARNED_ID <= max(one.indices) for one in stored_terms(app))
        found = app.search("the river", library="main", strategy="keyword").passages
        assert {one.url for one in found} == {page["url"] for page in PAGES}
        list(
            ingest_all(app.imports.ingestor("main"), list(record_sources([json.dumps(PAGES[0])], "pages")), force=True)
        )
        more = [{"url": "https://a.example/3", "title": "Third", "text": "this city is the answer"}]
        list(ingest_all(app.imports.ingestor("main"), list(record_sources(map(json.dumps, more), "pages"))))
        assert all(max(one.indices) >= FIRST_LEARNED_ID for one in stored_terms(app))
        app.remove_pages("main", [page.url_hash for page in app.library("main").pages() if page.title == "Third"])
    with closing(opened(tmp_path, str(folder))) as app:
        app.moves.begin("main", app.models.embedding.name)
        assert app.moves.wait("main", 60).state == "done"
        assert sorted(map(str, stored_terms(app))) == before
