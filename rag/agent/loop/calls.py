"""Counts the calls of a run where they are made, so that repairs and fall-backs count too."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from rag.agent.reasoner import CallBudget


class CallCounter(BaseCallbackHandler):
    """Spends from a budget before each call of a chat model; a spent budget stops the call."""

    raise_error = True
    run_inline = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True

    def __init__(self, budget: CallBudget) -> None:
        self._budget = budget

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self._budget.spend()
