"""Answers scored after they were shown, by what needs neither evidence nor a model that judges."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal

from rag.errors import RagError
from rag.evaluation.cases import Case
from rag.evaluation.metrics import METRICS, Timed, Tools, scores
from rag.store.sql.conversation_table import ConversationTable
from rag.types import Answer

log = logging.getLogger(__name__)

Which = Literal["off", "sample", "all"]
_ONE_IN: Final = 10


class ShownAnswers:
    """Scores answers one after another, in a thread of its own, and keeps the scores with their turns."""

    def __init__(self, table: ConversationTable, which: Which) -> None:
        self._table = table
        self._which = which
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="scores")

    def score(self, turn_id: str, answer: Answer, tools: Callable[[], Tools]) -> None:
        """Returns at once; of a `sample` one answer in ten is scored, by the turn's id."""
        if self._which == "all" or (self._which == "sample" and int(turn_id, 16) % _ONE_IN == 0):
            self._thread.submit(self._score, turn_id, answer, tools)

    def close(self) -> None:
        """Leave what waits unscored."""
        self._thread.shutdown(cancel_futures=True)

    def _score(self, turn_id: str, answer: Answer, tools: Callable[[], Tools]) -> None:
        try:
            found = scores(Case(turn_id, answer.question), Timed(answer), tools())
            named = {name: value for name, value in found.items() if name in METRICS and value is not None}
            self._table.add_extra(turn_id, {"scores": named})
        except RagError as error:
            log.warning("an answer could not be scored: %s", error)
        except Exception:  # the thread's edge: the answer was shown, and is sound
            log.exception("an answer could not be scored")
