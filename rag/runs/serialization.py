"""Values as plain data, and back again: what nodes keep in a state, and an answer and its searches as stored."""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict

from rag.retrieval.context import joined
from rag.types import Answer, Candidate, Citation, Notice, Outcome, Passage, Retrieval, Statement

Record = TypeVar("Record")

_ALONE: Final = (str, int, float, NoneType)
_OPENING: Final = 300  # characters of a candidate's text: what tells it from others


class NoticeRecord(TypedDict):
    code: str
    params: dict[str, Any]


def record(notice: Notice) -> NoticeRecord:
    return {"code": notice.code, "params": dict(notice.params)}


def notice_of(kept: NoticeRecord | None) -> Notice | None:
    return Notice(kept["code"], kept["params"]) if kept else None


def ending(outcome: Outcome, notice: Notice | None) -> dict[str, Any]:
    """Return the state update for the end of a question."""
    return {"outcome": outcome, "notice": record(notice) if notice else None}


def step_note(decision: str, **detail: Any) -> dict[str, Any]:
    """Return a step's decision for the trace."""
    return {"decision": decision, **detail}


def citations_of(state: Mapping[str, Any]) -> tuple[Citation, ...]:
    return tuple(from_json(Citation, kept) for kept in state.get("citations", ()))


def statements_of(state: Mapping[str, Any]) -> tuple[Statement, ...]:
    return tuple(from_json(Statement, kept) for kept in state.get("statements", ()))


def passage_of(kept: Mapping[str, Any]) -> Passage:
    return from_json(Passage, kept)


def merge_readings(one: Passage, other: Passage) -> Passage:
    """All that two searches read of a passage; what the first read where that is not in one piece."""
    apart = one.end < other.start - len(other.lead) or other.end < one.start - len(one.lead)
    return one if apart or (one.start <= other.start and other.end <= one.end) else joined(one, other)


def to_json(answer: Answer) -> dict[str, Any]:
    """The answer as JSON values: a few kilobytes.

    Quotes are kept whole with their places, so that an old answer shows what it showed. Passages keep
    where they stand and how they were found; their texts are in the library, and searches are `compress_searches`.
    """
    light = replace(answer, searches=(), passages=tuple(replace(passage, text="") for passage in answer.passages))
    data: dict[str, Any] = _as_json(light)
    data.pop("searches")
    return data


def answer_from(data: Mapping[str, Any]) -> Answer:
    """The answer from what `to_json` made; fields that are newer than the record have their defaults."""
    return from_json(Answer, data)


def compress_searches(searches: Sequence[Retrieval]) -> bytes:
    """The searches of an answer as compressed JSON: about six kilobytes each; empty without any.

    Of each candidate's text the opening is kept. `passages` are not: they are among the candidates.
    """
    if not searches:
        return b""
    data = [_as_json(replace(one, passages=(), candidates=tuple(map(_short, one.candidates)))) for one in searches]
    return zlib.compress(json.dumps(data, ensure_ascii=False, default=str).encode())


def decompress_searches(data: bytes) -> tuple[Retrieval, ...]:
    """The searches from what `compress_searches` made."""
    return tuple(from_json(Retrieval, one) for one in json.loads(zlib.decompress(data))) if data else ()


def _as_json(value: Any) -> Any:
    """As JSON what `asdict` makes, without its copies: it is written at once."""
    if isinstance(value, _ALONE):
        return value
    if isinstance(value, tuple | list):
        return [_as_json(one) for one in value]
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    if is_dataclass(value):
        return {name: _as_json(getattr(value, name)) for name in _hints(cast(Hashable, type(value)))}
    return value


def _short(candidate: Candidate) -> Candidate:
    return replace(candidate, passage=replace(candidate.passage, text=candidate.passage.text[:_OPENING]))


def from_json(kind: type[Record], data: Mapping[str, Any]) -> Record:
    """A value of a dataclass from its fields as JSON; those that the class does not have are passed over."""
    hints = _hints(cast(Hashable, kind))
    return kind(**{name: _value(hints[name], value) for name, value in data.items() if name in hints})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _value(next(arm for arm in get_args(hint) if arm is not NoneType), value)
    if origin is tuple:
        arms = get_args(hint)
        same = len(arms) == 2 and arms[1] is Ellipsis
        return tuple(_value(arms[0] if same else arms[at], one) for at, one in enumerate(value))
    if isinstance(hint, type) and is_dataclass(hint):
        return from_json(hint, value)
    return value
