"""Conversion of values to plain data and back: passages and notices in a state, and stored answers and searches."""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict

from rag.retrieval.context import merge_passages
from rag.types import Answer, Candidate, Citation, Notice, Outcome, Passage, Retrieval, Statement

Record = TypeVar("Record")

_ATOMIC: Final = (str, int, float, NoneType)
_OPENING: Final = 300  # characters of a candidate's text, enough to recognise it


class NoticeRecord(TypedDict):
    code: str
    params: dict[str, Any]


def record(notice: Notice) -> NoticeRecord:
    return {"code": notice.code, "params": dict(notice.params)}


def notice_of(data: NoticeRecord | None) -> Notice | None:
    return Notice(data["code"], data["params"]) if data else None


def end_update(outcome: Outcome, notice: Notice | None) -> dict[str, Any]:
    """Return the state update for the end of a question."""
    return {"outcome": outcome, "notice": record(notice) if notice else None}


def step_note(decision: str, **detail: Any) -> dict[str, Any]:
    """Return a step's decision for the trace."""
    return {"decision": decision, **detail}


def citations_of(state: Mapping[str, Any]) -> tuple[Citation, ...]:
    return tuple(from_json(Citation, data) for data in state.get("citations", ()))


def statements_of(state: Mapping[str, Any]) -> tuple[Statement, ...]:
    return tuple(from_json(Statement, data) for data in state.get("statements", ()))


def passage_of(data: Mapping[str, Any]) -> Passage:
    return from_json(Passage, data)


def merge_readings(first: Passage, second: Passage) -> Passage:
    """Return all text that two searches read of a passage; only the first's if the two are not adjacent."""
    are_apart = first.end < second.start - len(second.lead) or second.end < first.start - len(first.lead)
    return (
        first
        if are_apart or (first.start <= second.start and second.end <= first.end)
        else merge_passages(first, second)
    )


def to_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as JSON values of a few kilobytes.

    Quotes are complete and have their positions, so that old answers still look the same. Passages have positions and
    scores, but no text, which is in the library. Searches are stored by `compress_searches`.
    """
    light = replace(answer, searches=(), passages=tuple(replace(passage, text="") for passage in answer.passages))
    data: dict[str, Any] = _encode(light)
    data.pop("searches")
    return data


def answer_from_json(data: Mapping[str, Any]) -> Answer:
    """Return the answer from the result of `to_json`; fields that it lacks have their defaults."""
    return from_json(Answer, data)


def compress_searches(searches: Sequence[Retrieval]) -> bytes:
    """Return the searches of an answer as compressed JSON of about six kilobytes each; empty without any.

    Each candidate has only the start of its text. `passages` are omitted, since they are among the candidates.
    """
    if not searches:
        return b""
    data = [_encode(replace(one, passages=(), candidates=tuple(map(_shorten, one.candidates)))) for one in searches]
    return zlib.compress(json.dumps(data, ensure_ascii=False, default=str).encode())


def decompress_searches(data: bytes) -> tuple[Retrieval, ...]:
    """Return the searches from the result of `compress_searches`."""
    return tuple(from_json(Retrieval, one) for one in json.loads(zlib.decompress(data))) if data else ()


def _encode(value: Any) -> Any:
    """Return the same JSON as `asdict`, but without copying, since it is written immediately."""
    if isinstance(value, _ATOMIC):
        return value
    if isinstance(value, tuple | list):
        return [_encode(one) for one in value]
    if isinstance(value, dict):
        return {name: _encode(one) for name, one in value.items()}
    if is_dataclass(value):
        return {name: _encode(getattr(value, name)) for name in _hints(cast(Hashable, type(value)))}
    return value


def _shorten(candidate: Candidate) -> Candidate:
    return replace(candidate, passage=replace(candidate.passage, text=candidate.passage.text[:_OPENING]))


def from_json(kind: type[Record], data: Mapping[str, Any]) -> Record:
    """Return a dataclass value from its fields as JSON; unknown fields are ignored."""
    hints = _hints(cast(Hashable, kind))
    return kind(**{name: _decode(hints[name], value) for name, value in data.items() if name in hints})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _decode(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _decode(next(arm for arm in get_args(hint) if arm is not NoneType), value)
    if origin is tuple:
        arms = get_args(hint)
        same = len(arms) == 2 and arms[1] is Ellipsis
        return tuple(_decode(arms[0] if same else arms[at], one) for at, one in enumerate(value))
    if isinstance(hint, type) and is_dataclass(hint):
        return from_json(hint, value)
    return value
