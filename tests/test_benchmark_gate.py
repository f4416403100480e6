"""The benchmark of mechanisms: figures with intervals, rivals, and failures on one set."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import gate, intervals, report
from benchmarks.gate import MECHANISMS, Bench, Row
from benchmarks.plain_search import Piece, PlainSearch, pieces_of
from benchmarks.quoted import Quoted, _score
from benchmarks.reader_questions import load_bylines, read_questions, read_written_pages
from tests.support.hashed_model import HashedModel

PAGES = [
    {"lang": "en", "text": "The ferry crosses the bay at noon. " * 40},
    {"lang": "en", "text": "Bread is baked before dawn. " * 40 + "The lighthouse keeper sleeps by day."},
]


ROW = {"answers": ["1911"], "evidence": [{"url": "", "quote": "The bridge was opened in 1911."}]}


class TestIntervals:
    def test_a_mean_lies_within_its_interval_and_groups_widen_it(self) -> None:
        values, groups = [0.0, 1.0] * 50, [place // 20 for place in range(100)]
        alone = intervals.estimate(intervals.mean(intervals.bootstrap_weights(range(100)), values))
        assert alone.value == 0.5
        assert 0.35 < alone.low < 0.45 < 0.55 < alone.high < 0.65
        split = intervals.estimate(
            intervals.mean(intervals.bootstrap_weights(groups), [float(group > 2) for group in groups])
        )
        assert split.high - split.low > 0.5
        assert format(alone, "+").startswith("+0.500 (+0.4")

    def test_a_tie_counts_half(self) -> None:
        assert intervals.auroc(np.ones((2, 3)), [True, True, False], [0.2, 0.9, 0.9]).tolist() == [0.75, 0.75]

    def test_drawing_a_unit_twice_is_having_it_twice(self) -> None:
        drawn = intervals.auroc(np.array([[2.0, 1.0, 1.0]]), [True, False, True], [0.1, 0.5, 0.9])
        assert drawn == intervals.auroc(np.ones((1, 4)), [True, True, False, True], [0.1, 0.1, 0.5, 0.9])

    def test_both_sides_count_alike(self) -> None:
        wrong, flagged = [True, False, False, False], [True, True, False, False]
        assert intervals.mean_recall(np.ones((1, 4)), wrong, flagged) == pytest.approx((1 + 2 / 3) / 2)

    def test_where_a_kind_is_missing_there_is_no_figure(self) -> None:
        assert np.isnan(intervals.auroc(np.ones((1, 2)), [False, False], [0.1, 0.2])).all()


class TestPlainSearch:
    def test_pieces_are_sentences_up_to_a_length_and_found_by_their_words(self) -> None:
        pieces = pieces_of(PAGES)
        assert 560 < max(len(piece.text) for piece in pieces) <= 600
        assert "".join(piece.text for piece in pieces_of(PAGES, 0)).count("ferry") == 40
        search = PlainSearch(pieces, HashedModel())
        for found in (search.by_words("lighthouse keeper"), search.by_fusion("lighthouse keeper")):
            assert "lighthouse keeper" in found[0]
        assert search.by_words("submarine") == []

    def test_a_piece_is_found_by_its_title_and_by_other_forms_of_a_word(self) -> None:
        pieces = [Piece("", "the cat sleeps"), Piece("", "a dog barks"), Piece("Owls", "it flies")]
        search = PlainSearch(pieces, HashedModel())
        assert search.by_words("Where does an owl live?")[0] == "it flies"
        assert search.by_words("sleeping")[0] == "the cat sleeps"


class TestQuoted:
    def test_what_stands_in_the_evidence(self) -> None:
        found = _score(ROW, ["The bridge was  opened in 1911.", "It rains."])
        assert found == Quoted(2, [True, False], contains_answer=True)

    def test_a_long_answer_is_not_looked_for(self) -> None:
        assert _score({**ROW, "answers": ["x" * 41]}, []).contains_answer is None


def _row(ours: float, *rivals: float, higher: bool = True) -> Row:
    def constant(value: float) -> intervals.Figures:
        return np.full(1 + intervals.ROUNDS, value)

    return Row("set", "figure", 3, constant(ours), {f"r{n}": constant(one) for n, one in enumerate(rivals)}, higher)


def test_the_best_rival_is_the_one_to_beat() -> None:
    table = gate.as_table([_row(0.5, 0.2, 0.4), _row(3.0, 2.0, 5.0, higher=False), _row(0.5, 0.5)])
    ahead = [line.split("|")[-2].split()[0] for line in table.splitlines()[2:5]]
    assert ahead == ["+0.100", "-1.000", "+0.000"]
    assert "Better in 1 rows, worse in 1, not significant in 1." in table


def test_without_any_set_the_sample_pages_are_measured_and_written(
    results_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = results_folder / "quality.md"
    marks = (f"{report.BEGIN.format(gate.COMMAND.format(name))}\n{report.END}\n" for name in ("retrieval", "quoted"))
    page.write_text("".join(marks))
    monkeypatch.setattr(gate, "PAGE", page)
    assert gate.main(["retrieval", "quoted", "--data", str(results_folder / "none"), "--limit", "6", "--publish"]) == 0
    said, written = capsys.readouterr().out, page.read_text()
    assert "Skipped: xquad-en: missing" in said
    for row in ("examples, recall@4000", "examples, all@4000", "examples, sentences in the evidence"):
        assert f"| {row} |" in said and f"| {row} |" in written
    assert "; up to 6 questions, cases or pages per set, no chat model; Python " in written


def test_what_breaks_costs_its_rows_and_no_more(
    results_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(bench: Bench, name: str) -> Iterator[Row]:
        yield _row(1.0, 0.5)
        raise LookupError(name)

    monkeypatch.setitem(gate.MECHANISMS, "quoted", dataclasses.replace(MECHANISMS["quoted"], measure=breaks))
    assert gate.main(["quoted", "extraction", "--data", str(results_folder / "none")]) == 1
    said = capsys.readouterr().out
    assert "examples: LookupError" in said and "Better in 1 rows" in said
    assert "Skipped: wcxb aeb: missing" in said


def test_an_unknown_name_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gate.main(["astrology"])
    assert "astrology is not one of retrieval," in capsys.readouterr().err


def _read_bylines(*, held_out: bool) -> list[dict[str, Any]]:
    return load_bylines(Path(), held_out=held_out).questions


class TestReaderQuestions:
    def test_no_page_is_both_trained_and_tested_on(self) -> None:
        for read in (read_questions, _read_bylines):
            trained, tested = ({row["url"] for row in read(held_out=held_out)} for held_out in (False, True))
            assert tested and not trained & tested

    def test_written_pages_contain_the_quotes_and_the_quotes_the_answers(self) -> None:
        texts = {page["url"]: page["text"] for page in read_written_pages()}
        rows = [row for held_out in (False, True) for row in read_questions(held_out=held_out)]
        written = [row for row in rows if row["url"] in texts]
        assert {row["url"] for row in written} == set(texts)
        for row in written:
            if "quote" in row:
                (start, end), (first, last) = row["quote"], row["answer"]
                assert start <= first < last <= end <= len(texts[row["url"]])

    def test_quotes_about_bylines_contain_the_answers(self) -> None:
        answered = [row for held_out in (False, True) for row in _read_bylines(held_out=held_out) if row["evidence"]]
        assert answered and all(row["answer"] in row["quote"] for row in answered)
