"""The engine's input and output as `qdrant_client.models`: collections, points, vectors; and its errors.

The engine raises bare exceptions with the reason in the text; they are translated into one sentence here. It writes
through memory maps of sparse files: when the disk is full, the system kills the whole process (SIGBUS) in the middle of
a call, without an exception. So free space is checked before each write.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import qdrant_edge as edge
from pydantic import BaseModel
from qdrant_client import models

from rag.errors import RagError, StoreBusyError, StoreError

_FULL = ("no space left", "os error 28", "disk quota", "os error 122", "not enough space")
_UNWRITABLE = ("permission denied", "os error 13", "read-only file system", "os error 30")
_BUSY = ("wouldblock", "resource temporarily unavailable", "already locked")
_MISREAD = (TypeError, AttributeError, ValueError, ArithmeticError, AssertionError, RecursionError)
"""Errors that qdrant-client, its models and the engine's binding raise for values of the wrong type."""
TO_ADD = 64 << 20  # free bytes needed to add points: batches of several threads, and logs
TO_CHANGE = 16 << 20  # to delete and to flag; less, because deleting frees space
_DISTANCES = {
    models.Distance.COSINE: edge.Distance.Cosine,
    models.Distance.DOT: edge.Distance.Dot,
    models.Distance.EUCLID: edge.Distance.Euclid,
    models.Distance.MANHATTAN: edge.Distance.Manhattan,
}
_INDEXES = {
    models.PayloadSchemaType.KEYWORD: (edge.PayloadSchemaType.Keyword, edge.KeywordIndexParams),
    models.PayloadSchemaType.INTEGER: (edge.PayloadSchemaType.Integer, edge.IntegerIndexParams),
    models.PayloadSchemaType.FLOAT: (edge.PayloadSchemaType.Float, edge.FloatIndexParams),
    models.PayloadSchemaType.BOOL: (edge.PayloadSchemaType.Bool, edge.BoolIndexParams),
    models.PayloadSchemaType.DATETIME: (edge.PayloadSchemaType.Datetime, edge.DatetimeIndexParams),
    models.PayloadSchemaType.UUID: (edge.PayloadSchemaType.Uuid, edge.UuidIndexParams),
}


@contextmanager
def engine_faults(call: str, path: Path) -> Iterator[None]:
    """Turn exceptions of the engine in the block into StoreError; `call` names the operation."""
    try:
        yield
    except (RagError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # panics of the engine derive from BaseException
        raise _sentence(call, path, error) from error


@contextmanager
def argument_faults(call: str) -> Iterator[None]:
    """Turn exceptions for values of the wrong type in the block into StoreError; `call` names the operation."""
    try:
        yield
    except _MISREAD as error:
        raise _misread(call, error) from error


def unsupported(call: str) -> StoreError:
    """Return the error for something that the embedded engine, or this adapter, does not support."""
    return StoreError("store_unsupported", call=call)


def os_fault(path: Path, error: OSError) -> StoreError:
    """Return the error for a failed file operation under `path`."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return StoreError("store_disk_full", path=str(path))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError("store_unwritable", path=str(path))
    return StoreError("store_damaged", path=str(path), detail=error.strerror or type(error).__name__)


def _sentence(call: str, path: Path, error: BaseException) -> StoreError:
    text = str(error).lower()
    if any(mark in text for mark in _FULL):
        return StoreError("store_disk_full", path=str(path))
    if any(mark in text for mark in _UNWRITABLE):
        return StoreError("store_unwritable", path=str(path))
    if any(mark in text for mark in _BUSY):
        return StoreBusyError("store_busy", path=str(path))
    if _is_damage(call, text) or not isinstance(error, Exception):
        return StoreError("store_damaged", path=str(path), detail=_detail(error))
    if isinstance(error, _MISREAD):
        return _misread(call, error)
    return StoreError("store_failed", call=call, detail=_detail(error))


def _is_damage(call: str, text: str) -> bool:
    """Return whether this is an internal failure, which the engine calls "Service runtime error"."""
    return call == "open" or ("service runtime error" in text and call != "create_collection")


def _misread(call: str, error: BaseException) -> StoreError:
    return StoreError("store_argument", call=call, detail=_detail(error).partition(" - variant ")[0])


def _detail(error: BaseException) -> str:
    return " ".join(str(error).split())[:300].rstrip(".:") or type(error).__name__


def require_space(path: Path, needed: int) -> None:
    """Raise StoreError unless the disk of `path` has `needed` bytes free. Takes microseconds."""
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise os_fault(path, error) from error
    if free < needed:
        raise StoreError("store_disk_low", path=str(path), needed=-(-needed // (1 << 20)))


def occupied(folder: Path) -> int:
    """Return the bytes that files below `folder` occupy on disk, far less than the sum of their lengths."""
    total = 0.0
    for path, _, names in os.walk(folder):
        for name in names:
            status = (Path(path) / name).stat()
            total += getattr(status, "st_blocks", status.st_size / 512) * 512
    return int(total)


@dataclass(frozen=True)
class CollectionParams:
    """The vectors of a collection, by name (`""` is the unnamed one), and free metadata."""

    vectors: Mapping[str, models.VectorParams]
    sparse_vectors: Mapping[str, models.SparseVectorParams]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def idf_vectors(self) -> frozenset[str]:
        """The names of sparse vectors with the IDF modifier."""
        named = self.sparse_vectors.items()
        return frozenset(name for name, given in named if given.modifier == models.Modifier.IDF)

    def to_json(self) -> str:
        return json.dumps(
            {
                "vectors": {n: p.model_dump(mode="json", exclude_none=True) for n, p in self.vectors.items()},
                "sparse_vectors": {
                    n: p.model_dump(mode="json", exclude_none=True) for n, p in self.sparse_vectors.items()
                },
                "metadata": dict(self.metadata),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> CollectionParams:
        data = json.loads(text)
        return cls(
            {n: models.VectorParams(**p) for n, p in data["vectors"].items()},
            {n: models.SparseVectorParams(**p) for n, p in data["sparse_vectors"].items()},
            data["metadata"],
        )

    def engine_config(self) -> edge.EdgeConfig:
        return edge.EdgeConfig(
            vectors={name: _dense(given) for name, given in self.vectors.items()} or None,
            sparse_vectors={name: _sparse(given) for name, given in self.sparse_vectors.items()} or None,
        )

    def describe(self, info: edge.ShardInfo) -> models.CollectionInfo:
        vectors: Any = dict(self.vectors)
        if set(vectors) == {""}:
            vectors = vectors[""]
        return models.CollectionInfo(
            status=models.CollectionStatus.GREEN,
            optimizer_status=models.OptimizersStatusOneOf.OK,
            indexed_vectors_count=info.indexed_vectors_count,
            points_count=info.points_count,
            segments_count=info.segments_count,
            payload_schema={name: _schema(one) for name, one in info.payload_schema.items()},
            config=_description(vectors, dict(self.sparse_vectors), dict(self.metadata)),
        )


def collection_params(
    vectors: models.VectorParams | Mapping[str, models.VectorParams] | None,
    sparse: Mapping[str, models.SparseVectorParams] | None,
    metadata: Mapping[str, Any] | None,
) -> CollectionParams:
    """Return the parameters given to create_collection; an unnamed vector gets the name `""`."""
    named = {"": vectors} if isinstance(vectors, models.VectorParams) else dict(vectors or {})
    return CollectionParams(named, dict(sparse or {}), dict(metadata or {}))


def _dense(given: models.VectorParams) -> edge.EdgeVectorParams:
    for name in ("quantization_config", "multivector_config", "datatype", "hnsw_config"):
        if getattr(given, name) is not None:
            raise unsupported(f"the vector parameter {name}")
    return edge.EdgeVectorParams(size=given.size, distance=_DISTANCES[given.distance], on_disk=given.on_disk)


def _sparse(given: models.SparseVectorParams) -> edge.EdgeSparseVectorParams:
    idf = given.modifier == models.Modifier.IDF
    return edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if idf else None)


def layout(params: CollectionParams, *, quantised: bool) -> str:
    """Return the collection's configuration for `optimize_child`, as JSON."""
    dense = {name: [given.size, given.distance.value] for name, given in params.vectors.items()}
    sparse = {name: name in params.idf_vectors for name in params.sparse_vectors}
    return json.dumps({"dense": dense, "sparse": sparse, "quantised": quantised})


def index_type(given: Any) -> Any:
    """Return the engine's index for a payload key, from a schema type, its name, or parameters with a `type`.

    It is read through the page cache: loading it into the process takes a third of the time to open a shard.
    """
    kind = getattr(given, "type", given)
    try:
        _, make = _INDEXES[models.PayloadSchemaType(getattr(kind, "value", kind))]
    except (KeyError, ValueError):
        raise unsupported(f"a payload index of type {kind}") from None
    return make(memory=edge.Memory.Cached)


def _schema(given: edge.PayloadIndexInfo) -> models.PayloadIndexInfo:
    kinds = {theirs: ours for ours, (theirs, _) in _INDEXES.items()}
    return models.PayloadIndexInfo(data_type=kinds[given.data_type], points=given.points)


def _description(vectors: Any, sparse: Any, metadata: dict[str, Any]) -> models.CollectionConfig:
    return models.CollectionConfig(
        params=models.CollectionParams(vectors=vectors, sparse_vectors=sparse or None),
        hnsw_config=models.HnswConfig(m=16, ef_construct=100, full_scan_threshold=10_000),
        optimizer_config=models.OptimizersConfig(
            deleted_threshold=0.2,
            vacuum_min_vector_number=1000,
            default_segment_number=0,
            flush_interval_sec=5,
        ),
        metadata=metadata or None,
    )


Model = TypeVar("Model", bound=BaseModel)

_DEEPEST = 100  # levels of a payload; the engine can't read back deeper ones, and crashes at thousands


def to_points(given: Any) -> list[edge.Point]:
    """Translate a Batch or a sequence of PointStruct; raise StoreError if the engine cannot store it.

    The engine would accept a vector with NaN silently and never find it again, hence the check.
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
    """Return the payload; raise ValueError with the key if it is too deep for the engine to read again."""
    for key, value in payload.items() if isinstance(payload, Mapping) else ():
        if isinstance(value, (dict, list, tuple)) and _is_deeper(value, _DEEPEST):
            raise ValueError(f"the payload's {key!r} is more than {_DEEPEST} levels deep")
    return payload


def _is_deeper(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(one, levels - 1) for one in inside if isinstance(one, (dict, list, tuple)))


def what_json_has_not(payload: Any) -> str:
    """Describe the first key of a payload whose value is not valid JSON for the engine; "" if there is none."""
    for key, value in payload.items() if isinstance(payload, Mapping) else ():
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:  # a lone surrogate is a ValueError, too
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
    """Translate a dense or sparse vector of a query or point; raise StoreError if it has NaN or infinity."""
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
    """Return the payload selector: all, nothing, some keys, or all but some."""
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
    """Return a hit with the `wanted` vectors only: for MMR the engine returns those it compared, too."""
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
    """Construct a model from all its fields, unchecked: checking the engine's results costs more than the query.

    `model_construct` handles fields one by one and takes six times as long, for a hundred points per search.
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
