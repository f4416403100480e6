"""Roles in a library, by the grants of its owners, and the app as one person may use it.

    app.for_person(person)      # the same app; each call that is about a library is checked first

Without sign-in everyone may do everything.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from rag.access import Person, subject_of
from rag.errors import RagError, StoreError
from rag.store.sql.grant_table import Action, AuditEntry, Grant, GrantTable, Role

EVERYONE: Final = "*"
"""The subject of a grant to everyone who is signed in."""
ROLES: Final[tuple[Role, ...]] = ("none", "reader", "editor", "owner")
"""From the least to the most."""
_SECONDS: Final = 10.0


def role_of(grants: Iterable[Grant], person: Person | None) -> Role:
    """The most that the grants of a library give to a person. Without a grant to everyone, everyone is an editor."""
    if person is None or person.administers:
        return "owner"
    given: dict[str, Role] = {EVERYONE: "editor", **{one.subject: one.role for one in grants}}
    means = person.subjects | {EVERYONE, _own(person)}
    return max((role for subject, role in given.items() if subject in means), key=ROLES.index)


class Roles:
    """The roles of one person, and of others as far as that person may see and change them. Methods raise StoreError.

    A role counts for up to _SECONDS after it was read.
    """

    def __init__(self, table: GrantTable, person: Person | None) -> None:
        self._table = table
        self._person = person
        self._known: dict[str, tuple[float, Role]] = {}

    def role(self, library: str) -> Role:
        if self._person is None:
            return "owner"
        read_at, role = self._known.get(library, (-_SECONDS, "none"))
        if time.monotonic() - read_at >= _SECONDS:
            role = role_of(self._table.grants(library), self._person)
            self._known[library] = time.monotonic(), role
        return role

    def has(self, library: str, least: Role) -> bool:
        return ROLES.index(self.role(library)) >= ROLES.index(least)

    def check(self, library: str, least: Role) -> None:
        """Raise RagError("editor_needed" or "owner_needed") for a role that is less, StoreError as for no library where
        it is none."""
        if self.has(library, least):
            return
        if not self.has(library, "reader"):
            raise StoreError("library_unknown", library=library)
        raise RagError("owner_needed" if least == "owner" else "editor_needed")

    # For owners of a library: RagError("owner_needed") for others. RagError("last_owner") for what would leave none,
    # except for administrators.

    def grants(self, library: str) -> list[Grant]:
        self.check(library, "owner")
        return self._table.grants(library)

    def grant(self, library: str, subject: str, role: Role) -> None:
        """Give everyone whom `subject` means a role. Raises RagError("subject_unknown") for what can name nobody."""
        self.check(library, "owner")
        named = subject if subject == EVERYONE else subject_of(subject)
        if not named:
            raise RagError("subject_unknown")
        if role != "owner":
            self._check_others(library, named)
        self._table.put(library, named, role, self._owner)
        self.log(library, "grant", f"{named}: {role}")
        self._known.pop(library, None)

    def revoke(self, library: str, subject: str) -> None:
        """Take a grant back."""
        self.check(library, "owner")
        self._check_others(library, subject)
        self._table.revoke(library, subject)
        self.log(library, "grant", f"{subject}: –")
        self._known.pop(library, None)

    def _check_others(self, library: str, subject: str) -> None:
        """Check that somebody besides `subject` owns the library."""
        owners = {one.subject for one in self._table.grants(library) if one.role == "owner"}
        if owners == {subject} and self._person is not None and not self._person.administers:
            raise RagError("last_owner")

    def entries(self, library: str) -> list[AuditEntry]:
        self.check(library, "owner")
        return self._table.entries(library)

    def own(self, library: str) -> None:
        """Make the person the owner of a library that they just created."""
        if self._person is not None:
            self._table.put(library, _own(self._person), "owner", self._owner)
            self._known.pop(library, None)

    def log(self, library: str, action: Action, detail: str = "") -> None:
        person = self._person
        self._table.log(library, self._owner, (person.address or person.name) if person else "", action, detail)

    @property
    def _owner(self) -> str:
        return self._person.owner if self._person else ""


def _own(person: Person) -> str:
    """The subject that means this person alone, whatever becomes of their address."""
    return person.address if person.address in person.subjects else f"person:{person.owner}"


# The checks of calls


@dataclass(frozen=True, slots=True)
class Rule:
    """Describes what a method needs: the `least` role in the libraries that an argument names, or that `find` returns.

    `logs` is the action that is logged afterwards, `made` returns the name of a library that the call has made, by the
    service and what it returned, and `hides` leaves out of the returned libraries those in which the person has less.
    """

    least: Role = "none"
    argument: str = ""
    find: Callable[[Any, Mapping[str, Any]], Sequence[str]] | None = None
    logs: Action | None = None
    made: Callable[[Any, Any], str] | None = None
    hides: Role | None = None

    def libraries(self, service: Any, given: Mapping[str, Any], default: str) -> Sequence[str]:
        """The libraries of a call; `default` is the one that None stands for."""
        if self.find is not None:
            return self.find(service, given)
        return [given[self.argument] or default] if self.argument else []


def _reads(argument: str = "library") -> Rule:
    return Rule("reader", argument)


def _edits(argument: str = "library", logs: Action | None = None) -> Rule:
    return Rule("editor", argument, logs=logs)


def _of_job(service: Any, given: Mapping[str, Any]) -> Sequence[str]:
    return [service.job(given["job_id"]).library] if given["job_id"] else []


def _of_schedule(service: Any, given: Mapping[str, Any]) -> Sequence[str]:
    return [service.library_of(given["schedule_id"])]


def _of_link(service: Any, given: Mapping[str, Any]) -> Sequence[str]:
    return list(service.linked_libraries(given["link"]))


def _of_set(service: Any, given: Mapping[str, Any]) -> Sequence[str]:
    return [service.sets.set_of(given["set_id"]).library]


RULES: Final[Mapping[str, Mapping[str, Rule]]] = {
    "App": {
        "remove_library": _edits("name", logs="remove_library"),
        "remove_pages": _edits("name", logs="remove_pages"),
        "clear_library": _edits("name", logs="remove_pages"),
        "leave_out": _edits("name"),
        "save_note": _edits(),
        "overrule": _reads(),
    },
    "Libraries": {
        **{name: _reads("name") for name in ("get", "working", "check", "info")},
        **{name: _edits("name") for name in ("rename", "remove", "move")},
        "restore": _edits("name", logs="restore_library"),
        "export": _edits("name", logs="export"),
        "infos": Rule(hides="reader"),
        "removed": Rule(hides="editor"),
        "create": Rule(made=lambda service, name: str(name)),
    },
    "Imports": {name: _edits() for name in ("add_urls", "add_files", "add_examples", "add_site", "submit", "ingestor")},
    "Jobs": {
        **{name: _edits() for name in ("submit", "submit_files", "submit_site", "recheck", "reread_files")},
        **{name: Rule("editor", find=_of_job) for name in ("resume", "retry_failed", "decide")},
        **{name: _reads() for name in ("jobs", "kept_files")},
    },
    "Schedules": {"set": _edits(), "schedules": _reads(), "remove": Rule("editor", find=_of_schedule)},
    "Moves": {"move": _reads(), **{name: _edits() for name in ("begin", "go_back", "forget")}},
    "Transfers": {
        "export": _edits(logs="export"),
        "bring_in": Rule(made=lambda service, transfer_id: service.library_of(transfer_id)),
    },
    "Removals": {"remember": _edits("name")},
    "PageMaps": {name: _reads() for name in ("of", "at_hand")},
    "Overviews": {"of": _reads(), "prepare": _reads()},
    "Conversations": {
        **{name: _reads() for name in ("conversations", "unread", "cited", "most_cited")},
        "linked": Rule("reader", find=_of_link),
    },
    "Feedback": {name: _reads() for name in ("questions", "pages")},
    "Evaluation": {
        **{name: _reads() for name in ("side_by_side", "gather_feedback", "over_time", "labels", "agreement")},
        **{name: Rule("reader", find=_of_set) for name in ("make", "write", "anchor", "evaluate")},
    },
    "Sets": {name: _reads() for name in ("sets", "named", "create", "bring_in")},
    "EvaluationRuns": {name: _reads() for name in ("create", "runs")},
}
"""By the name of a service's class. What is not listed is about no library, or belongs to who asks for it."""


class Guarded:
    """A service whose methods check their rules first; services that it leads to are guarded, too."""

    def __init__(self, service: Any, roles: Roles, default: str) -> None:
        """`default` is the library that None stands for."""
        self._service, self._roles, self._default = service, roles, default
        self._rules = RULES[type(service).__name__]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._service, name)
        if type(value).__name__ in RULES:
            return Guarded(value, self._roles, self._default)
        if name in self._rules:
            return self._checked(value, self._rules[name])
        return self._leading(value) if name == "of" and callable(value) else value

    def _leading(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """`of` gives the same service for one person."""
        return lambda *given, **named: Guarded(method(*given, **named), self._roles, self._default)

    def _checked(self, method: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
        return checked(method, rule, self._roles, self._default)


def checked(method: Callable[..., Any], rule: Rule, roles: Roles, default: str) -> Callable[..., Any]:
    """A bound method that is called only if the person may; what it needs and leads to, its rule says."""
    service, signature = method.__self__, inspect.signature(method)  # type: ignore[attr-defined]

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        libraries = rule.libraries(service, bound.arguments, default)
        for library in libraries:
            roles.check(library, rule.least)
        result = method(*given, **named)
        if rule.logs:
            for library in libraries:
                roles.log(library, rule.logs, _detail(bound.arguments))
        if rule.made is not None:
            roles.own(rule.made(service, result))
        return result if rule.hides is None else [one for one in result if roles.has(one.name, rule.hides)]

    return call


def _detail(given: Mapping[str, Any]) -> str:
    """How many pages a call is about, where it is about pages."""
    pages = given.get("url_hashes")
    return "" if pages is None else str(len(pages))
