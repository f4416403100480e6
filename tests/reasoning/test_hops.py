from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rag.locales import say
from rag.models.embedding import SparseEncoder
from rag.reasoning.hops import CandidateName, RulePlanner, interleave
from rag.types import Notice, Passage
from tests.support.answering import passage


def anywhere(name: str) -> list[Passage]:
    """Return a passage of another page that has the name."""
    return [passage(99, f"This is about {name}.")]


@pytest.fixture(scope="module")
def planner() -> RulePlanner:
    return RulePlanner(SparseEncoder(), lambda terms: dict.fromkeys(terms, 1.0))


def test_the_question_is_searched_for_as_it_stands(planner: RulePlanner) -> None:
    (planned,) = planner.plan("Who designed the Harbour Bridge?")
    assert (planned.text, planned.justification.code) == ("Who designed the Harbour Bridge?", "plan_question")


def test_each_question_of_a_message_is_searched_for(planner: RulePlanner) -> None:
    planned = planner.plan("Who designed the Harbour Bridge, and when did the Old Pier burn?")
    assert [one.text for one in planned] == ["Who designed the Harbour Bridge", "when did the Old Pier burn?"]
    assert {one.justification.code for one in planned} == {"plan_part"}


class TestCompare:
    @pytest.mark.parametrize(
        ("question", "titles", "other"),
        [
            ("Which opened first, the Harbour Bridge or the Old Pier?", ("Harbour Bridge", "Old Pier (Brighton)"), ""),
            (
                "Which opened first, the Harbour Bridge or the Old Pier?",
                ("Harbour Bridge", "Baking"),
                "Which opened first, the or the Old Pier?",
            ),
            ("比较2017年东海公司和2018年南山公司的净利润。", ("东海公司", "南山公司"), ""),
            (
                "比较2017年东海公司和2018年南山公司的净利润。",
                ("南山公司", "北河公司"),
                "比较2017年东海公司和2018年 的净利润。",
            ),
        ],
    )
    def test_a_side_that_was_not_found_is_searched_for(
        self, planner: RulePlanner, question: str, titles: Sequence[str], other: str
    ) -> None:
        found = [passage(number, "it stands here.", title=title) for number, title in enumerate(titles, 1)]
        planned = planner.revise(question, [question], [found], anywhere)
        assert [one.text for one in planned] == ([other] if other else [])
        for one in planned:
            assert one.justification.code == "plan_side"
            assert all(titles[0] in say(one.justification, language) for language in ("en", "zh"))
            assert planner.revise(question, [question, other], [found, []], anywhere) == []

    def test_short_pages_of_both_sides_lead_on_and_long_ones_do_not(self, planner: RulePlanner) -> None:
        question = "Which is by the older designer, the Harbour Bridge or the Old Pier?"
        found = [
            replace(
                passage(1, "The Harbour Bridge is by the designer Ada Lindqvist.", title="Harbour Bridge"), start=0
            ),
            replace(passage(2, "The Old Pier is by the designer Eugenius Birch.", title="Old Pier"), start=0),
        ]
        hops = planner.revise(question, [question], [found], anywhere)
        assert sorted(one.justification.params["name"] for one in hops) == ["Ada Lindqvist", "Eugenius Birch"]
        then = [[passage(3, "Ada Lindqvist met Niels Ryberg.", title="Ada Lindqvist")], []]
        assert planner.revise(question, [question, *(one.text for one in hops)], [found, *then], anywhere) == []
        more = replace(found[0], id="p4", start=5000, end=5040)
        assert planner.revise(question, [question], [[*found, more]], anywhere) == []
        assert planner.revise(question, [question], [[found[0], replace(found[1], start=700)]], anywhere) == []

    def test_names_far_from_each_other_are_not_compared(self, planner: RulePlanner) -> None:
        question = "Who built the Harbour Bridge and lived in the town where the Old Pier stands?"
        found = [
            passage(1, "It is by Ada Lindqvist.", title="Harbour Bridge"),
            passage(2, "It burnt.", title="Old Pier"),
        ]
        (hop,) = planner.revise(question, [question], [found], anywhere)
        assert hop.justification.params == {"name": "Ada Lindqvist"}

    def test_questions_that_were_asked_separately_compare_nothing(self, planner: RulePlanner) -> None:
        message = "When was the Harbour Bridge opened? Old Pier, when did it burn?"
        asked = [one.text for one in planner.plan(message)]
        assert len(asked) == 2
        found = [[passage(1, "It was opened in 1932.", title="Harbour Bridge")], []]
        assert all(one.justification.code == "plan_hop" for one in planner.revise(message, asked, found, anywhere))
        both = [*found[0], passage(2, "It burnt.", title="Old Pier")]
        searched_web = planner.revise(message, [*asked, message], [*found, both], anywhere)
        assert all(one.justification.code == "plan_hop" for one in searched_web)


class TestRevise:
    QUESTION = "In which town was the designer of the Harbour Bridge born?"
    FOUND = (
        passage(1, "The Harbour Bridge was opened in 1932. Its designer was Ada Lindqvist.", title="Harbour Bridge"),
        passage(2, "The bread is baked before dawn.", title="Baking"),
    )

    def test_a_new_name_takes_the_place_of_what_is_said_of_it(self, planner: RulePlanner) -> None:
        (hop,) = planner.revise(self.QUESTION, [self.QUESTION], [self.FOUND], anywhere)
        assert hop.text == "Ada Lindqvist town born?"
        assert hop.justification == Notice("plan_hop", {"name": "Ada Lindqvist"})
        assert hop.question == Notice("ask_hop", {"name": "Ada Lindqvist"})

    def test_nothing_is_asked_twice_and_the_last_hop_leads_on(self, planner: RulePlanner) -> None:
        (hop,) = planner.revise(self.QUESTION, [self.QUESTION], [self.FOUND], anywhere)
        asked = [self.QUESTION, hop.text]
        assert planner.revise(self.QUESTION, asked, [self.FOUND, self.FOUND], anywhere) == []
        then = [passage(3, "Ada Lindqvist was born in Skagen.", title="Ada Lindqvist")]
        (further,) = planner.revise(self.QUESTION, asked, [self.FOUND, then], anywhere)
        assert further.text.startswith("Skagen ")

    def test_a_page_that_was_found_is_a_name_in_chinese_too(self, planner: RulePlanner) -> None:
        found = [passage(1, "《渡口》由林远山导演。", title="渡口"), passage(2, "他出生于青石镇。", title="林远山")]
        question = "《渡口》的导演出生在哪里？"
        assert [one.text for one in planner.revise(question, [question], [found], anywhere)] == ["林远山 的出生在哪里"]

    def test_where_nothing_was_found_nothing_is_planned(self, planner: RulePlanner) -> None:
        assert planner.revise(self.QUESTION, [self.QUESTION], [[]], anywhere) == []

    @pytest.mark.parametrize(
        "text",
        [
            "The Harbour Bridge\nContact Ada Lindqvist",  # no sentence
            "| Harbour Bridge | Ada Lindqvist |",
            "- Ships pass below the Harbour Bridge.",  # a word that begins a list item
            "The Harbour Bridge opens on March 1st, and closes from Mon to Fri.",
            "The Harbour Bridge has a toll. Press Pay Now to pay. You pay now or never, he now says.",
            "Bread is baked by Ada Lindqvist, as people say.",  # nothing that the question names
        ],
    )
    def test_only_names_in_sentences_about_what_the_question_names_are_followed(
        self, planner: RulePlanner, text: str
    ) -> None:
        found = [replace(passage(1, text, title="Notes"), section=())]
        assert planner.revise(self.QUESTION, [self.QUESTION], [found], anywhere) == []

    @pytest.mark.parametrize("question", ["where was the designer born", "保修怎么算", "设计师出生在哪里？"])
    def test_a_question_that_names_nothing_leads_nowhere(self, planner: RulePlanner, question: str) -> None:
        assert planner.revise(question, [question], [self.FOUND], anywhere) == []

    def test_a_name_that_no_other_page_has_leads_nowhere(self, planner: RulePlanner) -> None:
        first, other = self.FOUND
        for results in ([], [first], [first, other]):
            assert planner.revise(self.QUESTION, [self.QUESTION], [self.FOUND], lambda _, got=results: got) == []


class TestInTurns:
    @staticmethod
    def found(*numbers: int) -> list[Passage]:
        return [passage(number, f"Passage {number}.") for number in numbers]

    def test_the_first_search_leads_then_all_take_turns(self) -> None:
        ledger = interleave([self.found(1, 2, 3, 4, 5), self.found(6, 1, 7), self.found(8)], keep=3)
        assert [one.text for one in ledger] == [f"Passage {number}." for number in (1, 2, 3, 4, 6, 8, 5, 7)]

    def test_what_overlaps_in_a_page_becomes_one(self) -> None:
        whole = passage(1, "One stands here. Another follows.")
        part = replace(whole, text="Another follows.", start=whole.end - 16)
        assert interleave([[part], [whole]]) == [replace(whole, id=part.id)]

    def test_nothing_is_nothing(self) -> None:
        assert interleave([]) == interleave([[], []]) == []


def test_a_name_is_worth_its_best_place(planner: RulePlanner, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = CandidateName("Ada Lindqvist", "Ada Lindqvist", 0.9, 0)
    told = {
        "What?": [ada],
        "Who?": [replace(ada, chance=0.1), CandidateName("Eugenius Birch", "Eugenius Birch", 0.5, 0)],
    }
    monkeypatch.setattr(planner, "find_candidates", lambda question, query, passages: told[query])
    ports = [passage(1, "Ada Lindqvist met Eugenius Birch.")]
    first, *_ = planner.revise("What?", list(told), [ports, ports], anywhere)
    assert first.text == "Ada Lindqvist"
