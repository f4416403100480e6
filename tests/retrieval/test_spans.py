from __future__ import annotations

from dataclasses import replace

import pytest

from rag.models.embedding import SparseEncoder, index_sentences, pack_sentences
from rag.retrieval import context
from rag.retrieval.context import SHORT, choose_spans
from rag.types import Passage
from tests.retrieval.test_context import piece

SPARSE = SparseEncoder()


@pytest.fixture(autouse=True)
def none_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable whole passages: the texts here are a few sentences long."""
    monkeypatch.setattr(context, "SHORT", 0)


def asked(question: str) -> dict[int, float]:
    return dict.fromkeys(SPARSE.encode_query(question).indices, 1.0)


def texts(passages: list[Passage], question: str, k: int = 20, budget: int = 60) -> list[str]:
    chosen = choose_spans(passages, asked(question), SPARSE, k, budget)
    return [passages[number].text[start:end] for number, (start, end) in chosen]


HARBOUR = "The harbour was dug by hand. Its lamp burned whale oil. Ships paid a toll of two coins. Gulls nest there."
MARKET = "The market opens on Monday. A toll was asked of carts. The inn is old. Its beds are hard."


def whole(text: str, name: str = "a", *, score: float = 1.0, title: str = "t") -> Passage:
    return replace(piece(name, 0, len(text), page=name, text=text, score=score), title=title, section=())


def test_the_sentence_that_says_what_is_asked_is_chosen() -> None:
    found = texts([whole(MARKET), whole(HARBOUR, "b")], "What did the lamp burn, which oil?", budget=10)
    assert found == ["Its lamp burned whale oil."]


def test_passages_without_a_score_are_chosen_from_by_their_words() -> None:
    found = texts([whole(MARKET, score=0.0), whole(HARBOUR, "b", score=0.0)], "whale oil", budget=10)
    assert found == ["Its lamp burned whale oil."]


def test_sentences_with_new_words_of_the_question_come_before_repetitions() -> None:
    pages = [whole("A toll was asked.", "a"), whole("The toll is high.", "b"), whole("Gulls nest here.", "c")]
    assert "Gulls nest here." in texts(pages, "toll gulls", budget=30)


def test_a_term_in_the_title_counts_for_every_sentence_below_it() -> None:
    pages = [whole("It opened in May.", "a", title="Museum"), whole("It opened in June.", "b", title="Harbour")]
    assert texts(pages, "When was the harbour opened?", budget=5) == ["It opened in June."]


def test_of_two_named_pages_the_lower_scored_one_has_its_say() -> None:
    """Its passages score less only because the other page's name is rarer."""
    first = [
        replace(whole(f"A toll of {n} coins.", f"a{n}", score=1.0 - n / 20, title="Grey Harbour"), url_hash="a")
        for n in range(6)
    ]
    pages = [*first, whole("A toll of two cows.", "b", score=0.3, title="Old Mill")]
    assert "A toll of two cows." in texts(pages, "Which toll do Grey Harbour and Old Mill ask?", budget=60)
    assert "A toll of two cows." not in texts(pages, "Which toll does Grey Harbour ask?", budget=60)


@pytest.mark.parametrize(
    ("scores", "first"),
    [
        ({"sparse": 1.0}, "Its lamp burned whale oil."),  # matches twice as many words at 0.8 of the score
        ({"sparse": 1.0, "dense": 0.5}, "A lamp stood there."),
        ({"sparse": 1.0, "dense": 0.5, "rerank": 0.9}, "Its lamp burned whale oil."),
    ],
)
def test_scores_of_both_legs_together_count_more(scores: dict[str, float], first: str) -> None:
    best, more = whole("A lamp stood there.", "a"), whole("Its lamp burned whale oil.", "b", score=0.8)
    pages = [replace(one, scores=scores) for one in (best, more)]
    assert texts(pages, "lamp whale", budget=5) == [first]


@pytest.mark.parametrize(("size", "whole_one"), [(SHORT, True), (SHORT + 1, False)])
def test_a_short_passage_is_read_whole_or_not_at_all(
    size: int, whole_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The date of a decision is next to the names of its signers, which are all that the question shares with it."""
    monkeypatch.setattr(context, "SHORT", SHORT)
    signed = "Judge Ada Grey signed it. In May."
    passage = whole(signed + " " + "-" * (size - len(signed) - 2) + ".", "a")
    (found,) = texts([passage], "What did Judge Ada Grey sign?", budget=10)
    assert (found == passage.text) == whole_one


def test_a_chinese_passage_is_short_at_half_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "SHORT", SHORT)
    text = "审判长葛雷签署。二〇二三年五月。" + "另" * (SHORT // 2 - 17) + "。"
    assert len(text) == SHORT // 2
    assert texts([whole(text)], "葛雷签署了什么？", budget=5) == [text]
    assert texts([whole(text + "完。")], "葛雷签署了什么？", budget=5) != [text + "完。"]


def test_the_best_passage_is_read_however_short_it_is() -> None:
    best = whole("The toll is 4 coins.", "a", title="Toll")
    others = [whole("Gulls nest on the long grey wall of the harbour. " * 9, f"b{n}", score=0.3) for n in range(12)]
    assert texts([best, *others], "Which toll?", k=10, budget=4000)[0] == best.text


def test_a_run_has_no_holes() -> None:
    (found,) = texts([whole(HARBOUR)], "lamp gulls", budget=50)
    assert found in HARBOUR and "Its lamp" in found and found.endswith("there.")


@pytest.mark.parametrize("budget", [1, 40, 150])
def test_the_budget_is_filled_where_there_is_enough(budget: int) -> None:
    found = texts([whole(HARBOUR), whole(MARKET, "b")], "Which toll?", budget=budget)
    assert sum(map(len, found)) >= budget


def test_all_is_taken_where_there_is_less_than_the_budget() -> None:
    assert set(texts([whole(HARBOUR), whole(MARKET, "b")], "Which toll?", budget=9999)) == {HARBOUR, MARKET}


def test_k_is_a_ceiling_and_what_is_open_grows_instead() -> None:
    found = texts([whole(HARBOUR), whole(MARKET, "b"), whole("Tolls again.", "c", score=0.1)], "toll", k=2, budget=150)
    assert len(found) == 2 and sum(map(len, found)) >= 150


def test_without_any_term_the_best_passage_is_read_first() -> None:
    found = texts([whole(HARBOUR, score=0.2), whole(MARKET, "b", score=1.0)], "", budget=20)
    assert found[0] in MARKET


def test_nothing_in_nothing_out() -> None:
    assert texts([], "toll") == [] and texts([whole("")], "toll") == []


def test_a_row_comes_with_the_head_of_its_table_and_code_comes_whole() -> None:
    table = "Prices follow.\n\n| Plan | Price |\n| --- | --- |\n| Team | 79 € |\n\nAll in euros."
    assert texts([whole(table)], "79", budget=5) == ["| Plan | Price |\n| --- | --- |\n| Team | 79 € |"]
    code = "Run it:\n\n```\nload()\nask()\n```\n\nDone."
    start, end, *_ = index_sentences(code, SPARSE)
    assert [code[a:b] for a, b in zip(start, end, strict=True)] == ["Run it:", "```\nload()\nask()\n```", "Done."]


def test_an_entry_comes_whole() -> None:
    text = "Arms.\n\nM10 Monitor Arm\n\nStarting at $459\n\nMore text follows."
    start, end, *_ = index_sentences(text, SPARSE)
    entry = "M10 Monitor Arm\n\nStarting at $459"
    assert [text[a:b] for a, b in zip(start, end, strict=True)] == ["Arms.", entry, "More text follows."]


def test_stored_indexes_lead_to_the_same_choice() -> None:
    pages = [whole(MARKET), whole(HARBOUR, "b"), whole("| toll | coins |\n|---|---|\n| ship | two |", "c")]
    stored = {page.id: pack_sentences(index_sentences(page.text, SPARSE), len(page.text)) for page in pages}
    for question in ("What did the lamp burn?", "toll of carts", "two coins for a ship"):
        computed = choose_spans(pages, asked(question), SPARSE, 3, 60)
        assert choose_spans(pages, asked(question), SPARSE, 3, 60, stored) == computed


def test_stored_indexes_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    page = whole(HARBOUR)
    stored = {page.id: pack_sentences(index_sentences(page.text, SPARSE), len(page.text))}
    monkeypatch.setattr(context, "_index", None)
    assert choose_spans([page], asked("lamp"), SPARSE, 1, 10, stored)
