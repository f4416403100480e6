"""The keys of rag/locales that the app uses, read from its source."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import rag.errors
from rag.evaluation.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "main.py", *(file for folder in ("rag", "pages", "scripts") for file in (ROOT / folder).rglob("*.py"))]
ERRORS = {name for name, one in vars(rag.errors).items() if isinstance(one, type) and issubclass(one, Exception)}
SAYING = ERRORS | {"Notice", "because", "label_count", "label", "say"}


@dataclass(frozen=True)
class Use:
    """A call with the literal `key`, and the names of its values, or None if they are not literal."""

    where: str
    key: str
    values: frozenset[str] | None


@functools.cache
def trees() -> Mapping[Path, ast.Module]:
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


def uses() -> Iterator[Use]:
    """Yield the calls whose first argument is a literal key."""
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in SAYING:
                yield from _uses(node, f"{file.relative_to(ROOT)}:{node.lineno}")


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) and function.id != "say" else ""


def plurals() -> Iterator[tuple[str, str]]:
    """Yield the pairs of keys that `label_count` chooses from."""
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) == "label_count":
                keys = [str(one.value) for one in node.args[:2] if isinstance(one, ast.Constant)]
                if len(keys) == 2:
                    yield keys[0], keys[1]


def _uses(call: ast.Call, where: str) -> Iterator[Use]:
    name, values = _name(call.func), _values(call)
    for argument in call.args[: 2 if name == "label_count" else 1]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield Use(
                where, argument.value, values | {"count"} if values is not None and name == "label_count" else values
            )


def _values(call: ast.Call) -> frozenset[str] | None:
    if _name(call.func) == "Notice":
        if len(call.args) < 2:
            return frozenset()
        given = call.args[1]
        written = isinstance(given, ast.Dict) and all(isinstance(key, ast.Constant) for key in given.keys)
        return frozenset(key.value for key in given.keys) if written else None  # type: ignore[attr-defined]
    names = frozenset(word.arg for word in call.keywords)
    spread = [word.value for word in call.keywords if word.arg is None]
    if any(not (isinstance(one, ast.Call) and _name(one.func) == "because") for one in spread):
        return None
    return frozenset(name for name in names if name) | ({"reason"} if spread else frozenset())


@functools.cache
def words() -> frozenset[str]:
    """Return every word of the source's strings, docstrings aside, and metrics as their keys spell them."""
    texts = [name.replace("@", "_").lower() for name in METRICS]
    texts += [text for tree in trees().values() for text in _strings(tree)]
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _strings(tree: ast.Module) -> Iterator[str]:
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


@functools.cache
def patterns() -> tuple[re.Pattern[str], ...]:
    """Return the f-strings that may be keys, with a group for each value."""
    found = {
        "".join(re.escape(part.value) if isinstance(part, ast.Constant) else r"(\w+)" for part in node.values)  # type: ignore[arg-type]
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        and re.fullmatch(r"\w{3,}", "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
    }
    return tuple(map(re.compile, sorted(found)))


@functools.cache
def is_used(key: str) -> bool:
    """Return whether `key` is in the source: whole, built by an f-string, or by the addition of two strings."""
    if key in words():
        return True
    halves = ((key[:at], key[at:]) for at in range(2, len(key) - 1) if "_" in (key[at - 1], key[at]))
    if any(first in words() and last in words() for first, last in halves):
        return True
    made = (pattern.fullmatch(key) for pattern in patterns())
    return any(match and all(is_used(group) for group in match.groups()) for match in made)
