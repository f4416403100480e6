"""The number of concurrent answers per user."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from rag.app.dispatch import AnswerLimit
from rag.conversations.conversations import TurnHandle
from rag.errors import RagError
from tests.support.apps import refusal


class Running:
    """Runs that continue until they are ended."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._numbers = count()

    def start(self) -> TurnHandle:
        run_id = f"run{next(self._numbers)}"
        self.ids.add(run_id)
        return TurnHandle("conversation", "turn", run_id)


@pytest.fixture
def running() -> Running:
    return Running()


@pytest.fixture
def answer_limit(running: Running) -> AnswerLimit:
    return AnswerLimit(running.ids.__contains__, limit=4)


def test_answers_at_a_time_are_limited_per_person(answer_limit: AnswerLimit, running: Running) -> None:
    first, *_ = [answer_limit.begin("ann", running.start) for _ in range(4)]
    assert refusal(answer_limit.begin, "ann", running.start) == "too_many_answers"
    assert len(running.ids) == 4
    answer_limit.begin("bob", running.start)
    running.ids.discard(first.run_id)
    answer_limit.begin("ann", running.start)
    with pytest.raises(RagError):
        answer_limit.begin("ann", running.start)


def test_many_clicks_at_once_count_each(answer_limit: AnswerLimit, running: Running) -> None:
    def click(_: int) -> bool:
        try:
            answer_limit.begin("ann", running.start)
        except RagError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(click, range(40))) == 4
    assert len(running.ids) == 4


def test_a_question_that_could_not_begin_counts_for_nothing(answer_limit: AnswerLimit, running: Running) -> None:
    def fail() -> TurnHandle:
        raise RagError("turn_running")

    for _ in range(9):
        with pytest.raises(RagError):
            answer_limit.begin("ann", fail)
    answer_limit.begin("ann", running.start)


def test_programs_have_no_limit(answer_limit: AnswerLimit, running: Running) -> None:
    for _ in range(9):
        answer_limit.begin("", running.start)
