from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag.agent.runs import Runs


@pytest.fixture
def runs() -> Iterator[Runs]:
    """Runs of their own for each test, stopped after it."""
    all_runs = Runs()
    yield all_runs
    all_runs.close()
