"""Users' feedback on answers becomes rows of a test set."""

from __future__ import annotations

import pytest

from rag.conversations.feedback import Feedback
from rag.errors import RagError
from rag.types import Page
from tests.conversations.conftest import FIRST, SECOND, WIDE, Talk
from tests.support.answering import VOLCANO, ScriptedReasoner

PAGE = Page("https://example.org/1", "hash1", "Page 1", "en", "example.org", VOLCANO, "t", "web")


@pytest.fixture
def feedback(talk: Talk) -> Feedback:
    return Feedback(talk.database, talk.kept)


def _page(library: str, url_hash: str) -> Page | None:
    return PAGE if (library, url_hash) == ("main", "hash1") else None


def test_a_good_answer_is_a_case_with_its_quotes(talk: Talk, feedback: Feedback) -> None:
    asked, _ = talk.ask(FIRST, settings={"strategy": "mmr"})
    feedback.rate(asked.turn_id, 1)
    (row,) = feedback.questions("main", _page)
    assert (row["question"], row["lang"], row["rating"]) == (FIRST, "en", 1)
    assert row["evidence"] == [{"url": "https://example.org/1", "quote": "Mount Aso erupted in 1953."}]
    assert row["answers"] == ["Mount Aso erupted in 1953."]
    assert row["settings"] == {"mode": "fast", "strategy": "mmr"}
    assert list(feedback.pages("main", _page)) == [
        {"url": PAGE.url, "title": PAGE.title, "lang": "en", "text": VOLCANO}
    ]


def test_a_correction_is_the_answer_and_its_sentence_the_evidence(talk: Talk, feedback: Feedback) -> None:
    first, _ = talk.ask(FIRST)
    asked, _ = talk.ask(SECOND, ScriptedReasoner(answers=[["In 1953 [1]."]]), conversation_id=first.conversation_id)
    feedback.rate(asked.turn_id, -1, reason="wrong", correction="24 kilometres")
    said = {"reason": "wrong", "comment": "", "correction": "24 kilometres"}
    assert feedback.details(asked.turn_id) == said
    assert feedback.details(asked.turn_id, "bob") == dict.fromkeys(said, "")
    (row,) = feedback.questions("main", _page)
    assert (row["question"], row["answers"], row["reason"]) == (SECOND, ["24 kilometres"], "wrong")
    assert row["history"] == [{"question": FIRST, "answer": ""}]
    assert row["evidence"] == [{"url": PAGE.url, "quote": "Its crater is 24 kilometres wide."}]


def test_a_bad_answer_without_a_correction_has_no_gold(talk: Talk, feedback: Feedback) -> None:
    asked, _ = talk.ask(FIRST)
    feedback.rate(asked.turn_id, -1, reason="invented by a script")
    (row,) = feedback.questions("main", _page)
    assert (row["answers"], row["evidence"], row["reason"]) == ([], [], "")


def test_what_one_person_said_is_not_shown_to_another(talk: Talk, feedback: Feedback) -> None:
    for owner, rating in (("ann", 1), ("bob", -1)):
        asked, _ = talk.ask(FIRST, owner=owner)
        feedback.rate(asked.turn_id, rating, owner=owner)  # type: ignore[arg-type]
    assert [row["rating"] for row in feedback.questions("main", _page, owner="ann")] == [1]
    assert feedback.questions("main", _page, owner="") == []
    assert list(feedback.pages("main", _page, "")) == []
    assert [row["rating"] for row in feedback.questions("main", _page)] == [1, -1]


def test_one_opinion_a_person_and_answer_and_it_can_be_taken_back(talk: Talk, feedback: Feedback) -> None:
    asked, _ = talk.ask(FIRST, ScriptedReasoner(answers=[WIDE]))
    feedback.rate(asked.turn_id, 1)
    feedback.rate(asked.turn_id, -1)
    assert [row["rating"] for row in feedback.questions("main", _page)] == [-1]
    assert talk.kept.turn(asked.turn_id).rating == -1
    feedback.withdraw(asked.turn_id)
    assert feedback.questions("main", _page) == [] and talk.kept.turn(asked.turn_id).rating == 0
    with pytest.raises(RagError):
        feedback.rate(asked.turn_id, 1, owner="bob")
