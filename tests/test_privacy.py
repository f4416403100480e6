"""Privacy between users: nothing personal is visible to another user, or changed by them.

Every public method of the App and of its services is called as Bob with Ann's ids, once where her data exists and once
where it doesn't: Bob must not be able to tell the difference. Methods for everyone who may open a library, or that only
create something of the caller's, are listed here with the reason; a new method needs a rule, or this fails.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from rag.app import App
from rag.app.chat_models import ChatModels, ChatOptions, ConnectionStore, Holder
from rag.app.imports import Deletions, Imports
from rag.app.libraries import Libraries, Models, Reranking
from rag.app.moves import Moves
from rag.app.overviews import Overviews, PageMaps
from rag.app.roles import Roles
from rag.app.transfer import Transfer, Transfers
from rag.checking.verifier import LocalVerifier
from rag.conversations.conversations import Conversations, TurnRequest
from rag.conversations.feedback import Feedback
from rag.conversations.memory import NoteStore
from rag.errors import RagError
from rag.evaluation.agreement import Label
from rag.evaluation.cases import Case, Setting, row_of
from rag.evaluation.evaluation import Evaluation, Side
from rag.evaluation.runs import EvaluationRuns
from rag.evaluation.sets import Sets
from rag.ingest.jobs.service import ExternalJobs, Jobs
from rag.ingest.pipeline import result
from rag.ingest.schedule import Schedules
from rag.ingest.sources import Source
from rag.prompts.texts import PromptTexts
from rag.runs.run import Question, compress_searches, to_json
from rag.store.sql.conversation_table import Change
from rag.store.sql.evaluation_table import StoredRow
from rag.store.sql.job_table import NewItem
from rag.tracing import Span
from rag.types import Answer, Citation, Notice, Retrieval
from tests.support.answering import FakeRetriever
from tests.support.apps import add_files, open_app

SECRET = "zebrafinch"
PAGE = "# Harbour\n\nThe harbour toll was four crowns, paid in silver at noon beneath the crooked lantern.\n"
IDENTITY = frozenset({"owner", "person", "browser", "holder", "request"})
"""Parameters that identify the caller: a method with one of them returns or changes that user's data."""

CLASSES: Mapping[str, type] = {
    "app": App,
    "conversations": Conversations,
    "feedback": Feedback,
    "memory": NoteStore,
    "evaluation": Evaluation,
    "sets": Sets,
    "runs": EvaluationRuns,
    "imports": Imports,
    "jobs": Jobs,
    "external": ExternalJobs,
    "schedules": Schedules,
    "transfers": Transfers,
    "chats": ChatModels,
    "connections": ConnectionStore,
    "prompts": PromptTexts,
    "libraries": Libraries,
    "moves": Moves,
    "page_maps": PageMaps,
    "overviews": Overviews,
    "deletions": Deletions,
    "roles": Roles,
    "models": Models,
    "reranking": Reranking,
    "verifier": LocalVerifier,
}
OF_A_PERSON = frozenset({"evaluation", "sets", "runs", "jobs", "connections"})
"""Services that are bound to one user: all of their methods are personal."""

PROGRAM = "the program's own: nobody asks for it from a screen"
PAGES = "pages of a library, which whoever may open it may read and change"
OPERATOR = "what the operator set, the same for all"
TYPED = "takes what was just typed, and keeps nothing"
BINDS = "takes the person that all the rest is asked for"
BOUND = "tells what the person that it was made for may do"
OWNERS = "for owners of a library alone, see tests/test_app_roles.py"
BEGINS = "begins something of the caller's own"
SHARED: Mapping[str, Mapping[str, str]] = {
    "app": {
        **dict.fromkeys(("start", "close", "tidy", "count_running"), PROGRAM),
        **dict.fromkeys(("library", "library_view", "page", "summary", "search", "retriever", "as_retriever"), PAGES),
        "compare_reranker": PAGES,
        **dict.fromkeys(("vector_store", "quoter", "remove_library", "remove_pages"), PAGES),
        **dict.fromkeys(("clear_library", "set_excluded"), PAGES),
        "for_person": BINDS,
        **dict.fromkeys(("outage", "inspect_server", "test_database"), OPERATOR),
        "reasoner": TYPED,
        "ask": BEGINS,
    },
    "conversations": {
        **dict.fromkeys(("close", "recover", "delete_checkpoints", "list_link_libraries"), PROGRAM),
        "find_by_link": "for whoever was given its link, and reads its libraries: see tests/test_app_roles.py",
    },
    "memory": {"close": PROGRAM, "add": BEGINS},
    "evaluation": {
        **dict.fromkeys(("start", "close", "score_displayed"), PROGRAM),
        "of": BINDS,
        "side_by_side": BEGINS,
    },
    "sets": dict.fromkeys(("create", "import_file"), BEGINS),
    "runs": {**dict.fromkeys(("begin", "close"), PROGRAM), "of": BINDS, "create": BEGINS},
    "imports": {
        **dict.fromkeys(("start", "close", "ingestor", "reader", "sitemap_pages"), PROGRAM),
        **dict.fromkeys(("add_urls", "add_examples"), BEGINS),
    },
    "jobs": {
        **dict.fromkeys(("start", "close", "pause_all"), PROGRAM),
        "of": BINDS,
        **dict.fromkeys(("submit", "submit_files", "submit_site", "recheck"), BEGINS),
    },
    "external": dict.fromkeys(("begin", "lease"), PROGRAM),
    "schedules": {
        **dict.fromkeys(("start", "close", "start_due"), PROGRAM),
        **dict.fromkeys(("set", "remove", "schedules", "library_of"), PAGES),
    },
    "transfers": {**dict.fromkeys(("export", "import_file"), BEGINS), "library_of": PROGRAM},
    "chats": {
        **dict.fromkeys(("of_settings", "own_allowed"), OPERATOR),
        **dict.fromkeys(("chat", "fast_chat", "test", "list_models", "is_own", "capacity"), TYPED),
        "connect": BEGINS,
    },
    "connections": {"add": BEGINS},
    "prompts": dict.fromkeys(("names", "text", "for_job", "replace", "restore"), OPERATOR),
    "libraries": {
        **dict.fromkeys(
            ("infos", "info", "removed_libraries", "check", "has", "title", "create", "new_name", "rename"), PAGES
        ),
        **dict.fromkeys(("move", "switch"), PAGES),
        **dict.fromkeys(("current_model", "target_model"), OPERATOR),
        **dict.fromkeys(("remove", "restore", "get", "load", "export", "import_file"), PAGES),
        **dict.fromkeys(("list_expired", "purge", "drop_unused"), PROGRAM),
    },
    "moves": {
        **dict.fromkeys(("begin", "go_back", "move", "forget", "wait"), PAGES),
        **dict.fromkeys(("resume", "close"), PROGRAM),
    },
    "roles": {
        **dict.fromkeys(("role", "has", "check"), BOUND),
        **dict.fromkeys(("grants", "grant", "revoke", "entries"), OWNERS),
        **dict.fromkeys(("make_owner", "log"), PROGRAM),
    },
    "deletions": {"record": PAGES, "undo": BEGINS},
    "overviews": {"get": PAGES, "prepare": PROGRAM, "close": PROGRAM},
    "page_maps": {**dict.fromkeys(("get", "latest"), PAGES), "close": PROGRAM},
    "models": {
        **dict.fromkeys(("embedding", "sentences", "reader", "sparse", "reranker", "reranking", "verifier"), OPERATOR),
        **dict.fromkeys(("of_library", "ready", "problem", "warm", "end_delay"), OPERATOR),
    },
    "reranking": dict.fromkeys(("current", "comparison", "switch", "save_comparison"), OPERATOR),
    "verifier": {"verify": OPERATOR},
}


class World:
    """An app with one page and, if `hers`, with Ann's data; ids are the same, whether or not the objects exist."""

    def __init__(self, folder: Path, *, hers: bool) -> None:
        self.app = app = open_app(folder)
        add_files(app, ("harbour.md", PAGE))
        (page,) = app.library("main").pages()
        self.page = page.url_hash
        self.ids = dict.fromkeys(("turn", "waits", "note", "set", "run", "job", "live"), "0" * 32)
        if hers:
            self._talk()
            self._evaluate()
            self._import()
            app.chats.connections.add("ann's browser", "ann", ChatOptions("m", "http://127.0.0.1:9/v1", SECRET))

    def _talk(self) -> None:
        app, table = self.app, self.app._database.conversations
        citation = Citation(1, "file:///harbour.md", self.page, SECRET, SECRET, 0, 9)
        trail = {"ledger": [{"id": SECRET, "title": SECRET}]}
        read = self.app.library("main").chunks(self.page)
        answer = Answer(SECRET, "fast", "answered", SECRET, (citation,), read, trail=trail, standalone=SECRET)  # type: ignore[arg-type]
        asked = asdict(Question(SECRET, ("main",)))
        extra = {"asked": asked, "scores": {SECRET: 1.0}, "unread": True, "web_for": "hers"}
        self.ids["turn"] = turn = table.begin_turn("hers", "main", "ann", SECRET, extra=extra)
        table.finish_turn(turn, to_json(answer), searches=compress_searches([Retrieval(SECRET, "mmr", (), (), ())]))
        app._database.spans.save(turn, [Span(SECRET, "node")])
        self.ids["waits"] = table.begin_turn("waiting", "main", "ann", SECRET, extra=extra)
        table.suspend_turn(self.ids["waits"], {"asks": [{"id": "w", "asks": {"ask": SECRET}}], "spent": {}})
        app.conversations.branch("hers", turn, "ann")
        app.feedback.rate(turn, 1, owner="ann", comment=SECRET, correction=SECRET)
        self.ids["note"] = app.memory.add("ann", SECRET, permanent=True)
        app.overrule("main", f"Show me the {SECRET}", "statistics", "ann")
        self.ids["live"] = app.ask(Question(f"What of the {SECRET}?", ("main",)), owner="ann")
        app.wait(self.ids["live"], 60)

    def _evaluate(self) -> None:
        app, mine, database = self.app, self.app.evaluation.of("ann"), self.app._database
        case = Case("q", f"{SECRET}?", status="approved")
        self.ids["set"] = set_id = mine.sets.create("main", SECRET)
        mine.sets.put(set_id, [case])
        self.ids["run"] = run_id = mine.runs.create("main", [case], [Setting(), Setting("deep")], name=SECRET)
        mine.runs.pause(run_id)
        for setting in ("fast", "deep"):
            answer = to_json(Answer(SECRET, "fast", "answered", SECRET))
            database.evaluations.add_row(
                run_id, StoredRow(setting, "q", {"calls": 1.0}, {"answer": answer, "first_token": None})
            )
        for name, verdict in (("waiting", ""), ("labelled", "supported")):
            kept = asdict(Label(name, SECRET, SECRET, (SECRET,), "supported", "model"))
            database.labels.add("main", "ann", [(name, "supported", kept)])
            database.labels.label(name, verdict, "ann")
        assert app.evaluation.sets.sets("main") == []

    def _import(self) -> None:
        source = Source(SECRET, f"https://{SECRET}.example/", "web")
        failed = result(source, "h", "failed", Notice("file_unreadable", {"name": SECRET}))
        item = NewItem(SECRET, source.url, "h", {"kind": "web"}, result=failed)
        upload = NewItem(SECRET, payload={"kind": "file"}, data=SECRET.encode(), result=failed)
        jobs = self.app._database.jobs
        self.ids["job"] = jobs.create("main", "ann", [item, upload], title=SECRET)
        jobs.set_state(self.ids["job"], "paused")
        moved = Transfer("hers", "export", "main", "running", SECRET, owner="ann")
        self.app.transfers._transfers["hers"] = moved

    def service(self, name: str, who: str) -> Any:
        app, theirs = self.app, self.app.evaluation.of(who)
        found = {
            "app": app,
            "evaluation": theirs,
            "sets": theirs.sets,
            "runs": theirs.runs,
            "jobs": app.imports.jobs.of(who),
            "reranking": app.models.reranking,
            "schedules": app.imports.schedules,
            "external": app.imports.external,
            "connections": app.chats.connections,
        }
        return found.get(name) or getattr(app, name)

    def values(self, service: str, method: str, who: str) -> dict[str, Any]:
        """Return values for the parameters of a method, by name: Ann's ids, used by `who`."""
        holder, question = Holder("ann's browser", who), Question(f"What of the {SECRET}?", ("main",))
        waiting = (service, method) in (("conversations", "change"), ("conversations", "reply"), ("app", "reply"))
        sides = [Side(self.ids["run"]), Side(self.ids["run"], "deep")]
        request = TurnRequest(question, self.app.quoter("main"), FakeRetriever(), owner=who, conversation_id="hers")
        return {
            "owner": who,
            "person": who,
            "browser": f"{who}'s browser",
            "holder": holder,
            "request": request,
            "options": ChatOptions("m", "http://127.0.0.1:9/v1", holder=holder),
            "library": "main",
            "conversation_id": "hers",
            "turn_id": self.ids["waits" if waiting else "turn"],
            "run_id": self.ids["live" if service == "app" else "run"],
            "set_id": self.ids["set"],
            "note_id": self.ids["note"],
            "job_id": self.ids["job"],
            "transfer_id": "hers",
            "label_id": "waiting",
            "case_id": "q",
            "case_ids": ["q"],
            "cases": [Case("q", "Another?")],
            "settings": [Setting()] if service in ("evaluation", "runs") else {},
            "setting": "fast",
            "side": sides[0],
            "sides": sides,
            "ids": ["q"],
            "metric": "calls",
            "names": ["calls"],
            "verdict": "supported",
            "form": "jsonl",
            "question": question,
            "answer": Answer("Why?", "fast", "answered", "So."),
            "reply": {"w": "yes"},
            "change": Change("budget", {"calls": 1}),
            "text_of": lambda url: None,
            "page_of": self.app.page,
            "namespace": "",
            "url_hash": self.page,
            "title": "Another",
            "name": SECRET,
            "pinned": True,
            "rating": -1,
            "text": f"Show me the {SECRET}",
            "route": "ask",
            "permanent": True,
            "position": 0,
            "decision": "skip",
            "timeout": 5.0,
        }


def methods(service: str) -> list[str]:
    """Return the public methods and properties of one of our classes, inherited ones included."""
    kinds = (property, cached_property)
    return [
        name
        for name, member in inspect.getmembers(CLASSES[service])
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, kinds))
    ]


def is_personal(service: str, method: str) -> bool:
    if method in SHARED.get(service, {}):
        return False
    member = getattr(CLASSES[service], method)
    named = set(inspect.signature(member).parameters) if inspect.isfunction(member) else set()
    return service in OF_A_PERSON or bool(named & IDENTITY)


PERSONAL = [(service, method) for service in CLASSES for method in methods(service) if is_personal(service, method)]


def outcome(world: World, service: str, method: str, who: str) -> str:
    """Return the outcome of a method called by `who`, without what differs between apps."""
    call, values = getattr(world.service(service, who), method), world.values(service, method, who)
    given = {}
    for name, parameter in inspect.signature(call).parameters.items():
        if name in values:
            given[name] = values[name]
        elif parameter.default is parameter.empty and not parameter.kind.name.startswith("VAR_"):
            raise AssertionError(f"give {service}.{method} a value for {name}")
    try:
        found = call(**given)
        told = repr(list(found) if isinstance(found, Iterator) else found)
    except RagError as error:
        told = f"refused: {error.code}"
    return re.sub(r"\b[0-9a-f]{32}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d+\.\d+\b", "#", told)


def hers(world: World) -> list[Any]:
    """Return all of Ann's stored data."""
    tables = ("conversations", "turns", "turn_changes", "feedback", "route_choices", "jobs", "job_items")
    tables += ("evaluation_sets", "evaluation_cases", "evaluation_runs", "evaluation_rows", "evaluation_labels")
    kept = [
        tuple(row) for table in tables for row in world.app._database.rows(f"SELECT * FROM {table} WHERE owner = 'ann'")
    ]
    app = world.app
    return [*kept, app.memory.notes("ann"), app.chats.connections.snapshot_of(Holder("ann's browser", "ann"))]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, World]]:
    """Yield a world with Ann's data, and one without."""
    full, empty = (World(tmp_path_factory.mktemp("world"), hers=hers) for hers in (True, False))
    yield full, empty
    full.app.close()
    empty.app.close()


@pytest.mark.parametrize(("service", "method"), PERSONAL, ids=map(".".join, PERSONAL))
def test_nobody_else_can_tell_that_there_is_something_of_hers(
    worlds: tuple[World, World], service: str, method: str
) -> None:
    full, empty = worlds
    before = hers(full)
    told = outcome(full, service, method, "bob")
    assert told == outcome(empty, service, method, "bob")
    assert hers(full) == before, "and it is as it was"


def test_every_method_has_a_rule() -> None:
    named = {service: set(rules) for service, rules in SHARED.items()}
    ruled = {(service, method) for service, rules in named.items() for method in rules} | set(PERSONAL)
    there = {(service, method) for service in CLASSES for method in methods(service)}
    assert there - ruled == set(), "say who may call these, and what they get"
    assert ruled - there == set(), "these are gone"


def test_a_new_method_without_a_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Libraries, "everything", lambda self, library: None, raising=False)
    monkeypatch.setattr(Sets, "everything", lambda self, something: None, raising=False)
    with pytest.raises(AssertionError, match="everything"):
        test_every_method_has_a_rule()
    assert is_personal("sets", "everything") and not is_personal("libraries", "everything")


def test_all_that_the_app_hands_on_is_looked_at(worlds: tuple[World, World]) -> None:
    seen, waiting = set(), [worlds[0].app]
    while waiting:
        one: Any = waiting.pop()
        if type(one) in seen:
            continue
        seen.add(type(one))
        waiting += [
            value
            for name, value in vars(one).items()
            if not name.startswith("_") and type(value).__module__.startswith("rag.") and name != "settings"
            if not type(value).__module__.startswith("rag.models.")  # which don't know users
        ]
    assert seen - set(CLASSES.values()) == set()


def test_nothing_of_hers_is_said_to_somebody_else(worlds: tuple[World, World]) -> None:
    """Lists without ids don't reveal anything either: all of her data has this word."""
    app = worlds[0].app
    theirs = app.evaluation.of("bob")
    lists: list[Any] = [app.conversations.conversations("main", "bob", SECRET), theirs.sets.sets("main")]
    lists += [theirs.runs.runs("main"), theirs.labels("main"), app.imports.jobs.of("bob").jobs("main")]
    lists += [app.feedback.questions("main", app.page, "bob"), app.memory.notes_for_model("bob")]
    mine = theirs.sets.create("main", SECRET)
    assert theirs.gather_feedback("main", mine) == 0 and theirs.sets.cases(mine) == []
    assert [row_of(case)["question"] for case in app.evaluation.of("ann").sets.cases(worlds[0].ids["set"])]
    assert SECRET not in repr(lists)


def test_the_owner_gets_through_each_of_these_doors(worlds: tuple[World, World]) -> None:
    """Otherwise the test above would prove nothing. Destructive methods come last."""
    full, empty = worlds
    last = "overrule label rate mark_read rename put reply resume_turn converse ask save_note".split()
    last += "pause decide resume cancel withdraw remove forget delete".split()
    # A retried job has read its files again: nothing would be left to reread.
    first = sorted(PERSONAL, key=lambda one: one[1] not in ("count_unread_files", "reread_files"))
    order = sorted(first, key=lambda one: last.index(one[1]) if one[1] in last else -1)
    alike = []
    for service, method in order:
        before = hers(full)
        told = outcome(full, service, method, "ann")
        if told == outcome(empty, service, method, "ann") and hers(full) == before:
            alike.append(f"{service}.{method}")
    assert not alike
