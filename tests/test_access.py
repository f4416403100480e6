from __future__ import annotations

from typing import Any

import pytest

from rag.access import person_of, refusal

LIST = ("ann@example.com", "@team.example")


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"email": "ann@example.com"}, ""),
        ({"email": "Ann@Example.COM", "email_verified": True}, ""),
        ({"email": "anyone@team.example", "email_verified": "true"}, ""),
        ({"email": "bob@example.com"}, "not_listed"),
        ({"email": "ann@example.com.evil.example"}, "not_listed"),
        ({"email": "x@sub.team.example"}, "not_listed"),
        ({"email": "x@notteam.example"}, "not_listed"),
        ({"email": "ann@example.com@evil.example"}, "no_address"),
        ({"email": "evil@evil.example ann@example.com"}, "no_address"),
        ({"email": "@team.example"}, "no_address"),
        ({"email": ""}, "no_address"),
        ({"sub": "1"}, "no_address"),
        ({"email": None}, "no_address"),
        ({"email": "ann@example.com", "email_verified": False}, "unverified"),
        ({"email": "ann@example.com", "email_verified": "false"}, "unverified"),
        ({"email": "ann@example.com", "email_verified": None}, "unverified"),
    ],
)
def test_who_may_enter(claims: dict[str, Any], why: str) -> None:
    assert refusal(claims, LIST) == why


def test_an_empty_list_admits_nobody_and_a_star_everybody() -> None:
    assert refusal({"email": "ann@example.com"}, ()) == "no_list"
    assert refusal({"sub": "1"}, ("*",)) == ""


def test_conversations_stay_with_the_subject_and_not_with_the_address() -> None:
    before = person_of({"iss": "https://id.example", "sub": "7", "email": "ann@example.com", "name": "Ann"})
    after = person_of({"iss": "https://id.example", "sub": "7", "email": "ann@married.example"})
    taken_over = person_of({"iss": "https://id.example", "sub": "8", "email": "ann@example.com"})
    elsewhere = person_of({"iss": "https://other.example", "sub": "7", "email": "ann@example.com"})
    assert before.owner == after.owner
    assert len({before.owner, taken_over.owner, elsewhere.owner}) == 3
    assert (before.name, after.name) == ("Ann", "ann@married.example")


def test_without_a_subject_the_address_counts() -> None:
    assert person_of({"email": "Ann@example.com"}) == person_of({"email": "ann@example.com "})
    assert person_of({"email": "ann@example.com"}).owner
