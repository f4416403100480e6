"""What is real here and what is a fall-back, and how to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from rag.app import App
from rag.errors import RagError
from rag.messages import say
from rag.models.embedding import EmbeddingModel
from rag.models.verifier import Pair
from rag.tools.code import can_close
from rag.types import Notice


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
    yield from _server(app) if database.works else ()
    yield from _libraries(app) if database.works and deep else ()
    yield _embedding(app)
    yield _chat(app)
    yield _verifier(app)
    yield _code(app)


def _server(app: App) -> Iterator[Finding]:
    """What the server tells of itself, a finding for each sentence; nothing of the embedded engine."""
    try:
        for well, notice in app.inspect_server():
            yield Finding("server", well, False, say(notice, "en"))
    except RagError as error:
        yield Finding("server", False, False, str(error))


def _libraries(app: App) -> Iterator[Finding]:
    """Whether the pages of each library have their passages, and no others; what has not is repaired."""
    for info in filter(attrgetter("embedding_model"), app.libraries.infos()):  # else it is yet to be made
        try:
            found = app.library(info.name).audit(deep=True)
        except RagError as error:
            yield Finding("library", False, False, str(error))
            continue
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
    except RagError as error:
        return Finding("embedding model", False, False, str(error))
    builtin = app.settings.embedding_model == "builtin"
    params = {"name": model.name, "dimension": model.dimension, "how": _how(model)}
    notice = Notice("doctor_embedding_builtin" if builtin else "doctor_embedding", params)
    return Finding("embedding model", True, builtin, say(notice, "en"))


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
