import re
from dataclasses import replace

import pytest

from rag.messages import say
from rag.retrieval.explain import rows_of
from rag.types import Answer, Candidate, Retrieval
from rag.ui.candidates import Marks, best_score, candidates_markdown, marks_of, opening, score, split_rows
from tests.support.lighthouse import CHINESE, ENGLISH, make_citation, make_page, make_search, make_steps
from tests.ui.test_render import HOSTILE, as_shown, outside_code

PAGES = {"en": make_page(1, "Keeping a lighthouse", ENGLISH, "en"), "zh": make_page(2, "灯塔的看守", CHINESE, "zh")}
QUOTE = "The lamp was wound every four hours, day and night."


def table(found: Retrieval, language: str, marks: Marks | None = None) -> str:
    rows = rows_of(found)
    _, _, legs = split_rows(rows)
    return candidates_markdown(rows, legs, marks or Marks(), language, best=best_score(rows, legs))  # type: ignore[arg-type]


def test_a_row_shows_place_ranks_scores_and_what_became_of_it() -> None:
    first, second = table(make_search("q", PAGES["en"]), "en").split("\n")[2:]
    assert first.startswith("| :green-badge[1] | **Keeping a lighthouse › The lamp** The lamp was wound")
    assert "*Meaning* **1** :gray[0.71]" in first
    assert "*Words* **1** :gray[12.3]" in first
    assert re.search(r"\*Together\* \*\*1\*\* :gray\[0\.71\] :primary\[━+\] \|$", first)
    assert second.startswith("| :gray[–] |")
    assert "93 % like passage 1" in second


def test_the_bar_is_as_long_as_the_score_is_high() -> None:
    first, second = (line.count("━") for line in table(make_search("q", PAGES["en"]), "en").split("\n")[2:])
    assert first == 2 * second


def test_a_leg_that_did_not_vote_has_no_column() -> None:
    head = table(make_search("q", PAGES["zh"]), "zh").split("\n")[0]
    assert head == "| 序号 | 段落 | 词语 |"


def test_grades_and_citations_are_marked() -> None:
    found = make_search("q", PAGES["en"])
    answer = Answer("q", "deep", "answered", "", (make_citation(PAGES["en"], QUOTE, 4),))
    steps = make_steps("q", PAGES["en"])
    marks = marks_of(Answer("q", "deep", "answered", "", answer.citations, steps=steps), rows_of(found))
    first, second = table(found, "en", marks).split("\n")[2:]
    assert "cited as \\[4\\]" in first
    assert "bears on the question" in first
    assert "does not bear on it" in second
    assert "cited" not in second


@pytest.mark.parametrize("text", HOSTILE)
def test_a_passage_is_outside_text(text: str) -> None:
    found = make_search("q", make_page(1, text, ENGLISH, "en")).candidates[0].passage
    passage = replace(found, text=f"{text} {found.text}", section=(text,))
    shown = table(Retrieval("q", "mmr", (), (Candidate(passage, 1),), ("dense",)), "en")
    html = as_shown(shown)
    assert set(re.findall(r"<([a-z0-9]+)", html)) <= {"table", "thead", "tbody", "tr", "th", "td", "strong", "em"}
    assert html.count("<tr>") == 2
    assert html.count("<td>") == html.count("<th>")
    plain = re.sub(r":(?:gray|primary|green-badge)\[", "[", outside_code(shown))
    assert not re.search(r":[\w+-]+:|:material/", plain)


def test_an_opening_leaves_headings_and_signs_out() -> None:
    assert opening("## The lamp\n\n- **Wound** every\n  day") == "• Wound every day"
    assert opening("## Only a heading") == "Only a heading"
    assert opening("| a | b |\n| --- | --- |\n| 1 | 2 |") == "a b 1 2"
    assert len(opening("灯每四个小时上一次发条。" * 20)) == 56
    assert len(opening("The lamp was wound. " * 20)) <= 111


def test_scores_are_readable() -> None:
    assert [score(value) for value in (0.7149, 9.999, 23.456, -0.5)] == ["0.71", "10.00", "23.5", "-0.50"]


def test_what_became_of_it_is_said_in_the_readers_language() -> None:
    rows = rows_of(make_search("q", PAGES["zh"]))
    assert say(rows[1].became, "zh").rstrip("。") in table(make_search("q", PAGES["zh"]), "zh")
