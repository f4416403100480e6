"""Runs resume where they stopped, in any process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.errors import ModelError, RagError
from rag.evaluation.cases import CLASSIC, Setting, grid
from rag.evaluation.runs import EvaluationRuns, RunView
from rag.locales import say
from rag.runs.run import Question
from rag.store.sql.database import Database
from rag.types import Answer, Notice
from tests.support.evaluating import SETTINGS, RuleBasedApp, make_cases
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def in_file(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "app.sqlite3")
    yield opened
    opened.close()


@pytest.fixture
def asker() -> RuleBasedApp:
    return RuleBasedApp()


@pytest.fixture
def runs(database: Database, asker: RuleBasedApp) -> Iterator[EvaluationRuns]:
    opened = EvaluationRuns(database, asker)
    yield opened
    opened.close()


def ended(runs: EvaluationRuns, run_id: str, *states: str) -> RunView:
    until(lambda: runs.run(run_id).state in (states or ("done",)))
    return runs.run(run_id)


def test_every_question_is_asked_once_under_each_setting(runs: EvaluationRuns, asker: RuleBasedApp) -> None:
    run_id = runs.create("main", make_cases(5), SETTINGS, name="five", set_id="s")
    runs.begin()
    found = ended(runs, run_id)
    assert (found.done, found.total, found.name, found.settings) == (10, 10, "five", tuple(SETTINGS))
    assert sorted(asker.asked) == sorted((s.mode, case.question) for s in SETTINGS for case in make_cases(5))
    assert [mode for mode, _ in asker.asked[::2]] == ["fast", "deep", "fast", "deep", "fast"], "each is first in turn"
    assert runs.cases(run_id) == make_cases(5)
    assert set(runs.scores(run_id)) == set(runs.scores(run_id, "deep")) == {"0", "1", "2", "3", "4"}
    row = runs.row(run_id, "deep", "3")
    assert row is not None
    assert (row.answer.text, row.answer.mode, row.scores["contains"]) == ("Question 3?!", "deep", 1.0)
    assert row.first_token is not None
    assert runs.row(run_id, "deep", "9") is None


def test_a_run_pauses_and_resumes(runs: EvaluationRuns, asker: RuleBasedApp) -> None:
    run_id = runs.create("main", make_cases(40), SETTINGS)
    asker.before = lambda: runs.pause(run_id) if len(asker.asked) == 7 else None
    runs.work(run_id)
    assert (runs.run(run_id).state, runs.run(run_id).done) == ("paused", 8), "the question in hand is finished"
    runs.resume(run_id)
    assert ended(runs, run_id).done == 80
    assert len(asker.asked) == len(set(asker.asked)) == 80


def test_what_fails_waits_with_its_reason(runs: EvaluationRuns, asker: RuleBasedApp) -> None:
    def fail() -> None:
        if len(asker.asked) == 3:
            raise ModelError("model_failed")

    asker.before = fail
    run_id = runs.create("main", make_cases(4), SETTINGS)
    runs.work(run_id)
    found = runs.run(run_id)
    assert (found.state, found.done) == ("paused", 3)
    assert found.notice is not None
    assert say(found.notice, "en") != say(found.notice, "zh")
    asker.before = lambda: None
    runs.resume(run_id, begin=False)
    runs.work(run_id)
    assert (runs.run(run_id).state, runs.run(run_id).notice, len(asker.asked)) == ("done", None, 8)


def test_a_question_whose_database_is_away_is_asked_again(
    runs: EvaluationRuns, asker: RuleBasedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(asked: Question) -> Answer:
        away = Notice("store_away", {"since": "12:03"}) if 2 <= len(asker.asked) <= 4 else None
        return Answer(asked.text, asked.mode, "failed" if away else "answered", "", notice=away)

    monkeypatch.setattr("rag.evaluation.runs._HEARTBEAT_SECONDS", 0.01)
    asker.answer_for = says
    run_id = runs.create("main", make_cases(2), SETTINGS)
    runs.work(run_id)
    assert (runs.run(run_id).state, runs.run(run_id).done, len(asker.asked)) == ("done", 4, 7)
    rows = [runs.row(run_id, setting.name, case.id) for setting in SETTINGS for case in make_cases(2)]
    assert [row.answer.outcome for row in rows if row] == ["answered"] * 4


def test_a_surprise_stops_one_run_and_no_other(runs: EvaluationRuns, asker: RuleBasedApp) -> None:
    def surprise() -> None:
        if not asker.asked:
            asker.asked.append(("", ""))
            raise ZeroDivisionError

    asker.before = surprise
    broken, other = (runs.create("main", make_cases(2), SETTINGS) for _ in range(2))
    runs.begin()
    assert ended(runs, other).done == 4
    assert ended(runs, broken, "paused").notice is not None


def test_a_model_of_a_browser_is_not_kept(tmp_path: Path, in_file: Database, asker: RuleBasedApp) -> None:
    run_id = EvaluationRuns(in_file, asker).create("main", make_cases(2), SETTINGS, chat="a key")
    assert b"a key" not in b"".join(path.read_bytes() for path in tmp_path.glob("app.sqlite3*"))
    later = EvaluationRuns(in_file, asker)
    later.work(run_id)
    assert (later.run(run_id).state, asker.asked) == ("paused", [])
    later.resume(run_id, "a key", begin=False)
    later.work(run_id)
    assert later.run(run_id).state == "done"


def test_two_processes_do_not_share_a_run(database: Database, runs: EvaluationRuns, asker: RuleBasedApp) -> None:
    run_id = runs.create("main", make_cases(3), SETTINGS)
    assert database.evaluations.claim(run_id, "elsewhere:1:x", "")
    runs.work(run_id)
    assert asker.asked == []
    with database.transaction() as db:
        db.execute("UPDATE evaluation_runs SET seen_at = seen_at - 60")
    runs.work(run_id)
    assert len(asker.asked) == 6, "it has told nothing of itself for a minute"


def test_a_cancelled_or_deleted_run_is_left(runs: EvaluationRuns, asker: RuleBasedApp) -> None:
    run_id = runs.create("main", make_cases(3), SETTINGS)
    asker.before = lambda: runs.cancel(run_id) if len(asker.asked) == 1 else None
    runs.work(run_id)
    assert (runs.run(run_id).state, runs.run(run_id).done) == ("cancelled", 2)
    runs.delete(run_id)
    with pytest.raises(RagError):
        runs.run(run_id)
    with pytest.raises(RagError):
        runs.create("main", [], SETTINGS)


def test_a_run_that_is_killed_loses_and_repeats_nothing(tmp_path: Path, in_file: Database) -> None:
    database = in_file
    command = [sys.executable, "-m", "tests.support.evaluating", str(tmp_path), "60"]
    for least in (10, 40):
        process = subprocess.Popen(command, cwd=ROOT)
        until(lambda least=least: any(run.done >= least for run in database.evaluations.runs("main")))
        process.kill()
        process.wait()
    before = database.evaluations.runs("main")[0]
    kept = {(row.setting, row.case_id): row for s in SETTINGS for row in database.evaluations.rows(before.id, s.name)}
    assert (before.state, len(kept)) == ("running", before.done)
    assert 40 <= before.done < 120
    asker = RuleBasedApp()
    later = EvaluationRuns(database, asker)
    later.work(before.id)
    assert (later.run(before.id).state, later.run(before.id).done) == ("done", 120)
    assert len(asker.asked) == 120 - before.done, "what had its row is not asked again"
    after = {(row.setting, row.case_id): row for s in SETTINGS for row in database.evaluations.rows(before.id, s.name)}
    assert {key: after[key] for key in kept} == kept
    started = len((tmp_path / "asked").read_text().split())
    assert before.done <= started <= before.done + 2, "a kill costs the question in hand"


def test_the_grid() -> None:
    found = grid(["fast", "deep"], ["mmr", "dense"], classic=True)
    assert [one.name for one in found] == ["fast/mmr", "fast/dense", "deep/mmr", "deep/dense", "classic"]
    assert [one.name for one in grid()] == ["fast"]
    assert Setting("deep", "mmr", "notes", "none", 3, 9).name == "deep/mmr/notes/none/k=3/fetch_k=9"
    case = make_cases(1)[0]
    question = CLASSIC.question(case, "main")
    assert (question.mode, question.options.strategy, question.options.k, question.library) == (
        "fast",
        "classic",
        10,
        "main",
    )
