"""The scope of the next questions: filters, strategy, libraries, and the page picker next to the chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import streamlit as st

from rag.locales import Language, label, label_count, language_name, sentences
from rag.retrieval.strategies import STRATEGIES
from rag.types import Page
from rag.ui.kit.actions import none_if_unavailable
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.parts import draw_button, draw_field, page_count, short_source, strategy_name
from rag.ui.kit.session import Scope, count_pages, libraries_of, session

if TYPE_CHECKING:
    from rag.app import App

_LONGEST_CHIP = 36
_MAX_PAGE_CHIPS = 3  # pages with separate chips
_LEAD_HEIGHT, _FIELD_HEIGHT = 24, 84
_EARLIEST = date(2000, 1, 1)
_PICKER_OPEN: Final = "page-picker-open"
_MAX_LISTED: Final = 100
"""Pages listed at a time; a search narrows them down."""
_LONGEST_TITLE: Final = 80


class Chip(NamedTuple):
    """An active choice: its `Scope` field, its value if the field has several, and its text."""

    name: str
    value: str
    text: str


def search_options() -> dict[str, Any]:
    """Return this tab's filters as arguments of `App.search`."""
    return session().scope.options(st.context.timezone_offset or 0)


def draw_filters(app: App, library: str, language: Language) -> None:
    """Draw the button that opens the filters, whose options are loaded only while they are open."""
    scope = session().scope
    choices = st.popover(label("filters", language), icon=":material/filter_list:", key="filters", on_change="rerun")
    # The height is fixed, since the popover is placed before its content is drawn.
    fields = 4 + (len(app.libraries.infos()) > 1) + len(libraries_of(app, library, scope)) * bool(scope.libraries)
    with choices, st.container(key="filter-choices", height=_LEAD_HEIGHT + fields * _FIELD_HEIGHT, border=False):
        st.caption(label("filters_lead", language))
        if choices.open:
            _draw_choices(app, library, scope, language)


def _draw_choices(app: App, library: str, scope: Scope, language: Language) -> None:
    _draw_libraries(app, library, scope, language)
    pages = none_if_unavailable(lambda: app.library_view(libraries_of(app, library, scope)).pages())
    if pages is None:
        return
    titles = {page.url_hash: page.title or page.url for page in pages}
    _draw_multiselect("pages", list(titles), scope.pages, titles.__getitem__, language)
    left, right = st.columns(2)
    with left:
        _draw_multiselect("sites", sorted({page.site for page in pages} - {""}), scope.sites, str, language)
    with right:
        tags = sorted({page.language for page in pages} - {""})
        _draw_multiselect("languages", tags, scope.languages, lambda tag: language_name(tag, language), language)
    hint = label("filters_section_hint", language)
    _draw_field(st.text_input, "section", scope.section, language, placeholder=hint)
    for column, name in zip(st.columns(2), ("since", "until"), strict=True):
        with column:
            bounds: dict[str, Any] = {"value": None, "min_value": _EARLIEST, "format": "YYYY-MM-DD"}
            _draw_field(st.date_input, name, getattr(scope, name), language, **bounds)


def _draw_libraries(app: App, library: str, scope: Scope, language: Language) -> None:
    """Draw the choice of additional libraries to search and, once some are selected, their weights."""
    titles = {info.name: info.display_name for info in app.libraries.infos()}
    others = [name for name in titles if name != library]
    if not others:
        return
    _draw_multiselect("libraries", others, scope.libraries, titles.__getitem__, language, "filters_libraries_none")
    selected = libraries_of(app, library, scope)
    for place, name in enumerate(selected if len(selected) > 1 else ()):
        weight, title = scope.weights.get(name, 1.0), escape_line(titles.get(name, name))
        text = label("filters_weight", language, name=title)
        bounds = {"min_value": 0.0, "max_value": 3.0, "step": 0.1}
        draw_field(st.slider, f"filter-weight-{place}", float(weight), text, _store_weight, place, name, **bounds)


def _store_weight(place: int, name: str) -> None:
    scope = session().scope
    session().scope = replace(scope, weights={**scope.weights, name: st.session_state[f"filter-weight-{place}"]})


def _draw_multiselect(
    name: str, options: list[str], selected: Iterable[str], name_of: Any, language: Language, none: str = "filters_any"
) -> None:
    value = [option for option in selected if option in options]
    words = {"format_func": name_of, "placeholder": label(none, language)}
    _draw_field(st.multiselect, name, value, language, options=options, **words)


def _draw_field(draw: Callable[..., Any], name: str, value: object, language: Language, /, **options: Any) -> None:
    draw_field(draw, f"filter-{name}", value, label(f"filters_{name}", language), _store, name, **options)


def draw_strategy(app: App, language: Language) -> None:
    """Draw the choice of a search strategy, with a short description."""
    scope, standard, reranker = session().scope, app.settings.strategy, app.models.reranker
    names = sorted(STRATEGIES, key=lambda name: name != standard)
    selected = scope.strategy if scope.strategy in names else standard

    def name_of(strategy: str) -> str:
        text = strategy_name(strategy, language, reranks=reranker is not None)
        return label("strategy_default", language, name=text) if strategy == standard else text

    store, choice = partial(_store, "strategy", standard), {"options": names, "format_func": name_of}
    draw_field(st.selectbox, "filter-strategy", selected, label("strategy", language), store, **choice)
    if hint := strategy_hint(selected, language, reranker.name if reranker else ""):
        st.caption(hint)


def strategy_hint(name: str, language: Language, reranker: str = "") -> str:
    """Return a short description of the strategy; empty if there is none."""
    key = f"strategy_{name}_hint" if reranker or name != "rerank" else "strategy_rerank_off_hint"
    model = {"model": escape_line(reranker)} if name == "rerank" and reranker else {}
    return label(key, language, **model).rstrip(".。") if key in sentences("en") else ""


def _store(name: str, standard: str = "") -> None:
    """Store a widget's value in the scope; `standard` counts as no choice."""
    value = st.session_state[f"filter-{name}"]
    if isinstance(value, list):
        value = tuple(value)
    elif isinstance(value, str):
        value = "" if value == standard else value.strip()
    session().scope = replace(session().scope, **{name: value})


def chips_of(scope: Scope, titles: dict[str, str], language: Language, *, reranks: bool = True) -> list[Chip]:
    """Return the active filters, unescaped; `titles` are those of pages by url_hash and of libraries by name."""
    chips = [
        Chip("libraries", name, label("chip_library", language, value=titles.get(name, name)))
        for name in scope.libraries
    ]
    if len(scope.pages) > _MAX_PAGE_CHIPS:
        chips.append(Chip("pages", "", page_count(len(scope.pages), language)))
    else:
        chips += [Chip("pages", page, titles.get(page, page[:8])) for page in scope.pages]
    chips += [Chip("sites", site, site) for site in scope.sites]
    chips += [Chip("languages", tag, language_name(tag, language)) for tag in scope.languages]
    for name in ("section", "since", "until"):
        if value := getattr(scope, name):
            chips.append(Chip(name, "", label(f"chip_{name}", language, value=value)))
    if scope.strategy:
        text = strategy_name(scope.strategy, language, reranks=reranks)
        chips.append(Chip("strategy", "", label("chip_strategy", language, value=text)))
    return chips


def draw_chips(app: App, library: str, language: Language, *, disabled: bool = False) -> None:
    """Draw a chip for each active choice; a click removes it."""
    scope = session().scope
    reranks = app.models.reranker is not None
    chips = chips_of(scope, titles_of(app, library, scope), language, reranks=reranks)
    if not chips:
        return
    with st.container(horizontal=True, key="chips", gap="xsmall", vertical_alignment="center"):
        for place, chip in enumerate(chips):
            text, others = escape_line(shorten(chip.text, _LONGEST_CHIP)), scope.without(chip.name, chip.value)
            options = {"icon_position": "right", "help": label("chip_remove", language), "disabled": disabled}
            draw_button(text, "close", f"chip-{place}", _set_scope, others, **options)
        if len(chips) > 1:
            text = label("filters_clear", language)
            st.button(text, key="chips-clear", type="tertiary", on_click=_set_scope, args=(Scope(),), disabled=disabled)


def _set_scope(scope: Scope) -> None:
    session().scope = scope


def titles_of(app: App, library: str, scope: Scope) -> dict[str, str]:
    """Return the titles of the pages and libraries in the scope."""
    libraries = libraries_of(app, library, scope)
    pages = none_if_unavailable(lambda: app.library_view(libraries).stored_pages(scope.pages)) if scope.pages else {}
    titles = {url_hash: page.title or page.url for url_hash, page in (pages or {}).items()}
    return titles | {name: app.libraries.title(name) for name in scope.libraries}


def draw_page_picker_button(app: App, library: str, language: Language) -> None:
    """Draw the button that opens and closes the page picker, with the number of selected pages."""
    if count := count_pages(app, library):
        selected = len(session().scope.pages)
        words = label("picker_some", language, chosen=selected, count=count) if selected else label("picker", language)
        draw_button(words, "checklist", "page-picker-toggle", _toggle_picker, type="tertiary")


def draw_page_picker(app: App, library: str, language: Language) -> None:
    """Draw the page picker, if open, next to the page."""
    pages = none_if_unavailable(lambda: app.library(library).pages()) if st.session_state.get(_PICKER_OPEN) else None
    if pages:
        excluded = none_if_unavailable(lambda: app.library(library).excluded_pages()) or set()
        _draw_picker([page for page in pages if page.url_hash not in excluded], language)


def _toggle_picker() -> None:
    st.session_state[_PICKER_OPEN] = not st.session_state.get(_PICKER_OPEN)


def _draw_picker(pages: list[Page], language: Language) -> None:
    with st.container(key="page-picker", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"## {label('picker', language)}", anchors=False, width="content")
            draw_button(label("source_close", language), "close", "page-picker-close", _toggle_picker, type="tertiary")
        st.caption(label("picker_lead", language))
        words = st.text_input(
            label("picker_search", language),
            key="page-picker-words",
            placeholder=label("picker_search", language),
            icon=":material/search:",
            label_visibility="collapsed",
            live=True,
        )
        terms, selected = (words or "").casefold().split(), session().scope.pages
        matches = [page for page in pages if all(word in f"{page.title} {page.url}".casefold() for word in terms)]
        matches.sort(key=lambda page: page.url_hash not in selected)
        if selected:
            st.button(label("picker_clear", language), type="tertiary", key="page-picker-clear", on_click=_select_pages)
        with st.container(key="page-picker-list", gap=None):
            for page in matches[:_MAX_LISTED]:
                key = f"page-tick-{page.url_hash}"
                st.session_state[key] = page.url_hash in selected
                title = escape_line(shorten(page.title or short_source(page.url), _LONGEST_TITLE))
                st.checkbox(title, key=key, on_change=_toggle_page, args=(page.url_hash,))
            if len(matches) > _MAX_LISTED:
                st.caption(label_count("picker_more_one", "picker_more", len(matches) - _MAX_LISTED, language))
            if not matches:
                st.caption(label("picker_none", language))


def _toggle_page(url_hash: str) -> None:
    others = tuple(page for page in session().scope.pages if page != url_hash)
    _select_pages(*others, *((url_hash,) if st.session_state[f"page-tick-{url_hash}"] else ()))


def _select_pages(*pages: str) -> None:
    session().scope = replace(session().scope, pages=pages)
