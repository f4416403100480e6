"""Evaluation over the whole app, by its service and by the command line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rag.app import App, Question
from rag.cli import main
from rag.config import Settings
from rag.errors import RagError
from rag.evaluation.cases import CLASSIC, NO_MODEL, Case, Setting, row_of
from rag.evaluation.evaluation import Evaluation, Side
from rag.evaluation.metrics import JUDGE_METRICS
from tests.evaluation.conftest import TOWNS, toll, town_cases, with_model
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer, Request
from tests.support.waiting import until


def run_of(app: App, cases: list[Case], *settings: Setting, **how: Any) -> str:
    run_id = app.evaluation.runs.create("main", cases, settings, **how)
    app.evaluation.runs.work(run_id)
    assert app.evaluation.runs.run(run_id).state == "done"
    return run_id


def figures_of(app: App, run_id: str, setting: str = "") -> dict[str, float]:
    return {one.metric.name: one.value.value for one in app.evaluation.figures(Side(run_id, setting))}


FEW = Setting(k=3, fetch_k=3)


@pytest.fixture(scope="module")
def run_id(settings: Settings) -> str:
    """Run every question with the defaults, and with three candidates."""
    with closing(App(settings)) as opened:
        return run_of(opened, town_cases(), Setting(), FEW)


def test_a_search_of_three_candidates_is_caught(app: App, run_id: str) -> None:
    """This is the regression that a gate is for."""
    sides = [Side(run_id), Side(run_id, FEW.name)]
    for found in app.evaluation.compare(sides, names=["recall@4000", "all@4000", "recall@5"]):
        named = {one.metric.name: one.difference for one in found}
        assert {difference.verdict for difference in named.values()} == {"worse"}
        assert (named["recall@5"].before, named["recall@5"].after) == (1.0, 0.75)
    assert app.evaluation.rank_by_difference(sides[:2], "recall@4000")[0].delta < 0
    assert app.evaluation.compare(sides[:2], []) == [[]]


def test_the_main_figures_of_a_run_are_the_means_of_its_questions(app: App, run_id: str) -> None:
    main = app.evaluation.main_figures(run_id)
    assert list(main) == ["fast", FEW.name]
    for setting, means in main.items():
        exact = figures_of(app, run_id, setting)
        seconds = [row.answer.seconds for row in app.evaluation.runs.rows(run_id, setting)]
        assert means.pop("seconds") == pytest.approx(sum(seconds) / len(seconds), abs=0.01)
        assert set(means) >= {"recall@4000", "refusal_right", "failed"}
        assert means == {name: pytest.approx(exact[name]) for name in means}


def test_what_is_measured_is_what_people_get(app: App) -> None:
    case = town_cases()[0]
    run_id = run_of(app, [case], Setting("deep"))
    row = app.evaluation.runs.row(run_id, "deep", case.id)
    assert row is not None
    answer = app.wait(app.ask(Question(case.question, ("main",), "deep")), 60)
    assert (row.answer.text, row.answer.citations, row.answer.mode) == (answer.text, answer.citations, "deep")
    assert [one.text for one in row.answer.passages] == [one.text for one in answer.passages]
    assert [step.node for step in row.answer.steps] == [step.node for step in answer.steps]
    assert row.scores["coverage"] is not None
    assert app.conversations.conversations("main") == [], "no conversation is made of it"


def test_refusals(app: App, run_id: str) -> None:
    figures = figures_of(app, run_id)
    assert figures["refusal_recall"] == 1.0
    assert figures["answerable_auroc"] > 0.9
    bins = app.evaluation.calibration(Side(run_id))
    assert sum(one.n for one in bins) == 14
    assert bins[0].answerable == 0.0


def test_a_page_is_left_aside(app: App) -> None:
    case = Case("q", "What was the harbour toll of Lorn?", without=("https://lorn.example/harbour",))
    run_id = run_of(app, [case, Case("p", case.question)], Setting())
    found = {row.case_id: {one.url for one in row.answer.passages} for row in app.evaluation.runs.rows(run_id, "fast")}
    assert "https://lorn.example/harbour" in found["p"] - found["q"]


def chunks_of(app: App) -> set[str]:
    library = app.libraries.load("main")
    return {one.text for page in library.pages() for one in library.chunks(page.url_hash)}


def test_side_by_side(app: App) -> None:
    rows = app.evaluation.side_by_side("main", town_cases()[0], [Setting(), CLASSIC])
    assert [row.setting for row in rows] == ["fast", "classic"]
    whole = {one.text for row in rows[1:] for one in row.answer.passages}
    assert len(whole) == 10 and whole <= chunks_of(app)
    assert rows[1].scores["faithfulness"] is not None


def test_a_stored_set_is_run_and_its_evidence_looked_for(app: App) -> None:
    sets = app.evaluation.sets
    text = "".join(json.dumps(row_of(case)) + "\n" for case in town_cases()[:2])
    lost = {
        "id": "x",
        "question": "What of Lorn?",
        "evidence": [{"url": "https://lorn.example/harbour", "quote": "Gone."}],
    }
    set_id = sets.import_file("main", "tolls", f"{text}{json.dumps(lost)}\n")
    run_id = app.evaluation.evaluate(set_id, [Setting()])
    until(lambda: app.evaluation.runs.run(run_id).state != "running")
    found = app.evaluation.runs.run(run_id)
    assert (found.name, found.set_id, found.done, found.total) == ("tolls", set_id, 2, 2)
    assert found.set_version == sets.version(set_id)
    assert (sets.get_set(set_id).lost, sets.get_set(set_id).drafts) == (1, 1)
    rows = [json.loads(line) for line in app.evaluation.export(run_id, "fast").splitlines()]
    assert all(row["response"] and row["retrieved_contexts"] for row in rows)
    sets.delete(set_id)
    assert app.evaluation.runs.cases(run_id) == town_cases()[:2]


def test_what_people_thought_becomes_cases(app: App) -> None:
    turns = []
    for text in ("What was the harbour toll of Glen?", "What was the harbour toll of Kell?"):
        begun = app.converse(Question(text, ("main",)))
        app.wait(begun.run_id, 60)
        turns.append(begun.turn_id)
    app.feedback.rate(turns[0], 1)
    app.feedback.rate(turns[1], -1, reason="wrong")
    set_id = app.evaluation.sets.create("main", "feedback")
    assert (app.evaluation.gather_feedback("main", set_id), app.evaluation.gather_feedback("main", set_id)) == (2, 0)
    good, bad = app.evaluation.sets.cases(set_id)
    assert (good.status, good.tags, bad.status, bad.tags) == (
        "approved",
        ("feedback", "good"),
        "draft",
        ("feedback", "bad", "wrong"),
    )
    assert any("106 shillings" in quote for quote in good.quotes)


def test_answers_are_scored_after_they_were_shown(settings: Settings) -> None:
    with closing(App(settings.model_copy(update={"evaluate_answers": "all"}))) as app:
        before = len(app.evaluation.scores_over_time("main"))
        begun = app.converse(Question("What was the harbour toll of Glen?", ("main",)))
        app.wait(begun.run_id, 60)
        found = until(lambda: app.conversations.turn(begun.turn_id).scores)
        assert found["faithfulness"] == found["citation_recall"] == 1.0
        assert set(found) >= {"coverage", "max_similarity", "derived_relevance", "searches"}
        assert not {"recall@4000", "exact_match", "refusal_right"} & set(found)
        assert [scores for _, scores in app.evaluation.scores_over_time("main")][before:] == [found]


def label_all(app: App, count: int) -> None:
    """Add `count` labels on which users and a model agree; half of the statements are supported."""
    for at in range(count):
        said = "supported" if at % 2 else "unsupported"
        row = {"id": f"l{at}", "question": "", "statement": "", "passages": [], "judged": said, "by": "model"}
        app.evaluation._labels.add("main", "", [(row["id"], said, row)])
        app.evaluation.label(f"l{at}", said)


def test_a_chat_model_and_none_side_by_side(settings: Settings) -> None:
    with ChatServer(rules) as server, closing(with_model(settings, server)) as app:
        run_id = run_of(app, town_cases()[:2], Setting(), Setting(model=NO_MODEL), CLASSIC, judge=True)
        figures = {name: figures_of(app, run_id, name) for name in ("fast", "fast/none", "classic")}
        assert figures["fast"]["calls"] == figures["classic"]["calls"] == 1.0 > figures["fast/none"]["calls"]
        assert not JUDGE_METRICS & set(figures["fast"]), "nobody has labelled anything yet"
        assert any(values["faithfulness"] is not None for values in app.evaluation.runs.scores(run_id).values())
        label_all(app, 100)
        assert "faithfulness" in figures_of(app, run_id)
        sides = [Side(run_id), Side(run_id, "classic")]
        assert "faithfulness" in {one.metric.name for one in app.evaluation.compare(sides)[0]}
        assert figures["classic"]["tokens"] > 0
        assert app.evaluation.runs.run(run_id).judge


class TestCommand:
    def run(self, settings: Settings, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["--data-dir", str(settings.rag_data_dir), "evaluate", *arguments])
        return status, capsys.readouterr().out

    @pytest.fixture
    def given(self, settings: Settings) -> str:
        return str(settings.rag_data_dir.parent / "set.jsonl")

    def test_a_table(self, settings: Settings, given: str, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = self.run(settings, capsys, given, "--limit", "3", "--classic")
        assert status == 0
        assert "recall@4000" in out
        assert "3 of 3" in out
        assert "classic vs. fast" in out

    def test_scores_of_an_unproven_judge_are_hidden(
        self, settings: Settings, given: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Evaluation, "withheld_metrics", lambda self, sides: frozenset(["calls"]))
        _, out = self.run(settings, capsys, given, "--limit", "1")
        assert "Scores by the chat model are hidden: labels don't yet show" in out

    def test_a_gate(
        self, settings: Settings, given: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
    ) -> None:
        few = (given, "--limit", "4")
        status, out = self.run(settings, capsys, *few, "--json")
        rows = [json.loads(line) for line in out.splitlines()]
        assert (status, len(rows)) == (0, 5)
        assert set(rows[0]) >= {"run", "setting", "id", "question", "outcome", "answer", "passages", "scores"}
        (tmp_path / "before.jsonl").write_text(out)
        limits = "recall@4000:-0.01,calls:+0"
        for baseline in ("last", str(tmp_path / "before.jsonl")):
            status, out = self.run(settings, capsys, *few, "--baseline", baseline, "--gate", limits)
            assert (status, out.count("ok  ")) == (0, 2)
        monkeypatch.setenv("CONTEXT_CHARACTERS", "500")
        junit = tmp_path / "gate.xml"
        how = ("--baseline", rows[0]["run"], "--gate", limits, "--junit", str(junit))
        status, out = self.run(settings, capsys, *few, *how)
        assert (status, out.count("FAIL"), out.count("ok  ")) == (1, 1, 1)
        suite = ElementTree.parse(junit).getroot()
        assert (suite.get("tests"), suite.get("failures")) == ("2", "1")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["nowhere.jsonl"],
            ["SET", "--gate", "recall@4000:0"],
            ["SET", "--baseline", "nowhere"],
            ["SET", "--baseline", "last", "--gate", "clever:0"],
            ["--resume", "ffffffff"],
        ],
    )
    def test_misuse(
        self, settings: Settings, given: str, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert self.run(settings, capsys, *[given if one == "SET" else one for one in arguments])[0] == 2

    def test_a_run_goes_on(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        app = App(settings)
        run_id = app.evaluation.runs.create("main", town_cases()[:2], [Setting()])
        app.evaluation.runs.pause(run_id)
        app.close()
        status, out = self.run(settings, capsys, "--resume", run_id[:6])
        assert status == 0
        assert "2 of 2 answers" in out


def test_a_set_is_made_of_the_pages_and_written_by_a_model(settings: Settings) -> None:
    def script(request: Request) -> str:
        said = "He who kept boats there had to give how much?"
        span = next(toll(town) for town in TOWNS if toll(town) in request.last)
        return json.dumps({"question": said if "Arl" not in span else span, "answer": "some", "span": span})

    with ChatServer(script) as server, closing(with_model(settings, server)) as app:
        sets, set_id = app.evaluation.sets, app.evaluation.sets.create("main", "made")
        assert app.evaluation.add_page_drafts(set_id, 6) == 6
        assert app.evaluation.add_page_drafts(set_id, 6) == 6, "others than before"
        written = list(app.evaluation.write_drafts(set_id, 3))
        assert len(written) == 3
        assert all(toll("Arl") not in case.quotes for case in written)
        assert {case.status for case in sets.cases(set_id)} == {"draft"}
        assert sets.get_set(set_id).cases == 15


def test_without_a_model_none_writes(app: App) -> None:
    set_id = app.evaluation.sets.create("main", "unwritten")
    with pytest.raises(RagError):
        next(app.evaluation.write_drafts(set_id, 3))


def test_people_label_what_was_judged(app: App) -> None:
    run_id = run_of(app, town_cases()[:3], Setting())
    waiting = app.evaluation.queue_labels(Side(run_id), 4)
    assert 0 < waiting <= 4
    assert "rules" not in app.evaluation.agreement("main")
    first, *_ = app.evaluation.labels("main")
    assert first.passages
    app.evaluation.label(first.id, "supported")
    assert len(app.evaluation.labels("main")) == waiting - 1
    found = app.evaluation.agreement("main")["rules"]
    assert (found.n, found.is_sufficient) == (1, False)
    assert app.evaluation.queue_labels(Side(run_id), 4) == waiting - 1, "nothing is asked twice"
