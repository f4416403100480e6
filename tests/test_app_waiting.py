"""A question that waits for the user is continued, unchanged, by an app that was started later."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.app import App, Question, RunOptions
from rag.errors import RagError
from rag.store.values import Filters
from tests.conversations.test_waiting import Stepwise, approve, plan
from tests.support.apps import open_app
from tests.support.waiting import until_waiting

ASKED = Question(
    "What is the plan?",
    ("main",),
    scope=Filters(sites=("a.example", "b.example")),
    options=RunOptions(compose="refine", seconds=30),
)


def _app(folder: Path) -> App:
    app = open_app(folder, strategy="keyword")
    app._runs._modes = {"fast": Stepwise(plan, approve)}
    return app


def test_it_goes_on_in_an_app_that_was_started_later(tmp_path: Path) -> None:
    with closing(_app(tmp_path)) as before:
        asked = before.converse(ASKED, owner="ann")
        until_waiting(before.conversations, asked.turn_id, "ann")
    with closing(_app(tmp_path)) as after:
        after.conversations.recover()
        assert after.conversations.question(asked.turn_id, "ann") == ASKED.with_defaults(after.settings)
        replied: Any = asked
        for said in ("Yes.", "Quite."):
            turn = until_waiting(after.conversations, asked.turn_id, "ann")
            with pytest.raises(RagError):
                after.reply(asked.turn_id, {turn.waits[0].id: said}, owner="bob")
            replied = after.reply(asked.turn_id, {turn.waits[0].id: said}, owner="ann")
        answer = after.wait(replied.run_id, 60)
        assert (answer.text, answer.notice) == ("A plan. Yes. Quite.", None)
