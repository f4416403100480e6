"""The chat model that a run uses, for how long, and how much: a key is only used for the user who typed it."""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from rag.app import App, ChatOptions
from rag.config import Settings
from rag.errors import RagError
from rag.evaluation.cases import Setting
from rag.locales import say
from rag.runs.run import Question
from tests.evaluation.conftest import town_cases, with_model
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer, Request
from tests.support.waiting import until


class Gate:
    """A model that answers like `rules`; while `shut`, it waits with its answers."""

    def __init__(self, *, shut: bool = False) -> None:
        self.shut, self.asked = shut, 0

    def __call__(self, request: Request) -> Any:
        self.asked += 1
        until(lambda: not self.shut)
        return rules(request)


def connect(app: App, server: ChatServer, key: str, browser: str, owner: str = "") -> ChatOptions:
    app.chats.connections.add(browser, owner, ChatOptions("test", server.base_url, key))
    found = app.chats.connections.get(browser, owner)
    assert found is not None
    return found


def start_run(app: App, chat: ChatOptions | None, owner: str = "", count: int = 6, **how: Any) -> str:
    """Start a run over `count` questions."""
    mine = app.evaluation.of(owner)
    set_id = mine.sets.create("main", f"set {time.monotonic()}")
    mine.sets.put(set_id, town_cases()[:count])
    return mine.evaluate(set_id, [Setting()], chat=chat, **how)


@pytest.mark.parametrize("left", ["pauses", "signs out", "goes to another service", "signs in as another"])
def test_nobody_resumes_a_run_with_the_key_of_who_left_it(app: App, left: str) -> None:
    gate = Gate()
    with ChatServer(gate, key="ann's") as hers, ChatServer(rules, key="bob's") as his:
        run_id = start_run(app, connect(app, hers, "ann's", "browser 1"))
        runs = app.evaluation.runs
        until(lambda: runs.run(run_id).done)
        if left == "pauses":
            runs.pause(run_id)
        elif left == "signs out":
            app.chats.connections.forget("browser 1")
        elif left == "goes to another service":
            connect(app, his, "bob's", "browser 1")
        else:
            assert app.chats.connections.get("browser 1", "bob") is None
        if left != "goes to another service":
            until(lambda: runs.run(run_id).state == "paused" and not app.count_running())
            runs.resume(run_id)
            until(lambda: runs.run(run_id).state == "paused")
            assert (notice := runs.run(run_id).notice) and notice.code == "evaluation_no_model"
            spent = len(hers.requests)  # a request sent before the pause may have arrived after it
            runs.resume(run_id, connect(app, his, "bob's", "browser 2"))
        else:
            spent = len(hers.requests) + 10  # of the question in progress
        until(lambda: runs.run(run_id).state == "done")
        assert len(hers.requests) <= spent
        assert his.requests and all(one.headers["authorization"] == "Bearer bob's" for one in his.requests)
        assert all(one.headers["authorization"] == "Bearer ann's" for one in hers.requests)
        assert runs.run(run_id).done == 6


def test_what_is_written_without_the_model_is_no_answer_of_it(app: App) -> None:
    """After a sign-out during an answer, its quotes are not scored as the model's."""
    gate = Gate()
    with ChatServer(gate, key="ann's") as server:
        run_id = start_run(app, connect(app, server, "ann's", "browser"))
        runs = app.evaluation.runs
        until(lambda: runs.run(run_id).done == 1)
        gate.shut = True
        before = gate.asked
        until(lambda: gate.asked > before)
        app.chats.connections.forget("browser")
        gate.shut = False
        until(lambda: runs.run(run_id).state == "paused")
        assert {row.answer.reasoner for row in runs.rows(run_id, "fast")} == {"test"}
        assert not [row for row in runs.rows(run_id, "fast") if row.answer.notice]


@pytest.mark.parametrize("end", ["pause", "cancel", "delete"])
def test_whoever_ends_a_run_has_its_model_forgotten(app: App, end: str) -> None:
    gate = Gate(shut=True)  # the run ends during a question, not between two
    with ChatServer(gate, key="ann's") as server:
        run_id = start_run(app, connect(app, server, "ann's", "browser"))
        until(lambda: gate.asked)
        assert app.evaluation.runs._chats
        getattr(app.evaluation.runs, end)(run_id)
        assert not app.evaluation.runs._chats
        gate.shut = False
        until(lambda: not app.count_running())
        spent = gate.asked
        time.sleep(0.3)
        assert gate.asked == spent


def test_of_a_connected_model_a_run_keeps_whose_it_is_and_no_key(app: App) -> None:
    gate = Gate(shut=True)
    with ChatServer(gate, key="a-typed-key") as server:
        start_run(app, connect(app, server, "a-typed-key", "browser"))
        until(lambda: gate.asked)
        assert "a-typed-key" not in repr(vars(app.evaluation.runs)["_chats"])
        assert b"a-typed-key" not in b"".join(path.read_bytes() for path in app.settings.rag_data_dir.glob("app.*"))
        gate.shut = False
        until(lambda: not app.count_running())


def test_a_person_has_so_many_answers_of_the_operators_model_a_day(settings: Settings) -> None:
    with (
        ChatServer(rules) as server,
        ChatServer(rules, key="own") as other,
        closing(with_model(settings, server, evaluation_answers_per_day=5)) as app,
    ):
        anns, bobs = app.evaluation.of("ann").runs, app.evaluation.of("bob").runs
        first = start_run(app, None, "ann", 4, person="ann")
        until(lambda: anns.run(first).state == "done")
        judged = start_run(app, None, "ann", 3, person="ann", judge=True)
        until(lambda: anns.run(judged).state == "paused")
        notice = anns.run(judged).notice
        assert notice and notice.code == "evaluation_share_spent" and anns.run(judged).done == 0
        assert "EVALUATION_ANSWERS_PER_DAY" in say(notice, "en") and "5" in say(notice, "zh")
        anns.delete(first)
        anns.resume(judged)
        until(lambda: anns.run(judged).state == "paused")
        assert anns.run(judged).done == 0, "what was asked is asked, though its run is gone"
        beside = partial(app.evaluation.of("ann").side_by_side, "main", town_cases()[0], person="ann")
        assert len(beside([Setting()])) == 1, "the fifth"
        with pytest.raises(RagError) as caught:
            beside([Setting()])
        assert caught.value.code == "evaluation_share_spent"
        theirs = start_run(app, None, "bob", 3, person="bob")
        until(lambda: bobs.run(theirs).state == "done")
        assert len(beside([Setting(model="none")])) == 1, "quotes cost nothing"
        spent = len(server.requests)
        anns.resume(judged, connect(app, other, "own", "browser", "ann"))
        until(lambda: anns.run(judged).state == "done")
        assert len(server.requests) == spent and other.requests, "their own model is theirs"


def test_drafts_that_the_operators_model_writes_count_too(settings: Settings) -> None:
    with (
        ChatServer(lambda _: "nothing that can be read") as server,
        closing(with_model(settings, server, evaluation_answers_per_day=1)) as app,
    ):
        mine = app.evaluation.of("ann")
        set_id = mine.sets.create("main", "drafts")
        with pytest.raises(RagError):
            list(mine.write_drafts(set_id, 5, person="ann"))
        with pytest.raises(RagError) as caught:
            list(mine.write_drafts(set_id, 5, person="ann"))
        assert caught.value.code == "evaluation_share_spent"


def test_a_question_of_a_run_is_one_of_the_persons_answers_under_way(settings: Settings) -> None:
    gate = Gate(shut=True)
    with ChatServer(gate) as server, closing(with_model(settings, server, answers_per_person=1)) as app:
        run_id = start_run(app, None, "ann", 2, person="ann")
        until(lambda: gate.asked)
        with pytest.raises(RagError) as caught:
            app.converse(Question("What was the toll?", ("main",)), owner="ann", person="ann")
        assert caught.value.code == "too_many_answers"
        app.converse(Question("What was the toll?", ("main",)), owner="bob", person="bob")
        gate.shut = False
        until(lambda: app.evaluation.of("ann").runs.run(run_id).state == "done")


def test_a_run_waits_while_the_person_has_too_many_answers(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.evaluation.runs._RETRY_SECONDS", 0.02)
    gate = Gate(shut=True)
    with ChatServer(gate) as server, closing(with_model(settings, server, answers_per_person=1)) as app:
        app.converse(Question("What was the toll?", ("main",)), owner="ann", person="ann")
        until(lambda: gate.asked)
        run_id, runs = start_run(app, None, "ann", 2, person="ann"), app.evaluation.of("ann").runs
        time.sleep(0.2)
        assert (runs.run(run_id).state, runs.run(run_id).done, gate.asked) == ("running", 0, 1)
        gate.shut = False
        until(lambda: runs.run(run_id).state == "done")
        assert runs.run(run_id).done == 2
