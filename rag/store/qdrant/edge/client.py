"""The embedded engine as a `QdrantClient` over a folder of shards.

It supports the calls that this project and langchain-qdrant make; others raise StoreError with their name. Options that
only matter to servers (`wait`, `ordering`, `consistency`, `timeout`, …) are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

import qdrant_edge as edge
from qdrant_client import QdrantClient, models
from qdrant_client.client_base import QdrantBase
from qdrant_client.http.models import QueryResponse

from rag.errors import StoreError
from rag.store.qdrant.edge.shard import (
    CollectionFolder,
    IndexBuilder,
    Shard,
    clear_leftovers,
    collection_names,
    lock_folder,
)
from rag.store.qdrant.edge.translation import (
    argument_faults,
    check_depth,
    collection_params,
    from_record,
    from_scored,
    id_batches,
    index_type,
    operations,
    plain_id,
    to_filter,
    to_payload_selector,
    to_points,
    to_request,
    unsupported_error,
)
from rag.store.values import batches

BATCH = 128  # points per call; the engine holds the GIL for a whole call
_UPDATE_MODES = {
    models.UpdateMode.UPSERT: edge.UpdateMode.Upsert,
    models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
    models.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
}
_COMPLETED = models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)


class EdgeBackend(QdrantBase):
    """A folder of shards, one per collection, opened on first use."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._lock_file: int | None = lock_folder(folder)
        self._opening = RLock()
        self._open: dict[str, tuple[Shard, IndexBuilder]] = {}
        clear_leftovers(folder)

    # Collections

    def collection_exists(self, collection_name: str, **_: Any) -> bool:
        return collection_name in self._open or collection_name in collection_names(self.folder)

    def get_collections(self, **_: Any) -> models.CollectionsResponse:
        names = collection_names(self.folder)
        return models.CollectionsResponse(collections=[models.CollectionDescription(name=name) for name in names])

    def get_collection(self, collection_name: str, **_: Any) -> models.CollectionInfo:
        shard = self.shard(collection_name)
        info = shard.read("get_collection", lambda engine: engine.info())
        return shard.folder.params.describe(info)

    def create_collection(
        self,
        collection_name: str,
        vectors_config: models.VectorParams | Mapping[str, models.VectorParams] | None = None,
        sparse_vectors_config: Mapping[str, models.SparseVectorParams] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> bool:
        _refuse(options, "hnsw_config", "optimizers_config", "quantization_config", "sharding_method")
        params = collection_params(vectors_config, sparse_vectors_config, metadata)
        with self._opening:
            if self.collection_exists(collection_name):
                raise StoreError("collection_exists", name=collection_name)
            CollectionFolder.create(self.folder, collection_name, params)
        return True

    def delete_collection(self, collection_name: str, **_: Any) -> bool:
        with self._opening:
            if not self.collection_exists(collection_name):
                return False
            folder = self.shard(collection_name).folder
            self._close_collection(collection_name)
            folder.remove()
        return True

    # Writes

    def upsert(
        self,
        collection_name: str,
        points: Any,
        update_filter: models.Filter | None = None,
        update_mode: models.UpdateMode | None = None,
        **_: Any,
    ) -> models.UpdateResult:
        translated, condition = to_points(points), to_filter(update_filter)
        mode = None if update_mode is None else _UPDATE_MODES[update_mode]
        for batch in batches(translated, BATCH):
            operation = edge.UpdateOperation.upsert_points(batch, condition, mode)
            added = 0 if mode is edge.UpdateMode.UpdateOnly else len(batch)
            self._write(collection_name, "upsert", operation, [point.id for point in batch], added)
        return _COMPLETED

    def delete(self, collection_name: str, points_selector: Any, **_: Any) -> models.UpdateResult:
        by_id, by_filter = edge.UpdateOperation.delete_points, edge.UpdateOperation.delete_points_by_filter
        for operation, ids in operations(points_selector, by_id, by_filter):
            self._write(collection_name, "delete", operation, ids)
        return _COMPLETED

    def set_payload(
        self, collection_name: str, payload: models.Payload, points: Any, key: str | None = None, **_: Any
    ) -> models.UpdateResult:
        def by_id(ids: list[Any]) -> edge.UpdateOperation:
            return edge.UpdateOperation.set_payload(ids, check_depth(payload), key)

        def by_filter(condition: edge.Filter) -> edge.UpdateOperation:
            return edge.UpdateOperation.set_payload_by_filter(condition, check_depth(payload), key)

        for operation, ids in operations(points, by_id, by_filter):
            self._write(collection_name, "set_payload", operation, ids)
        return _COMPLETED

    def batch_update_points(
        self, collection_name: str, update_operations: Sequence[Any], **_: Any
    ) -> list[models.UpdateResult]:
        """Apply upserts, deletions and payload changes in order; stop at the first failure, without a rollback."""
        for operation in update_operations:
            if isinstance(operation, models.UpsertOperation):
                upsert = operation.upsert
                points = upsert.points if isinstance(upsert, models.PointsList) else upsert.batch
                self.upsert(collection_name, points, update_filter=upsert.update_filter, update_mode=upsert.update_mode)
            elif isinstance(operation, models.DeleteOperation):
                self.delete(collection_name, operation.delete)
            elif isinstance(operation, models.SetPayloadOperation):
                change = operation.set_payload
                selector = change.filter if change.points is None else change.points
                self.set_payload(collection_name, change.payload, selector, change.key)
            else:
                raise unsupported_error(f"a batch with {type(operation).__name__}")
        return [_COMPLETED] * len(update_operations)

    def create_payload_index(
        self,
        collection_name: str,
        field_name: str,
        field_schema: Any = None,
        field_type: Any = None,
        **_: Any,
    ) -> models.UpdateResult:
        kind = index_type(field_schema if field_schema is not None else field_type)
        operation = edge.UpdateOperation.create_field_index(field_name, kind)
        self._write(collection_name, "create_payload_index", operation)
        return _COMPLETED

    # Reads

    def query_points(
        self,
        collection_name: str,
        query: Any = None,
        using: str | None = None,
        prefetch: Any = None,
        query_filter: models.Filter | None = None,
        search_params: models.SearchParams | None = None,
        limit: int = 10,
        offset: int | None = None,
        with_payload: Any = True,
        with_vectors: Any = False,
        score_threshold: float | None = None,
        lookup_from: Any = None,
        **_: Any,
    ) -> QueryResponse:
        request = models.QueryRequest.model_construct(
            prefetch=prefetch,
            query=query,
            using=using,
            filter=query_filter,
            params=search_params,
            score_threshold=score_threshold,
            limit=limit,
            offset=offset,
            with_vector=with_vectors,
            with_payload=with_payload,
            lookup_from=lookup_from,
        )
        return self.query_batch_points(collection_name, [request])[0]

    def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], **_: Any
    ) -> list[QueryResponse]:
        shard = self.shard(collection_name)
        idf = shard.folder.params.idf_vectors
        ghosts = bool(idf) and shard.has_ghosts()
        batch = edge.QueryBatchRequest([to_request(request, idf, ghosts=ghosts) for request in requests])
        results = shard.read("query_points", lambda engine: engine.query_batch(batch))
        return [
            QueryResponse.model_construct(points=[from_scored(point, request.with_vector or False) for point in points])
            for request, points in zip(requests, results, strict=True)
        ]

    def retrieve(
        self,
        collection_name: str,
        ids: Sequence[Any],
        with_payload: Any = True,
        with_vectors: Any = False,
        **_: Any,
    ) -> list[models.Record]:
        shard, payload, vectors = self.shard(collection_name), to_payload_selector(with_payload), with_vectors or False
        records: list[models.Record] = []
        for batch in id_batches(ids):
            batch_records = shard.read("retrieve", lambda engine, ids=batch: engine.retrieve(ids, payload, vectors))  # type: ignore[misc]
            records.extend(from_record(record) for record in batch_records)
        return records

    def scroll(
        self,
        collection_name: str,
        scroll_filter: models.Filter | None = None,
        limit: int = 10,
        order_by: Any = None,
        offset: Any = None,
        with_payload: Any = True,
        with_vectors: Any = False,
        **_: Any,
    ) -> tuple[list[models.Record], Any]:
        _refuse({"order_by": order_by}, "order_by")
        request = edge.ScrollRequest(
            offset=plain_id(offset),
            limit=limit,
            filter=to_filter(scroll_filter),
            with_payload=to_payload_selector(with_payload),
            with_vector=with_vectors or False,
        )
        records, next_offset = self.shard(collection_name).read("scroll", lambda engine: engine.scroll(request))
        return [from_record(record) for record in records], plain_id(next_offset)

    def count(
        self, collection_name: str, count_filter: models.Filter | None = None, exact: bool = True, **_: Any
    ) -> models.CountResult:
        request = edge.CountRequest(exact=exact, filter=to_filter(count_filter))
        return models.CountResult(count=self.shard(collection_name).read("count", lambda engine: engine.count(request)))

    # The shards

    def shard(self, collection_name: str) -> Shard:
        return self._get(collection_name)[0]

    def builder(self, collection_name: str) -> IndexBuilder:
        return self._get(collection_name)[1]

    def unload_idle(self, idle: float) -> int:
        """Unload shards that were idle for `idle` seconds; the next call reloads them. Return how many."""
        return sum(shard.unload_idle(idle) for shard, _ in list(self._open.values()))

    def close(self, **_: Any) -> None:
        """Flush and close every shard, and release the folder."""
        with self._opening:
            for name in list(self._open):
                self._close_collection(name)
            if self._lock_file is not None:
                os.close(self._lock_file)
                self._lock_file = None

    def _get(self, name: str) -> tuple[Shard, IndexBuilder]:
        entry = self._open.get(name)
        if entry is not None:
            return entry
        with self._opening:
            if self._lock_file is None:
                raise StoreError("store_closed")
            if name not in self._open:
                if name not in collection_names(self.folder):
                    raise StoreError("collection_missing", name=name)
                shard = Shard(CollectionFolder(self.folder, name))
                builder = IndexBuilder(shard)
                if builder.is_due():
                    builder.start()
                self._open[name] = shard, builder
            return self._open[name]

    def _close_collection(self, name: str) -> None:
        shard, builder = self._open.pop(name)
        builder.stop()
        shard.close()

    def _write(
        self, name: str, call: str, operation: edge.UpdateOperation, ids: list[Any] | None = None, points: int = 0
    ) -> None:
        shard, builder = self._get(name)
        shard.write(call, operation, ids=ids, points=points)
        builder.note_write(points)


def _refuse(options: dict[str, Any], *names: str) -> None:
    for name in names:
        if options.get(name) is not None:
            raise unsupported_error(f"the option {name}")


def _refuser(call: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise unsupported_error(call)

    return refuse


for _call in vars(QdrantBase):
    if not _call.startswith("_") and _call not in vars(EdgeBackend):
        setattr(EdgeBackend, _call, _refuser(_call))


class EdgeClient(QdrantClient):
    """A QdrantClient over the shards in `folder`; safe to share between threads.

    Batches of queries go straight to the backend: QdrantClient copies every request to find texts to embed, which can
    take longer than the query.

    Raises StoreBusyError if another client has the folder open, StoreError if it is not writable.
    """

    def __init__(self, folder: Path) -> None:
        backend = EdgeBackend(folder)
        super().__init__(location=":memory:")
        self._client: EdgeBackend = backend
        # Skips looking for texts to embed in every point and query; the backend takes only vectors.
        self.cloud_inference = True

    @property
    def backend(self) -> EdgeBackend:
        return self._client

    def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *_: Any, **options: Any
    ) -> list[QueryResponse]:
        return self._client.query_batch_points(collection_name, requests, **options)


for _call in vars(EdgeBackend):
    if not _call.startswith("_") and hasattr(QdrantClient, _call):
        setattr(EdgeClient, _call, argument_faults(_call)(getattr(EdgeClient, _call)))
