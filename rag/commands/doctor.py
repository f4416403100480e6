"""Diagnostics of each component, including fallbacks and how to replace them, and the wait for the database."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from operator import attrgetter

from rag.app import App, wait_for_database
from rag.commands import print_row
from rag.config import Settings
from rag.errors import RagError
from rag.locales import say
from rag.models import model_files
from rag.models.cross_encoders import Pair
from rag.models.service import ServiceEncoder
from rag.tools.code import can_isolate
from rag.types import Notice
from rag.web.urls import split_url


def doctor(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        for finding in examine(app, deep=options.deep):
            status = status if finding.works else 1
            mark = "ok  " if finding.works else "FAIL"
            print_row(options, asdict(finding), f"{mark} {finding.part}: {finding.text}")
    return status


def wait(settings: Settings, options: argparse.Namespace) -> int:
    """Return once the database answers. Raises StoreUnavailableError after `--wait` seconds."""
    wait_for_database(settings, options.wait, lambda notice: print(say(notice, "en"), file=sys.stderr, flush=True))
    return 0


@dataclass(frozen=True, slots=True)
class ComponentState:
    """The state of one component: whether it works, whether it is a fallback, and a sentence about it."""

    part: str
    works: bool
    fallback: bool
    text: str


def examine(app: App, *, deep: bool = False) -> Iterator[ComponentState]:
    """Test each component; loads the embedding model and, if `deep`, reads all passages."""
    settings, models, server = app.settings, app.models, app.settings.qdrant_url
    yield ComponentState(
        "settings", True, False, f"data folder {settings.rag_data_dir}, library {settings.rag_library}"
    )
    notice = Notice("doctor_database_server", {"url": server}) if server else Notice("doctor_database_embedded")
    yield (database := _run_test("database", not server, notice, app.test_database))
    yield from _check_server(app, database)
    yield from _check_libraries(app) if database.works and deep else ()
    yield _check_embedding(app)
    if (reranker := models.reranking.configured) is not None:
        runs = models.reranker is not None
        notice = Notice("doctor_reranker" if runs else "doctor_reranker_off", {"name": reranker.name})
        yield _run_test("reranker", not runs, notice, lambda: reranker.scores("ready", ["The model is ready."]))
    if settings.has_chat_model:
        yield _run_test("chat model", False, Notice("doctor_chat", {"model": settings.llm_model}), app.chats.test)
    else:
        yield ComponentState("chat model", True, True, say(Notice("doctor_chat_none"), "en"))
    if (verifier := models.verifier) is not None:
        sample = [Pair("The bridge was opened in 1910.", ("It was opened to traffic in 1910.",))]
        notice = Notice("doctor_verifier", {"name": verifier.name})
        yield _run_test("verifier", False, notice, lambda: verifier.supports(sample))
    else:
        yield ComponentState("verifier", True, True, say(Notice("doctor_verifier_none"), "en"))
    isolates = not settings.tools_code or can_isolate()
    code = ("doctor_code" if isolates else "code_not_closed") if settings.tools_code else "code_off"
    yield ComponentState("code", isolates, code != "doctor_code", say(Notice(code), "en"))
    if settings.trace_url:
        params = {"host": split_url(settings.trace_url).netloc.rpartition("@")[2], "content": settings.trace_content}
        yield ComponentState("traces", True, False, say(Notice("doctor_trace", params), "en"))
    if app.langsmith is not None:
        yield ComponentState("LangSmith", True, False, say(app.langsmith, "en"))


def _check_server(app: App, database: ComponentState) -> Iterator[ComponentState]:
    """Yield a finding for each line of the server's report; none for the embedded engine.

    A cluster can report even while a node with the requested data is down.
    """
    try:
        for works, notice in app.inspect_server():
            yield ComponentState("server", works, False, say(notice, "en"))
    except RagError as error:
        yield from [ComponentState("server", False, False, str(error))] if database.works else ()


def _check_libraries(app: App) -> Iterator[ComponentState]:
    """Check that each library has exactly the passages of its pages; repair it otherwise."""
    for info in filter(attrgetter("embedding_model"), app.libraries.infos()):  # others do not exist yet
        try:
            audit = app.library(info.name).audit(deep=True)
        except RagError as error:
            yield ComponentState("library", False, False, str(error))
            continue
        if audit.damaged:
            damage = {"library": info.name, "urls": ", ".join(audit.damaged)}
            yield ComponentState("library", False, False, say(Notice("doctor_library_damaged", damage), "en"))
        if audit.diverged:
            forks = Notice("doctor_library_forked", {"library": info.name, "forked": audit.diverged})
            yield ComponentState("library", False, False, say(forks, "en"))
        params = {"library": info.name, "lacking": audit.incomplete, "surplus": audit.extra}
        works = not audit.incomplete and not audit.extra
        notice = Notice("doctor_library_whole" if works else "doctor_library_broken", params)
        yield ComponentState("library", works, False, say(notice, "en"))


def _check_embedding(app: App) -> ComponentState:
    try:
        model = app.models.embedding
        if isinstance(model, ServiceEncoder):
            return _check_service(app, model)
    except RagError as error:
        return ComponentState("embedding model", False, False, str(error))
    how = ""
    if (choice := getattr(model, "choice", None)) is not None:  # the precision and the device
        code = "engine_own" if choice.kind == "native" else "engine_loaded"
        how = say(Notice(code, {"precision": choice.precision, "device": getattr(model, "device", "cpu")}), "en")
    params = {"name": model.name, "dimension": model.dimension, "how": how}
    codes = {model_files.E5: "doctor_embedding_e5", model_files.MINILM: "doctor_embedding_minilm"}
    notice = Notice(codes.get(model.name, "doctor_embedding"), params)
    return ComponentState("embedding model", True, model.name in codes, say(notice, "en"))


def _check_service(app: App, model: ServiceEncoder) -> ComponentState:
    """Check an embedding service, and that the libraries made with its model still match it. Raises RagError."""
    params = {"name": model.name, "dimension": model.dimension, "host": model.host}
    for info in app.libraries.infos():
        if info.embedding_model == model.name:
            app.libraries.load(info.name)
    return ComponentState("embedding model", True, False, say(Notice("doctor_embedding_service", params), "en"))


def _run_test(part: str, fallback: bool, notice: Notice, test: Callable[[], object]) -> ComponentState:
    try:
        test()
    except RagError as error:
        return ComponentState(part, False, fallback, str(error))
    return ComponentState(part, True, fallback, say(notice, "en"))
