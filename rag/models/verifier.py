"""Local models that judge whether texts support a statement: cross-encoders and token classifiers.

A cross-encoder for natural language inference (mDeBERTa-xnli) reads text and statement and returns entailment, neutral
or contradiction: Laurer et al. 2024, "Less Annotating, More Classifying". A token classifier (LettuceDetect: Kovács and
Recski 2025, arXiv 2502.17125) marks hallucinated tokens in an answer to a prompt. Longer texts are split into
overlapping windows; a statement gets the score of its best window, as in SummaC (Laban et al. 2022).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.embedding import best_device
from rag.models.engines import Workers
from rag.models.model_files import LazyModel, find_optional, load_classifier, read_json
from rag.models.tokens import group_by_length, usable_positions
from rag.text import make_encodable
from rag.types import Verdict

log = logging.getLogger(__name__)

Rows = NDArray[np.float64]

# Exceptions that torch, transformers or a model's files may cause.
_FAULTS: Final = (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, ImportError, MemoryError)
_MAX_TOKENS: Final = 4096
_OVERLAP: Final = 64  # tokens that a window shares with the previous one
_BATCH_TOKENS: Final = 1024  # in one forward pass
_BATCH_TOKENS_GPU: Final = 65536
_SUPPORTED, _PARTLY = 0.5, 0.2  # probability of entailment: more likely than not; possible
_HALLUCINATED: Final = 0.5  # probability of a token; the threshold of LettuceDetect's authors
# LettuceDetect was trained on the prompts of RAGTruth (Niu et al. 2024).
_PROMPT: Final = (
    "Briefly answer the following question:\n{question}\nBear in mind that your response should be strictly based on "
    "the following {count} passages:\n{passages}\nIn case the passages do not contain the necessary information to "
    'answer the question, please reply with: "Unable to answer based on given passages."\noutput:'
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A statement, and the texts to compare it with; `question` is the one it answers, or empty."""

    statement: str
    texts: tuple[str, ...]
    question: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """A verdict. `score` (0 to 1) is how well the texts support the statement."""

    verdict: Verdict
    score: float


class SupportModel(Protocol):
    """A model that judges whether texts support statements. Safe to share between threads."""

    @property
    def name(self) -> str: ...

    def supports(self, pairs: Sequence[Pair]) -> list[Support]:
        """Return one result per pair. Uses all cores. Raises ModelError."""
        ...


class LazySupportModel(LazyModel[SupportModel]):
    """A SupportModel that is loaded on first use. Each use raises a ModelError for any failure, even to load."""

    def __init__(self, name: str) -> None:
        super().__init__(name, load_support_model)

    def supports(self, pairs: Sequence[Pair]) -> list[Support]:
        try:
            return self.load().supports(pairs)
        except _FAULTS as error:
            log.exception("The verifier %s failed", self.name)
            raise ModelError("verifier_unreadable", name=self.name, folder=self.name) from error


def load_support_model(name: str) -> SupportModel:
    """Load a model from the hub by name (MoritzLaurer/mDeBERTa-v3-base-mnli-xnli,
    KRLabsOrg/lettucedect-base-modernbert-en-v1), or from a local folder.

    Raises ModelError if it is unknown, incomplete or of another kind, or if the hub cannot be reached.
    """
    began = time.perf_counter()
    folder = find_optional(name, "verifier")
    config = read_json(folder / "config.json")
    kind = _kind_of(config)
    if kind is None:
        raise ModelError("verifier_wrong_kind", name=name)
    device = best_device()
    model, tokenizer = load_classifier(name, folder, device, tokens=kind is TokenClassifier)
    loaded = kind(model, tokenizer, name=name, device=device)
    log.info("Verifier %s, %s on %s, loaded in %.1f s", name, kind.__name__, device, time.perf_counter() - began)
    return loaded


def _kind_of(config: dict[str, Any]) -> type[NliClassifier] | type[TokenClassifier] | None:
    architectures = config.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    labels = _labels(config.get("id2label"))
    if name.endswith("ForSequenceClassification") and NliClassifier.find_label(labels) is not None:
        return NliClassifier
    if name.endswith("ForTokenClassification") and TokenClassifier.find_label(labels) is not None:
        return TokenClassifier
    return None


def _labels(id2label: Any) -> list[str]:
    """Return the labels in lower case, in order; without any, the two default labels of transformers."""
    labels = id2label if isinstance(id2label, dict) else {0: "label_0", 1: "label_1"}
    lower = {str(place): str(label).lower() for place, label in labels.items()}
    return [lower.get(str(place), "") for place in range(len(lower))]


class _Classifier:
    """The base of both classifiers, which splits pairs of texts into windows of tokens and scores these in batches."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str, device: str) -> None:
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        is_roberta = "roberta" in str(model.config.model_type)
        positions = usable_positions(model.config, _MAX_TOKENS, has_unused=is_roberta)
        self._max_tokens: int = min(_MAX_TOKENS, tokenizer.model_max_length, positions)
        self._lock = threading.Lock()
        self._workers = Workers(serial=device != "cpu")

    def _windows(self, firsts: Sequence[str], seconds: Sequence[str]) -> Any:
        """Return all windows: a part of the first text, followed by the second, truncated to half of the maximum."""
        with self._lock:  # truncation is set on the shared tokenizer at every call
            return self._tokenizer(
                [make_encodable(text) for text in firsts],
                [self._truncate(make_encodable(text)) for text in seconds],
                truncation="only_first",
                max_length=self._max_tokens,
                stride=min(_OVERLAP, self._max_tokens // 8),
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )

    def _truncate(self, text: str) -> str:
        limits = {"truncation": True, "max_length": self._max_tokens // 2, "add_special_tokens": False}
        ends = self._tokenizer(text, return_offsets_mapping=True, **limits)["offset_mapping"]
        return text[: ends[-1][1]] if ends else ""

    def _probabilities(self, windows: Any) -> list[Rows]:
        """Return the softmax over the labels of each window: (labels,), or (tokens, labels)."""
        results: list[Rows] = [np.empty(0)] * len(windows["input_ids"])
        budget = _BATCH_TOKENS if self._device == "cpu" else _BATCH_TOKENS_GPU
        groups = group_by_length([len(row) for row in windows["input_ids"]], budget, self._workers.count)
        for group, rows in self._workers.each(partial(self._forward, windows), groups):
            for place, row in zip(group, rows, strict=True):
                results[place] = row
        return results

    def _forward(self, windows: Any, group: Sequence[int]) -> list[Rows]:
        import torch

        names = [name for name in self._tokenizer.model_input_names if name in windows]
        batch = self._tokenizer.pad(
            {name: [windows[name][place] for place in group] for name in names}, return_tensors="pt"
        )
        with torch.inference_mode():
            logits = self._model(**batch.to(self._device)).logits
            rows: Rows = torch.softmax(logits.float(), dim=-1).cpu().double().numpy()
        if not np.isfinite(rows).all():
            raise ModelError("verifier_not_finite", name=self.name)
        return list(rows)


class NliClassifier(_Classifier):
    """A SupportModel over a sequence classifier with a label for entailment."""

    @staticmethod
    def find_label(labels: Sequence[str]) -> int | None:
        """Return the index of the label for entailment."""
        return next((place for place, label in enumerate(labels) if label.startswith("entail")), None)

    def supports(self, pairs: Sequence[Pair]) -> list[Support]:
        if not pairs:
            return []
        windows = self._windows(["\n".join(pair.texts) for pair in pairs], [pair.statement for pair in pairs])
        label = self.find_label(_labels(self._model.config.id2label)) or 0
        best = [0.0] * len(pairs)
        for pair, row in zip(windows["overflow_to_sample_mapping"], self._probabilities(windows), strict=True):
            best[pair] = max(best[pair], float(row[label]))
        return [Support(_grade(score), score) for score in best]


def _grade(entailed: float) -> Verdict:
    if entailed >= _SUPPORTED:
        return "supported"
    return "partly" if entailed >= _PARTLY else "unsupported"


class TokenClassifier(_Classifier):
    """A SupportModel over a token classifier of hallucinations."""

    @staticmethod
    def find_label(labels: Sequence[str]) -> int | None:
        """Return the index of the label for hallucinations; the second of two default labels, as in LettuceDetect."""
        if labels == ["label_0", "label_1"]:
            return 1
        bad = ("hallucinat", "unsupported", "not_supported")
        return next((place for place, label in enumerate(labels) if label.startswith(bad)), None)

    def supports(self, pairs: Sequence[Pair]) -> list[Support]:
        if not pairs:
            return []
        windows = self._windows([_prompt(pair) for pair in pairs], [pair.statement for pair in pairs])
        label = self.find_label(_labels(self._model.config.id2label)) or 0
        tokens: list[Rows | None] = [None] * len(pairs)
        for place, rows in enumerate(self._probabilities(windows)):
            own = [token for token, part in enumerate(windows.sequence_ids(place)) if part == 1]
            pair, probabilities = windows["overflow_to_sample_mapping"][place], rows[own, label]
            previous = tokens[pair]
            tokens[pair] = probabilities if previous is None else np.minimum(previous, probabilities)
        return [_summarise(probabilities) for probabilities in tokens]


def _prompt(pair: Pair) -> str:
    passages = "\n".join(f"passage {number}: {text}" for number, text in enumerate(pair.texts, 1))
    return _PROMPT.format(question=pair.question, count=len(pair.texts), passages=passages)


def _summarise(probabilities: Rows | None) -> Support:
    """Return the verdict from the probability that each token is hallucinated; unsupported without tokens."""
    if probabilities is None or not probabilities.size:
        return Support("unsupported", 0.0)
    share = float((probabilities >= _HALLUCINATED).mean())
    verdict: Verdict = "supported" if not share else "partly" if share < 0.5 else "unsupported"
    return Support(verdict, 1.0 - float(probabilities.max()))
