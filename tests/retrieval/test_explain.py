import pytest

from rag.retrieval.explain import LegRank, legs_of, read_leg_ranks, record_of, rows_of
from rag.types import Candidate, Passage, Retrieval


def passage(name: str, score: float, **ranks: int) -> Passage:
    given = {"fused": 1, **ranks}
    scores = dict.fromkeys(given, score)
    return Passage(name, f"https://a.example/{name}", name, name, "", "en", (), name, 0, 9, score, given, scores)


def search(*candidates: Candidate) -> Retrieval:
    return Retrieval("q", "mmr", (), candidates, ("dense", "sparse"))


def became(found: Retrieval) -> dict[str, tuple[str, dict[str, object]]]:
    """Return the outcome of each candidate, by its name."""
    return {row.passage.id: (row.outcome.code, dict(row.outcome.params)) for row in rows_of(found)}


def test_the_context_comes_first_in_its_order_then_the_others_by_score() -> None:
    found = search(
        Candidate(passage("second", 0.5), 2),
        Candidate(passage("low", 0.1), None),
        Candidate(passage("first", 0.4), 1),
        Candidate(passage("high", 0.3), None),
    )
    assert [row.passage.id for row in rows_of(found)] == ["first", "second", "high", "low"]


def test_what_mmr_dropped_names_the_place_that_it_repeats() -> None:
    found = search(
        Candidate(passage("a", 1.0), 1),
        Candidate(passage("b", 0.3), 2),
        Candidate(passage("copy", 0.9), None, "a", 0.934),
        Candidate(passage("weak", 0.1), None, "b", 0.25),
        Candidate(passage("lone", 0.05), None),
    )
    assert became(found) == {
        "a": ("candidate_kept", {}),
        "b": ("candidate_kept", {}),
        "copy": ("candidate_repeats", {"percent": 93, "place": 1}),
        "weak": ("candidate_below_near", {"percent": 25, "place": 2}),
        "lone": ("candidate_below", {}),
    }


def test_what_was_put_together_points_at_where_its_text_stands() -> None:
    found = search(
        Candidate(passage("a", 1.0), 1),
        Candidate(passage("next", 0.9), None, fate="merged", into="a"),
        Candidate(passage("twin", 0.8), None, fate="same_text", into="next"),
        Candidate(passage("echo", 0.79), None, "next", 0.9),
        Candidate(passage("late", 0.7), None, fate="says_less"),
    )
    told = became(found)
    assert told["a"] == ("candidate_kept_with", {"count": 1})
    assert told["next"] == ("candidate_merged", {"place": 1})
    assert told["twin"] == ("candidate_same_text", {"place": 1})
    assert told["echo"] == ("candidate_repeats", {"percent": 90, "place": 1})
    assert told["late"][0] == "candidate_says_less"


def test_what_went_into_a_passage_without_room_had_no_room_either() -> None:
    found = search(
        Candidate(passage("a", 1.0), None, fate="says_less"),
        Candidate(passage("next", 0.9), None, fate="merged", into="a"),
    )
    assert became(found)["next"][0] == "candidate_says_less"


def test_a_circle_ends() -> None:
    one = Candidate(passage("a", 1.0), None, fate="merged", into="b")
    other = Candidate(passage("b", 1.0), None, fate="merged", into="a")
    assert len(rows_of(search(one, other))) == 2


def test_of_several_texts_the_one_that_ranked_best_counts() -> None:
    found = passage("a", 0.5, **{"dense": 7, "dense.2": 3, "sparse": 1})
    assert read_leg_ranks(found)["dense"] == LegRank(3, 0.5, 2)
    assert read_leg_ranks(found)["sparse"] == LegRank(1, 0.5, 1)


@pytest.mark.parametrize(
    ("ranks", "legs"),
    [
        ({"sparse": 1}, ["sparse"]),
        ({"sparse": 1, "dense": 2}, ["dense", "sparse", "fused"]),
        ({"sparse": 1, "rerank": 1}, ["sparse", "fused", "rerank"]),
        ({"title": 1, "dense": 2}, ["dense", "title", "fused"]),
    ],
)
def test_columns_are_the_legs_that_found_something(ranks: dict[str, int], legs: list[str]) -> None:
    assert legs_of(rows_of(search(Candidate(passage("a", 1.0, **ranks), 1)))) == legs


def test_every_fate_is_a_sentence_in_both_languages() -> None:
    from rag.locales import say

    found = search(
        Candidate(passage("a", 1.0), 1),
        Candidate(passage("b", 0.95), None, "gone", 0.9),
        Candidate(passage("copy", 0.9), None, "a", 0.93),
        Candidate(passage("next", 0.8), None, fate="merged", into="a"),
    )
    for row in rows_of(found):
        assert say(row.outcome, "en")
        assert say(row.outcome, "zh") != say(row.outcome, "en")


def test_a_record_is_plain_data() -> None:
    import json

    found = search(Candidate(passage("a", 1.0), 1), Candidate(passage("copy", 0.9), None, "a", 0.93))
    first, second = (json.loads(json.dumps(record_of(row))) for row in rows_of(found))
    assert (first["place"], first["fate"]) == (1, "kept")
    assert (second["place"], second["fate"], second["other"], second["similarity"]) == (None, "below_near", 1, 0.93)
