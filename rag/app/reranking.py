"""The reranker that runs. One by address runs only after a comparison on the library's own questions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rag.config import Settings
from rag.errors import ConfigError, RagError
from rag.evaluation.sets import Sets
from rag.evaluation.statistics import PAIRED_ROUNDS, Difference, draws, mean, paired_difference
from rag.models.families import read_json
from rag.models.reranker import LateReranker, Reranker
from rag.models.service import Service
from rag.models.service_reranker import Scale, ServiceReranker
from rag.retrieval.retriever import Retriever
from rag.store.qdrant.library import Library
from rag.types import Retrieval
from rag.web.url_key import url_hash

MOST_QUESTIONS: Final = 100


class Reranking:
    """Safe to share between threads. What is decided about a reranker by address lies in the data folder."""

    def __init__(self, settings: Settings) -> None:
        self._file = settings.rag_data_dir / "reranker.json"
        self._lock = threading.Lock()
        self._key = f"{settings.reranker_model} {settings.reranker_base_url}"
        self.by_address = bool(settings.reranker_base_url)
        self.offered: Reranker | None = None
        """The reranker of the settings, whether it runs or not."""
        if self.by_address:
            key = settings.reranker_api_key.get_secret_value()
            service = Service(settings.reranker_base_url, key, "RERANKER_BASE_URL")
            scale: Scale = self._noted().get("scale", "")
            self.offered = ServiceReranker(service, settings.reranker_model, scale, self._note_scale)
        elif settings.reranker_model:
            self.offered = LateReranker(settings.reranker_model)

    @property
    def current(self) -> Reranker | None:
        """The reranker that runs."""
        return self.offered if not self.by_address or self._noted().get("on") else None

    @property
    def comparison(self) -> Mapping[str, Any]:
        """The figures of the last comparison; empty before the first."""
        found: Mapping[str, Any] = self._noted().get("compared", {})
        return found

    def switch(self, on: bool) -> None:
        """Let it run, or not. Raises RagError("reranker_not_compared")."""
        if on and not self.comparison:
            raise RagError("reranker_not_compared")
        self._note(on=on)

    def note_comparison(self, found: Difference) -> None:
        by = found.by
        self._note(
            compared={
                "questions": found.n,
                "before": round(found.before, 4),
                "after": round(found.after, 4),
                "difference": [round(by.value, 4), round(by.low, 4), round(by.high, 4)],
                "verdict": found.verdict,
            }
        )

    def _note_scale(self, scale: Scale) -> None:
        self._note(scale=scale)

    def _noted(self) -> dict[str, Any]:
        """What is noted about this model at this address; another one begins anew."""
        found = read_json(self._file)
        return found if found.get("of") == self._key else {}

    def _note(self, **values: Any) -> None:
        with self._lock:
            draft = self._file.with_suffix(".new")
            try:
                draft.write_text(json.dumps({**self._noted(), "of": self._key, **values}), "utf-8")
                draft.replace(self._file)
            except OSError as error:
                raise ConfigError("data_dir_unwritable", path=self._file.parent) from error


Place = tuple[str, int, int]
"""A page's url_hash, and where in its text evidence begins and ends."""


def compare(
    reranking: Reranking, retriever: Callable[[Reranker | None], Retriever], asked: Iterable[tuple[str, list[Place]]]
) -> Difference:
    """Search for questions, each with its evidence, without the reranker and with it, and note what came of it.

    The figure is the mean reciprocal rank of the first passage with evidence. Raises RagError("reranker_none",
    "reranker_no_questions"), and that of a reranker that fails.
    """
    if (reranker := reranking.offered) is None:
        raise RagError("reranker_none")
    without, beside = retriever(None), retriever(reranker)
    pairs: list[tuple[float, float]] = []
    for question, evidence in asked:
        found = beside.search(question)
        if problem := found.notes.get("fell_back"):
            raise RagError(problem["code"], **problem["params"])
        pairs.append((reciprocal_rank(without.search(question), evidence), reciprocal_rank(found, evidence)))
    if not pairs:
        raise RagError("reranker_no_questions")
    before, after = zip(*pairs, strict=True)
    weights = draws(range(len(pairs)), PAIRED_ROUNDS)
    difference = paired_difference(len(pairs), mean(weights, before), mean(weights, after))
    reranking.note_comparison(difference)
    return difference


def questions(library: Library, sets: Sets, past: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Place]]]:
    """Questions with their evidence: those of the library's approved cases, and `past` ones with their citations."""
    quoted = {
        one.get("standalone") or one["question"]: [(c["url_hash"], c["quote"]) for c in one["citations"]]
        for one in past
    }
    for one in sets.sets(library.name):
        cases = [case for case in sets.cases(one.id, approved=True) if not case.history]
        quoted |= {case.question: [(url_hash(e.url), e.quote) for e in case.evidence] for case in cases}
    for question, quotes in list(quoted.items())[-MOST_QUESTIONS:]:
        texts = library.texts([key for key, _ in quotes])
        begins = [(key, texts.get(key, "").find(quote), len(quote)) for key, quote in quotes if quote]
        if places := [(key, start, start + size) for key, start, size in begins if start >= 0]:
            yield question, places


def reciprocal_rank(found: Retrieval, evidence: list[Place]) -> float:
    """1 / the rank of the first candidate that overlaps evidence; 0 without one."""
    for rank, one in enumerate(found.candidates, 1):
        passage = one.passage
        if any(passage.url_hash == key and passage.start < end and start < passage.end for key, start, end in evidence):
            return 1.0 / rank
    return 0.0
