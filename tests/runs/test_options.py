"""A question's options, and the settings' defaults for those that are unset."""

from __future__ import annotations

from dataclasses import replace

from rag.config import load_settings
from rag.runs.run import Question, RunOptions
from rag.tracing import Prices


def test_what_was_chosen_goes_before_the_settings() -> None:
    settings = load_settings(
        None, answer_max_calls=5, answer_max_seconds=60, strategy="keyword", llm_price_in=2, llm_context_tokens=9_000
    )
    plain = Question("What?", ("main",)).with_defaults(settings)
    assert plain.options == RunOptions(
        strategy="keyword", calls=5, seconds=60, prices=Prices(2, None), context_tokens=9_000
    )
    chosen = RunOptions(strategy="mmr", calls=0, tokens=100, compose="refine", standalone="What is it?")
    limited = Question("What?", ("main",), options=chosen).with_defaults(settings).options
    assert limited == replace(chosen, seconds=60, prices=Prices(2, None), context_tokens=9_000)


def test_the_first_library_is_the_conversations() -> None:
    assert Question("What?", ("main", "other")).library == "main"
