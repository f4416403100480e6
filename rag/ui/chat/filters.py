"""Filters and strategy of a question: fields to choose them, chips that show and clear them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from rag.ui.kit.attempt import unless_away
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import language_name, page_count, strategy_hint, strategy_name, strategy_names
from rag.ui.kit.scope import Scope
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_LONGEST_CHIP = 36
_MOST_NAMED = 3  # pages, each with a chip of its own
_HEIGHT = 500
_EARLIEST = date(2000, 1, 1)


class Chip(NamedTuple):
    """One active choice: the field of Scope that holds it, its value among several, and its words."""

    name: str
    value: str
    text: str


def search_options() -> dict[str, Any]:
    """Return this tab's filters as arguments of `App.search`."""
    return session().scope.options(st.context.timezone_offset or 0)


def draw_filters(app: App, library: str, language: Language) -> None:
    """The button that opens the choices; what there is to choose from is read only while they are open."""
    scope = session().scope
    choices = st.popover(
        label("filters", language),
        icon=":material/filter_list:",
        key="filters",
        on_change="rerun",
    )
    # The room they will take is there from the start: the popover finds its place before they are drawn.
    with choices, st.container(key="filter-choices", height=_HEIGHT, border=False):
        st.caption(label("filters_lead", language))
        if choices.open:
            _draw_choices(app, library, scope, language)


def _draw_choices(app: App, library: str, scope: Scope, language: Language) -> None:
    _libraries(app, library, scope, language)
    pages = unless_away(lambda: app.reading((library, *_there(app, scope))).pages())
    if pages is None:
        return
    titles = {page.url_hash: page.title or page.url for page in pages}
    _several("pages", list(titles), scope.pages, titles.__getitem__, language)
    left, right = st.columns(2)
    with left:
        _several("sites", _distinct(page.site for page in pages), scope.sites, str, language)
    with right:
        tags = _distinct(page.language for page in pages)
        _several("languages", tags, scope.languages, lambda tag: language_name(tag, language), language)
    _set("section", scope.section)
    st.text_input(
        label("filters_section", language),
        key="filter-section",
        placeholder=label("filters_section_hint", language),
        on_change=_take,
        args=("section",),
    )
    for column, name in zip(st.columns(2), ("since", "until"), strict=True):
        with column:
            _day(name, getattr(scope, name), language)


def _there(app: App, scope: Scope) -> list[str]:
    """Those of the libraries chosen that are still there."""
    known = {info.name for info in app.libraries.infos()} if scope.libraries else set()
    return [name for name in scope.libraries if name in known]


def _libraries(app: App, library: str, scope: Scope, language: Language) -> None:
    """The libraries to search beside the open one, and, once there are some, what each counts."""
    titles = {info.name: info.shown for info in app.libraries.infos()}
    others = [name for name in titles if name != library]
    if not others:
        return
    _several("libraries", others, scope.libraries, titles.__getitem__, language, "filters_libraries_none")
    chosen = [library, *_there(app, scope)]
    for place, name in enumerate(chosen if len(chosen) > 1 else ()):
        _set(f"weight-{place}", float(scope.weights.get(name, 1.0)))
        st.slider(
            label("filters_weight", language, name=escape_line(titles.get(name, name))),
            *(0.0, 3.0),
            step=0.1,
            key=f"filter-weight-{place}",
            on_change=_weigh,
            args=(place, name),
        )


def _weigh(place: int, name: str) -> None:
    scope = session().scope
    session().scope = replace(scope, weights={**scope.weights, name: st.session_state[f"filter-weight-{place}"]})


def _several(
    name: str, options: list[str], chosen: Iterable[str], told: Any, language: Language, none: str = "filters_any"
) -> None:
    _set(name, [one for one in chosen if one in options])
    st.multiselect(
        label(f"filters_{name}", language),
        options,
        key=f"filter-{name}",
        format_func=told,
        placeholder=label(none, language),
        on_change=_take,
        args=(name,),
    )


def _day(name: str, chosen: date | None, language: Language) -> None:
    _set(name, chosen)
    st.date_input(
        label(f"filters_{name}", language),
        key=f"filter-{name}",
        value=None,
        min_value=_EARLIEST,
        format="YYYY-MM-DD",
        on_change=_take,
        args=(name,),
    )


def draw_strategy(app: App, language: Language) -> None:
    """Draw the choice of a search strategy, with a line on what it does."""
    scope, standard, reranker = session().scope, app.settings.strategy, app.models.reranker
    names = strategy_names(standard)
    chosen = scope.strategy if scope.strategy in names else standard
    _set("strategy", chosen)
    st.selectbox(
        label("strategy", language),
        names,
        key="filter-strategy",
        format_func=lambda name: _strategy_option(name, standard, language, reranks=reranker is not None),
        on_change=_take,
        args=("strategy", standard),
    )
    if hint := strategy_hint(chosen, language, reranker.name if reranker else ""):
        st.caption(hint)


def _strategy_option(name: str, standard: str, language: Language, *, reranks: bool) -> str:
    told = strategy_name(name, language, reranks=reranks)
    return label("strategy_default", language, name=told) if name == standard else told


def _set(name: str, value: object) -> None:
    """Give a widget its value: Streamlit forgets it while the choices are closed."""
    st.session_state[f"filter-{name}"] = value


def _take(name: str, standard: str = "") -> None:
    """Keep what was chosen in a widget; `standard` is no choice."""
    value = st.session_state[f"filter-{name}"]
    if isinstance(value, list):
        value = tuple(value)
    elif isinstance(value, str):
        value = "" if value == standard else value.strip()
    session().scope = replace(session().scope, **{name: value})


def chips_of(scope: Scope, titles: dict[str, str], language: Language, *, reranks: bool = True) -> list[Chip]:
    """Return the active filters, unescaped; `titles` of pages by url_hash, of libraries by name."""
    chips = [
        Chip("libraries", name, label("chip_library", language, value=titles.get(name, name)))
        for name in scope.libraries
    ]
    if len(scope.pages) > _MOST_NAMED:
        chips.append(Chip("pages", "", page_count(len(scope.pages), language)))
    else:
        chips += [Chip("pages", page, titles.get(page, page[:8])) for page in scope.pages]
    chips += [Chip("sites", site, site) for site in scope.sites]
    chips += [Chip("languages", tag, language_name(tag, language)) for tag in scope.languages]
    for name in ("section", "since", "until"):
        if value := getattr(scope, name):
            chips.append(Chip(name, "", label(f"chip_{name}", language, value=value)))
    if scope.strategy:
        told = strategy_name(scope.strategy, language, reranks=reranks)
        chips.append(Chip("strategy", "", label("chip_strategy", language, value=told)))
    return chips


def draw_chips(app: App, library: str, language: Language, *, disabled: bool = False) -> None:
    """One chip for each active choice, which a click takes away."""
    scope = session().scope
    reranks = app.models.reranker is not None
    chips = chips_of(scope, titles_of(app, library, scope), language, reranks=reranks)
    if not chips:
        return
    with st.container(horizontal=True, key="chips", gap="xsmall", vertical_alignment="center"):
        for place, chip in enumerate(chips):
            st.button(
                escape_line(shorten(chip.text, _LONGEST_CHIP)),
                icon=":material/close:",
                icon_position="right",
                key=f"chip-{place}",
                help=label("chip_remove", language),
                on_click=_keep,
                args=(scope.without(chip.name, chip.value),),
                disabled=disabled,
            )
        if len(chips) > 1:
            text = label("filters_clear", language)
            st.button(text, key="chips-clear", type="tertiary", on_click=_keep, args=(Scope(),), disabled=disabled)


def _keep(scope: Scope) -> None:
    session().scope = scope


def titles_of(app: App, library: str, scope: Scope) -> dict[str, str]:
    """The titles of the pages and the libraries that the scope names."""
    libraries = (library, *_there(app, scope))
    known = unless_away(lambda: app.reading(libraries).known(scope.pages)) if scope.pages else {}
    titles = {url_hash: page.title or page.url for url_hash, page in (known or {}).items()}
    return titles | {name: app.libraries.title(name) for name in scope.libraries}


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted({value for value in values if value})
