"""The one place that builds everything from the settings, and the one object that pages and commands know.

`App` answers and searches; `app.conversations`, `app.feedback`, `app.evaluation`, `app.imports`, `app.transfers`,
`app.models`, `app.moves`, `app.chats`, `app.page_maps`, `app.overviews`, `app.removals` and `app.library(name)` do
what their names say.
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
from rag.app.answer_limit import AnswerLimit
from rag.app.chat_models import ChatModels, ChatOptions
from rag.app.dispatch import Dispatcher, record_route
from rag.app.evaluating import EvaluationApp as EvaluationAsking
from rag.app.imports import Imports
from rag.app.libraries import Libraries
from rag.app.maintenance import Maintenance
from rag.app.models import Models
from rag.app.moves import Moves
from rag.app.overviews import Overviews
from rag.app.page_maps import PageMaps
from rag.app.removals import Removals
from rag.app.reranking import MOST_QUESTIONS, compare, questions
from rag.app.roles import RULES, Guarded, Roles, checked
from rag.app.tracing_out import TracesOut, settle_langsmith
from rag.app.transfer import Transfers
from rag.app.web_passages import WebPassages, kept_passages
from rag.checking.verifier import LocalVerifier
from rag.config import Settings
from rag.conversations.checkpoints import Checkpoints
from rag.conversations.conversations import WISH, Conversations, PageStamp, TurnHandle, TurnRequest
from rag.conversations.export import note
from rag.conversations.feedback import Feedback
from rag.conversations.remembered import Remembered, note_request
from rag.errors import ConfigError, RagError, StoreError
from rag.evaluation.evaluation import Evaluation
from rag.evaluation.statistics import Difference
from rag.graphs import MODES
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import get_chunker
from rag.ingest.jobs import JobItem, JobView
from rag.ingest.loader import Source
from rag.locales import say
from rag.models.sampling import with_sampling
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.expander import expander_for
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Reasoner
from rag.retrieval.answerable import held_by
from rag.retrieval.ensemble import EnsembleRetriever, LibraryGroup, Reading
from rag.retrieval.ledger import Ledger
from rag.retrieval.page_reader import PageReader
from rag.retrieval.retriever import K, Retriever
from rag.retrieval.scoped_search import ScopedSearch
from rag.retrieval.strategies import WRITTEN, Tuning
from rag.routing.classifier import Routed
from rag.runs.options import Question, RunOptions
from rag.runs.run import Run
from rag.runs.runs import Runs
from rag.store.private import keep_private
from rag.store.qdrant.client import Server, connect, look, rest, wait_for_database
from rag.store.qdrant.library import Library
from rag.store.qdrant.registry import list_libraries
from rag.store.qdrant.server import inspect
from rag.store.sql.database import Database
from rag.store.values import Filters
from rag.text import is_chinese
from rag.types import SAVED, Answer, Event, Notice, Page, Retrieval, RunMode

if TYPE_CHECKING:
    from rag.models.embedding import EmbeddingModel
    from rag.retrieval.langchain import LibraryRetriever
    from rag.store.qdrant.vector_store import LibraryVectorStore

__all__ = ["App", "ChatOptions", "Event", "JobItem", "JobView", "Question", "RunOptions", "wait_for_database"]


# Importing torch takes a second in which other threads get half of Python at best: the first page goes before.
_FIRST_PAGE_SECONDS = 1.0

_IDLE_SECONDS = 600.0

_FEW_PAGES = 1000  # are listed in a moment


class App:
    """Everything the program can do. Safe to share between threads; methods raise RagError.

    Nothing heavy happens before it is needed: torch is imported by the first search or import, or by
    `start` in the background.
    """

    def __init__(self, settings: Settings, models: Models | None = None) -> None:
        """Open the database; `models` are those that the settings name.

        Raises ConfigError for a data folder that cannot be written, StoreError.
        """
        self.settings = settings
        _prepare(settings.rag_data_dir)
        self._client = connect(settings)
        url = settings.database_url.get_secret_value()
        self._database = Database(url or settings.rag_data_dir / "app.sqlite3")
        self.models = models or Models(settings)
        self.chats = ChatModels(settings)
        self.libraries = Libraries(self._client, settings, self.models)
        self.page_maps = PageMaps(self.libraries.get, lambda: self.models.sparse)
        self.overviews = Overviews(self.libraries.get, self.models)
        self.imports = Imports(settings, self._database, self.libraries, self.models)
        self.removals = Removals(self.libraries, self.imports)
        self.transfers = Transfers(settings.rag_data_dir / "exchange", self.libraries)
        self._checkpoints = Checkpoints(settings.rag_data_dir / "conversations.sqlite3", self._database.postgres)
        local = self.models.verifier
        self.verifier = LocalVerifier(local) if local else None
        self.langsmith = settle_langsmith(settings.trace_langsmith)
        self._traces = TracesOut(settings)
        ended = self._traces.run if settings.trace_url else None
        self._runs = Runs(MODES, saver=self._checkpoints.saver, verifier=self.verifier, ended=ended)
        self.conversations = Conversations(self._database, self._runs, self._checkpoints)
        self.feedback = Feedback(self._database, self.conversations, self._traces.rate)
        self.remembered = Remembered(self._database.postgres or settings.rag_data_dir / "remembered.sqlite3")
        self._in_flight = AnswerLimit(self._runs.is_running, settings.answers_per_person)
        asking = EvaluationAsking(self, self._in_flight, self._database.evaluations)
        self.evaluation = Evaluation(self._database, asking, self.feedback, settings.evaluate_answers)
        self.moves = Moves(self.libraries, self.models, self._database.conversations)
        self.roles = Roles(self._database.grants, None)
        self._upkeep = Maintenance(self.tidy)

    def for_person(self, person: Person | None) -> App:
        """The same app, which does for this person only what their roles allow; without sign-in itself.

        Raises StoreError("library_unknown") where they may not read a library, else RagError("editor_needed").
        """
        if person is None:
            return self
        theirs, default = copy(self), self.settings.rag_library
        theirs.roles = Roles(self._database.grants, person)
        for name, service in vars(self).items():
            if type(service).__name__ in RULES:
                setattr(theirs, name, Guarded(service, theirs.roles, default))
        for name, rule in RULES["App"].items():
            setattr(theirs, name, checked(getattr(theirs, name), rule, theirs.roles, default))
        return theirs

    def start(self) -> None:
        """Serve: load the models in the background, and take up or mark what was cut off."""
        self.models.warm(_FIRST_PAGE_SECONDS, self._warm)
        self.conversations.recover()
        self.imports.start()
        self.evaluation.start()
        self.moves.resume()
        self._upkeep.start()

    def _warm(self) -> None:
        """Import and build what the first question would wait for."""
        name = self.settings.rag_library
        reasoner = self.reasoner(name)
        self._runs.warm()
        with suppress(StoreError):  # the database is away, as the page says
            if (library := self.library(name)).page_count() <= _FEW_PAGES:
                self.overviews.prepare(name, [page.url_hash for page in library.pages()], reasoner)

    def close(self) -> None:
        """Stop what runs, and close the database."""
        self._upkeep.close()
        self.moves.close()
        self.evaluation.close()
        self._runs.close()
        self._traces.close()
        self.conversations.close()
        self.imports.close()
        self.page_maps.close()
        self.overviews.close()
        self.remembered.close()
        self._checkpoints.close()
        self._database.close()
        self._client.close()

    # Libraries

    def library(self, name: str | None = None) -> Library:
        """The library for reading; its own embedding model counts, whichever is set now."""
        return self.libraries.get(name)

    def reading(self, names: str | Sequence[str]) -> Reading:
        """One library, or several as one, for reading. Raises StoreError for one that is not there."""
        found = [self.library(name) for name in dict.fromkeys([names] if isinstance(names, str) else names)]
        return found[0] if len(found) == 1 else LibraryGroup(found)

    def page(self, library: str, url_hash: str) -> Page | None:
        """None for one that is not there, or a library that is not."""
        return self.library(library).page(url_hash) if self.libraries.has(library) else None

    def remove_library(self, name: str) -> None:
        """Hide a library; for a day `libraries.restore` brings all of it back. What runs into it is paused."""
        self.libraries.remove(name)
        self.imports.jobs.pause_all(name)

    def summary(self, library: str, page: Page, language: str) -> Mapping[str, Any] | None:
        """Return the newest saved summary of the page's current text, with its time (`made`) and author (`by`)."""
        return PageReader([self.library(library)], Filters(), self._database.summaries).kept(page, language)

    def remove_pages(self, name: str, url_hashes: Sequence[str]) -> int:
        """Remove pages with all that was made of them; returns how many there were."""
        self._database.summaries.forget(name, url_hashes)
        return self.library(name).remove(url_hashes)

    def clear_library(self, name: str) -> None:
        """Remove all pages; the library stays."""
        self.library(name).clear()

    def leave_out(self, name: str, url_hashes: Sequence[str], out: bool) -> None:
        """Leave pages out of answers, or let them take part again."""
        self.library(name).set_left_out(url_hashes, out)

    def tidy(self) -> None:
        """Let idle libraries rest, and delete for good what was removed a day ago.

        A library's record goes last, so what a kill leaves is found by it.
        """
        rest(self._client, _IDLE_SECONDS)
        self.libraries.drop_unused()
        for name in self.libraries.over():
            self.conversations.forget_memories(name)
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
        """Begin to answer, in the background; returns the run's id. `reasoner` is another than that of `chat`.

        Raises ModelError for a chat model that is set up wrong.
        """
        question = question.limited(self.settings)
        reasoner = reasoner or self.reasoner(question.libraries, chat, question.options.sampling)
        quoter = self.quoter(question.libraries)
        retriever = self._scoped(question, reasoner)
        how: dict[str, Any] = {"history": history, "quoter": quoter, "owner": owner}
        return self._runs.start(question, reasoner=reasoner, retriever=retriever, **how)

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
        """The same within a conversation, a new one without `conversation_id`, which keeps the answer.

        The message goes the way that it asks for, unless its options name one. `files` (name, content) that came with
        it are saved first; StoreError where they are too many.

        `person` is whose answers are counted, nobody's where it is empty: RagError("too_many_answers") when too many
        are under way. `settings` (JSON values) are kept with it beside the mode.
        """
        note, rest = note_request(question.text) if person and not files else ("", "")
        if note:
            kept = self.remembered.add(person, note, lasting=person == owner)
            settings = {**(settings or {}), "remembered": kept}
            if not rest:
                return self.conversations.put(question, _confirmation(question, note), owner, conversation_id, settings)
            meant = question.options.standalone or rest
            question = replace(question, options=replace(question.options, standalone=meant))
        if files:
            job = self.imports.add_files(files, library=question.library, owner=person)
            question = replace(question, options=replace(question.options, saving=job))
        if question.options.web == "ask" and self.conversations.lets_web(conversation_id, owner):
            question = replace(question, options=replace(question.options, web="allowed"))
        asking = self._asking(question.limited(self.settings), owner, chat, conversation_id, person or owner)
        asking = replace(
            asking,
            conversation_id=conversation_id,
            settings={**asking.settings, **(settings or {})},
            dispatch=self._dispatcher(owner, person, conversation_id).dispatch,
        )
        return self._in_flight.begin(person, lambda: self.conversations.ask(asking))

    def save_note(self, turn_id: str, *, library: str, owner: str = "", language: str = "en") -> Page:
        """Save a turn's answer, with its quotes and their sources, as a page of kind note; no answer uses it until
        somebody includes it. Saved again, it is replaced.

        Raises RagError("note_empty") for a turn without an answer, StoreError.
        """
        turn = self.conversations.turn(turn_id, owner)
        if turn.answer is None or not turn.answer.text.strip():
            raise RagError("note_empty")
        record = {"markdown": note(turn.answer, language), "title": turn.question}
        source = Source(turn.question, f"file:///notes/{turn_id}.md", "note", record=record)
        ingestor, shelf = self.imports.ingestor(library), self.library(library)
        key = ingestor.key(source)
        is_new = not shelf.known([key])
        ((_, result),) = ingest_all(ingestor, [source], force=True, decision="keep_both")
        if result.status not in SAVED:
            raise RagError(result.reason, **result.params)
        if is_new:
            shelf.set_left_out([key], True)
        return shelf.known([key])[key]

    def route(self, text: str, owner: str = "") -> Routed:
        """Return the route of a message, without a chat model."""
        return self._dispatcher(owner).route(text)

    def overrule(self, library: str, text: str, route: str, owner: str = "") -> None:
        """Keep what a person chose for a message whose way was read wrongly: the next ones like it go that way."""
        record_route(self._database, library, owner, text, route)

    def reply(
        self, turn_id: str, reply: Mapping[str, Any], *, owner: str = "", chat: ChatOptions | None = None
    ) -> TurnHandle:
        """Resume a turn that waits for a person, even one of a process that has ended.

        `reply` holds an answer (JSON values) to each of its `waits`, by their ids. Raises RagError("turn_not_waiting").
        """
        asking = self._asking_again(turn_id, owner, chat)
        return self.conversations.reply(turn_id, reply, asking)

    def go_on(self, turn_id: str, *, owner: str = "", chat: ChatOptions | None = None) -> TurnHandle:
        """Resume a turn whose process ended before its answer was complete. Raises RagError("turn_not_waiting")."""
        asking = self._asking_again(turn_id, owner, chat)
        return self.conversations.go_on(turn_id, asking)

    # Of a run, by its id; with `owner` that person's alone: RagError("run_unknown") for somebody else's.

    def events(self, run_id: str, since: int = 0, wait: float = 0.0, owner: str | None = None) -> list[Event]:
        return self._runs.events(run_id, since, wait, owner)

    def going_on(self, *modes: RunMode) -> int:
        """Count the questions being answered, in `modes` if given."""
        return self._runs.going_on(*modes)

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
        before: Sequence[str] = (),
        **options: Any,
    ) -> Retrieval:
        """Search without asking, in `others` too; `before` and `options` are those of `Retriever.search`.

        No chat model is called, unless the strategy is one that searches with written texts.
        """
        strategy = strategy or self.settings.strategy
        libraries, chosen = (library, *others), RunOptions(strategy=strategy, weights=weights)
        reasoner = self.reasoner(libraries, chat) if strategy in WRITTEN else self.quoter(libraries)
        asked = Question(question, libraries, scope=filters or Filters(), options=chosen)
        found = self._scoped(asked, reasoner, **options).search(question, before)
        assert isinstance(found, Retrieval), "only a conversation has a ledger"
        return found

    def retriever(self, library: str, reasoner: Reasoner | None = None) -> Retriever:
        """Return the library's retriever; a chat reasoner writes the queries of some strategies.

        Loads the embedding model; raises ModelMismatchError.
        """
        working = self.libraries.working(library)
        return self._retriever(working, self.models.of_library(working.embedding_model), reasoner)

    def _retriever(self, library: Library, model: EmbeddingModel, reasoner: Reasoner | None) -> Retriever:
        expander = expander_for(reasoner or self.quoter(library.name))
        how: dict[str, Any] = {"reranker": self.models.reranker, "tuning": tuning_of(self.settings)}
        return Retriever(library, model, self.models.sparse, expander=expander, **how)

    def _searching(self, question: Question, reasoner: Reasoner) -> Retriever | EnsembleRetriever:
        """Return the retriever for a question's libraries, each with its own embedding model."""
        if len(set(question.libraries)) == 1:
            return self.retriever(question.library, reasoner)
        libraries = {name: self.library(name) for name in question.libraries}
        return EnsembleRetriever(
            {
                name: self._retriever(one, self.models.of_library(one.embedding_model), reasoner)
                for name, one in libraries.items()
            },
            LibraryGroup(list(libraries.values())).idf,
            self.models.sparse,
            question.options.weights,
            self.settings.context_characters,
        )

    def compare_reranker(self, library: str) -> Difference:
        """Compare searches with the settings' reranker and without it on the library's own questions, see `compare`.

        One by address may be switched on after that. Takes as long as two searches a question.
        """
        working = self.libraries.working(library)
        model, tuning = self.models.of_library(working.embedding_model), tuning_of(self.settings)
        past = self._database.conversations.past_questions(library, MOST_QUESTIONS)
        return compare(
            self.models.reranking,
            lambda reranker: Retriever(working, model, self.models.sparse, reranker=reranker, tuning=tuning),
            questions(working, self.evaluation.of(None).sets, past),
        )

    def as_retriever(self, library: str, *, k: int = K, **options: Any) -> LibraryRetriever:
        """The library's search for a LangChain program; `options` are those of `Retriever.search`."""
        from rag.retrieval.langchain import LibraryRetriever

        return LibraryRetriever(search=lambda asked, k: self.search(asked, library=library, k=k, **options), k=k)

    def vector_store(self, library: str) -> LibraryVectorStore:
        """The library's chunks as langchain-qdrant's vector store, dense and sparse, for reading.

        It is Qdrant's plain hybrid search, without what the app's own search adds. Loads the embedding model.
        """
        from rag.models.langchain import Bm25Embeddings, ModelEmbeddings

        working = self.libraries.working(library)
        dense = ModelEmbeddings(self.models.of_library(working.embedding_model))
        return working.vector_store(dense, Bm25Embeddings(self.models.sparse))

    def reasoner(
        self,
        libraries: str | Sequence[str],
        chat: ChatOptions | None = None,
        sampling: Mapping[str, Any] = MappingProxyType({}),
        notes: Sequence[str] = (),
    ) -> Reasoner:
        """The chat model of the session or of the settings, else the extractive reasoner.

        `sampling` holds for the answer alone: verdicts and queries need their whole form. Raises ModelError.
        """
        if chat is None and not self.settings.has_chat_model:
            return self.quoter(libraries)
        model, fast = self.chats.chat(chat), self.chats.fast_chat(chat)
        return ChatReasoner(with_sampling(model, sampling), fast=fast or model, texts=self.chats.prompts, notes=notes)

    def away(self) -> Notice | None:
        """Check the database again. Return a notice if it doesn't respond, else None."""
        return look(self._client)

    def inspect_server(self) -> Iterator[tuple[bool, Notice]]:
        """Return the server's diagnostics, each with its health; nothing for the embedded engine."""
        return inspect(self._client) if isinstance(self._client, Server) else iter(())

    def test_database(self) -> Notice:
        """Ask the database for its libraries. Raises StoreError."""
        return Notice("database_works", {"libraries": len(list_libraries(self._client))})

    def _asking_again(self, turn_id: str, owner: str, chat: ChatOptions | None) -> TurnRequest:
        conversation_id = self.conversations.turn(turn_id, owner).conversation_id
        return self._asking(self.conversations.question(turn_id, owner), owner, chat, conversation_id, owner)

    def _asking(
        self, question: Question, owner: str, chat: ChatOptions | None, conversation_id: str, person: str
    ) -> TurnRequest:
        """Everything for answering a question; `person` owns the notes that the model gets."""
        sampling, library = question.options.sampling, self.reading(question.libraries)
        reasoner = self.reasoner(question.libraries, chat, sampling, self.remembered.told(person))
        scored = self.settings.evaluate_answers != "off"
        return TurnRequest(
            question,
            reasoner,
            self._scoped(question, reasoner, ledger=self._ledger(question, conversation_id, owner)),
            owner=owner,
            quoter=self.quoter(question.libraries),
            settings={"strategy": question.options.strategy, "model": reasoner.name, **sampling},
            stamps=lambda hashes: {key: PageStamp.of(page) for key, page in library.known(hashes).items()},
            likely=lambda asked, passages: held_by(passages, asked, self.models.sparse, library.idf),
            kept=partial(self.evaluation.score_shown, question.library) if scored else None,
        )

    def quoter(self, libraries: str | Sequence[str]) -> ExtractiveReasoner:
        """Return the reasoner that quotes the libraries' pages without a model."""
        return ExtractiveReasoner(
            self.models.sparse,
            lambda terms: self.reading(libraries).idf(terms),
            meaning=self.models.sentences,
            reader=self.models.reader,
        )

    def _ledger(self, question: Question, conversation_id: str, owner: str) -> Ledger | None:
        """Return the passages of an earlier report for follow-ups without filters."""
        kept = self.conversations.ledger(conversation_id, owner) if not question.scope else ()
        library = self.reading(question.libraries)
        return Ledger(lambda: kept_passages(kept, library), self.models.sparse, library.idf) if kept else None

    def _web(self, question: Question) -> WebPassages | None:
        """Return the web search, if a service is set up and both person and operator allow it for this library."""
        service, forbidden = self.imports.web_search, self.settings.web_search_except
        asked_for = question.options.web or question.options.route == "web"
        if service is None or not asked_for or set(question.libraries) & set(forbidden):
            return None
        chunker = get_chunker(self.settings.chunker, self.settings.chunk_size)
        return WebPassages(service, self.imports.reader, self.models, chunker)

    def _dispatcher(self, owner: str, person: str = "", conversation_id: str = "") -> Dispatcher:
        def searcher(asked: Question, run: Run) -> ScopedSearch:
            return self._scoped(asked, run.reasoner, ledger=self._ledger(asked, conversation_id, owner))

        def known(library: str, url_hashes: Sequence[str]) -> Mapping[str, Page]:
            return self.library(library).known(url_hashes)

        return Dispatcher(self.imports, self._database, searcher, known, owner=owner, person=person)

    def _scoped(self, question: Question, reasoner: Reasoner, **options: Any) -> ScopedSearch:
        """Searches for one question, as its options say; `options` are those of `Retriever.search`."""
        chosen, libraries = question.options, [self.library(name) for name in dict.fromkeys(question.libraries)]
        numbers = {name: number for name, number in (("k", chosen.k), ("fetch_k", chosen.fetch_k)) if number}
        return ScopedSearch(
            lambda: self._searching(question, reasoner),
            self.reading(question.libraries).pages,
            question.text,
            filters=question.scope,
            web=self._web(question),
            first=chosen.first,
            reader=PageReader(libraries, question.scope, self._database.summaries),
            strategy=chosen.strategy,
            **{**numbers, **options},
        )


def _confirmation(question: Question, note: str) -> Answer:
    """Return the confirmation of an applied wish."""
    told = say(Notice("remembered", {"note": note}), "zh" if is_chinese(question.text) else "en")
    return Answer(question.text, question.mode, "conversation", told, reasoner=WISH)


def _prepare(folder: Path) -> None:
    """Make the data folder, for its owner alone. Raises ConfigError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
        keep_private(folder)
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
