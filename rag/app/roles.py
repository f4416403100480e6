"""Library roles that owners grant, and role checks for the methods of the app.

    app.for_person(person)      # the same app; each call that concerns a library is checked first

Without sign-in, everyone may do everything.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from rag.access import Person, parse_subject
from rag.errors import RagError, StoreError
from rag.store.sql.small_tables import Action, AuditEntry, Grant, GrantTable, Role

EVERYONE: Final = "*"
"""The subject of a grant to all signed-in users."""
ROLES: Final[tuple[Role, ...]] = ("none", "reader", "editor", "owner")
"""In ascending order."""
_SECONDS: Final = 10.0


def role_of(grants: Iterable[Grant], person: Person | None) -> Role:
    """Return a user's highest role by a library's grants. Without a grant to everyone, everyone is an editor."""
    if person is None or person.is_admin:
        return "owner"
    roles: dict[str, Role] = {EVERYONE: "editor", **{grant.subject: grant.role for grant in grants}}
    subjects = person.subjects | {EVERYONE, _own_subject(person)}
    return max((role for subject, role in roles.items() if subject in subjects), key=ROLES.index)


class Roles:
    """The roles of one user, and the grants that this user may view and change. Methods raise StoreError.

    A role is cached for up to _SECONDS.
    """

    def __init__(self, table: GrantTable, person: Person | None) -> None:
        self._table = table
        self._person = person
        self._cache: dict[str, tuple[float, Role]] = {}

    def role(self, library: str) -> Role:
        if self._person is None:
            return "owner"
        read_at, role = self._cache.get(library, (-_SECONDS, "none"))
        if time.monotonic() - read_at >= _SECONDS:
            role = role_of(self._table.grants(library), self._person)
            self._cache[library] = time.monotonic(), role
        return role

    def has(self, library: str, min_role: Role) -> bool:
        return ROLES.index(self.role(library)) >= ROLES.index(min_role)

    def check(self, library: str, min_role: Role) -> None:
        """Raise RagError("editor_needed" or "owner_needed") if the role is too low; for a user without a role, raise
        StoreError as for a missing library."""
        if self.has(library, min_role):
            return
        if not self.has(library, "reader"):
            raise StoreError("library_unknown", library=library)
        raise RagError("owner_needed" if min_role == "owner" else "editor_needed")

    # For owners only, else RagError("owner_needed"). RagError("last_owner") if no owner would remain, except for
    # administrators.

    def grants(self, library: str) -> list[Grant]:
        self.check(library, "owner")
        return self._table.grants(library)

    def grant(self, library: str, subject: str, role: Role) -> None:
        """Grant a role to all users matching `subject`. Raises RagError("subject_unknown") if it is invalid."""
        self.check(library, "owner")
        name = subject if subject == EVERYONE else parse_subject(subject)
        if not name:
            raise RagError("subject_unknown")
        if role != "owner":
            self._check_others(library, name)
        self._table.put(library, name, role, self._owner)
        self.log(library, "grant", f"{name}: {role}")
        self._cache.pop(library, None)

    def revoke(self, library: str, subject: str) -> None:
        self.check(library, "owner")
        self._check_others(library, subject)
        self._table.revoke(library, subject)
        self.log(library, "grant", f"{subject}: –")
        self._cache.pop(library, None)

    def _check_others(self, library: str, subject: str) -> None:
        """Raise RagError("last_owner") if `subject` is the only owner, except for administrators."""
        owners = {grant.subject for grant in self._table.grants(library) if grant.role == "owner"}
        if owners == {subject} and self._person is not None and not self._person.is_admin:
            raise RagError("last_owner")

    def entries(self, library: str) -> list[AuditEntry]:
        self.check(library, "owner")
        return self._table.entries(library)

    def make_owner(self, library: str) -> None:
        """Make the user the owner of a library that they just created."""
        if self._person is not None:
            self._table.put(library, _own_subject(self._person), "owner", self._owner)
            self._cache.pop(library, None)

    def log(self, library: str, action: Action, detail: str = "") -> None:
        person = self._person
        self._table.log(library, self._owner, (person.address or person.name) if person else "", action, detail)

    @property
    def _owner(self) -> str:
        return self._person.owner if self._person else ""


def _own_subject(person: Person) -> str:
    """Return the subject for this user alone: the accepted address, else one derived from `owner`."""
    return person.address if person.address in person.subjects else f"person:{person.owner}"


# The checks of calls


@dataclass(frozen=True, slots=True)
class AccessRule:
    """The role check of a method: the `min_role` in the libraries that an argument names or `find` returns.

    `logs` is the action to log afterwards. `created` returns the name of the library that the call created, given the
    service and the result. `hides` removes libraries in which the user has a lower role from the result. `otherwise`
    returns the result for a user without the role, instead of an error.
    """

    min_role: Role = "none"
    argument: str = ""
    find: Callable[[Any, Mapping[str, Any]], Sequence[str]] | None = None
    logs: Action | None = None
    created: Callable[[Any, Any], str] | None = None
    hides: Role | None = None
    otherwise: Callable[[Mapping[str, Any]], Any] | None = None


def _reads(argument: str = "library") -> AccessRule:
    return AccessRule("reader", argument)


def _edits(argument: str = "library", logs: Action | None = None) -> AccessRule:
    return AccessRule("editor", argument, logs=logs)


RULES: Final[Mapping[str, Mapping[str, AccessRule]]] = {
    "App": {
        "remove_library": _edits("name", logs="remove_library"),
        "remove_pages": _edits("name", logs="remove_pages"),
        "clear_library": _edits("name", logs="remove_pages"),
        "set_excluded": _edits("name"),
        "save_note": _edits(),
        "overrule": _reads(),
    },
    "Libraries": {
        **{name: _reads("name") for name in ("get", "load", "check", "info")},
        **{name: _edits("name") for name in ("rename", "remove", "move")},
        "restore": _edits("name", logs="restore_library"),
        "export": _edits("name", logs="export"),
        # As for a library that does not exist.
        "has": AccessRule("reader", "name", otherwise=lambda arguments: False),
        "title": AccessRule("reader", "name", otherwise=lambda arguments: arguments["name"]),
        "infos": AccessRule(hides="reader"),
        "removed_libraries": AccessRule(hides="editor"),
        "create": AccessRule(created=lambda service, name: str(name)),
    },
    "Imports": {name: _edits() for name in ("add_urls", "add_examples", "ingestor")},
    "Jobs": {
        **{name: _edits() for name in ("submit", "submit_files", "submit_site", "recheck", "reread_files")},
        **{
            name: AccessRule("editor", find=lambda jobs, of: [jobs.job(of["job_id"]).library] if of["job_id"] else [])
            for name in ("resume", "retry_failed", "decide")
        },
        **{name: _reads() for name in ("jobs", "count_unread_files")},
    },
    "Schedules": {
        "set": _edits(),
        "schedules": _reads(),
        "remove": AccessRule("editor", find=lambda schedules, of: [schedules.library_of(of["schedule_id"])]),
    },
    "Moves": {"move": _reads(), **{name: _edits() for name in ("begin", "go_back", "forget")}},
    "Transfers": {
        "export": _edits(logs="export"),
        "import_file": AccessRule(created=lambda service, transfer_id: service.library_of(transfer_id)),
    },
    "Deletions": {"record": _edits("name")},
    "PageMaps": {name: _reads() for name in ("get", "latest")},
    "Overviews": {"get": _reads(), "prepare": _reads()},
    "Conversations": {
        **{name: _reads() for name in ("conversations", "unread", "find_citing_turns", "most_cited")},
        "find_by_link": AccessRule("reader", find=lambda service, of: list(service.list_link_libraries(of["link"]))),
    },
    "Feedback": {name: _reads() for name in ("questions", "pages")},
    "Evaluation": {
        **{name: _reads() for name in ("side_by_side", "gather_feedback", "scores_over_time", "labels", "agreement")},
        **{
            name: AccessRule("reader", find=lambda evaluation, of: [evaluation.sets.get_set(of["set_id"]).library])
            for name in ("add_page_drafts", "write_drafts", "anchor", "evaluate")
        },
    },
    "Sets": {name: _reads() for name in ("sets", "find_by_name", "create", "import_file")},
    "EvaluationRuns": {name: _reads() for name in ("create", "runs")},
}
"""Rules by class and method. Unlisted methods are internal, concern no library, or only the caller's data."""


class Guarded:
    """A proxy that checks rules before calling a service's methods; services that it returns are guarded too."""

    def __init__(self, service: Any, roles: Roles, default: str) -> None:
        """`default` is the library that None stands for."""
        self._service, self._roles, self._default = service, roles, default
        self._rules = RULES[type(service).__name__]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._service, name)
        if type(value).__name__ in RULES:
            return Guarded(value, self._roles, self._default)
        if name in self._rules:
            return guard(value, self._rules[name], self._roles, self._default)
        if name == "of" and callable(value):  # returns the same service for one user
            return lambda *args, **kwargs: Guarded(value(*args, **kwargs), self._roles, self._default)
        return value


def guard(method: Callable[..., Any], rule: AccessRule, roles: Roles, default: str) -> Callable[..., Any]:
    """Wrap a bound method in the checks of its rule."""
    service, signature = method.__self__, inspect.signature(method)  # type: ignore[attr-defined]

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        libraries: Sequence[str] = ()
        if rule.find is not None:
            libraries = rule.find(service, bound.arguments)
        elif rule.argument:
            libraries = [bound.arguments[rule.argument] or default]  # None stands for the default
        for library in libraries:
            if rule.otherwise is not None and not roles.has(library, rule.min_role):
                return rule.otherwise(bound.arguments)
            roles.check(library, rule.min_role)
        result = method(*args, **kwargs)
        if rule.logs:
            pages = bound.arguments.get("url_hashes")
            for library in libraries:
                roles.log(library, rule.logs, "" if pages is None else str(len(pages)))
        if rule.created is not None:
            roles.make_owner(rule.created(service, result))
        return result if rule.hides is None else [info for info in result if roles.has(info.name, rule.hides)]

    return call
