"""Queries and filters of `qdrant_client.models` in the engine's own types.

Also the selection of points for a write: by ids or by a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from typing import Any
from uuid import UUID

import numpy as np
import qdrant_edge as edge
from qdrant_client import models

from rag.store.qdrant.edge.config import to_payload_selector, to_vector, unsupported

_LIMIT = 10
_RRF_K = 2  # Qdrant's default, on the server too
_OVERSAMPLING = 2.0  # quantised candidates for each one that is rescored
_IDS = 1000  # per call; the engine holds the GIL for a whole call


def to_request(given: models.QueryRequest, idf_vectors: Collection[str], *, ghosts: bool = True) -> edge.QueryRequest:
    """Translate one query request; `idf_vectors` names the vectors with the IDF modifier.

    `ghosts` says whether the engine counts many deleted points, see `_idf`. Raises StoreError with the name of an
    unsupported option.
    """
    _refuse_lookup(given)
    limit = _LIMIT if given.limit is None else given.limit
    return edge.QueryRequest(
        limit=limit,
        offset=given.offset,
        query=_query(given.query, given.using, limit),
        prefetches=_prefetches(given.prefetch, idf_vectors, ghosts),
        with_vector=given.with_vector or False,
        with_payload=to_payload_selector(given.with_payload),
        filter=to_filter(given.filter),
        score_threshold=given.score_threshold,
        params=_params(given.params, given.using in idf_vectors, ghosts),
    )


def _prefetches(given: Any, idf_vectors: Collection[str], ghosts: bool) -> list[edge.Prefetch]:
    if given is None:
        return []
    return [_prefetch(one, idf_vectors, ghosts) for one in (given if isinstance(given, list) else [given])]


def _prefetch(given: models.Prefetch, idf_vectors: Collection[str], ghosts: bool) -> edge.Prefetch:
    _refuse_lookup(given)
    limit = _LIMIT if given.limit is None else given.limit
    return edge.Prefetch(
        limit=limit,
        query=_query(given.query, given.using, limit),
        prefetches=_prefetches(given.prefetch, idf_vectors, ghosts),
        params=_params(given.params, given.using in idf_vectors, ghosts),
        filter=to_filter(given.filter),
        score_threshold=given.score_threshold,
    )


def _refuse_lookup(given: models.QueryRequest | models.Prefetch) -> None:
    if given.lookup_from is not None:
        raise unsupported("lookup_from")


def _query(given: Any, using: str | None, limit: int) -> Any:
    """Translate a scoring query. A bare vector means its nearest neighbours, as on the server."""
    if given is None:
        return None
    if isinstance(given, (list, models.SparseVector)):
        return edge.Query.Nearest(to_vector(given), using)
    if isinstance(given, models.NearestQuery):
        return _nearest(given, using, limit)
    if isinstance(given, models.FusionQuery):
        return _fusion(given.fusion)
    raise unsupported(f"the query {type(given).__name__}")


def _nearest(given: models.NearestQuery, using: str | None, limit: int) -> Any:
    if isinstance(given.nearest, (str, int)):
        raise unsupported("a query by point id")
    vector = to_vector(given.nearest)
    if given.mmr is None:
        return edge.Query.Nearest(vector, using)
    diversity = 0.5 if given.mmr.diversity is None else given.mmr.diversity
    candidates = limit if given.mmr.candidates_limit is None else given.mmr.candidates_limit
    return edge.Mmr(vector, lambda_=1.0 - diversity, candidates_limit=candidates, using=using)


def _fusion(given: models.Fusion) -> Any:
    return edge.Fusion.Rrf(k=_RRF_K) if given == models.Fusion.RRF else edge.Fusion.Dbsf()


def _params(given: models.SearchParams | None, with_idf: bool, ghosts: bool) -> edge.SearchParams:
    if given is not None and not isinstance(given, models.SearchParams):
        raise TypeError(f"search parameters are a SearchParams, not {type(given).__name__}")
    given = given or models.SearchParams()
    for name in ("quantization", "acorn", "idf"):
        if getattr(given, name) is not None:
            raise unsupported(f"the search parameter {name}")
    return edge.SearchParams(
        hnsw_ef=given.hnsw_ef,
        exact=bool(given.exact),
        indexed_only=bool(given.indexed_only),
        idf=_idf(ghosts) if with_idf else None,
        quantization=None
        if with_idf or given.exact
        else edge.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING),
    )


def _idf(ghosts: bool) -> edge.IdfParams | None:
    """Return the points whose terms are counted for IDF: all existing ones.

    The engine keeps counting deleted points until the shard is reopened, so the same query would score differently
    after a restart. Once they are many, existing points are counted for each query, which takes time with the library's
    size: 0.9 ms at 100 000 chunks.
    """
    return edge.IdfParams(corpus=to_filter(models.Filter())) if ghosts else None


def operations(
    selector: Any, by_id: Callable[[list[Any]], Any], by_filter: Callable[[edge.Filter], Any]
) -> Iterator[edge.UpdateOperation]:
    """Yield the operations for a selector: one for a filter, so that it is atomic, or one per batch of ids."""
    if isinstance(selector, models.FilterSelector):
        selector = selector.filter
    if isinstance(selector, models.PointIdsList):
        selector = selector.points
    if isinstance(selector, models.Filter):
        yield by_filter(to_filter(selector) or edge.Filter())
        return
    if not isinstance(selector, (list, tuple)):
        raise unsupported(f"a selection by {type(selector).__name__}")
    for batch in id_batches(selector):
        yield by_id(batch)


def id_batches(ids: Any) -> Iterator[list[Any]]:
    """Yield point ids in the engine's form, a limited number at a time."""
    plain = [plain_id(one) for one in ids]
    for at in range(0, len(plain), _IDS):
        yield plain[at : at + _IDS]


def plain_id(given: Any) -> Any:
    return str(given) if isinstance(given, UUID) else given


def to_filter(given: models.Filter | None) -> edge.Filter | None:
    """Translate a filter; raise StoreError with the name of an unsupported condition."""
    if given is None:
        return None
    if not isinstance(given, models.Filter):
        raise TypeError(f"a filter is a Filter, not {type(given).__name__}")
    least = given.min_should
    return edge.Filter(
        must=_conditions(given.must),
        should=_conditions(given.should),
        must_not=_conditions(given.must_not),
        min_should=edge.MinShould(_conditions(least.conditions) or [], least.min_count) if least else None,
    )


def _conditions(given: Any) -> list[Any] | None:
    if given is None:
        return None
    return [_condition(one) for one in (given if isinstance(given, list) else [given])]


def _condition(given: Any) -> Any:
    if isinstance(given, models.Filter):
        return to_filter(given)
    if isinstance(given, models.FieldCondition):
        return _field(given)
    if isinstance(given, models.HasIdCondition):
        return edge.HasIdCondition(set(given.has_id))
    if isinstance(given, models.IsEmptyCondition):
        return edge.IsEmptyCondition(given.is_empty.key)
    if isinstance(given, models.IsNullCondition):
        return edge.IsNullCondition(given.is_null.key)
    if isinstance(given, models.HasVectorCondition):
        return edge.HasVectorCondition(given.has_vector)
    raise unsupported(f"the filter {type(given).__name__}")


def _field(given: models.FieldCondition) -> edge.FieldCondition:
    for name in ("geo_bounding_box", "geo_radius", "geo_polygon"):
        if getattr(given, name) is not None:
            raise unsupported(f"the filter {name}")
    counts = given.values_count
    return edge.FieldCondition(
        given.key,
        match=None if given.match is None else _match(given.match),
        range=None if given.range is None else _range(given.range),
        values_count=None if counts is None else edge.ValuesCount(counts.lt, counts.gt, counts.lte, counts.gte),
        is_empty=given.is_empty,
        is_null=given.is_null,
    )


def _match(given: Any) -> Any:
    translate = _MATCHES.get(type(given))
    if translate is None:
        raise unsupported(f"the filter {type(given).__name__}")
    return translate(given)


def _match_value(given: models.MatchValue) -> edge.MatchValue:
    # The binding takes Python's True for the integer 1, which matches nothing; numpy's bool works.
    value: Any = np.bool_(given.value) if isinstance(given.value, bool) else given.value
    return edge.MatchValue(value)


_MATCHES: dict[type, Callable[[Any], Any]] = {
    models.MatchValue: _match_value,
    models.MatchAny: lambda given: edge.MatchAny(given.any),
    models.MatchExcept: lambda given: edge.MatchExcept(given.except_),
}


def _range(given: models.Range | models.DatetimeRange) -> edge.RangeFloat | edge.RangeDateTime:
    if isinstance(given, models.Range):
        return edge.RangeFloat(gte=given.gte, gt=given.gt, lte=given.lte, lt=given.lt)
    bounds = (_moment(given.gte), _moment(given.gt), _moment(given.lte), _moment(given.lt))
    return edge.RangeDateTime(gte=bounds[0], gt=bounds[1], lte=bounds[2], lt=bounds[3])


def _moment(given: datetime | date | str | None) -> str | None:
    return given.isoformat() if isinstance(given, date) else given
