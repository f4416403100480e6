"""The application object, built from the settings, which all pages and commands use.

`App` answers and searches. Its services are `app.conversations`, `app.feedback`, `app.evaluation`, `app.imports`,
`app.transfers`, `app.models`, `app.moves`, `app.chats`, `app.page_maps`, `app.overviews`, `app.deletions` and
`app.library(name)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rag.access import Person
from rag.app.chat_models import ChatModels, ChatOptions
from rag.app.dispatch import AnswerLimit, Dispatcher, record_route
from rag.app.evaluating import MAX_QUESTIONS, EvaluationApp, compare_reranker, find_reranking_questions
from rag.app.imports import Deletions, Imports
from rag.app.libraries import Libraries, Maintenance, Models
from rag.app.moves import Moves
from rag.app.overviews import Overviews, PageMaps
from rag.app.roles import RULES, Guarded, Roles, guard
from rag.app.trace_export import TraceExporter, disable_langsmith
from rag.app.transfer import Transfers
from rag.app.web_passages import WebPassages, ledger_passages
from rag.checking.verifier import LocalVerifier
from rag.config import Settings
from rag.conversations.checkpoints import Checkpoints
from rag.conversations.conversations import NOTE_REASONER, Conversations, PageStamp, TurnHandle, TurnRequest
from rag.conversations.export import note
from rag.conversations.feedback import Feedback
from rag.conversations.memory import NoteStore, note_request
from rag.errors import ConfigError, RagError, StoreError
from rag.evaluation.evaluation import Evaluation
from rag.evaluation.statistics import Difference
from rag.graphs.modes import MODES
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import get_chunker
from rag.ingest.jobs.service import JobView
from rag.ingest.sources import Source
from rag.locales import say
from rag.models.servers import with_sampling
from rag.process import restrict_to_owner
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatExpander, ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner, FeedbackExpander
from rag.retrieval.context import estimate_answerable
from rag.retrieval.retriever import (
    EnsembleRetriever,
    K,
    Ledger,
    LibraryGroup,
    LibraryView,
    PageReader,
    Retriever,
    ScopedSearch,
)
from rag.retrieval.strategies import EXPANDED, Expander, Tuning
from rag.routing.router import Routing
from rag.runs.run import Question, Run, RunOptions
from rag.runs.runs import Runs
from rag.store.qdrant.client import Server, check_server, connect, unload_idle, wait_for_database
from rag.store.qdrant.health import inspect
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import list_libraries
from rag.store.sql.database import Database
from rag.store.sql.job_table import JobItem
from rag.store.values import Filters
from rag.text import compile_all, is_chinese
from rag.types import SAVED, Answer, Event, Notice, Page, Retrieval, RunMode

if TYPE_CHECKING:
    from rag.models.embedding import EmbeddingModel
    from rag.retrieval.langchain import LibraryRetriever
    from rag.store.qdrant.vector_store import LibraryVectorStore

__all__ = ["App", "ChatOptions", "JobItem", "JobView", "Question", "RunOptions", "wait_for_database"]


# Importing torch takes a second and slows other threads to half speed or less, so the first page is drawn before.
_FIRST_PAGE_SECONDS = 1.0

_IDLE_SECONDS = 600.0

_FEW_PAGES = 1000  # up to this many are listed quickly


class App:
    """All functions of the program. Thread-safe; methods raise RagError.

    Heavy work is deferred: torch is imported by the first search or import, or by `start` in the background.
    """

    def __init__(self, settings: Settings, models: Models | None = None) -> None:
        """Open the database; `models` default to the configured ones.

        Raises ConfigError if the data folder is not writable, StoreError.
        """
        self.settings = settings
        _create_folder(settings.rag_data_dir)
        self._client = connect(settings)
        url = settings.database_url.get_secret_value()
        self._database = Database(url or settings.rag_data_dir / "app.sqlite3")
        self.models = models or Models(settings)
        self.chats = ChatModels(settings)
        self.libraries = Libraries(self._client, settings, self.models)
        self.page_maps = PageMaps(self.libraries.get, lambda: self.models.sparse)
        self.overviews = Overviews(self.libraries.get, self.models)
        self.imports = Imports(settings, self._database, self.libraries, self.models)
        self.deletions = Deletions(self.libraries, self.imports)
        self.transfers = Transfers(settings.rag_data_dir / "exchange", self.libraries)
        self._checkpoints = Checkpoints(settings.rag_data_dir / "conversations.sqlite3", self._database.postgres)
        support_model = self.models.verifier
        self.verifier = LocalVerifier(support_model) if support_model else None
        self.langsmith = disable_langsmith(settings.trace_langsmith)
        self._traces = TraceExporter(settings)
        on_end = self._traces.run if settings.trace_url else None
        self._runs = Runs(MODES, saver=self._checkpoints.saver, verifier=self.verifier, on_end=on_end)
        self.conversations = Conversations(self._database, self._runs, self._checkpoints)
        self.feedback = Feedback(self._database, self.conversations, self._traces.rate)
        self.memory = NoteStore(self._database.postgres or settings.rag_data_dir / "remembered.sqlite3")
        self._answer_limit = AnswerLimit(self._runs.is_running, settings.answers_per_person)
        evaluation_app = EvaluationApp(self, self._answer_limit, self._database.evaluations)
        self.evaluation = Evaluation(self._database, evaluation_app, self.feedback, settings.evaluate_answers)
        self.moves = Moves(self.libraries, self.models, self._database.conversations)
        self.roles = Roles(self._database.grants, None)
        self._upkeep = Maintenance(self.tidy)

    def for_person(self, person: Person | None) -> App:
        """Return the app restricted to the person's roles; without sign-in, the app itself.

        Methods raise StoreError("library_unknown") without read access to a library, else RagError("editor_needed").
        """
        if person is None:
            return self
        limited_app, default = copy(self), self.settings.rag_library
        limited_app.roles = Roles(self._database.grants, person)
        for name, service in vars(self).items():
            if type(service).__name__ in RULES:
                setattr(limited_app, name, Guarded(service, limited_app.roles, default))
        for name, rule in RULES["App"].items():
            setattr(limited_app, name, guard(getattr(limited_app, name), rule, limited_app.roles, default))
        return limited_app

    def start(self) -> None:
        """Load the models in the background, and resume or mark interrupted work."""
        self.models.warm(_FIRST_PAGE_SECONDS, self._warm)
        self.conversations.recover()
        self.imports.start()
        self.evaluation.start()
        self.moves.resume()
        self._upkeep.start()

    def _warm(self) -> None:
        """Import and build everything that the first question needs."""
        name = self.settings.rag_library
        reasoner = self.reasoner(name)
        self._runs.warm()
        compile_all()
        with suppress(StoreError):  # the database is unavailable; the page reports it
            if (library := self.library(name)).page_count() <= _FEW_PAGES:
                self.overviews.prepare(name, [page.url_hash for page in library.pages()], reasoner)

    def close(self) -> None:
        """Stop all work, and close the database."""
        self._upkeep.close()
        self.moves.close()
        self.evaluation.close()
        self._runs.close()
        self._traces.close()
        self.conversations.close()
        self.imports.close()
        self.page_maps.close()
        self.overviews.close()
        self.memory.close()
        self._checkpoints.close()
        self._database.close()
        self._client.close()

    # Libraries

    def library(self, name: str | None = None) -> Library:
        """Return the library for reading, with its embedding model, regardless of the settings."""
        return self.libraries.get(name)

    def library_view(self, names: str | Sequence[str]) -> LibraryView:
        """Return one library, or several as one, for reading. Raises StoreError if one does not exist."""
        libraries = [self.library(name) for name in dict.fromkeys([names] if isinstance(names, str) else names)]
        return libraries[0] if len(libraries) == 1 else LibraryGroup(libraries)

    def page(self, library: str, url_hash: str) -> Page | None:
        """Return a page; None if it or its library does not exist, or the user may not read it."""
        return self.library(library).page(url_hash) if self.libraries.has(library) else None

    def remove_library(self, name: str) -> None:
        """Hide a library, which `libraries.restore` can undo for a day, and pause its running imports."""
        self.libraries.remove(name)
        self.imports.jobs.pause_all(name)

    def summary(self, library: str, page: Page, language: str) -> Mapping[str, Any] | None:
        """Return the newest saved summary of the page's current text, with its time (`made`) and author (`by`)."""
        return PageReader([self.library(library)], Filters(), self._database.summaries).find_summary(page, language)

    def remove_pages(self, name: str, url_hashes: Sequence[str]) -> int:
        """Remove pages with all their data; return how many existed."""
        self._database.summaries.forget(name, url_hashes)
        return self.library(name).remove(url_hashes)

    def clear_library(self, name: str) -> None:
        """Remove all pages; the library stays."""
        self.library(name).clear()

    def set_excluded(self, name: str, url_hashes: Sequence[str], excluded: bool) -> None:
        """Exclude pages from answers, or include them again."""
        self.library(name).set_excluded(url_hashes, excluded)

    def tidy(self) -> None:
        """Unload idle libraries, and purge those that were deleted over a day ago.

        A library's record is deleted last, so that an interrupted purge can be resumed.
        """
        unload_idle(self._client, _IDLE_SECONDS)
        self.libraries.drop_unused()
        for name in self.libraries.list_expired():
            self.conversations.delete_checkpoints(name)
            self._database.forget_library(name)
            self.libraries.purge(name)

    # Questions

    def ask(
        self,
        question: Question,
        *,
        history: Sequence[tuple[str, str]] = (),
        chat: ChatOptions | None = None,
        reasoner: Reasoner | None = None,
        owner: str = "",
    ) -> str:
        """Start answering in the background; return the run's id. `reasoner` overrides `chat`.

        Raises ModelError for a misconfigured chat model.
        """
        question = question.with_defaults(self.settings)
        reasoner = reasoner or self.reasoner(question.libraries, chat, question.options.sampling)
        quoter = self.quoter(question.libraries)
        retriever = self._search_for(question, reasoner)
        options: dict[str, Any] = {"history": history, "quoter": quoter, "owner": owner}
        return self._runs.start(question, reasoner=reasoner, retriever=retriever, **options)

    def converse(
        self,
        question: Question,
        *,
        conversation_id: str = "",
        owner: str = "",
        person: str = "",
        chat: ChatOptions | None = None,
        settings: Mapping[str, Any] | None = None,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> TurnHandle:
        """Start answering in a conversation, where the answer is saved; without `conversation_id`, create one.

        The message is routed by its text, unless its options name a route. Attached `files` (name, content) are
        imported first; raises StoreError if there are too many.

        The number of running answers is limited for each `person` (not if empty): RagError("too_many_answers").
        `settings` (JSON values) are saved with the turn, in addition to the mode.
        """
        note, remainder = note_request(question.text) if person and not files else ("", "")
        if note:
            note_id = self.memory.add(person, note, permanent=person == owner)
            settings = {**(settings or {}), "remembered": note_id}
            if not remainder:
                text = say(Notice("remembered", {"note": note}), "zh" if is_chinese(question.text) else "en")
                answer = Answer(question.text, question.mode, "conversation", text, reasoner=NOTE_REASONER)
                return self.conversations.put(question, answer, owner, conversation_id, settings)
            standalone = question.options.standalone or remainder
            question = replace(question, options=replace(question.options, standalone=standalone))
        if files:
            job = self.imports.jobs.submit_files(files, library=question.library, owner=person)
            question = replace(question, options=replace(question.options, saving=job))
        if question.options.web == "ask" and self.conversations.allows_web(conversation_id, owner):
            question = replace(question, options=replace(question.options, web="allowed"))
        request = self._request(question.with_defaults(self.settings), owner, chat, conversation_id, person or owner)
        request = replace(
            request,
            conversation_id=conversation_id,
            settings={**request.settings, **(settings or {})},
            dispatch=self._dispatcher(owner, person, conversation_id).dispatch,
        )
        return self._answer_limit.begin(person, lambda: self.conversations.ask(request))

    def save_note(self, turn_id: str, *, library: str, owner: str = "", language: str = "en") -> Page:
        """Save a turn's answer, with its quotes and their sources, as a page of kind note, replacing an earlier one.

        A new note is excluded from answers until a user includes it. Raises RagError("note_empty") for a turn without
        an answer, StoreError.
        """
        turn = self.conversations.turn(turn_id, owner)
        if turn.answer is None or not turn.answer.text.strip():
            raise RagError("note_empty")
        record = {"markdown": note(turn.answer, language), "title": turn.question}
        source = Source(turn.question, f"file:///notes/{turn_id}.md", "note", record=record)
        ingestor, store = self.imports.ingestor(library), self.library(library)
        key = ingestor.key(source)
        is_new = not store.stored_pages([key])
        ((_, result),) = ingest_all(ingestor, [source], force=True, decision="keep_both")
        if result.status not in SAVED:
            raise RagError(result.notice.code, **result.notice.params)
        if is_new:
            store.set_excluded([key], True)
        return store.stored_pages([key])[key]

    def route(self, text: str, owner: str = "") -> Routing:
        """Return the route of a message, without a chat model."""
        return self._dispatcher(owner).route(text)

    def overrule(self, library: str, text: str, route: str, owner: str = "") -> None:
        """Store the user's route for a misrouted message; similar messages then take it too."""
        record_route(self._database, library, owner, text, route)

    def reply(
        self, turn_id: str, reply: Mapping[str, Any], *, owner: str = "", chat: ChatOptions | None = None
    ) -> TurnHandle:
        """Resume a turn that waits for the user, even if its process has ended.

        `reply` maps the ids of its `waits` to answers (JSON values). Raises RagError("turn_not_waiting").
        """
        request = self._request_again(turn_id, owner, chat)
        return self.conversations.reply(turn_id, reply, request)

    def resume_turn(self, turn_id: str, *, owner: str = "", chat: ChatOptions | None = None) -> TurnHandle:
        """Resume a turn whose process ended before its answer was complete. Raises RagError("turn_not_waiting")."""
        request = self._request_again(turn_id, owner, chat)
        return self.conversations.resume_turn(turn_id, request)

    # Runs, by id. With `owner`, other users' runs raise RagError("run_unknown").

    def events(self, run_id: str, since: int = 0, wait: float = 0.0, owner: str | None = None) -> list[Event]:
        return self._runs.events(run_id, since, wait, owner)

    def count_running(self, *modes: RunMode) -> int:
        """Return the number of questions being answered, in `modes` if given."""
        return self._runs.count_unfinished(*modes)

    def cancel(self, run_id: str, owner: str | None = None) -> None:
        self._runs.cancel(run_id, owner)

    def answer(self, run_id: str, owner: str | None = None) -> Answer | None:
        return self._runs.answer(run_id, owner)

    def wait(self, run_id: str, timeout: float | None = None, owner: str | None = None) -> Answer:
        return self._runs.wait(run_id, timeout, owner)

    def search(
        self,
        question: str,
        *,
        library: str,
        others: Sequence[str] = (),
        weights: Mapping[str, float] = MappingProxyType({}),
        chat: ChatOptions | None = None,
        strategy: str = "",
        filters: Filters | None = None,
        earlier_questions: Sequence[str] = (),
        **options: Any,
    ) -> Retrieval:
        """Search without answering, in `others` too; `earlier_questions` and `options` are those of `Retriever.search`.

        No chat model is called unless the strategy searches with generated texts.
        """
        strategy = strategy or self.settings.strategy
        libraries, run_options = (library, *others), RunOptions(strategy=strategy, weights=weights)
        reasoner = self.reasoner(libraries, chat) if strategy in EXPANDED else self.quoter(libraries)
        query = Question(question, libraries, scope=filters or Filters(), options=run_options)
        result = self._search_for(query, reasoner, **options).search(question, earlier_questions)
        assert isinstance(result, Retrieval), "only a conversation has a ledger"
        return result

    def retriever(self, library: str, reasoner: Reasoner | None = None) -> Retriever:
        """Return the library's retriever; a chat reasoner writes the queries of some strategies.

        Loads the embedding model; raises ModelMismatchError.
        """
        working = self.libraries.load(library)
        return self._retriever(working, self.models.of_library(working.embedding_model), reasoner)

    def _retriever(self, library: Library, model: EmbeddingModel, reasoner: Reasoner | None) -> Retriever:
        expander = make_expander(reasoner or self.quoter(library.name))
        options: dict[str, Any] = {"reranker": self.models.reranker, "tuning": tuning_of(self.settings)}
        return Retriever(library, model, self.models.sparse, expander=expander, **options)

    def _retriever_for(self, question: Question, reasoner: Reasoner) -> Retriever | EnsembleRetriever:
        """Return the retriever for a question's libraries, each with its own embedding model."""
        if len(set(question.libraries)) == 1:
            return self.retriever(question.library, reasoner)
        libraries = {name: self.library(name) for name in question.libraries}
        return EnsembleRetriever(
            {
                name: self._retriever(library, self.models.of_library(library.embedding_model), reasoner)
                for name, library in libraries.items()
            },
            LibraryGroup(list(libraries.values())).idf,
            self.models.sparse,
            question.options.weights,
            self.settings.context_characters,
        )

    def compare_reranker(self, library: str) -> Difference:
        """Compare searches with and without the configured reranker on the library's questions.

        A remote reranker can be turned on only after this. Takes as long as two searches per question.
        """
        working = self.libraries.load(library)
        model, tuning = self.models.of_library(working.embedding_model), tuning_of(self.settings)
        past = self._database.conversations.answers_with_citations(library, MAX_QUESTIONS)
        return compare_reranker(
            self.models.reranking,
            lambda reranker: Retriever(working, model, self.models.sparse, reranker=reranker, tuning=tuning),
            find_reranking_questions(working, self.evaluation.of(None).sets, past),
        )

    def as_retriever(self, library: str, *, k: int = K, **options: Any) -> LibraryRetriever:
        """Return the library's search for a LangChain program; `options` are those of `Retriever.search`."""
        from rag.retrieval.langchain import LibraryRetriever

        return LibraryRetriever(search=lambda question, k: self.search(question, library=library, k=k, **options), k=k)

    def vector_store(self, library: str) -> LibraryVectorStore:
        """Return the library's chunks as langchain-qdrant's vector store, dense and sparse, for reading.

        This is Qdrant's plain hybrid search, not the app's search. Loads the embedding model.
        """
        from rag.retrieval.langchain import Bm25Embeddings, ModelEmbeddings

        working = self.libraries.load(library)
        dense = ModelEmbeddings(self.models.of_library(working.embedding_model))
        return working.vector_store(dense, Bm25Embeddings(self.models.sparse))

    def reasoner(
        self,
        libraries: str | Sequence[str],
        chat: ChatOptions | None = None,
        sampling: Mapping[str, Any] = MappingProxyType({}),
        notes: Sequence[str] = (),
    ) -> Reasoner:
        """Return a reasoner over the session's or the configured chat model, else the extractive reasoner.

        `sampling` applies only to the answer, since truncated verdicts and queries are useless. Raises ModelError.
        """
        if chat is None and not self.settings.has_chat_model:
            return self.quoter(libraries)
        model, fast = self.chats.chat(chat), self.chats.fast_chat(chat)
        return ChatReasoner(with_sampling(model, sampling), fast=fast or model, texts=self.chats.prompts, notes=notes)

    def outage(self) -> Notice | None:
        """Check the database again. Return a notice if it doesn't respond, else None."""
        return check_server(self._client)

    def inspect_server(self) -> Iterator[tuple[bool, Notice]]:
        """Return the server's diagnostics, each with True if healthy; none for the embedded engine."""
        return inspect(self._client) if isinstance(self._client, Server) else iter(())

    def test_database(self) -> Notice:
        """Test the database by listing its libraries. Raises StoreError."""
        return Notice("database_works", {"libraries": len(list_libraries(self._client))})

    def _request_again(self, turn_id: str, owner: str, chat: ChatOptions | None) -> TurnRequest:
        conversation_id = self.conversations.turn(turn_id, owner).conversation_id
        return self._request(self.conversations.question(turn_id, owner), owner, chat, conversation_id, owner)

    def _request(
        self, question: Question, owner: str, chat: ChatOptions | None, conversation_id: str, person: str
    ) -> TurnRequest:
        """Build the request for answering a question; the model gets the notes of `person`."""
        sampling, library = question.options.sampling, self.library_view(question.libraries)
        reasoner = self.reasoner(question.libraries, chat, sampling, self.memory.notes_for_model(person))
        scored = self.settings.evaluate_answers != "off"
        return TurnRequest(
            question,
            reasoner,
            self._search_for(question, reasoner, ledger=self._ledger(question, conversation_id, owner)),
            owner=owner,
            quoter=self.quoter(question.libraries),
            settings={"strategy": question.options.strategy, "model": reasoner.name, **sampling},
            stamps=lambda hashes: {key: PageStamp.of(page) for key, page in library.stored_pages(hashes).items()},
            likelihood=lambda text, passages: estimate_answerable(passages, text, self.models.sparse, library.idf),
            on_saved=partial(self.evaluation.score_displayed, question.library) if scored else None,
        )

    def quoter(self, libraries: str | Sequence[str]) -> ExtractiveReasoner:
        """Return the reasoner that quotes the libraries' pages without a chat model."""
        return ExtractiveReasoner(
            self.models.sparse,
            lambda terms: self.library_view(libraries).idf(terms),
            meaning=self.models.sentences,
            reader=self.models.reader,
        )

    def _ledger(self, question: Question, conversation_id: str, owner: str) -> Ledger | None:
        """Return the sources of an earlier report, for follow-ups without filters; None if there are none."""
        rows = self.conversations.ledger(conversation_id, owner) if not question.scope else ()
        library = self.library_view(question.libraries)
        return Ledger(lambda: ledger_passages(rows, library), self.models.sparse, library.idf) if rows else None

    def _web(self, question: Question) -> WebPassages | None:
        """Return the web search, if it is configured, and both user and operator allow it for these libraries."""
        service, forbidden = self.imports.web_search, self.settings.web_search_except
        is_requested = question.options.web or question.options.route == "web"
        if service is None or not is_requested or set(question.libraries) & set(forbidden):
            return None
        chunker = get_chunker(self.settings.chunker, self.settings.chunk_size)
        return WebPassages(service, self.imports.reader, self.models, chunker)

    def _dispatcher(self, owner: str, person: str = "", conversation_id: str = "") -> Dispatcher:
        def searcher(question: Question, run: Run) -> ScopedSearch:
            return self._search_for(question, run.reasoner, ledger=self._ledger(question, conversation_id, owner))

        def find_pages(library: str, url_hashes: Sequence[str]) -> Mapping[str, Page]:
            return self.library(library).stored_pages(url_hashes)

        return Dispatcher(self.imports, self._database, searcher, find_pages, owner=owner, person=person)

    def _search_for(self, question: Question, reasoner: Reasoner, **options: Any) -> ScopedSearch:
        """Build the search for a question; `options` are those of `ScopedSearch` and `Retriever.search`."""
        run_options, libraries = question.options, [self.library(name) for name in dict.fromkeys(question.libraries)]
        numbers = {name: number for name, number in (("k", run_options.k), ("fetch_k", run_options.fetch_k)) if number}
        return ScopedSearch(
            lambda: self._retriever_for(question, reasoner),
            self.library_view(question.libraries).pages,
            question.text,
            filters=question.scope,
            web=self._web(question),
            priority_pages=run_options.first,
            reader=PageReader(libraries, question.scope, self._database.summaries),
            strategy=run_options.strategy,
            **{**numbers, **options},
        )


def _create_folder(folder: Path) -> None:
    """Create the data folder, for its owner only. Raises ConfigError if it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
        restrict_to_owner(folder)
    except OSError as error:
        raise ConfigError("data_dir_unwritable", path=folder) from error


def tuning_of(settings: Settings) -> Tuning:
    return Tuning(
        dense_weight=settings.dense_weight,
        sparse_weight=settings.sparse_weight,
        rrf_k=settings.rrf_k,
        fetch_k=settings.fetch_k,
        pre_ranker=settings.pre_ranker,
        pre_top_k=settings.pre_top_k,
        characters=settings.context_characters,
    )


def make_expander(reasoner: Reasoner) -> Expander | None:
    if isinstance(reasoner, ChatReasoner):
        return ChatExpander(reasoner)
    return FeedbackExpander(reasoner) if isinstance(reasoner, ExtractiveReasoner) else None
