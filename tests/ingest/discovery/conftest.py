"""The parser's tasks without a child process, a small site, and a fetcher that may read it."""

from __future__ import annotations

from typing import Any

import pytest

from rag.reading.parser_child import TASKS
from tests.web.conftest import fetcher, robots

__all__ = ["fetcher", "robots", "tasks"]


class Tasks:
    """A parser that runs its tasks in this process."""

    def run(self, task: str, body: bytes, **header: Any) -> dict[str, Any]:
        return TASKS[task](body, header)


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()
