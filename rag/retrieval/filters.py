"""Which part of a library a search is confined to."""

from __future__ import annotations

from dataclasses import dataclass

from qdrant_client import models


@dataclass(frozen=True, slots=True)
class Filters:
    """Each field that is not empty confines the search; several values of one field are alternatives.

    `pages` are url_hashes, `sections` headings anywhere on the path, `since` and `until` ISO 8601 dates
    that the page was added between.
    """

    pages: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    def __bool__(self) -> bool:
        return any((self.pages, self.sites, self.languages, self.sections, self.since, self.until))

    def as_filter(self) -> models.Filter | None:
        """Qdrant's form of it, None for no filter."""
        keys = {
            "metadata.url_hash": self.pages,
            "metadata.site": self.sites,
            "metadata.language": self.languages,
            "metadata.section": self.sections,
        }
        must: list[models.Condition] = [
            models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
            for key, values in keys.items()
            if values
        ]
        if self.since or self.until:
            between = models.DatetimeRange(gte=self.since or None, lte=self.until or None)
            must.append(models.FieldCondition(key="metadata.added_at", range=between))
        return models.Filter(must=must) if must else None
