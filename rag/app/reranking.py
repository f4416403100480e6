"""The active reranker. One by address runs only after a comparison on the library's own questions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rag.config import Settings
from rag.errors import ConfigError, RagError
from rag.evaluation.sets import Sets
from rag.evaluation.statistics import PAIRED_ROUNDS, Difference, draws, mean, paired_difference
from rag.models.model_files import read_json
from rag.models.reranker import LateReranker, Reranker
from rag.models.service import Scale, Service, ServiceReranker
from rag.retrieval.retriever import Retriever
from rag.store.qdrant.library import Library
from rag.types import Retrieval
from rag.web.url_key import url_hash

MAX_QUESTIONS: Final = 100


class Reranking:
    """The settings' reranker. Safe to share between threads. Decisions on one by address are in the data folder."""

    def __init__(self, settings: Settings) -> None:
        self._file = settings.rag_data_dir / "reranker.json"
        self._lock = threading.Lock()
        self._key = f"{settings.reranker_model} {settings.reranker_base_url}"
        self.by_address = bool(settings.reranker_base_url)
        self.offered: Reranker | None = None
        """The reranker of the settings, active or not."""
        if self.by_address:
            key = settings.reranker_api_key.get_secret_value()
            service = Service(settings.reranker_base_url, key, "RERANKER_BASE_URL")
            scale: Scale = self._read_notes().get("scale", "")
            self.offered = ServiceReranker(service, settings.reranker_model, scale, self._note_scale)
        elif settings.reranker_model:
            self.offered = LateReranker(settings.reranker_model)

    @property
    def current(self) -> Reranker | None:
        """Active reranker."""
        return self.offered if not self.by_address or self._read_notes().get("on") else None

    @property
    def comparison(self) -> Mapping[str, Any]:
        """Figures of the last comparison; empty before the first."""
        figures: Mapping[str, Any] = self._read_notes().get("compared", {})
        return figures

    def switch(self, on: bool) -> None:
        """Turn the reranker on or off. Raises RagError("reranker_not_compared")."""
        if on and not self.comparison:
            raise RagError("reranker_not_compared")
        self._write_notes(on=on)

    def note_comparison(self, difference: Difference) -> None:
        by = difference.by
        self._write_notes(
            compared={
                "questions": difference.n,
                "before": round(difference.before, 4),
                "after": round(difference.after, 4),
                "difference": [round(by.value, 4), round(by.low, 4), round(by.high, 4)],
                "verdict": difference.verdict,
            }
        )

    def _note_scale(self, scale: Scale) -> None:
        self._write_notes(scale=scale)

    def _read_notes(self) -> dict[str, Any]:
        """Return the notes on this model at this address; another one has none yet."""
        notes = read_json(self._file)
        return notes if notes.get("of") == self._key else {}

    def _write_notes(self, **values: Any) -> None:
        with self._lock:
            draft = self._file.with_suffix(".new")
            try:
                draft.write_text(json.dumps({**self._read_notes(), "of": self._key, **values}), "utf-8")
                draft.replace(self._file)
            except OSError as error:
                raise ConfigError("data_dir_unwritable", path=self._file.parent) from error


Place = tuple[str, int, int]
"""A page's url_hash, and the start and end of evidence in its text."""


def compare(
    reranking: Reranking, retriever: Callable[[Reranker | None], Retriever], cases: Iterable[tuple[str, list[Place]]]
) -> Difference:
    """Search for questions, each with its evidence, without the reranker and with it, and store the result.

    The figure is the mean reciprocal rank of the first passage with evidence. Raises RagError("reranker_none",
    "reranker_no_questions"), and that of a reranker that fails.
    """
    if (reranker := reranking.offered) is None:
        raise RagError("reranker_none")
    plain, reranked = retriever(None), retriever(reranker)
    pairs: list[tuple[float, float]] = []
    for question, evidence in cases:
        result = reranked.search(question)
        if problem := result.notes.get("fell_back"):
            raise RagError(problem["code"], **problem["params"])
        pairs.append((reciprocal_rank(plain.search(question), evidence), reciprocal_rank(result, evidence)))
    if not pairs:
        raise RagError("reranker_no_questions")
    before, after = zip(*pairs, strict=True)
    weights = draws(range(len(pairs)), PAIRED_ROUNDS)
    difference = paired_difference(len(pairs), mean(weights, before), mean(weights, after))
    reranking.note_comparison(difference)
    return difference


def questions(library: Library, sets: Sets, past: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Place]]]:
    """Yield questions with their evidence: the library's approved cases, and `past` ones with their citations."""
    quoted = {
        one.get("standalone") or one["question"]: [(c["url_hash"], c["quote"]) for c in one["citations"]]
        for one in past
    }
    for one in sets.sets(library.name):
        cases = [case for case in sets.cases(one.id, approved=True) if not case.history]
        quoted |= {case.question: [(url_hash(e.url), e.quote) for e in case.evidence] for case in cases}
    for question, quotes in list(quoted.items())[-MAX_QUESTIONS:]:
        texts = library.texts([key for key, _ in quotes])
        begins = [(key, texts.get(key, "").find(quote), len(quote)) for key, quote in quotes if quote]
        if places := [(key, start, start + size) for key, start, size in begins if start >= 0]:
            yield question, places


def reciprocal_rank(result: Retrieval, evidence: list[Place]) -> float:
    """Return 1 / the rank of the first candidate that overlaps evidence; 0 without one."""
    for rank, candidate in enumerate(result.candidates, 1):
        passage = candidate.passage
        if any(passage.url_hash == key and passage.start < end and start < passage.end for key, start, end in evidence):
            return 1.0 / rank
    return 0.0
