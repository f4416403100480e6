"""The usage and cost of answers, in one line."""

from __future__ import annotations

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
