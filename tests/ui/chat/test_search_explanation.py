import re
from dataclasses import replace

import pytest

from rag.retrieval.explain import rows_of
from rag.types import Answer, Candidate, Retrieval
from rag.ui.chat.search_explanation import (
    Marks,
    best_score,
    candidates_markdown,
    fact_lines,
    format_score,
    marks_of,
    note_lines,
    opening,
    split_rows,
)
from tests.support.lighthouse import CHINESE, ENGLISH, make_citation, make_page, make_search, make_steps
from tests.ui.kit.test_markdown import HOSTILE, as_shown, outside_code

FOUND = make_search("How often?", make_page(1, "Keeping a lighthouse", ENGLISH, "en"))


def test_the_facts_of_a_search() -> None:
    told = "\n".join(fact_lines(FOUND, "en"))
    assert ":gray[Searched for] “How often?”" in told
    assert "Diverse (MMR)" in told
    assert "Meaning + Keywords" in told
    assert "1 of 2 candidates" in told
    assert "searching 12 ms · selecting 3 ms" in told


def test_a_leg_that_could_not_read_the_question_is_told() -> None:
    found = make_search("多久？", make_page(2, "灯塔的看守", CHINESE, "zh"))
    assert "未按语义检索" in "\n".join(fact_lines(found, "zh"))
    assert "未按语义检索" not in "\n".join(fact_lines(replace(found, strategy="keyword"), "zh"))


def test_notes_are_put_into_words() -> None:
    notes = {
        "why": {"code": "auto_facets", "params": {"parts": 2}},
        "queries": ["one", "![x](https://evil.example)"],
        "passage": "A :smile: passage",
        "some_number": 0.51234,
        "nothing": None,
        "deep": {"a": ["x", {"code": "no_such_code"}]},
    }
    told = "\n".join(note_lines(notes, "en"))
    assert ":gray[Reason] The question has 2 parts" in told
    assert "one · " in told
    assert "0.51" in told
    assert "nothing" not in told
    assert "no\\_such\\_code" in told
    assert "![" not in told
    assert ":smile:" not in told
    assert "问题包含 2 个部分" in "\n".join(note_lines(notes, "zh"))


def test_a_single_query_is_the_question_and_not_told_again() -> None:
    assert note_lines({"queries": ["q"]}, "en") == []


def test_an_unknown_strategy_goes_by_its_own_name() -> None:
    found = Retrieval("q", "new_one", (), (), ("dense",), {"brew": 2.0})
    told = "\n".join(fact_lines(found, "en"))
    assert r"new\_one" in told
    assert "brew 2 ms" in told


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
    assert "*Keywords* **1** :gray[12.3]" in first
    assert re.search(r"\*Combined\* \*\*1\*\* :gray\[0\.71\] :primary\[━+\] \|$", first)
    assert second.startswith("| :gray[–] |")
    assert "93% similar to passage 1" in second


def test_the_bar_is_as_long_as_the_score_is_high() -> None:
    first, second = (line.count("━") for line in table(make_search("q", PAGES["en"]), "en").split("\n")[2:])
    assert first == 2 * second


def test_a_leg_that_did_not_vote_has_no_column() -> None:
    head = table(make_search("q", PAGES["zh"]), "zh").split("\n")[0]
    assert head == "| 序号 | 段落 | 关键词 |"


def test_grades_and_citations_are_marked() -> None:
    found = make_search("q", PAGES["en"])
    answer = Answer("q", "deep", "answered", "", (make_citation(PAGES["en"], QUOTE, 4),))
    steps = make_steps("q", PAGES["en"])
    marks = marks_of(Answer("q", "deep", "answered", "", answer.citations, steps=steps), rows_of(found))
    first, second = table(found, "en", marks).split("\n")[2:]
    assert "cited as \\[4\\]" in first
    assert "relevant" in first and "not relevant" not in first
    assert "not relevant" in second
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
    assert [format_score(value) for value in (0.7149, 9.999, 23.456, -0.5)] == ["0.71", "10.00", "23.5", "-0.50"]
