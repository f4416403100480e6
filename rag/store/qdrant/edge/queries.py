"""Translation of queries and filters from `qdrant_client.models` to the engine's types.

Also of the selection of points for a write, by ids or by a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from typing import Any
from uuid import UUID

import numpy as np
import qdrant_edge as edge
from qdrant_client import models

from rag.store.qdrant.edge.config import to_payload_selector, to_vector, unsupported_error

_LIMIT = 10
_RRF_K = 2  # Qdrant's default, on the server too
_OVERSAMPLING = 2.0  # quantised candidates for each one that is rescored
_ID_BATCH = 1000  # per call; the engine holds the GIL for a whole call


def to_request(request: models.QueryRequest, idf_vectors: Collection[str], *, ghosts: bool = True) -> edge.QueryRequest:
    """Translate one query request; `idf_vectors` names the vectors with the IDF modifier.

    `ghosts` says whether the engine still counts many deleted points (see `_idf`). Raises StoreError with the name of
    an unsupported option.
    """
    _refuse_lookup(request)
    limit = _LIMIT if request.limit is None else request.limit
    return edge.QueryRequest(
        limit=limit,
        offset=request.offset,
        query=_query(request.query, request.using, limit),
        prefetches=_prefetches(request.prefetch, idf_vectors, ghosts),
        with_vector=request.with_vector or False,
        with_payload=to_payload_selector(request.with_payload),
        filter=to_filter(request.filter),
        score_threshold=request.score_threshold,
        params=_params(request.params, request.using in idf_vectors, ghosts),
    )


def _prefetches(prefetch: Any, idf_vectors: Collection[str], ghosts: bool) -> list[edge.Prefetch]:
    if prefetch is None:
        return []
    return [_prefetch(item, idf_vectors, ghosts) for item in (prefetch if isinstance(prefetch, list) else [prefetch])]


def _prefetch(prefetch: models.Prefetch, idf_vectors: Collection[str], ghosts: bool) -> edge.Prefetch:
    _refuse_lookup(prefetch)
    limit = _LIMIT if prefetch.limit is None else prefetch.limit
    return edge.Prefetch(
        limit=limit,
        query=_query(prefetch.query, prefetch.using, limit),
        prefetches=_prefetches(prefetch.prefetch, idf_vectors, ghosts),
        params=_params(prefetch.params, prefetch.using in idf_vectors, ghosts),
        filter=to_filter(prefetch.filter),
        score_threshold=prefetch.score_threshold,
    )


def _refuse_lookup(request: models.QueryRequest | models.Prefetch) -> None:
    if request.lookup_from is not None:
        raise unsupported_error("lookup_from")


def _query(query: Any, using: str | None, limit: int) -> Any:
    """Translate a scoring query. A bare vector requests its nearest neighbours, as on the server."""
    if query is None:
        return None
    if isinstance(query, (list, models.SparseVector)):
        return edge.Query.Nearest(to_vector(query), using)
    if isinstance(query, models.NearestQuery):
        return _nearest(query, using, limit)
    if isinstance(query, models.FusionQuery):
        return _fusion(query.fusion)
    raise unsupported_error(f"the query {type(query).__name__}")


def _nearest(query: models.NearestQuery, using: str | None, limit: int) -> Any:
    if isinstance(query.nearest, (str, int)):
        raise unsupported_error("a query by point id")
    vector = to_vector(query.nearest)
    if query.mmr is None:
        return edge.Query.Nearest(vector, using)
    diversity = 0.5 if query.mmr.diversity is None else query.mmr.diversity
    candidates = limit if query.mmr.candidates_limit is None else query.mmr.candidates_limit
    return edge.Mmr(vector, lambda_=1.0 - diversity, candidates_limit=candidates, using=using)


def _fusion(fusion: models.Fusion) -> Any:
    return edge.Fusion.Rrf(k=_RRF_K) if fusion == models.Fusion.RRF else edge.Fusion.Dbsf()


def _params(params: models.SearchParams | None, has_idf: bool, ghosts: bool) -> edge.SearchParams:
    if params is not None and not isinstance(params, models.SearchParams):
        raise TypeError(f"search parameters are a SearchParams, not {type(params).__name__}")
    params = params or models.SearchParams()
    for name in ("quantization", "acorn", "idf"):
        if getattr(params, name) is not None:
            raise unsupported_error(f"the search parameter {name}")
    return edge.SearchParams(
        hnsw_ef=params.hnsw_ef,
        exact=bool(params.exact),
        indexed_only=bool(params.indexed_only),
        idf=_idf(ghosts) if has_idf else None,
        quantization=None
        if has_idf or params.exact
        else edge.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING),
    )


def _idf(ghosts: bool) -> edge.IdfParams | None:
    """Return the corpus for IDF: all existing points if there are many ghosts, else the engine's default.

    The engine counts deleted points until the shard is reopened, so the same query would score differently after a
    restart. Counting the existing ones takes 0.9 ms per query at 100 000 chunks, in proportion to their number.
    """
    return edge.IdfParams(corpus=to_filter(models.Filter())) if ghosts else None


def operations(
    selector: Any, by_id: Callable[[list[Any]], Any], by_filter: Callable[[edge.Filter], Any]
) -> Iterator[tuple[edge.UpdateOperation, list[Any] | None]]:
    """Yield the operations for a selector: one for a filter, to be atomic, or one per batch of ids, with the ids."""
    if isinstance(selector, models.FilterSelector):
        selector = selector.filter
    if isinstance(selector, models.PointIdsList):
        selector = selector.points
    if isinstance(selector, models.Filter):
        yield by_filter(to_filter(selector) or edge.Filter()), None
        return
    if not isinstance(selector, (list, tuple)):
        raise unsupported_error(f"a selection by {type(selector).__name__}")
    for batch in id_batches(selector):
        yield by_id(batch), batch


def id_batches(ids: Any) -> Iterator[list[Any]]:
    """Yield batches of point ids in the engine's form."""
    plain_ids = [plain_id(point_id) for point_id in ids]
    for at in range(0, len(plain_ids), _ID_BATCH):
        yield plain_ids[at : at + _ID_BATCH]


def plain_id(point_id: Any) -> Any:
    return str(point_id) if isinstance(point_id, UUID) else point_id


def to_filter(condition: models.Filter | None) -> edge.Filter | None:
    """Translate a filter; raise StoreError with the name of an unsupported condition."""
    if condition is None:
        return None
    if not isinstance(condition, models.Filter):
        raise TypeError(f"a filter is a Filter, not {type(condition).__name__}")
    minimum = condition.min_should
    return edge.Filter(
        must=_conditions(condition.must),
        should=_conditions(condition.should),
        must_not=_conditions(condition.must_not),
        min_should=edge.MinShould(_conditions(minimum.conditions) or [], minimum.min_count) if minimum else None,
    )


def _conditions(conditions: Any) -> list[Any] | None:
    if conditions is None:
        return None
    return [_condition(condition) for condition in (conditions if isinstance(conditions, list) else [conditions])]


def _condition(condition: Any) -> Any:
    if isinstance(condition, models.Filter):
        return to_filter(condition)
    if isinstance(condition, models.FieldCondition):
        return _field(condition)
    if isinstance(condition, models.HasIdCondition):
        return edge.HasIdCondition(set(condition.has_id))
    if isinstance(condition, models.IsEmptyCondition):
        return edge.IsEmptyCondition(condition.is_empty.key)
    if isinstance(condition, models.IsNullCondition):
        return edge.IsNullCondition(condition.is_null.key)
    if isinstance(condition, models.HasVectorCondition):
        return edge.HasVectorCondition(condition.has_vector)
    raise unsupported_error(f"the filter {type(condition).__name__}")


def _field(condition: models.FieldCondition) -> edge.FieldCondition:
    for name in ("geo_bounding_box", "geo_radius", "geo_polygon"):
        if getattr(condition, name) is not None:
            raise unsupported_error(f"the filter {name}")
    counts = condition.values_count
    return edge.FieldCondition(
        condition.key,
        match=None if condition.match is None else _match(condition.match),
        range=None if condition.range is None else _range(condition.range),
        values_count=None if counts is None else edge.ValuesCount(counts.lt, counts.gt, counts.lte, counts.gte),
        is_empty=condition.is_empty,
        is_null=condition.is_null,
    )


def _match(match: Any) -> Any:
    translate = _MATCHES.get(type(match))
    if translate is None:
        raise unsupported_error(f"the filter {type(match).__name__}")
    return translate(match)


def _match_value(match: models.MatchValue) -> edge.MatchValue:
    # The binding treats Python's True as the integer 1, which matches nothing; numpy's bool works.
    value: Any = np.bool_(match.value) if isinstance(match.value, bool) else match.value
    return edge.MatchValue(value)


_MATCHES: dict[type, Callable[[Any], Any]] = {
    models.MatchValue: _match_value,
    models.MatchAny: lambda given: edge.MatchAny(given.any),
    models.MatchExcept: lambda given: edge.MatchExcept(given.except_),
}


def _range(bounds: models.Range | models.DatetimeRange) -> edge.RangeFloat | edge.RangeDateTime:
    if isinstance(bounds, models.Range):
        return edge.RangeFloat(gte=bounds.gte, gt=bounds.gt, lte=bounds.lte, lt=bounds.lt)
    moments = (_moment(bounds.gte), _moment(bounds.gt), _moment(bounds.lte), _moment(bounds.lt))
    return edge.RangeDateTime(gte=moments[0], gt=moments[1], lte=moments[2], lt=moments[3])


def _moment(moment: datetime | date | str | None) -> str | None:
    return moment.isoformat() if isinstance(moment, date) else moment
