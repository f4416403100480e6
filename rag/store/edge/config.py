"""What a collection is made of: its vectors for the engine, and its description for callers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import qdrant_edge as edge
from qdrant_client import models

from rag.store.edge.faults import unsupported

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


@dataclass(frozen=True)
class CollectionParams:
    """The vectors of a collection, by name (`""` is the unnamed one), and free metadata."""

    vectors: Mapping[str, models.VectorParams]
    sparse_vectors: Mapping[str, models.SparseVectorParams]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def idf_vectors(self) -> frozenset[str]:
        """The sparse vectors whose scores weigh rare terms more."""
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
    """The parameters given to create_collection; an unnamed vector gets the name `""`."""
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
    """What `optimize_child` has to know of a collection, as JSON."""
    dense = {name: [given.size, given.distance.value] for name, given in params.vectors.items()}
    sparse = {name: name in params.idf_vectors for name in params.sparse_vectors}
    return json.dumps({"dense": dense, "sparse": sparse, "quantised": quantised})


def index_type(given: Any) -> Any:
    """The engine's index for a payload key: of a schema type, its name, or parameters with a `type`.

    It is read through the page cache: in the process's own memory it takes a third of the time of opening.
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
