from __future__ import annotations

import pytest

from rag.errors import ModelError
from rag.tracing import CallBudget


def test_a_budget_counts_and_ends() -> None:
    budget = CallBudget(2)
    budget.spend()
    assert (budget.used, budget.remaining) == (1, 1)
    budget.spend()
    with pytest.raises(ModelError) as caught:
        budget.spend()
    assert caught.value.code == "call_limit"
    assert budget.used == 2


def test_a_kept_call_is_out_of_reach_for_a_while() -> None:
    budget = CallBudget(2)
    with budget.reserve(1):
        budget.spend()
        with pytest.raises(ModelError):
            budget.spend()
    budget.spend()
    assert budget.used == 2


def test_a_call_kept_by_a_step_that_failed_is_free_again() -> None:
    budget = CallBudget(1)
    with pytest.raises(ZeroDivisionError), budget.reserve(1):
        raise ZeroDivisionError
    assert budget.remaining == 1
