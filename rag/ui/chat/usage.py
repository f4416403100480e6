"""What answers used and cost, in one line, and what the settings say of prices and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Usage
from rag.ui.kit.strings import Language, counted, label


def usage_parts(usage: Usage, language: Language) -> list[str]:
    """`3 calls`, `1,240 tokens`, and the price where there is one; nothing where no model was called."""
    if not usage.calls:
        return []
    tokens = usage.tokens_in + usage.tokens_out
    key = "usage_tokens_about" if usage.estimated else "usage_tokens"
    parts = [
        counted("usage_call", "usage_calls", usage.calls, language),
        label(key, language, count=f"{tokens:,}"),
    ]
    return parts if usage.money is None else [*parts, label("usage_money", language, money=price(usage.money))]


def price(money: float) -> str:
    """Two decimals, or two figures of what is smaller."""
    if money >= 1 or money <= 0:
        return f"{money:.2f}"
    shown = f"{money:.2g}"
    return shown if "e" not in shown else "< 0.0001"


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
