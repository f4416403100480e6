"""What people thought of answers."""

from __future__ import annotations

from rag.store.sql.database import Database
from tests.store.support import save_turn


def test_feedback_is_kept_with_its_data(database: Database) -> None:
    turn = save_turn(database.conversations, "c1", "main", "li", {"question": "q"})
    database.feedback.save(turn, "main", "li", rating=-1, data={"reason": "wrong page"})
    (said,) = database.feedback.of_library("main")
    assert (said["turn_id"], said["rating"], said["data"]) == (turn, -1, {"reason": "wrong page"})
    assert database.feedback.of_library("other") == []


def test_one_opinion_for_each_person(database: Database) -> None:
    for owner, rating in (("li", 1), ("ada", 1), ("li", -1)):
        database.feedback.save("t", "main", owner, rating=rating)  # type: ignore[arg-type]
    assert database.feedback.rating_of("t", "li") == -1 and database.feedback.rating_of("t", "ada") == 1
    database.feedback.withdraw("t", "li")
    assert database.feedback.rating_of("t", "li") == 0
    assert [one["owner"] for one in database.feedback.of_library("main")] == ["ada"]
