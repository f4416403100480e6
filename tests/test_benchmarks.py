"""The benchmarks run on a set made from the sample pages, and their scores can fail."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import bench, calibrate, datasets, gate, report, retrieval, samples, screens, startup
from benchmarks.datasets import Dataset
from benchmarks.figures import FIGURES
from benchmarks.measured_app import RecordingModel
from benchmarks.peers import PEERS, Peer, running
from benchmarks.run import Run, score_run
from rag.models.model_files import builtin_model
from tests.support.hashed_model import HashedModel

SCORE = datasets.DEFAULT_FOLDER.parent / "bench" / "score.py"
FIGURE_NAMES = ("recall@2000", "recall@4000", "recall@8000", "all@4000", "MRR", "hit@1")
QUOTE = "The bridge over the Ling was opened in 1911 after nine years of work."
OTHER = "Its toll was lifted when the second war had ended, and never came back."


def question(*quotes: str, name: str = "q", **more: Any) -> dict[str, Any]:
    evidence = [{"url": "https://a.example/", "quote": quote} for quote in quotes]
    return {"id": name, "question": "When?", "lang": "en", "answers": [], "evidence": evidence, **more}


@pytest.fixture
def out(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Redirect results and cached runs to a folder of the test."""
    monkeypatch.setattr(running, "CACHE", results_folder / "runs")
    return results_folder


class TestScores:
    @pytest.mark.parametrize(
        ("hits", "expected"),
        [
            ([QUOTE, "something else"], dict.fromkeys(FIGURE_NAMES, 1.0)),
            *((hits, dict.fromkeys(FIGURE_NAMES, 0.0)) for hits in ([], ["Nothing."], [QUOTE[:11]])),
            (["x" * 3000, QUOTE], {"recall@2000": 0.0, "recall@4000": 1.0, "recall@8000": 1.0}),
            (["no", "no", "no", QUOTE], {"MRR": 0.25, "hit@1": 0.0}),
            (["no"] * 10 + [QUOTE], {"MRR": 0.0}),
            ([QUOTE[:30], QUOTE[30:]], {"recall@4000": 1.0}),
        ],
    )
    def test_hits_are_scored_by_their_evidence(self, hits: list[str], expected: dict[str, float]) -> None:
        row = datasets.score([question(QUOTE)], {"q": hits})
        assert {name: row[name] for name in expected} == expected

    def test_a_question_that_was_not_asked_counts_as_not_found(self) -> None:
        row = datasets.score([question(QUOTE), question(QUOTE, name="r")], {"q": [QUOTE]})
        assert row["recall@4000"] == row["MRR"] == 0.5

    def test_half_of_the_evidence(self) -> None:
        row = datasets.score([question(QUOTE, OTHER)], {"q": [QUOTE]})
        assert 0.3 < row["recall@4000"] < 0.7
        assert (row["all@4000"], row["MRR"]) == (0.0, 1.0)

    @pytest.mark.skipif(not SCORE.is_file(), reason="the judging script is not beside the project")
    @pytest.mark.parametrize("name", ["xquad-en", "xquad-zh", "chroma"])
    def test_they_are_those_of_the_judging_script(self, name: str) -> None:
        judge = runpy.run_path(str(SCORE))["score"]
        data = datasets.load(datasets.DEFAULT_FOLDER / name, limit=40)
        hits = {row["id"]: _some_hits(data, i) for i, row in enumerate(data.questions)}
        run = [{"id": key, "hits": [{"url": "", "text": text} for text in texts]} for key, texts in hits.items()]
        theirs, ours = judge(data.questions, run), datasets.score(data.questions, hits)
        assert 0.05 < ours["recall@4000"] < 0.95, "the sample tells right from wrong"
        assert ours == pytest.approx({key: theirs[key] for key in ours})


def _some_hits(data: Dataset, place: int) -> list[str]:
    """Return slices of pages, with the evidence, whole or truncated, at a varying rank."""
    row = data.questions[place]
    pages = [page["text"] for page in data.pages]
    hits = [pages[(place + i) % len(pages)][i * 900 : (i + 1) * 900] for i in range(12)]
    quote = row["evidence"][0]["quote"]
    if place % 3:
        hits.insert(place % 13, quote if place % 2 else quote[: len(quote) // 2])
    return hits


class TestSeparation:
    @pytest.mark.parametrize(
        ("answerable", "unanswerable", "auroc", "refused"),
        [([0.8, 0.9], [0.1, 0.2], 1.0, 1.0), ([0.1, 0.2], [0.8, 0.9], 0.0, 0.0), ([0.5], [0.5], 0.5, 0.0)],
    )
    def test_it(self, answerable: list[float], unanswerable: list[float], auroc: float, refused: float) -> None:
        assert datasets.separation(answerable, unanswerable) == {"AUROC": auroc, "refused@5%": refused}

    def test_at_most_one_answerable_question_in_twenty_is_refused(self) -> None:
        answerable = [i / 100 for i in range(100)]
        assert datasets.separation(answerable, [0.04, 0.049, 0.05, 0.06])["refused@5%"] == 0.5
        assert datasets.separation(answerable, []) == {}, "one kind alone cannot be told from another"


class TestSamples:
    def test_evidence_stands_in_the_pages(self) -> None:
        data = samples.samples()
        texts = {page["url"]: page["text"] for page in data.pages}
        for row in data.questions:
            assert bool(row["evidence"]) == bool(row["answers"]), row["id"]
            for one in row["evidence"]:
                assert one["quote"] in texts[one["url"]]
                assert any(answer in one["quote"] for answer in row["answers"])

    def test_odd_line_ends_survive(self, tmp_path: Path) -> None:
        page = {"url": "https://a.example/", "title": "Lines", "lang": "en", "text": "one\u2028two\x85three"}
        datasets.write(Dataset("odd", [page], [question(QUOTE)]), tmp_path / "odd")
        found = datasets.load(tmp_path / "odd")
        assert (found.name, found.pages, found.questions) == ("odd", [page], [question(QUOTE)])

    def test_they_stand_in_for_sets_but_not_for_a_named_one(self, out: Path) -> None:
        assert [folder.name for folder in samples.find_sets(out / "none", [])] == ["examples"]
        assert samples.find_sets(out / "none", ["xquad-en"]) == []


class TestVariants:
    def data(self) -> Dataset:
        pages = [{"url": f"https://a.example/{i}", "text": f"Page {i} a.\n\nPage {i} b."} for i in range(4)]
        questions = [
            {**question(), "id": f"{i}{part}", "evidence": [{"url": page["url"], "quote": f"Page {i} {part}."}]}
            for i, page in enumerate(pages)
            for part in "ab"
        ]
        both = [evidence for i in (0, 6) for evidence in questions[i]["evidence"]]
        return Dataset("set", pages, [*questions, {**question(), "id": "both", "evidence": both}])

    def answerable(self, data: Dataset) -> list[str]:
        assert all(bool(row["evidence"]) == row["answerable"] for row in data.questions)
        return [row["id"] for row in data.questions if row["answerable"]]

    def test_every_second_page_is_left_out(self) -> None:
        found = datasets.variant(self.data(), "unanswerable")
        assert [page["url"][-1] for page in found.pages] == ["0", "2"]
        assert self.answerable(found) == ["0a", "0b", "2a", "2b"]
        assert [row["id"] for row in found.questions if not row["answerable"]] == ["1a", "1b", "3a", "3b"]

    def test_every_second_paragraph_is_left_out(self) -> None:
        found = datasets.variant(self.data(), "unanswerable-paragraphs")
        assert len(found.pages) == 4
        assert self.answerable(found) == ["0a", "1a", "2a", "3a", "both"]
        data = self.data()
        lines = [{**page, "text": page["text"].replace("\n\n", "\n")} for page in data.pages]
        assert datasets.variant(Dataset("set", lines, data.questions), "unanswerable-paragraphs").pages == found.pages

    def test_what_is_asked_of_two_pages_is_asked_of_each(self) -> None:
        pages = [{"url": f"https://a.example/{name}", "title": name, "text": f"{name} a.\n{name} b."} for name in "XY"]
        evidence = [
            {"url": page["url"], "quote": f"{page['title']} {part}."} for page, part in zip(pages, "ab", strict=True)
        ]
        rows = [{**question(), "id": "1", "question": "Who ran X and Y?", "evidence": evidence},
                {**question(), "id": "2", "question": "Who ran X?", "evidence": evidence[:1]}]  # fmt: skip
        found = datasets.variant(Dataset("set", pages, rows), "unanswerable-named")
        asked = [(row["question"], row["answerable"]) for row in found.questions]
        assert asked == [("Who ran X?", True), ("Who ran X and ?", True), ("Who ran  and Y?", False)]

    def test_only_the_weights_that_are_asked_for_are_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chance = np.random.default_rng(0)
        answerable = np.arange(40) % 2.0
        told = calibrate.Sample("set", answerable[:, None] + chance.normal(size=(40, 3)), answerable, dense=True)
        target, model = tmp_path / "calibration.json", builtin_model()
        target.write_text(json.dumps({"keyword": {"bias": 1.0}, model: {"bias": 2.0}}), encoding="utf-8")
        datasets.write(self.data(), tmp_path / "set")
        monkeypatch.setattr(calibrate, "_samples", lambda _data: [told])
        monkeypatch.setattr(calibrate, "TARGET", target)
        for options in ([], ["--write"]):
            monkeypatch.setattr(sys, "argv", ["x", "set", "--data", str(tmp_path), "--fit", model, *options])
            assert calibrate.main() == 0
            written = json.loads(target.read_text(encoding="utf-8"))
            assert written["keyword"] == {"bias": 1.0} and (len(written[model]) == 4) == bool(options)

    def test_questions_in_the_other_language(self, tmp_path: Path) -> None:
        for name, words in (("set-en", "When was the bridge opened?"), ("set-zh", "这座桥是什么时候开放的？")):
            rows = [{**question(QUOTE), "question": words, "lang": name[-2:]}]
            datasets.write(Dataset(name, [{"url": f"https://{name}.example/", "text": QUOTE}], rows), tmp_path / name)
        found = datasets.variant(datasets.load(tmp_path / "set-zh"), "cross-language")
        assert found.pages[0]["url"] == "https://set-zh.example/"
        assert (found.questions[0]["question"], found.questions[0]["lang"]) == ("When was the bridge opened?", "en")

    def test_without_a_sister_set_there_are_none(self, tmp_path: Path) -> None:
        datasets.write(self.data(), tmp_path / "lone-en")
        with pytest.raises(ValueError, match="no sister"):
            datasets.variant(datasets.load(tmp_path / "lone-en"), "cross-language")


class TestRetrieval:
    def test_the_sample_pages_through_two_strategies(self, out: Path) -> None:
        options = ["--data", str(out / "none"), "--strategies", "keyword,mmr", "--limit", "8"]
        assert retrieval.main(options) == 0
        rows = json.loads((out / "retrieval.json").read_text("utf-8"))["rows"]
        assert [row["system"] for row in rows] == ["semantic, keyword", "semantic, mmr"]
        for row in rows:
            assert 0.5 < row["recall@8000"] <= 1.0
            assert row["recall@2000"] <= row["recall@4000"] <= row["recall@8000"]
            assert row["chunks"] > 12
            assert 0.1 < row["encoded"] < 1.5
        assert "| semantic, mmr |" in (out / "retrieval.md").read_text("utf-8")

    def test_sets_that_are_not_there(self, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert retrieval.main(["xquad-en", "--data", str(out / "none")]) == 2
        assert "--data" in capsys.readouterr().err

    def test_an_unknown_name_says_which_there_are(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            retrieval.main(["--strategies", "astrology"])
        assert "astrology is not one of dense," in capsys.readouterr().err

    def test_a_page_without_a_place_for_results(self, tmp_path: Path) -> None:
        page = tmp_path / "page.md"
        page.write_text("Nothing to see", "utf-8")
        with pytest.raises(ValueError, match="no place"):
            report.publish(page, "make bench", {}, "table")
        for name in gate.MECHANISMS:
            report.publish(gate.PAGE, gate.COMMAND.format(name))
        report.publish(bench.PAGE, bench.COMMAND)

    def test_a_scale_of_its_own_is_judged_where_questions_are_marked(self) -> None:
        rows = [question(QUOTE, name="a", answerable=True), question(name="b", answerable=False)]
        data = Dataset("set", [{"url": "https://a.example/", "text": QUOTE}], rows)
        run = Run({"a": [QUOTE], "b": []}, 1.0, 1, 0.1, answerable={"a": 0.9, "b": 0.2})
        assert score_run(data, "ours", run)["AUROC"] == 1.0
        assert "AUROC" not in score_run(data, "peer", Run({}, 1.0, 1, 0.1))

    def test_each_strategy_pays_for_its_queries_once(self) -> None:
        model = RecordingModel(HashedModel())
        first = model.encode_query("river")
        assert model.saved_seconds == 0.0
        model.begin()
        assert np.array_equal(model.encode_query("river"), first)
        saved_seconds = model.saved_seconds
        assert saved_seconds > 0.0
        model.encode_query("river")
        assert model.saved_seconds == saved_seconds


class TestPeers:
    PEER = Peer("whole-page", "tests.support.whole_page_peer", "finds every page", own_packages=False)

    def data(self) -> Dataset:
        return Dataset("set", [{"url": "https://a.example/", "title": "", "text": QUOTE}], [question(QUOTE)])

    def test_one_is_run_by_itself_and_scored(self, out: Path) -> None:
        row = score_run(self.data(), "peer", running.run_peer(self.PEER, self.data(), k=5))
        assert (row["recall@4000"], row["chunks"], row["encoded"]) == (1.0, 1, None)

    def test_a_cached_run_is_reused_only_for_the_same_set(self, out: Path) -> None:
        kept = running.run_peer(self.PEER, self.data(), k=5)
        gone = Peer("whole-page", "tests.support.no_such_peer", "", own_packages=False)
        assert running.run_peer(gone, self.data(), k=5, reuse=True) == kept
        with pytest.raises(RuntimeError, match="no_such_peer"):
            running.run_peer(gone, self.data(), k=6, reuse=True)

    def test_a_peer_that_fails_costs_its_row_and_no_more(
        self, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gone = Peer("gone", "tests.support.no_such_peer", "", own_packages=False)
        monkeypatch.setitem(PEERS, "gone", gone)
        options = ["--data", str(out / "none"), "--strategies", "keyword", "--peers", "gone", "--limit", "2"]
        assert retrieval.main(options) == 0
        assert "skipped: gone" in capsys.readouterr().err

    def test_each_has_its_module(self) -> None:
        assert all(importlib.util.find_spec(peer.module) for peer in PEERS.values())


class TestBench:
    ENCODING: Mapping[str, Any] = {
        "chunks": 120,
        "precision": "bfloat16",
        "cosine": 0.99998,
        "rows": [{"what": "query", "ours": 0.1, "stock": 0.5, "ratios": {"stock": 5.0}, "spread": {"stock": [4, 6]}}],
    }
    IMPORTING: Mapping[str, Any] = {
        f"{side}_{part}_s": seconds for side, seconds in (("ours", 2.0), ("tutorial", 80.0)) for part in bench.IMPORTED
    } | {"ratio_stored": 40.0, "ratio_command": 40.0, "ratio_encoding": 1.4}
    MEMORY: Mapping[str, Any] = {"pages": 10_000, "grown_mb": 27.1}

    @pytest.fixture
    def page(self, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        reports = {"encoding": self.ENCODING, "importing": self.IMPORTING, "memory": self.MEMORY}

        def measure(name: str, *options: str) -> Mapping[str, Any]:
            if name not in reports:
                raise subprocess.CalledProcessError(1, name)
            return reports[name]

        monkeypatch.setattr(bench, "_measure", measure)
        page = out / "performance.md"
        page.write_text(f"{report.BEGIN.format(bench.COMMAND)}\n{report.END}\n", "utf-8")
        monkeypatch.setattr(bench, "PAGE", page)
        return page

    def test_each_figure_names_its_peer(self, page: Path, out: Path) -> None:
        datasets.write(samples.samples(), out / "data" / "some")
        assert bench.main(["some", "--data", str(out / "data")]) == 0
        text = page.read_text("utf-8")
        assert "| encoding 20 questions, one by one | FlagEmbedding's `encode` | 0.5 | 0.1 | **5.0** |" in text
        assert f"| {bench.TUTORIAL} | 80.0 | 2.0 | **40.0** |" in text
        # Bounds are kept, missed, or not measured.
        assert "from page 1,000 to page 10,000 of an import | **27.1 MB** | 100 MB |" in text
        assert "only encoding its chunks | 1.4 times (missed) | 1.25 times |" in text
        assert "| benchmarks.startup could not run here | – |" in text

    def test_without_a_browser_driver_it_says_at_once_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "playwright", None)
        monkeypatch.setattr(bench, "_measure", lambda *_: pytest.fail("nothing is measured before it is told"))
        assert bench.main(["some"]) == startup.main([]) == screens.main([]) == 2
        assert capsys.readouterr().err.count("make install-dev") == 3

    def test_each_figure_has_its_benchmark(self) -> None:
        assert all(importlib.util.find_spec(f"benchmarks.{one.name}") for one in FIGURES)

    def test_a_partial_run_is_not_published(self, page: Path, out: Path) -> None:
        datasets.write(samples.samples(), out / "data" / "some")
        before = page.read_text("utf-8")
        assert bench.main(["some", "--data", str(out / "data"), "--only", "memory"]) == 0
        assert page.read_text("utf-8") == before
        assert "27.1 MB" in (out / "bench.md").read_text("utf-8")

    def test_the_sample_pages_are_not_published(self, page: Path, out: Path) -> None:
        before = page.read_text("utf-8")
        assert bench.main(["some", "--data", str(out / "none")]) == 0
        assert page.read_text("utf-8") == before
        assert (out / "bench.json").is_file()
