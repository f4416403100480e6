"""The one place that names and makes collections, and knows which payload keys have an index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from qdrant_client import QdrantClient, models

from rag.errors import StoreError

DENSE = "dense"
SPARSE = "sparse"
LIBRARIES = "pagelight.libraries"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}", re.ASCII)
_KEYWORD = models.PayloadSchemaType.KEYWORD
_DATETIME = models.PayloadSchemaType.DATETIME
_BOOL = models.PayloadSchemaType.BOOL

CHUNK_INDEXES: Mapping[str, models.PayloadSchemaType] = {
    "metadata.url_hash": _KEYWORD,
    "metadata.generation": _KEYWORD,
    "metadata.active": _BOOL,
    "metadata.left_out": _BOOL,
    "metadata.site": _KEYWORD,
    "metadata.language": _KEYWORD,
    "metadata.section": _KEYWORD,
    "metadata.added_at": _DATETIME,
}
PAGE_INDEXES: Mapping[str, models.PayloadSchemaType] = {
    "settled": _BOOL,
    "text_hash": _KEYWORD,
    "site": _KEYWORD,
    "language": _KEYWORD,
    "status": _KEYWORD,
    "alias_hashes": _KEYWORD,
    "claim_hashes": _KEYWORD,
    "left_out": _BOOL,
}
VERSION_INDEXES: Mapping[str, models.PayloadSchemaType] = {"url_hash": _KEYWORD, "settled": _BOOL}


def check_library_name(name: str) -> str:
    """The name itself, or StoreError when it cannot be a library's."""
    if not _NAME.fullmatch(name):
        raise StoreError("library_name_invalid", name=name)
    return name


def pages_collection(library: str) -> str:
    return f"pagelight.{library}.pages"


def versions_collection(library: str) -> str:
    """The texts that pages had: a collection of its own, so that listing pages need not pass them by."""
    return f"pagelight.{library}.versions"


def chunks_collection(library: str, embedding_model: str) -> str:
    """A collection for each embedding model, so that a library can be re-embedded beside itself."""
    last = re.split(r"[/\\]", embedding_model.rstrip("/\\"))[-1].lower()
    slug = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:32] or "model"
    digest = hashlib.sha256(embedding_model.encode()).hexdigest()[:8]
    return f"pagelight.{library}.chunks.{slug}-{digest}"


def ensure_libraries(client: QdrantClient) -> None:
    _ensure_records(client, LIBRARIES, {})


def ensure_library(client: QdrantClient, library: str, embedding_model: str, dimension: int) -> None:
    """Make what is missing of the library's collections and indexes."""
    _ensure_records(client, pages_collection(library), PAGE_INDEXES)
    _ensure_records(client, versions_collection(library), VERSION_INDEXES)
    chunks = chunks_collection(library, embedding_model)
    if not client.collection_exists(chunks):
        client.create_collection(
            chunks,
            vectors_config={DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
    _ensure_indexes(client, chunks, CHUNK_INDEXES)


def drop_library(client: QdrantClient, library: str, embedding_model: str) -> None:
    """Delete the library's collections, those that there are."""
    chunks = chunks_collection(library, embedding_model)
    for name in (pages_collection(library), versions_collection(library), chunks):
        if client.collection_exists(name):
            client.delete_collection(name)


def _ensure_records(client: QdrantClient, name: str, indexes: Mapping[str, models.PayloadSchemaType]) -> None:
    """A collection of records. Pages have the bands of their signature as a sparse vector, others have none."""
    if not client.collection_exists(name):
        sparse = {SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        client.create_collection(name, vectors_config={}, sparse_vectors_config=sparse)
    _ensure_indexes(client, name, indexes)


def _ensure_indexes(client: QdrantClient, name: str, indexes: Mapping[str, models.PayloadSchemaType]) -> None:
    present = client.get_collection(name).payload_schema
    for key, schema in indexes.items():
        if key not in present:
            client.create_payload_index(name, key, field_schema=schema, wait=True)
