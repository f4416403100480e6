"""A library's map: a dot for each page, near pages like it, which opens it; colours tell subject, site or age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from urllib.parse import urlencode

import streamlit as st

from rag.app.page_maps import MOST
from rag.retrieval.page_map import FEWEST, PageMap
from rag.types import Page
from rag.ui.kit.escape import shorten
from rag.ui.kit.page_html import escape_html
from rag.ui.kit.parts import moment, short_source
from rag.ui.kit.session import set_param
from rag.ui.kit.strings import Language, label
from rag.ui.library.page_filter import AGES, age_of

if TYPE_CHECKING:
    from rag.app import App

Told = Literal["subject", "site", "added"]
_WANTED: Final = "wanted-page"
_COLOURS: Final = 11
"""Sites beyond these share one colour."""
_EDGE: Final = 4.0  # per cent
_LONGEST_NAME: Final = 28
_RIGHT: Final = 0.7  # beyond it a name stands at the left of its dot
_NAMED: Final = 60
"""Maps of more pages show names only where one points at."""
_POLL_SECONDS: Final = 1.0


def draw_view(language: Language) -> Told | None:
    """Table or map, kept in the address; what the map's colours tell, or None for the table."""
    st.session_state["library-view"] = "map" if st.query_params.get("view") == "map" else "table"
    view = _choose("library-view", ("table", "map"), "view_", language, on_change=_turn)
    return _choose("map-colours", get_args(Told), "map_by_", language, default="subject") if view == "map" else None


def _choose(key: str, options: Sequence[Any], named: str, language: Language, **more: Any) -> Any:
    return st.segmented_control(
        label(f"{named}title", language),
        options,
        required=True,
        format_func=lambda one: label(f"{named}{one}", language),
        key=key,
        label_visibility="collapsed",
        **more,
    )


def _turn() -> None:
    set_param("view", "map" if st.session_state["library-view"] == "map" else "")


def made(app: App, library: str, pages: Sequence[Page], language: Language) -> PageMap | None:
    """The map of these pages, all of the library's; while it is under way a line says so, and then all is drawn."""
    going = app.page_maps.of(library, pages)
    if not going.done():
        st.fragment(_wait, run_every=_POLL_SECONDS)(app, library, pages, language)
        return app.page_maps.at_hand(library)
    return going.result()


def _wait(app: App, library: str, pages: Sequence[Page], language: Language) -> None:
    if app.page_maps.of(library, pages).done():
        st.rerun()
    st.status(label("map_waiting", language))


def draw_map(
    found: PageMap | None, pages: Sequence[Page], shown: Sequence[Page], told: Told, language: Language
) -> None:
    """The dots of `pages`; those that are not `shown` are faint."""
    if found is None:
        if len(pages) < FEWEST:
            st.info(label("map_too_few", language, fewest=FEWEST), icon=":material/scatter_plot:")
        return
    st.text_input(label("library_title", language), key=_WANTED, label_visibility="collapsed", on_change=_open)
    laid = [page for page in pages if page.url_hash in found.places]
    st.html(map_html(found, laid, {page.url_hash for page in shown}, told, language))
    note = label("map_hint", language)
    st.caption(note if len(laid) == len(pages) else f"{note} {label('map_newest', language, count=MOST)}")


def _open() -> None:
    set_param("page", str(st.session_state[_WANTED]))
    st.session_state[_WANTED] = ""


def map_html(found: PageMap, pages: Sequence[Page], shown: Collection[str], told: Told, language: Language) -> str:
    """A link for each page at its place; the first is come to by keyboard, and the arrow keys lead to the others."""
    group_of, names = _groups(found, pages, told, language)
    rank = {name: at for at, name in enumerate(names[:_COLOURS] if told == "site" else names)}
    order = sorted(pages, key=lambda page: (rank.get(group_of[page.url_hash], len(rank)), found.places[page.url_hash]))
    dots = [
        _dot(page, found.places[page.url_hash], rank.get(group_of[page.url_hash]), page.url_hash in shown, at == 0)
        for at, page in enumerate(order)
    ]
    if told == "subject":
        before, over = "", "".join(_subject(found, at, name) for name, at in rank.items())
    else:
        keys: dict[str, int | None] = {
            **rank,
            **({label("map_others", language): None} if len(rank) < len(names) else {}),
        }
        before = "".join(f"<span><i {_look('key', at)}></i>{escape_html(name)}</span>" for name, at in keys.items())
        before, over = f'<div class="map-keys">{before}</div>', ""
    named, crowded = escape_html(label("map_title", language)), " crowded" if len(pages) > _NAMED else ""
    return f'{before}<div class="page-map{crowded}" role="group" aria-label="{named}">{"".join(dots)}{over}</div>'


def _groups(
    found: PageMap, pages: Sequence[Page], told: Told, language: Language
) -> tuple[Mapping[str, str], Sequence[str]]:
    """The group of each page, and the groups in the order of their colours: the largest, or the newest, first."""
    if told == "subject":
        return {page.url_hash: found.subjects[found.subject_of[page.url_hash]] for page in pages}, found.subjects
    if told == "site":
        sites = {page.url_hash: page.site or label("map_no_site", language) for page in pages}
        return sites, [site for site, _ in Counter(sites.values()).most_common()]
    now = datetime.now(UTC)
    ages = {page.url_hash: age_of(page, now) for page in pages}
    names = {age: label(f"age_{age}", language) for age in AGES if age in ages.values()}
    return {url_hash: names[age] for url_hash, age in ages.items()}, list(names.values())


def _dot(page: Page, place: tuple[float, float], rank: int | None, shown: bool, first: bool) -> str:
    title = escape_html(page.title or short_source(page.url))
    told = " · ".join(filter(None, (title, escape_html(page.site), moment(page.added_at)[:10])))
    asked = {name: st.query_params[name] for name in ("library", "lang", "view") if name in st.query_params}
    href = escape_html("?" + urlencode({**asked, "page": page.url_hash}))
    side = " left" if place[0] > _RIGHT else ""
    look = _look(f"dot{side}" if shown else f"dot{side} aside", rank, place)
    short = escape_html(shorten(page.title or short_source(page.url), _LONGEST_NAME))
    name = f'<span class="name" aria-hidden="true">{short}</span>'
    return f'<a {look} href="{href}" title="{told}" aria-label="{title}" tabindex="{0 if first else -1}">{name}</a>'


def _subject(found: PageMap, at: int, name: str) -> str:
    """A topic's name in the middle of its pages, in the legend too for screen readers."""
    places = [found.places[url_hash] for url_hash, of in found.subject_of.items() if of == at]
    middle = (median(x for x, _ in places), median(y for _, y in places))
    return f"<span {_look('subject', at, middle)}>{escape_html(name)}</span>"


def _look(kind: str, rank: int | None, place: tuple[float, float] | None = None) -> str:
    """Class and style: the colour by its number, grey for None, and the place in per cent."""
    colour = "" if rank is None else f"--n:{rank};"
    x, y = (_EDGE + (100 - 2 * _EDGE) * value for value in place) if place else (0.0, 0.0)
    across = f"clamp(4.5rem,{x:.2f}%,100% - 4.5rem)" if kind == "subject" else f"{x:.2f}%"
    where = f"left:{across};top:{y:.2f}%" if place else ""
    return f'class="{kind}{" other" if rank is None else ""}" style="{colour}{where}"'
