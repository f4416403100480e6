"""Roles in a library: what grants allow, and every method of the App called by a user with each role."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from rag.access import Person, build_person, parse_subject
from rag.app import App, Question, RunOptions
from rag.app.roles import EVERYONE, ROLES, RULES, AccessRule, Roles, role_of
from rag.app.transfer import Transfers
from rag.conversations.conversations import Conversations
from rag.errors import RagError
from rag.evaluation.sets import Sets
from rag.ingest.jobs.service import Jobs
from rag.ingest.schedule import Schedules
from rag.store.sql.database import Database
from rag.store.sql.small_tables import Grant, Role
from rag.types import Answer, Citation
from tests.support.apps import finish, open_app, refusal
from tests.test_privacy import CLASSES, methods

PAGE = "# Harbour\n\nThe harbour toll was four crowns, paid in silver at noon.\n"
ISSUER = "https://id.example"


def signed_in(address: str, *groups: str, admins: tuple[str, ...] = ()) -> Person:
    claims = {"iss": ISSUER, "sub": address, "email": address, "email_verified": True, "groups": list(groups)}
    return build_person(claims, admins=admins)


ANN, BOB = signed_in("ann@example.com"), signed_in("bob@team.example", "Editors")
ADMIN = signed_in("root@example.com", admins=("root@example.com",))


def grants(**roles: Role) -> list[Grant]:
    return [Grant("main", subject.replace("_at_", "@").replace("_of_", ":"), role) for subject, role in roles.items()]


@pytest.mark.parametrize(
    ("given", "person", "role"),
    [
        ({}, None, "owner"),
        ({}, BOB, "editor"),
        ({}, ADMIN, "owner"),
        ({EVERYONE: "none"}, BOB, "none"),
        ({EVERYONE: "none"}, ADMIN, "owner"),
        ({EVERYONE: "none", "_at_team.example": "reader"}, BOB, "reader"),
        ({EVERYONE: "none", "_at_team.example": "reader"}, ANN, "none"),
        ({EVERYONE: "none", "_at_team.example": "reader", "group_of_editors": "editor"}, BOB, "editor"),
        ({EVERYONE: "reader", "bob_at_team.example": "owner", "group_of_editors": "none"}, BOB, "owner"),
    ],
)
def test_roles_add_up(given: dict[str, Role], person: Person | None, role: Role) -> None:
    assert role_of(grants(**given), person) == role


def test_an_address_that_nobody_verified_means_nobody() -> None:
    claims = {"iss": ISSUER, "sub": "7", "email": "ann@example.com", "email_verified": False, "groups": "staff"}
    person = build_person(claims, admins=("ann@example.com",))
    assert person.subjects == {"group:staff"} and not person.is_admin


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (" Ann@Example.com ", "ann@example.com"),
        ("@example.com", "@example.com"),
        ("group:Night Shift", "group:night shift"),
        ("ann", ""),
        ("group:", ""),
        ("person:0123", ""),
        ("", ""),
    ],
)
def test_what_a_grant_may_name(text: str, subject: str) -> None:
    assert parse_subject(text) == subject


def test_owners_grant_and_others_do_not(database: Database) -> None:
    anns, bobs = (Roles(database.grants, person) for person in (ANN, BOB))
    anns.make_owner("team")
    anns.grant("team", EVERYONE, "reader")
    assert (anns.role("team"), bobs.role("team")) == ("owner", "reader")
    assert refusal(bobs.grants, "team") == "owner_needed"
    assert refusal(bobs.grant, "team", "bob@team.example", "owner") == "owner_needed"
    assert refusal(bobs.revoke, "team", "ann@example.com") == "owner_needed"
    assert refusal(bobs.entries, "team") == "owner_needed"
    anns.grant("team", "Bob@team.example", "owner")
    assert Roles(database.grants, BOB).role("team") == "owner"
    anns.revoke("team", "bob@team.example")
    for left_alone in (
        lambda: anns.revoke("team", "ann@example.com"),
        lambda: anns.grant("team", "ann@example.com", "editor"),
    ):
        with pytest.raises(RagError, match="needs an owner"):
            left_alone()
    Roles(database.grants, ADMIN).grant("team", "ann@example.com", "owner")
    with pytest.raises(RagError, match="e-mail address"):
        anns.grant("team", "everybody", "reader")
    told = [(one.person, one.action, one.detail) for one in anns.entries("team")]
    assert told[::-1] == [
        ("ann@example.com", "grant", "*: reader"),
        ("ann@example.com", "grant", "bob@team.example: owner"),
        ("ann@example.com", "grant", "bob@team.example: –"),
        ("root@example.com", "grant", "ann@example.com: owner"),
    ]


# Every method, called by a user with each role

CASES = [(service, method) for service, rules in RULES.items() for method in rules]
BY_NAME = {one.__name__: one for one in CLASSES.values()}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("roles")
    with closing(open_app(folder)) as opened:
        yield opened


def service_of(app: App, name: str) -> Any:
    inner = {"Jobs": lambda: app.imports.jobs.of("bob"), "Schedules": lambda: app.imports.schedules}
    inner |= {"Sets": lambda: app.evaluation.of("bob").sets, "EvaluationRuns": lambda: app.evaluation.of("bob").runs}
    if name == "App":
        return app
    if name in inner:
        return inner[name]()
    return next(one for key, one in vars(app).items() if key in CLASSES and CLASSES[key].__name__ == name)


def arguments(method: Any) -> Mapping[str, Any]:
    """Return a value for each parameter, "team" for a library."""
    known = {"library": "team", "name": "team"}
    wanted = [one for one in inspect.signature(method).parameters.values() if one.kind not in (one.VAR_KEYWORD,)]
    return {one.name: known.get(one.name, "x") for one in wanted if one.name != "self"}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("service", "method"), CASES, ids=map(".".join, CASES))
def test_each_method_needs_its_role(
    app: App, service: str, method: str, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, original, calls = RULES[service][method], getattr(BY_NAME[service], method), []

    @functools.wraps(original)
    def stub(*given: Any, **named: Any) -> Any:
        calls.append(named)
        return [SimpleNamespace(name="team")] if rule.hides else "new"

    monkeypatch.setattr(BY_NAME[service], method, stub)
    monkeypatch.setattr(Jobs, "job", lambda self, job_id: SimpleNamespace(library="team"))
    monkeypatch.setattr(Schedules, "library_of", lambda self, schedule_id: "team")
    monkeypatch.setattr(Transfers, "library_of", lambda self, transfer_id: "new")
    monkeypatch.setattr(Sets, "get_set", lambda self, set_id: SimpleNamespace(library="team"))
    monkeypatch.setattr(Conversations, "list_link_libraries", lambda self, link: ["team"])
    app._database.grants.put("team", EVERYONE, "none", "")
    app._database.grants.put("team", "bob@team.example", role, "")
    theirs = app.for_person(BOB)
    may = ROLES.index(role) >= ROLES.index(rule.min_role)
    outcome: Any = None
    try:
        found = getattr(service_of(theirs, service), method)(**arguments(original))
    except RagError as error:
        outcome = error.code
    refusal = "library_unknown" if role == "none" else "editor_needed"
    assert outcome == (None if may or rule.otherwise else refusal)
    assert bool(calls) is may
    if rule.hides and may:
        assert bool(found) is (ROLES.index(role) >= ROLES.index(rule.hides))
    if rule.created:
        assert theirs.roles.role("new") == "owner"
    if rule.logs and may:
        assert app._database.grants.entries("team")[0].action == rule.logs


OTHERS = {
    "App": "by what it reads libraries with, which has a rule",
    "Libraries": "tells the name of a library, or is the program's own",
    "Jobs": "of a job of one's own, or the program's own",
    "Roles": "is what decides",
    "ExternalJobs": "is for the command line alone",
}
"""Reasons why methods with a library among their parameters have no rule, by class."""
ALONE = frozenset(
    {
        *("Transfers.import_file", "Conversations.delete_checkpoints", "Evaluation.score_displayed", "Moves.wait"),
        *("Sets.export", "EvaluationRuns.begin"),
    }
)


def test_every_method_about_a_library_has_a_rule() -> None:
    missing = []
    for key, one in CLASSES.items():
        for name in methods(key):
            member = inspect.getattr_static(one, name, None)
            if not callable(member) or name in RULES.get(one.__name__, {}):
                continue
            if {"library", "libraries"} & set(inspect.signature(member).parameters):
                missing.append(f"{one.__name__}.{name}")
    assert [one for one in missing if one.partition(".")[0] not in OTHERS and one not in ALONE] == []


# Whole ways


def test_a_library_without_access_looks_as_if_it_did_not_exist(app: App) -> None:
    anns = app.for_person(ANN)
    name = anns.libraries.create("Secret plans")
    anns.roles.grant(name, EVERYONE, "none")
    bobs = app.for_person(BOB)
    for library in (name, "no-such-library"):
        assert not bobs.libraries.has(library) and bobs.libraries.title(library) == library
        assert bobs.page(library, "0" * 32) is None
    anns.roles.grant(name, "bob@team.example", "reader")
    bobs = app.for_person(BOB)
    assert bobs.libraries.has(name) and bobs.libraries.title(name) == "Secret plans"


def test_readers_open_a_linked_conversation_and_nobody_else_does(app: App) -> None:
    anns, bobs = app.for_person(ANN), app.for_person(BOB)
    name = anns.libraries.create("Light house")
    anns.roles.grant(name, EVERYONE, "none")
    source = Citation(1, "https://a.example/", "a", "A", "It is red.", 0, 10, library=name)
    answer = Answer("Which colour?", "fast", "answered", "It is red. [1]", (source,))
    kept = app.conversations.put(Question("Which colour?", (name,)), answer, ANN.owner, "", {})
    link = app.conversations.share(kept.conversation_id, ANN.owner)
    assert app.conversations.share(kept.conversation_id, ANN.owner) == link
    assert refusal(bobs.conversations.find_by_link, link) == "library_unknown"
    anns.roles.grant(name, "bob@team.example", "reader")
    theirs = app.for_person(BOB).conversations
    conversation, turns = theirs.find_by_link(link)
    assert (conversation.title, [turn.answer for turn in turns]) == ("Which colour?", [answer])
    for denied_to_readers in (theirs.turns, theirs.unshare):
        with pytest.raises(RagError):
            denied_to_readers(conversation.id, BOB.owner)
    anns.conversations.unshare(conversation.id, ANN.owner)
    for gone in (link, "", "another"):
        assert refusal(theirs.find_by_link, gone) == "conversation_unknown"


def test_a_link_needs_every_library_that_its_answers_come_from(app: App) -> None:
    anns = app.for_person(ANN)
    near, far = (anns.libraries.create(title) for title in ("Near", "Far"))
    anns.roles.grant(far, EVERYONE, "none")
    source = Citation(1, "https://a.example/", "a", "A", "It is red.", 0, 10, library=far)
    answer = Answer("Which colour?", "fast", "answered", "It is red. [1]", (source,))
    kept = app.conversations.put(Question("Which colour?", (near, far)), answer, ANN.owner, "", {})
    link = app.conversations.share(kept.conversation_id, ANN.owner)
    assert app.conversations.list_link_libraries(link) == sorted({near, far})
    with pytest.raises(RagError):
        app.for_person(BOB).conversations.find_by_link(link)


def test_a_reader_asks_and_adds_nothing(app: App) -> None:
    name = app.for_person(ANN).libraries.create("Harbour office")
    anns = app.for_person(ANN)
    finish(app, anns.imports.jobs.submit_files([("harbour.md", PAGE.encode())], library=name, owner=ANN.owner))
    anns.roles.grant(name, EVERYONE, "reader")
    bobs = app.for_person(BOB)
    answer = bobs.wait(bobs.ask(Question("How was the harbour toll paid?", (name,)), owner=BOB.owner), 60)
    assert "silver" in answer.text
    wish = Question("https://a.example/", (name,), options=RunOptions(route="save"))
    begun = bobs.converse(wish, owner=BOB.owner, person=BOB.owner)
    saved = bobs.wait(begun.run_id, 60)
    assert saved.outcome == "failed" and saved.notice is not None and saved.notice.code == "editor_needed"
    assert refusal(bobs.remove_pages, name, ["x"]) == "editor_needed"
    anns.roles.grant(name, EVERYONE, "none")
    gone = app.for_person(BOB)
    assert name not in [info.name for info in gone.libraries.infos()]
    assert refusal(gone.ask, Question("How was the harbour toll paid?", (name,))) == "library_unknown"
    anns.remove_library(name)
    assert [one.action for one in anns.roles.entries(name)][:1] == ["remove_library"]


def test_without_sign_in_it_is_the_app_itself(app: App) -> None:
    assert app.for_person(None) is app and app.roles.role("anything") == "owner"


def test_a_rule_names_what_is_there() -> None:
    for service, rules in RULES.items():
        for method, rule in rules.items():
            parameters = inspect.signature(getattr(BY_NAME[service], method)).parameters
            assert isinstance(rule, AccessRule) and (not rule.argument or rule.argument in parameters)
