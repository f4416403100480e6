"""The app's interface for evaluation: answers as users get them, judges, and the comparison of rerankers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from rag.app.chat_models import ChatOptions, Holder
from rag.app.dispatch import AnswerLimit
from rag.app.libraries import Reranking
from rag.background import BACKGROUND
from rag.checking.verifier import Verifier
from rag.conversations.conversations import TurnHandle
from rag.errors import ModelError, RagError
from rag.evaluation.cases import NO_MODEL
from rag.evaluation.judge import Fill, ModelJudge
from rag.evaluation.metrics import Judges, reciprocal_rank
from rag.evaluation.sets import Sets
from rag.evaluation.statistics import PAIRED_ROUNDS, Difference, bootstrap_weights, mean, paired_difference
from rag.evaluation.support import by_rules, by_verifier
from rag.models.cross_encoders import Reranker
from rag.prompts.requests import Prompt
from rag.prompts.texts import PromptTexts
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.retrieval.context import is_overlapping
from rag.retrieval.retriever import Retriever
from rag.runs.run import Question
from rag.store.qdrant.library import Library
from rag.store.sql.evaluation_table import RunTable
from rag.types import Event, Page, Retrieval
from rag.web.urls import url_hash

if TYPE_CHECKING:
    from rag.app import App

MAX_QUESTIONS: Final = 100
"""Max. questions for comparing a reranker."""
_EvidenceSpan = tuple[str, int, int]
"""A page's url_hash, and the start and end of evidence in its text."""


class EvaluationApp:
    """An adapter of the app to `rag.evaluation.runs.EvaluatedApp`."""

    def __init__(self, app: App, answer_limit: AnswerLimit, usage: RunTable) -> None:
        self._app = app
        self._answer_limit = answer_limit
        self._usage = usage

    def source_of(self, chat: ChatOptions) -> Holder | ChatOptions:
        return chat.holder or chat

    def current_chat(self, source: Holder | ChatOptions | None) -> ChatOptions | None:
        if not isinstance(source, Holder):
            return source
        options = self._app.chats.connections.snapshot_of(source)
        if options is None:
            raise RagError("evaluation_no_model")
        return options

    def ask_as(
        self,
        question: Question,
        history: Sequence[tuple[str, str]],
        model: str,
        chat: ChatOptions | None,
        person: str,
        answers: int,
    ) -> str:
        app, library, options = self._app, question.library, chat
        if model:  # another model of the connected or configured service
            options = replace(chat or ChatOptions("", app.settings.llm_base_url), model=model)
        reasoner: Reasoner = app.quoter(library) if model == NO_MODEL else app.reasoner(library, options)

        def begin() -> TurnHandle:
            if isinstance(reasoner, ChatReasoner):
                self._spend(library, options, person, answers)
            return TurnHandle("", "", app.ask(question, history=history, reasoner=reasoner))

        return self._answer_limit.begin(person, begin).run_id

    def _spend(self, library: str, chat: ChatOptions | None, person: str, answers: int) -> None:
        """Charge answers by the operator's service to a user's quota. Raises RagError("evaluation_share_spent")."""
        limit = self._app.settings.evaluation_answers_per_day
        if person and not self._app.chats.is_own(chat) and not self._usage.spend(library, person, answers, limit):
            raise RagError("evaluation_share_spent", most=f"{limit:,}")

    def events(self, run_id: str, since: int = 0, wait: float = 0.0) -> list[Event]:
        return self._app.events(run_id, since, wait)

    def cancel(self, run_id: str) -> None:
        self._app.cancel(run_id)

    def warm(self, library: str) -> None:
        self._app.search("ready", library=library)

    def judges(self, library: str, chat: ChatOptions | None, judge: bool) -> Judges:
        reasoner = self._app.reasoner(library, chat) if judge else None
        verifier = reasoner if isinstance(reasoner, Verifier) else self._app.verifier
        supports = by_verifier(verifier, self._app.settings.llm_context_tokens) if verifier else by_rules
        model = ModelJudge(self.fill(chat), self.texts) if isinstance(reasoner, ChatReasoner) else None
        return Judges(supports, self._encode, model)

    def fill(self, chat: ChatOptions | None, person: str = "") -> Fill:
        """Return a function that fills schemas with the chat model. Raises RagError("evaluation_needs_model")."""
        reasoner = self._app.reasoner(self._app.settings.rag_library, chat)
        if not isinstance(reasoner, ChatReasoner):
            raise RagError("evaluation_needs_model")

        def fill(schema: type[BaseModel], prompt: Prompt) -> BaseModel:
            self._spend(self._app.settings.rag_library, chat, person, 1)
            return BACKGROUND.wait(reasoner.fill(schema, prompt))

        return fill

    @property
    def texts(self) -> PromptTexts:
        return self._app.chats.prompts

    def _encode(self, question: str, texts: Sequence[str]) -> NDArray[np.float32] | None:
        model = self._app.models.embedding
        if not all(map(model.can_read, [question, *texts])):
            return None
        try:
            return np.vstack([model.encode_query(question), model.encode_passages(texts)])
        except ModelError:  # its service is unavailable
            return None

    def generation(self, library: str) -> str:
        generations = sorted(page.generation for page in self._app.library(library).pages())
        return hashlib.sha256("\n".join(generations).encode()).hexdigest()[:12]

    def pages(self, library: str) -> list[Page]:
        return self._app.library(library).pages()

    def page(self, library: str, url_hash: str) -> Page | None:
        return self._app.page(library, url_hash)


def compare_reranker(
    reranking: Reranking,
    retriever: Callable[[Reranker | None], Retriever],
    cases: Iterable[tuple[str, list[_EvidenceSpan]]],
) -> Difference:
    """Search for `cases`, questions with evidence, with and without the reranker, and store the comparison.

    The metric is the mean reciprocal rank of the first passage with evidence. Raises RagError("reranker_none",
    "reranker_no_questions"), or the error of a failing reranker.
    """
    if (reranker := reranking.configured) is None:
        raise RagError("reranker_none")
    plain, reranked = retriever(None), retriever(reranker)
    pairs: list[tuple[float, float]] = []
    for question, evidence in cases:
        result = reranked.search(question)
        if problem := result.notes.get("fell_back"):
            raise RagError(problem["code"], **problem["params"])
        pairs.append((_reciprocal_rank(plain.search(question), evidence), _reciprocal_rank(result, evidence)))
    if not pairs:
        raise RagError("reranker_no_questions")
    before, after = zip(*pairs, strict=True)
    weights = bootstrap_weights(range(len(pairs)), PAIRED_ROUNDS)
    difference = paired_difference(len(pairs), mean(weights, before), mean(weights, after))
    reranking.save_comparison(difference)
    return difference


def find_reranking_questions(
    library: Library, sets: Sets, past: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, list[_EvidenceSpan]]]:
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


def _reciprocal_rank(result: Retrieval, evidence: list[_EvidenceSpan]) -> float:
    """Return the reciprocal rank of the first candidate that overlaps evidence; 0 without one."""
    passages = [candidate.passage for candidate in result.candidates]
    relevant = [any(is_overlapping(one, *span) for span in evidence) for one in passages]
    return reciprocal_rank(relevant, len(relevant))
