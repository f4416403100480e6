"""Points, vectors and payload selectors: in to the engine, and out as `qdrant_client.models`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import qdrant_edge as edge
from pydantic import BaseModel
from qdrant_client import models

from rag.errors import StoreError

Model = TypeVar("Model", bound=BaseModel)

_DEEPEST = 100  # levels of a payload; the engine stores more than it can read again, and dies of thousands


def to_points(given: Any) -> list[edge.Point]:
    """Translate a Batch or a sequence of PointStruct; StoreError for what the engine cannot hold.

    It would take a vector with NaN silently and never find it again, hence a check of our own.
    """
    if isinstance(given, models.Batch):
        return [_point(i, _vectors(i, v), p) for i, v, p in _rows(given)]
    return [_point(_id(p.id), _vectors(p.id, p.vector), p.payload) for p in given]


def _point(given: Any, vectors: Any, payload: Any) -> edge.Point:
    check_depth(payload)
    try:
        return edge.Point(given, vectors, payload)
    except (TypeError, ValueError) as error:
        raise ValueError(what_json_has_not(payload) or error) from error


def check_depth(payload: Any) -> Any:
    """The payload, unless it is too deep for the engine to read it again: ValueError names the key."""
    for key, value in payload.items() if isinstance(payload, Mapping) else ():
        if isinstance(value, (dict, list, tuple)) and _is_deeper(value, _DEEPEST):
            raise ValueError(f"the payload's {key!r} is more than {_DEEPEST} levels deep")
    return payload


def _is_deeper(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(one, levels - 1) for one in inside if isinstance(one, (dict, list, tuple)))


def what_json_has_not(payload: Any) -> str:
    """The first key of a payload whose value the engine's JSON cannot hold, with what it is; "" where all can be."""
    for key, value in payload.items() if isinstance(payload, Mapping) else ():
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:  # half a character is a ValueError, too
            return f"the payload's {key!r}: {error}"
    return ""


def _rows(batch: models.Batch) -> Iterable[tuple[Any, Any, Any]]:
    for at, given in enumerate(batch.ids):
        columns: Any = batch.vectors
        named = isinstance(columns, dict)
        vector = {name: column[at] for name, column in columns.items()} if named else columns[at]
        yield _id(given), vector, batch.payloads[at] if batch.payloads else None


def _id(given: Any) -> Any:
    return str(given) if isinstance(given, UUID) else given


def _vectors(point: Any, given: Any) -> Any:
    if not isinstance(given, dict):
        return to_vector(given, point)
    return {name: to_vector(vector, point) for name, vector in given.items() if vector is not None}


def to_vector(given: Any, point: Any = None) -> Any:
    """A dense or sparse vector for the engine, of a query or a point; StoreError when it holds NaN or infinity."""
    if isinstance(given, models.SparseVector):
        _check_finite(given.values, point)
        if len(given.values) != len(set(given.indices)):
            raise ValueError("a sparse vector needs a value for each of its indices, and each index once")
        return edge.SparseVector(given.indices, given.values)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list):
        raise TypeError(f"a vector is a list of numbers or a SparseVector, not {type(given).__name__}")
    _check_finite(given, point)
    return given


def _check_finite(values: Sequence[Any], point: Any) -> None:
    if np.isfinite(np.asarray(values, dtype=np.float32)).all():
        return
    if point is None:
        raise ValueError("the vector holds a value that is not a finite number")
    raise StoreError("vector_invalid", point=str(point))


def to_payload_selector(given: Any) -> Any:
    """What of the payload to return: all, nothing, some keys, or all but some."""
    if isinstance(given, models.PayloadSelectorInclude):
        return edge.PayloadSelector.Include(given.include)
    if isinstance(given, models.PayloadSelectorExclude):
        return edge.PayloadSelector.Exclude(given.exclude)
    if isinstance(given, dict):
        raise TypeError("a dict does not tell which keys to return; PayloadSelectorInclude or a list does")
    return given if isinstance(given, bool) else list(given or [])


def from_record(given: edge.Record) -> models.Record:
    return _bare(
        models.Record,
        id=_out_id(given.id),
        payload=given.payload,
        vector=_out_vector(given.vector),
        shard_key=None,
        order_value=given.order_value,
    )


def from_scored(given: edge.ScoredPoint, wanted: bool | Sequence[str]) -> models.ScoredPoint:
    """A hit with the vectors that are `wanted`: by MMR the engine hands on those that it compared, too."""
    vector = _out_vector(given.vector) if wanted else None
    if isinstance(vector, dict) and not isinstance(wanted, bool):
        vector = {name: one for name, one in vector.items() if name in wanted}
    return _bare(
        models.ScoredPoint,
        id=_out_id(given.id),
        version=given.version,
        score=given.score,
        payload=given.payload,
        vector=vector,
        shard_key=None,
        order_value=given.order_value,
    )


def _bare(kind: type[Model], **values: Any) -> Model:
    """A model of all its fields, unchecked: checks of our own engine's answer cost more than the query.

    `model_construct` goes through the fields one by one, at six times the price, for a hundred points a search.
    """
    made = kind.__new__(kind)
    object.__setattr__(made, "__dict__", values)
    object.__setattr__(made, "__pydantic_fields_set__", set(values))
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


def _out_id(given: Any) -> Any:
    return given if isinstance(given, int) else str(given)


def _out_vector(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _out_vector(vector) for name, vector in given.items()}
    if isinstance(given, edge.SparseVector):
        return models.SparseVector.model_construct(indices=given.indices, values=given.values)
    return given
