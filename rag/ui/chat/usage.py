"""The usage and cost of answers, in one line."""

from __future__ import annotations

from rag.types import Usage
from rag.ui.kit.strings import Language, counted, label


def usage_parts(usage: Usage, language: Language) -> list[str]:
    """Return `3 calls`, `1,240 tokens`, and the price if there is one; empty if no model was called."""
    if not usage.calls:
        return []
    tokens = usage.tokens_in + usage.tokens_out
    key = "usage_tokens_about" if usage.estimated else "usage_tokens"
    parts = [
        counted("usage_call", "usage_calls", usage.calls, language),
        label(key, language, count=f"{tokens:,}"),
    ]
    return parts if usage.money is None else [*parts, label("usage_money", language, money=format_price(usage.money))]


def format_price(money: float) -> str:
    """Return an amount with two decimals, or with two significant digits if it is below 1."""
    if money >= 1 or money <= 0:
        return f"{money:.2f}"
    text = f"{money:.2g}"
    return text if "e" not in text else "< 0.0001"
