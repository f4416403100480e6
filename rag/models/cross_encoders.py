"""Models that read two texts together: rerankers, verifiers of statements, and the reader that finds answers.

A cross-encoder for natural language inference (mDeBERTa-xnli) reads text and statement and returns entailment, neutral
or contradiction: Laurer et al. 2024, "Less Annotating, More Classifying". A token classifier (LettuceDetect: Kovács and
Recski 2025, arXiv 2502.17125) marks hallucinated tokens in an answer to a prompt. Longer texts are split into
overlapping windows; a statement gets the score of its best window, as in SummaC (Laban et al. 2022).

A cross-encoder (Nogueira & Cho 2019, "Passage Re-ranking with BERT", arXiv 1901.04085) over the built-in
multilingual-e5-small, fine-tuned on naturally worded questions, two in five of which their page does not answer. The
package contains low-rank differences from the built-in weights, and a head, both trained by
`python -m benchmarks.answer_reader`. See docs/decisions/0012-quoted-answers.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.embedding import best_device
from rag.models.model_files import LazyModel, find_optional, load_classifier, load_flag_reranker, read_json
from rag.models.transformer import (
    EncoderPass,
    Scorers,
    TokenBatch,
    Tokens,
    Workers,
    choose,
    has_bfloat16,
    pad_rows,
    read_bert,
    sigmoid,
    usable_positions,
)
from rag.text import make_encodable
from rag.types import Verdict

log = logging.getLogger(__name__)

_MAX_TOKENS = 512
_MAX_QUESTION = 1_500  # characters; more would leave no room for the passage
_WAVE = 16  # candidates between two checks of the time limit
_BATCH_TOKENS = 1024  # in one forward pass
_BATCH_TOKENS_GPU = 65536
_SAMPLE = (
    "When was the bridge opened?",
    (
        "The bridge that crosses the river below the old town was opened to traffic in 1910.",
        "The river rises in the mountains and reaches the sea after four hundred kilometres.",
        "这座桥于1910年通车。",
        "a",
    ),
)


class Reranker(Protocol):
    """A model that scores how well texts answer a question. Safe to share between threads."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """Score the texts in order, 0 to 1; None for those not reached within `seconds`. Raises ModelError."""
        ...


class LazyReranker(LazyModel[Reranker]):
    """A Reranker that is loaded on first use. Each use raises the error of a failure to load."""

    def __init__(self, name: str) -> None:
        super().__init__(name, load_reranker)

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        return self.load().scores(question, texts, seconds=seconds)


def load_reranker(name: str) -> Reranker:
    """Load a cross-encoder from the hub by name (BAAI/bge-reranker-v2-m3, -base, -large), or from a local folder.

    Raises ModelError if the model is unknown, incomplete or not a reranker, or the hub cannot be reached.
    """
    began = time.perf_counter()
    folder = find_optional(name, "reranker")
    # Embedding models would load as well, but with random weights in the scoring head.
    kinds = read_json(folder / "config.json").get("architectures")
    if not isinstance(kinds, list) or not any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        raise ModelError("reranker_wrong_kind", name=name)
    device = best_device()
    flag = load_flag_reranker(name, folder, device)
    reranker = CrossEncoder(flag, name=name, device=device)
    how = f"{reranker.choice.kind} pass in {reranker.choice.precision}"
    log.info("Reranker %s, %s on %s, loaded in %.1f s", name, how, device, time.perf_counter() - began)
    return reranker


class CrossEncoder:
    """A Reranker over a model loaded by FlagEmbedding (`flag.model`, `flag.tokenizer`)."""

    def __init__(self, flag: Any, *, name: str, device: str) -> None:
        config = flag.model.config
        if getattr(config, "num_labels", 1) != 1:
            raise ModelError("reranker_wrong_kind", name=name)
        self.name = name
        self.device = device
        self._tokenizer = flag.tokenizer
        self._max_tokens = min(_MAX_TOKENS, usable_positions(config, _MAX_TOKENS + 2))
        self._has_types = "token_type_ids" in flag.tokenizer.model_input_names
        self._pad: int = flag.tokenizer.pad_token_id or 0
        self._lock = threading.Lock()
        self._workers = Workers(serial=device != "cpu")
        sample, engines = self._batch(*self._tokenize(*_SAMPLE)), Scorers(flag.model, device)
        self._forward, self.choice = choose(engines, sample, half=has_bfloat16(device), run=self._workers.run)

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """See Reranker. Texts that exceed the model's limit are truncated."""
        ends = None if seconds is None else time.monotonic() + seconds
        scores: list[float | None] = []
        while len(scores) < len(texts) and not (scores and ends is not None and time.monotonic() >= ends):
            ids, types = self._tokenize(question, texts[len(scores) : len(scores) + _WAVE])
            budget = _BATCH_TOKENS if self.device == "cpu" else _BATCH_TOKENS_GPU
            work = partial(self._score_group, ids, types)
            scores += self._workers.map_groups(work, [len(row) for row in ids], budget)
        return scores + [None] * (len(texts) - len(scores))

    def _tokenize(self, question: str, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Return token ids and token types of each pair."""
        query = make_encodable(question[:_MAX_QUESTION])
        limits = {"truncation": "longest_first", "max_length": self._max_tokens, "return_token_type_ids": True}
        with self._lock:  # truncation is set on the shared tokenizer at every call
            encoding = self._tokenizer([query] * len(texts), [make_encodable(text) for text in texts], **limits)
        return [list(row) for row in encoding["input_ids"]], [list(row) for row in encoding["token_type_ids"]]

    def _score_group(self, ids: list[list[int]], types: list[list[int]], group: Sequence[int]) -> list[float]:
        logits = self._forward(self._batch([ids[place] for place in group], [types[place] for place in group]))
        if not np.isfinite(logits).all():
            raise ModelError("reranker_not_finite", name=self.name)
        return [float(score) for score in sigmoid(logits)[:, 0]]

    def _batch(self, ids: list[list[int]], types: list[list[int]]) -> TokenBatch:
        return pad_rows(ids, self._pad, self._max_tokens, types if self._has_types else None)


Rows = NDArray[np.float64]

# Exceptions that torch, transformers or a model's files may cause.
_FAULTS: Final = (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, ImportError, MemoryError)
_MAX_TOKENS_LONG: Final = 4096
_OVERLAP: Final = 64  # tokens that a window shares with the previous one
_SUPPORTED, _PARTLY = 0.5, 0.2  # probability of entailment: more likely than not; possible
_DEFAULT_LABELS: Final = ["label_0", "label_1"]  # LettuceDetect's second one means hallucinated
_HALLUCINATION_LABELS: Final = ("hallucinat", "unsupported", "not_supported")
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
    kind, label = _kind_of(config)
    if label is None:
        raise ModelError("verifier_wrong_kind", name=name)
    device = best_device()
    model, tokenizer = load_classifier(name, folder, device, tokens=kind is TokenClassifier)
    loaded = kind(model, tokenizer, label, name=name, device=device)
    log.info("Verifier %s, %s on %s, loaded in %.1f s", name, kind.__name__, device, time.perf_counter() - began)
    return loaded


def _kind_of(config: dict[str, Any]) -> tuple[type[NliClassifier] | type[TokenClassifier], int | None]:
    """Return the kind of a model, and its label for entailment or hallucinations; without one it is another kind."""
    architectures = config.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    id2label, labels = config.get("id2label"), _DEFAULT_LABELS
    if isinstance(id2label, dict):
        lower = {str(place): str(label).lower() for place, label in id2label.items()}
        labels = [lower.get(str(place), "") for place in range(len(lower))]
    if name.endswith("ForTokenClassification"):
        return TokenClassifier, 1 if labels == _DEFAULT_LABELS else _find_label(labels, _HALLUCINATION_LABELS)
    is_sequence = name.endswith("ForSequenceClassification")
    return NliClassifier, _find_label(labels, ("entail",)) if is_sequence else None


def _find_label(labels: Sequence[str], beginnings: tuple[str, ...]) -> int | None:
    return next((place for place, label in enumerate(labels) if label.startswith(beginnings)), None)


class _Classifier:
    """The base of both classifiers, which splits pairs of texts into windows of tokens and scores these in batches."""

    def __init__(self, model: Any, tokenizer: Any, label: int, *, name: str, device: str) -> None:
        self.name = name
        self._label = label
        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        is_roberta = "roberta" in str(model.config.model_type)
        positions = usable_positions(model.config, _MAX_TOKENS_LONG, has_unused=is_roberta)
        self._max_tokens: int = min(_MAX_TOKENS_LONG, tokenizer.model_max_length, positions)
        self._lock = threading.Lock()
        self._workers = Workers(serial=device != "cpu")

    def _windows(self, firsts: Sequence[str], seconds: Sequence[str]) -> Any:
        """Return all windows: a part of the first text, followed by the second, truncated to half of the maximum."""
        limits = {"truncation": True, "max_length": self._max_tokens // 2, "add_special_tokens": False}
        shortened = []
        with self._lock:  # truncation is set on the shared tokenizer at every call
            for text in map(make_encodable, seconds):
                ends = self._tokenizer(text, return_offsets_mapping=True, **limits)["offset_mapping"]
                shortened.append(text[: ends[-1][1]] if ends else "")
            return self._tokenizer(
                [make_encodable(text) for text in firsts],
                shortened,
                truncation="only_first",
                max_length=self._max_tokens,
                stride=min(_OVERLAP, self._max_tokens // 8),
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )

    def _probabilities(self, windows: Any) -> list[Rows]:
        """Return the softmax over the labels of each window: (labels,), or (tokens, labels)."""
        budget = _BATCH_TOKENS if self._device == "cpu" else _BATCH_TOKENS_GPU
        lengths = [len(row) for row in windows["input_ids"]]
        return self._workers.map_groups(partial(self._forward, windows), lengths, budget)

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

    def supports(self, pairs: Sequence[Pair]) -> list[Support]:
        if not pairs:
            return []
        windows = self._windows(["\n".join(pair.texts) for pair in pairs], [pair.statement for pair in pairs])
        best = [0.0] * len(pairs)
        for pair, row in zip(windows["overflow_to_sample_mapping"], self._probabilities(windows), strict=True):
            best[pair] = max(best[pair], float(row[self._label]))
        return [
            Support("supported" if score >= _SUPPORTED else "partly" if score >= _PARTLY else "unsupported", score)
            for score in best
        ]


class TokenClassifier(_Classifier):
    """A SupportModel over a token classifier of hallucinations."""

    def supports(self, pairs: Sequence[Pair]) -> list[Support]:
        if not pairs:
            return []
        prompts = []
        for pair in pairs:
            passages = "\n".join(f"passage {number}: {text}" for number, text in enumerate(pair.texts, 1))
            prompts.append(_PROMPT.format(question=pair.question, count=len(pair.texts), passages=passages))
        windows = self._windows(prompts, [pair.statement for pair in pairs])
        tokens: list[Rows | None] = [None] * len(pairs)
        for place, rows in enumerate(self._probabilities(windows)):
            own = [token for token, part in enumerate(windows.sequence_ids(place)) if part == 1]
            number, probabilities = windows["overflow_to_sample_mapping"][place], rows[own, self._label]
            previous = tokens[number]
            tokens[number] = probabilities if previous is None else np.minimum(previous, probabilities)
        results = []
        for hallucinated in tokens:  # the probability of each token
            if hallucinated is None or not hallucinated.size:
                results.append(Support("unsupported", 0.0))
                continue
            share = float((hallucinated >= _HALLUCINATED).mean())
            verdict: Verdict = "supported" if not share else "partly" if share < 0.5 else "unsupported"
            results.append(Support(verdict, 1.0 - float(hallucinated.max())))
        return results


WEIGHTS: Final = Path(__file__).with_name("answer_reader.safetensors")
MAX_WINDOWS: Final = 8
"""Maximum number of windows of passages that are read for one question."""
_STEP, _MIN_SURE = 2, 0.9  # windows to read at a time, and the probability of an answer from which no more are read
MAX_TOKENS: Final = 512
_QUESTION, _TITLE, _HEADING, _LINE, _WINDOW = 64, 20, 12, 80, 128  # tokens
_CACHE_SIZE: Final = 16  # questions: an answer needs the same scores twice
_BEGIN, _PAD, _END, _UNKNOWN = 0, 1, 2, 3
Row = tuple[list[int], list[tuple[int, int]]]
"""Token ids, and the span of each line in them."""


@dataclass(frozen=True, slots=True)
class TitledSentence:
    """A sentence of the passage with the number `passage`, with its title and the nearest heading."""

    passage: int
    title: str
    heading: str
    text: str


class TokenizedLines:
    """A question and lines of passages as token ids."""

    def __init__(self, tokens: Tokens, question: str, lines: Sequence[TitledSentence]) -> None:
        def encode(texts: Sequence[str], max_tokens: int) -> list[list[int]]:
            return [ids[:max_tokens] for ids in tokens.encode(texts, special=False)]

        self._question = [_BEGIN, *encode([f"query: {question}"], _QUESTION)[0], _END, _END]
        self._headers = [
            [*title, *heading]
            for title, heading in zip(
                encode([f"passage: {line.title}" for line in lines], _TITLE),
                encode([line.heading for line in lines], _HEADING),
                strict=True,
            )
        ]
        self._lines = [ids or [_UNKNOWN] for ids in encode([line.text for line in lines], _LINE)]
        self._passages = [line.passage for line in lines]

    def build_row(self, window: Sequence[int]) -> Row:
        """Return the question, the title and heading of the window, and its lines."""
        header = [*self._question, *self._headers[window[0]]]
        ends = accumulate((len(self._lines[place]) for place in window), initial=len(header))
        return [*header, *(token for place in window for token in self._lines[place]), _END], list(pairwise(ends))

    def window(self, place: int) -> range:
        """Return the line with its neighbours in the passage, added alternately before and after while they fit."""
        first = last = place
        room = _WINDOW - len(self._lines[place])
        while True:
            before, after = (self._fits(candidate, place, room) for candidate in (first - 1, last + 1))
            if not before and not after:
                return range(first, last + 1)
            if before and ((last - first) % 2 == 0 or not after):
                first -= 1
                room -= len(self._lines[first])
            else:
                last += 1
                room -= len(self._lines[last])

    def _fits(self, candidate: int, place: int, room: int) -> bool:
        exists = 0 <= candidate < len(self._lines)
        return exists and self._passages[candidate] == self._passages[place] and len(self._lines[candidate]) <= room

    def windows(self, order: Sequence[int]) -> Iterator[range]:
        """Yield the windows around the lines in this order, skipping lines that an earlier window contains."""
        seen: set[int] = set()
        for place in order:
            if place not in seen:
                window = self.window(place)
                seen.update(window)
                yield window


class AnswerReader:
    """A scorer of sentences as answers, over the built-in model. Safe to share between threads."""

    def __init__(self, folder: Callable[[], Path], weights: Path = WEIGHTS) -> None:
        """`folder` returns the folder of the built-in model; it is called on first use."""
        self._folder = folder
        self._weights = weights

    def read(self, question: str, lines: Sequence[TitledSentence], order: Sequence[int]) -> NDArray[np.float32]:
        """Return the logit of each line, (n,), relative to 0 for "none of them answers"; NaN for lines not read.

        `order` has the indexes of lines, the most promising first; they are read with their neighbours. May block.
        """
        return _score(self.load(), question, tuple(lines), tuple(order))

    def load(self) -> _Network:
        """Load the model, once per process; optional, to prepare for the first question."""
        with _loading:
            return _load_network(self._folder(), self._weights)


_loading = threading.Lock()


@lru_cache(_CACHE_SIZE)
def _score(
    network: _Network, question: str, lines: tuple[TitledSentence, ...], order: tuple[int, ...]
) -> NDArray[np.float32]:
    logits = np.full(len(lines), np.nan, dtype=np.float32)
    tokenized = TokenizedLines(network.tokens, question, lines)
    windows = islice(tokenized.windows(order), MAX_WINDOWS)
    while get_answer_probability(logits) < _MIN_SURE and (step := list(islice(windows, _STEP))):
        for window, scores in zip(step, network.read([tokenized.build_row(window) for window in step]), strict=True):
            logits[window.start : window.stop] = scores
    return logits


def get_answer_probability(logits: NDArray[np.float32]) -> float:
    """Return the probability (0 to 1) that one of the lines with these logits, NaN for those not read, answers."""
    odds = float(np.nansum(np.exp(logits)))
    return odds / (1.0 + odds)


class _Network:
    """The fine-tuned encoder, and a head over the mean state of a line and the state of the first token."""

    def __init__(self, folder: Path, weights: Path) -> None:
        from safetensors.torch import load_file

        loaded, changes = read_bert(folder), load_file(weights)
        for key in changes:
            name, _, kind = key.partition(":")
            if kind not in ("add", "up"):
                continue
            change = changes[key].float()
            if kind == "up":
                change = change @ changes[f"{name}:down"].float()
            *path, leaf = name.split(".")
            node = loaded.model.encoder
            for step in path:
                node = node[int(step)] if step.isdigit() else getattr(node, step)
            setattr(node, leaf, getattr(node, leaf).float() + change)
        self._head = [changes[f"head.{name}"].float() for name in ("wide", "wide_bias", "narrow", "narrow_bias")]
        self._workers = Workers()
        self._encode = self._workers.run(lambda: EncoderPass(loaded.model, half=has_bfloat16("cpu")))
        self.tokens = Tokens(loaded.tokenizer, MAX_TOKENS)

    def read(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        """Return the logits of the lines of each row."""
        order = sorted(range(len(rows)), key=lambda place: len(rows[place][0]))
        share = max(1, -(-len(order) // self._workers.count))
        groups = [order[start : start + share] for start in range(0, len(order), share)]
        results: dict[int, NDArray[np.float32]] = {}
        for group, logits in self._workers.each(lambda group: self._forward([rows[i] for i in group]), groups):
            results.update(zip(group, logits, strict=True))
        return [results[place] for place in range(len(rows))]

    def _forward(self, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        import torch

        wide, wide_bias, narrow, narrow_bias = self._head
        with torch.inference_mode():
            hidden = self._encode(pad_rows([ids for ids, _ in rows], _PAD, MAX_TOKENS)).float()
            states = [
                torch.cat((hidden[row, first:last].mean(0), hidden[row, 0]))
                for row, (_, spans) in enumerate(rows)
                for first, last in spans
            ]
            inner = torch.nn.functional.gelu(torch.stack(states) @ wide.T + wide_bias)
            logits = (inner @ narrow.T + narrow_bias).squeeze(-1)
            return [part.numpy() for part in torch.split(logits, [len(spans) for _, spans in rows])]


_load_network = cache(_Network)
