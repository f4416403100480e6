"""A job as a person sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from rag.store.item_table import JobItem
from rag.store.job_table import Job


@dataclass(frozen=True, slots=True)
class JobView(Job):
    """A job with its speed: `rate` in pages a minute, `seconds_left`, each None while unknown.

    `current` are the items that are under way.
    """

    rate: float | None = None
    seconds_left: float | None = None
    current: tuple[JobItem, ...] = ()
    load: Callable[[], list[JobItem]] = field(default=list, repr=False, compare=False)

    @property
    def items(self) -> tuple[JobItem, ...]:
        """All items in order, read anew with each call: of a long job ask `Jobs.items` for some of them."""
        return tuple(self.load())


def job_view(
    job: Job,
    load: Callable[[], list[JobItem]],
    *,
    rate: float | None = None,
    seconds_left: float | None = None,
    current: list[JobItem] | None = None,
) -> JobView:
    kept = {one.name: getattr(job, one.name) for one in fields(job)}
    return JobView(**kept, rate=rate, seconds_left=seconds_left, current=tuple(current or ()), load=load)
