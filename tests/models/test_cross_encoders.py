"""Rerankers and models that check statements: tiny ones, in the real layouts, compared with other libraries."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rag.errors import ModelError
from rag.models import cross_encoders as module
from rag.models.cross_encoders import (
    LazyReranker,
    LazySupportModel,
    Pair,
    Reranker,
    Support,
    SupportModel,
    load_reranker,
    load_support_model,
)
from tests.support.tiny_model import LESSONS, NLI, build_tiny_reranker, build_tiny_verifier

QUESTION = "the river in the city"
TEXTS = [
    "the river is in the city",
    "a question about text",
    "城市中的河流",
    "the model of the sentence is text " * 4,
    "answer",
    "searching for relevant passages in a city",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_reranker(tmp_path_factory.mktemp("tiny") / "reranker")


@pytest.fixture(scope="module")
def reranker(folder: Path) -> Reranker:
    return load_reranker(str(folder))


def test_scores_are_those_of_flagembedding(folder: Path, reranker: Reranker) -> None:
    from FlagEmbedding import FlagReranker

    flag = FlagReranker(str(folder), use_fp16=False, devices="cpu", max_length=62)
    expected = flag.compute_score([(QUESTION, text) for text in TEXTS], normalize=True)
    scores = reranker.scores(QUESTION, TEXTS)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert len({round(float(score or 0), 4) for score in scores}) == len(TEXTS)
    assert all(score is not None and 0.0 < score < 1.0 for score in scores)


def test_order_and_company_do_not_matter(reranker: Reranker) -> None:
    scores = reranker.scores(QUESTION, TEXTS * 5)
    assert scores[: len(TEXTS)] == pytest.approx(scores[-len(TEXTS) :], abs=1e-5)
    assert reranker.scores(QUESTION, TEXTS[::-1]) == pytest.approx(scores[: len(TEXTS)][::-1], abs=1e-5)
    assert reranker.scores(QUESTION, []) == []


def test_long_texts_and_questions_are_cut(reranker: Reranker) -> None:
    assert reranker.scores("river " * 2_000, ["city " * 2_000]) != [None]
    assert reranker.scores("lone \ud800 surrogate", ["\ud800"]) != [None]


def test_out_of_time_the_first_wave_is_scored_and_the_rest_is_not(
    reranker: Reranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAVE", 2)
    scores = reranker.scores(QUESTION, TEXTS, seconds=0.0)
    assert [score is None for score in scores] == [False, False, True, True, True, True]
    assert None not in reranker.scores(QUESTION, TEXTS, seconds=60.0)


def test_many_threads_share_one(reranker: Reranker) -> None:
    expected = reranker.scores(QUESTION, TEXTS)
    with ThreadPoolExecutor(6) as pool:
        for scores in pool.map(lambda _: reranker.scores(QUESTION, TEXTS), range(24)):
            assert scores == pytest.approx(expected, abs=1e-5)


def test_a_late_reranker_loads_when_asked_and_not_before(folder: Path, reranker: Reranker) -> None:
    late = LazyReranker(str(folder))
    assert late.name == str(folder)
    assert late.scores(QUESTION, TEXTS) == pytest.approx(reranker.scores(QUESTION, TEXTS))
    missing = LazyReranker("/no/such/folder")
    for _ in range(2):
        with pytest.raises(ModelError):
            missing.scores(QUESTION, TEXTS)


def test_loading_is_silent_and_imports_no_more_than_it_needs(folder: Path) -> None:
    code = (
        "import sys; from rag.models.embedding import load_embedding_model\n"
        "from rag.models.cross_encoders import load_reranker\n"
        "load_embedding_model('builtin').encode_passages(['one', 'two'])\n"
        "print([name for name in ('transformers', 'FlagEmbedding') if name in sys.modules])\n"
        f"load_reranker({str(folder)!r}).scores('the river', ['a city', 'a model'])\n"
        "wasteful = ('datasets', 'pandas', 'peft', 'sentence_transformers')\n"
        "print([name for name in wasteful if name in sys.modules])\n"
        "import FlagEmbedding; print(bool(FlagEmbedding.FlagReranker))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.stdout.split("\n")[:3] == ["[]", "[]", "True"], ended.stderr
    assert ended.stderr == ""


TOKENS = ("supported", "hallucinated")
TEXT = "the river is in the city"
PAIRS = [
    Pair("the city", (TEXT,)),
    Pair("a model of text", (TEXT, "the answer")),
    Pair("城市中的河流", ("河流", "城市")),
    Pair("relevant passages", (TEXT,), "which passages"),
]


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_verifier(tmp_path_factory.mktemp("tiny") / "nli", "Sequence", NLI)


@pytest.fixture(scope="module")
def nli_model(nli: Path) -> SupportModel:
    return load_support_model(str(nli))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_verifier(tmp_path_factory.mktemp("tiny") / "tokens", "Token", TOKENS)


def probabilities(folder: Path, kind: str, first: str, second: str) -> Any:
    """Return transformers' result for one pair alone: softmax over labels, and which tokens are the second text's."""
    import torch
    import transformers

    model = getattr(transformers, f"AutoModelFor{kind}Classification").from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    coded = tokenizer(first, second, return_tensors="pt")
    with torch.inference_mode():
        rows = torch.softmax(model(**coded).logits[0], -1).double().numpy()
    return rows, [place for place, part in enumerate(coded.sequence_ids(0)) if part == 1]


def test_a_cross_encoder_says_how_likely_the_statement_follows(nli: Path, nli_model: SupportModel) -> None:
    found = nli_model.supports(PAIRS)
    for pair, support in zip(PAIRS, found, strict=True):
        rows, _ = probabilities(nli, "Sequence", "\n".join(pair.texts), pair.statement)
        assert support.score == pytest.approx(rows[0], abs=1e-5)
        expected = "supported" if rows[0] >= 0.5 else "partly" if rows[0] >= 0.2 else "unsupported"
        assert support.verdict == expected


@pytest.mark.parametrize("family", ["DebertaV2", "XLMRoberta", "ModernBert"])
@pytest.mark.parametrize(("kind", "labels"), [("Sequence", NLI), ("Token", TOKENS)])
def test_models_of_other_families_are_read(tmp_path: Path, family: str, kind: Any, labels: tuple[str, ...]) -> None:
    """Full windows included, since each family counts positions in its own way."""
    folder = build_tiny_verifier(tmp_path / "model", kind, labels, family=family)
    pair = Pair("the city", (TEXT * 30,), "which city")
    found = load_support_model(str(folder)).supports([pair, *PAIRS])
    assert len(found) == 1 + len(PAIRS)
    assert all(0.0 <= support.score <= 1.0 for support in found)


@pytest.mark.parametrize("labels", [("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), ("entailment", "not_entailment")])
def test_its_labels_are_read_in_any_order(tmp_path: Path, labels: tuple[str, ...]) -> None:
    folder = build_tiny_verifier(tmp_path / "nli", "Sequence", labels)
    (support,) = load_support_model(str(folder)).supports(PAIRS[:1])
    rows, _ = probabilities(folder, "Sequence", TEXT, PAIRS[0].statement)
    assert support.score == pytest.approx(rows[[label.lower() for label in labels].index("entailment")], abs=1e-5)


def test_a_token_classifier_marks_what_is_made_up(tmp_path: Path) -> None:
    """With enough positions for its whole prompt."""
    folder = build_tiny_verifier(tmp_path / "tokens", "Token", TOKENS, positions=512)
    found = load_support_model(str(folder)).supports(PAIRS)
    for pair, support in zip(PAIRS, found, strict=True):
        passages = "\n".join(f"passage {n}: {text}" for n, text in enumerate(pair.texts, 1))
        prompt = (
            f"Briefly answer the following question:\n{pair.question}\nBear in mind that your response should be "
            f"strictly based on the following {len(pair.texts)} passages:\n{passages}\nIn case the passages do not "
            "contain the necessary information to answer the question, please reply with: "
            '"Unable to answer based on given passages."\noutput:'
        )
        rows, own = probabilities(folder, "Token", prompt, pair.statement)
        said = rows[own, 1]
        assert support.score == pytest.approx(1 - said.max(), abs=1e-5)
        share = (said >= 0.5).mean()
        assert support.verdict == ("supported" if not share else "partly" if share < 0.5 else "unsupported")


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1"), ("hallucinated", "supported")])
def test_its_labels_are_told_apart(tmp_path: Path, labels: tuple[str, str]) -> None:
    folder = build_tiny_verifier(tmp_path / "tokens", "Token", TOKENS)
    other = build_tiny_verifier(tmp_path / "other", "Token", labels)
    scores = [load_support_model(str(one)).supports(PAIRS[:1])[0].score for one in (folder, other)]
    assert (scores[0] == pytest.approx(scores[1])) == (labels[1] == "LABEL_1")


def test_what_a_model_learned_comes_out(tmp_path: Path) -> None:
    folder = build_tiny_verifier(tmp_path / "nli", "Sequence", NLI, lessons=LESSONS)
    found = load_support_model(str(folder)).supports([Pair(statement, (text,)) for text, statement, _ in LESSONS])
    assert [support.verdict for support in found] == ["supported", "unsupported", "unsupported", "supported"]


def test_a_statement_is_as_good_as_its_best_window(nli: Path, nli_model: SupportModel) -> None:
    """The text is three times as long as the model's window; windows overlap."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(nli)
    text, statement = " ".join([TEXT] * 9 + ["a sentence is a model of text"] * 15), "the city"
    room = 64 - len(tokenizer("", statement)["input_ids"])
    words = text.split()  # one token each
    windows = [" ".join(words[begin : begin + room]) for begin in range(0, len(words) - 8, room - 8)]
    scores = [probabilities(nli, "Sequence", window, statement)[0][0] for window in windows]
    assert len(windows) >= 3
    (support,) = nli_model.supports([Pair(statement, (text,))])
    assert support.score == pytest.approx(max(scores), abs=1e-5)


@pytest.mark.parametrize("kind", ["nli", "tokens"])
def test_order_company_and_length_do_not_matter(kind: str, request: pytest.FixtureRequest) -> None:
    model = load_support_model(str(request.getfixturevalue(kind)))
    alone = [model.supports([pair])[0].score for pair in PAIRS]
    together = [support.score for support in model.supports(PAIRS[::-1] * 6)]
    assert together[: len(PAIRS)] == pytest.approx(alone[::-1], abs=1e-5)
    assert model.supports([]) == []
    for odd in (Pair("", ("",)), Pair("river " * 500, ("city " * 5000,)), Pair("\ud800 lone", ("\ud800",))):
        assert 0.0 <= model.supports([odd])[0].score <= 1.0


def test_many_threads_share_one_classifier(nli_model: SupportModel) -> None:
    expected = [support.score for support in nli_model.supports(PAIRS)]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: nli_model.supports(PAIRS), range(12)):
            assert [support.score for support in found] == pytest.approx(expected, abs=1e-5)


class Broken:
    name = "broken"

    def supports(self, pairs: object) -> list[Support]:
        raise RuntimeError("CUDA out of memory")


def test_a_late_model_loads_when_asked_and_not_before(nli: Path) -> None:
    late = LazySupportModel(str(nli))
    assert late.name == str(nli)
    assert late.supports(PAIRS) == late.supports(PAIRS)
    missing = LazySupportModel("/no/such/folder")
    broken = LazySupportModel(str(nli))
    broken._loaded = Broken()
    with pytest.raises(ModelError, match="Couldn't load"):
        broken.supports(PAIRS)
    for _ in range(2):
        with pytest.raises(ModelError):
            missing.supports(PAIRS)
