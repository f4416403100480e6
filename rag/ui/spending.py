"""What model calls cost and where an answer must stop, as the settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App


def draw_spending(app: App, language: Language) -> None:
    """Two cards: prices, and limits."""
    left, right = st.columns(2)
    with left:
        _card("prices", _prices(app, language), language)
    with right:
        _card("limits", _limits(app, language), language)


def _card(key: str, value: str, language: Language) -> None:
    with st.container(border=True, key=f"use-{key}"):
        st.caption(label(f"use_{key}", language))
        st.markdown(f"**{value}**")
        st.caption(label(f"use_{key}_change", language))


def _prices(app: App, language: Language) -> str:
    price_in, price_out = app.settings.llm_price_in, app.settings.llm_price_out
    if price_in is None and price_out is None:
        return label("use_prices_none", language)
    return label("use_prices_set", language, tokens_in=f"{price_in or 0:g}", tokens_out=f"{price_out or 0:g}")


def _limits(app: App, language: Language) -> str:
    chosen = {name: getattr(app.settings, f"answer_max_{name}") for name in ("calls", "tokens", "seconds")}
    parts = [label(f"use_limit_{name}", language, count=f"{value:,g}") for name, value in chosen.items() if value]
    return " · ".join(parts) or label("use_limits_none", language)
