"""What is real here and what is a fall-back, and how to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from rag.app import App
from rag.errors import RagError
from rag.locales import say
from rag.models import e5
from rag.models.embedding import EmbeddingModel
from rag.models.hub import MINILM_STORED
from rag.models.service_embedding import ServiceEncoder
from rag.models.verifier import Pair
from rag.tools.code import can_close
from rag.types import Notice
from rag.web.url_key import split_url


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the program: whether it works, whether it is a fall-back, and a sentence."""

    part: str
    works: bool
    fallback: bool
    text: str


def examine(app: App, *, deep: bool = False) -> Iterator[Finding]:
    """Try each part for real; takes as long as loading the embedding model, `deep` as long as reading all passages."""
    settings = app.settings
    yield Finding("settings", True, False, f"data folder {settings.rag_data_dir}, library {settings.rag_library}")
    yield (database := _database(app))
    yield from _server(app, database)
    yield from _libraries(app) if database.works and deep else ()
    yield _embedding(app)
    yield from _reranker(app)
    yield _chat(app)
    yield _verifier(app)
    yield _code(app)
    if app.settings.trace_url:
        params = {
            "host": split_url(app.settings.trace_url).netloc.rpartition("@")[2],
            "content": app.settings.trace_content,
        }
        yield Finding("traces", True, False, say(Notice("doctor_trace", params), "en"))
    if app.langsmith is not None:
        yield Finding("LangSmith", True, False, say(app.langsmith, "en"))


def _server(app: App, database: Finding) -> Iterator[Finding]:
    """What the server tells of itself, a finding for each sentence; nothing of the embedded engine.

    A cluster tells it even while what the database is asked for lies on a node that is down.
    """
    try:
        for well, notice in app.inspect_server():
            yield Finding("server", well, False, say(notice, "en"))
    except RagError as error:
        yield from [Finding("server", False, False, str(error))] if database.works else ()


def _libraries(app: App) -> Iterator[Finding]:
    """Whether the pages of each library have their passages, and no others; what has not is repaired."""
    for info in filter(attrgetter("embedding_model"), app.libraries.infos()):  # else it is yet to be made
        try:
            found = app.library(info.name).audit(deep=True)
        except RagError as error:
            yield Finding("library", False, False, str(error))
            continue
        if found.damaged:
            told = {"library": info.name, "urls": ", ".join(found.damaged)}
            yield Finding("library", False, False, say(Notice("doctor_library_damaged", told), "en"))
        if found.forked:
            forked = Notice("doctor_library_forked", {"library": info.name, "forked": found.forked})
            yield Finding("library", False, False, say(forked, "en"))
        params = {"library": info.name, "lacking": found.lacking, "surplus": found.surplus}
        well = not found.lacking and not found.surplus
        notice = Notice("doctor_library_whole" if well else "doctor_library_broken", params)
        yield Finding("library", well, False, say(notice, "en"))


def _database(app: App) -> Finding:
    server = app.settings.qdrant_url
    notice = Notice("doctor_database_server", {"url": server}) if server else Notice("doctor_database_embedded")
    return _tried("database", not server, notice, app.test_database)


def _embedding(app: App) -> Finding:
    try:
        model = app.models.embedding
        if isinstance(model, ServiceEncoder):
            return _served(app, model)
    except RagError as error:
        return Finding("embedding model", False, False, str(error))
    params = {"name": model.name, "dimension": model.dimension, "how": _how(model)}
    codes = {e5.NAME: "doctor_embedding_e5", MINILM_STORED: "doctor_embedding_minilm"}
    notice = Notice(codes.get(model.name, "doctor_embedding"), params)
    return Finding("embedding model", True, model.name in codes, say(notice, "en"))


def _served(app: App, model: ServiceEncoder) -> Finding:
    """A model by address, and whether it is the one that libraries were made with. Raises RagError."""
    params = {"name": model.name, "dimension": model.dimension, "host": model.host}
    for info in app.libraries.infos():
        if info.embedding_model == model.name:
            app.libraries.working(info.name)
    return Finding("embedding model", True, False, say(Notice("doctor_embedding_service", params), "en"))


def _reranker(app: App) -> Iterator[Finding]:
    offered, runs = app.models.reranking.offered, app.models.reranker is not None
    if offered is not None:
        notice = Notice("doctor_reranker" if runs else "doctor_reranker_off", {"name": offered.name})
        yield _tried("reranker", not runs, notice, lambda: offered.scores("ready", ["The model is ready."]))


def _how(model: EmbeddingModel) -> str:
    """What the model computes in, and where."""
    choice = getattr(model, "choice", None)
    if choice is None:
        return ""
    code = "engine_own" if choice.kind == "own" else "engine_loaded"
    device = getattr(model, "device", "cpu")
    return say(Notice(code, {"precision": choice.precision, "device": device}), "en")


def _chat(app: App) -> Finding:
    if not app.settings.has_chat_model:
        return Finding("chat model", True, True, say(Notice("doctor_chat_none"), "en"))
    notice = Notice("doctor_chat", {"model": app.settings.llm_model})
    return _tried("chat model", False, notice, app.chats.test)


def _verifier(app: App) -> Finding:
    model = app.models.verifier
    if model is None:
        return Finding("verifier", True, True, say(Notice("doctor_verifier_none"), "en"))
    sample = [Pair("The bridge was opened in 1910.", ("It was opened to traffic in 1910.",))]
    return _tried("verifier", False, Notice("doctor_verifier", {"name": model.name}), lambda: model.supports(sample))


def _code(app: App) -> Finding:
    if not app.settings.tools_code:
        return Finding("code", True, True, say(Notice("code_off"), "en"))
    closed = can_close()
    return Finding("code", closed, not closed, say(Notice("doctor_code" if closed else "code_not_closed"), "en"))


def _tried(part: str, fallback: bool, notice: Notice, test: Callable[[], object]) -> Finding:
    try:
        test()
    except RagError as error:
        return Finding(part, False, fallback, str(error))
    return Finding(part, True, fallback, say(notice, "en"))
