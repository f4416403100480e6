from __future__ import annotations

from typing import Any

import pytest

from rag.access import build_person, find_refusal

LIST = ("ann@example.com", "@team.example")


ENTRA = "https://login.microsoftonline.com/0b1c/v2.0"


@pytest.mark.parametrize(
    ("email", "why"),
    [
        ("ann@example.com", ""),
        ("Ann@Example.COM", ""),
        ("anyone@team.example", ""),
        ("bob@example.com", "not_listed"),
        ("ann@example.com.evil.example", "not_listed"),
        ("x@sub.team.example", "not_listed"),
        ("x@notteam.example", "not_listed"),
        ("ann@example.com@evil.example", "no_address"),
        ("evil@evil.example ann@example.com", "no_address"),
        ("@team.example", "no_address"),
        ("", "no_address"),
        (None, "no_address"),
        ("x@team.example\u3000", "foreign_letters"),
        ("ann@exa\uff4dple.com", "foreign_letters"),
        ("\u00e4nn@team.example", "foreign_letters"),
    ],
)
def test_who_may_enter(email: str | None, why: str) -> None:
    assert find_refusal({"email": email, "email_verified": True}, LIST) == why


def test_an_address_is_refused_before_its_letters_are_folded() -> None:
    assert "\u212aim@example.com".lower() == "kim@example.com"
    claims = {"email": "\u212aim@example.com", "email_verified": True}
    assert find_refusal(claims, ("kim@example.com",)) == "foreign_letters"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"email_verified": True}, ""),
        ({"email_verified": "true"}, ""),
        ({"email_verified": False, "iss": ENTRA}, "unverified"),
        ({"email_verified": "false"}, "unverified"),
        ({"email_verified": None, "iss": ENTRA}, "unverified"),
        ({}, "unsaid"),
        ({"iss": "https://login.microsoftonline.com/evil/v2.0"}, "unsaid"),
        ({"iss": ENTRA}, ""),
    ],
)
def test_an_address_counts_when_it_is_verified_or_its_issuer_is_named(claims: dict[str, Any], why: str) -> None:
    assert find_refusal({"email": "ann@example.com", **claims}, LIST, (ENTRA,)) == why
    assert find_refusal({"email": "eve@evil.example", **claims}, LIST, (ENTRA,)) == (why or "not_listed")


def test_no_issuer_is_named_unless_somebody_does() -> None:
    assert find_refusal({"email": "ann@example.com", "iss": ENTRA}, LIST) == "unsaid"
    assert find_refusal({"email": "ann@example.com"}, LIST) == "unsaid"


def test_an_empty_list_admits_nobody_and_a_star_everybody() -> None:
    assert find_refusal({"email": "ann@example.com"}, ()) == "no_list"
    assert find_refusal({"sub": "1"}, ("*",)) == ""


def test_conversations_stay_with_the_subject_and_not_with_the_address() -> None:
    before = build_person({"iss": "https://id.example", "sub": "7", "email": "ann@example.com", "name": "Ann"})
    after = build_person({"iss": "https://id.example", "sub": "7", "email": "ann@married.example"})
    taken_over = build_person({"iss": "https://id.example", "sub": "8", "email": "ann@example.com"})
    elsewhere = build_person({"iss": "https://other.example", "sub": "7", "email": "ann@example.com"})
    assert before.owner == after.owner
    assert len({before.owner, taken_over.owner, elsewhere.owner}) == 3
    assert (before.name, after.name) == ("Ann", "ann@married.example")


def test_without_a_subject_the_address_counts() -> None:
    assert build_person({"email": "Ann@example.com"}) == build_person({"email": "ann@example.com "})
    assert build_person({"email": "ann@example.com"}).owner
