"""A map of a library: a dot per page, placed near similar pages; colours show topic, site or age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Final, Literal, get_args
from urllib.parse import urlencode

import streamlit as st

from rag.app.overviews import MAX_MAP_PAGES
from rag.locales import Language, label
from rag.retrieval.page_map import MIN_PAGES, PageMap
from rag.types import Page
from rag.ui.kit.markdown import shorten
from rag.ui.kit.parts import draw_switch, escape_html, format_time, short_source
from rag.ui.kit.session import set_param
from rag.ui.library.page_list import AGES, age_of

if TYPE_CHECKING:
    from rag.app import App

Scheme = Literal["subject", "site", "added"]
_PAGE_KEY: Final = "requested-page"
_COLOURS: Final = 11
"""Sites beyond these share one colour."""
_EDGE: Final = 4.0  # per cent
_LONGEST_NAME: Final = 28
_RIGHT: Final = 0.7  # beyond it a name is left of its dot
_MAX_NAMES: Final = 60
"""Maps of more pages show a name only on hover."""
_WIDTH_OF_NAMES: Final = 0.25  # of the map: of the names of a page and a topic side by side
_HEIGHT_OF_NAMES: Final = 0.04
_POLL_SECONDS: Final = 1.0


def draw_view(language: Language) -> Scheme | None:
    """Draw the choice of table or map, kept in the URL; return the map's colouring, or None for the table."""
    st.session_state["library-view"] = "map" if st.query_params.get("view") == "map" else "table"
    title, views = label("view_title", language), ("table", "map")
    if draw_switch(title, views, "view_", "library-view", language, on_change=_store_view) == "table":
        return None
    title, schemes = label("map_by_title", language), get_args(Scheme)
    scheme: Scheme = draw_switch(title, schemes, "map_by_", "map-colours", language, default="subject")
    return scheme


def _store_view() -> None:
    set_param("view", "map" if st.session_state["library-view"] == "map" else "")


def map_of(app: App, library: str, pages: Sequence[Page], language: Language) -> PageMap | None:
    """Return the map of all pages; while it is computed, draw a status and return the previous map, if any."""
    future = app.page_maps.get(library, pages)
    if not future.done():
        st.fragment(_wait, run_every=_POLL_SECONDS)(app, library, pages, language)
        return app.page_maps.latest(library)
    return future.result()


def _wait(app: App, library: str, pages: Sequence[Page], language: Language) -> None:
    if app.page_maps.get(library, pages).done():
        st.rerun()
    st.status(label("map_waiting", language))


def draw_map(
    layout: PageMap | None, pages: Sequence[Page], shown: Sequence[Page], scheme: Scheme, language: Language
) -> None:
    """Draw the dots of `pages`; those that are not `shown` are faint."""
    if layout is None:
        if len(pages) < MIN_PAGES:
            st.info(label("map_too_few", language, fewest=MIN_PAGES), icon=":material/scatter_plot:")
        return
    st.text_input(label("library_title", language), key=_PAGE_KEY, label_visibility="collapsed", on_change=_open_page)
    placed = [page for page in pages if page.url_hash in layout.positions]
    st.html(map_html(layout, placed, {page.url_hash for page in shown}, scheme, language))
    note = label("map_hint", language)
    st.caption(note if len(placed) == len(pages) else f"{note} {label('map_newest', language, count=MAX_MAP_PAGES)}")


def _open_page() -> None:
    set_param("page", str(st.session_state[_PAGE_KEY]))
    st.session_state[_PAGE_KEY] = ""


def map_html(layout: PageMap, pages: Sequence[Page], shown: Collection[str], scheme: Scheme, language: Language) -> str:
    """Return a link for each page at its place; Tab reaches the first one, arrow keys the others."""
    group_of, names = _groups(layout, pages, scheme, language)
    rank = {name: at for at, name in enumerate(names[:_COLOURS] if scheme == "site" else names)}
    order = sorted(
        pages, key=lambda page: (rank.get(group_of[page.url_hash], len(rank)), layout.positions[page.url_hash])
    )
    dots = [
        _dot(page, layout.positions[page.url_hash], rank.get(group_of[page.url_hash]), page.url_hash in shown, at == 0)
        for at, page in enumerate(order)
    ]
    if scheme == "subject":
        legend, overlay = "", _subjects(layout, rank)
    else:
        keys: dict[str, int | None] = {**rank}
        if len(rank) < len(names):
            keys[label("map_others", language)] = None
        legend = "".join(f"<span><i {_style('key', at)}></i>{escape_html(name)}</span>" for name, at in keys.items())
        legend, overlay = f'<div class="map-keys">{legend}</div>', ""
    title, crowded = escape_html(label("map_title", language)), " crowded" if len(pages) > _MAX_NAMES else ""
    return f'{legend}<div class="page-map{crowded}" role="group" aria-label="{title}">{"".join(dots)}{overlay}</div>'


def _groups(
    layout: PageMap, pages: Sequence[Page], scheme: Scheme, language: Language
) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the group of each page, and the groups in the order of their colours: largest, or newest, first."""
    if scheme == "subject":
        return {page.url_hash: layout.topics[layout.topic_of[page.url_hash]] for page in pages}, layout.topics
    if scheme == "site":
        sites = {page.url_hash: page.site or label("map_no_site", language) for page in pages}
        return sites, [site for site, _ in Counter(sites.values()).most_common()]
    now = datetime.now(UTC)
    ages = {page.url_hash: age_of(page, now) for page in pages}
    names = {age: label(f"age_{age}", language) for age in AGES if age in ages.values()}
    return {url_hash: names[age] for url_hash, age in ages.items()}, list(names.values())


def _dot(page: Page, place: tuple[float, float], rank: int | None, shown: bool, first: bool) -> str:
    title = escape_html(page.title or short_source(page.url))
    tooltip = " · ".join(filter(None, (title, escape_html(page.site), format_time(page.added_at)[:10])))
    params = {name: st.query_params[name] for name in ("library", "lang", "view") if name in st.query_params}
    href = escape_html("?" + urlencode({**params, "page": page.url_hash}))
    side = " left" if place[0] > _RIGHT else ""
    look = _style(f"dot{side}" if shown else f"dot{side} aside", rank, place)
    short = escape_html(shorten(page.title or short_source(page.url), _LONGEST_NAME))
    name = f'<span class="name" aria-hidden="true">{short}</span>'
    return f'<a {look} href="{href}" title="{tooltip}" aria-label="{title}" tabindex="{0 if first else -1}">{name}</a>'


def _subjects(layout: PageMap, ranks: Mapping[str, int]) -> str:
    """Return the topics' names, each amid its pages but clear of other names; screen readers read them too."""
    taken, drawn = [(*place, _WIDTH_OF_NAMES) for place in layout.positions.values()], ""
    for name, number in ranks.items():
        places = [layout.positions[url_hash] for url_hash, subject in layout.topic_of.items() if subject == number]
        x, y = median(x for x, _ in places), median(y for _, y in places)
        heights = [other for left, other, width in taken if abs(left - x) < width]
        lines = sorted((line / 100 for line in range(101)), key=lambda line: abs(line - y))
        free = (line for line in lines if all(abs(line - other) >= _HEIGHT_OF_NAMES for other in heights))
        y = next(free, y)
        taken.append((x, y, 2 * _WIDTH_OF_NAMES))
        drawn += f"<span {_style('subject', number, (x, y))}>{escape_html(name)}</span>"
    return drawn


def _style(kind: str, rank: int | None, place: tuple[float, float] | None = None) -> str:
    """Return the class and style attributes: the colour by `rank`, grey for None, and the position in per cent."""
    colour = "" if rank is None else f"--n:{rank};"
    x, y = (_EDGE + (100 - 2 * _EDGE) * value for value in place) if place else (0.0, 0.0)
    across = f"clamp(4.5rem,{x:.2f}%,100% - 4.5rem)" if kind == "subject" else f"{x:.2f}%"
    position = f"left:{across};top:{y:.2f}%" if place else ""
    return f'class="{kind}{" other" if rank is None else ""}" style="{colour}{position}"'
