"""Who may enter, decided from what an identity provider says of a person (OpenID Connect claims)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Refusal = Literal["", "no_list", "no_address", "foreign_letters", "unverified", "unsaid", "not_listed"]

_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")
_SUBJECT = re.compile(r"[^\s@:]*@[^\s@]+|group:\S.{0,100}")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody signed in. `owner` is what their conversations belong to; `name` and `address` are for the screen.

    `subjects` are what a grant may name to mean them: `ann@example.com`, `@example.com`, `group:editors`. Who
    `administers` may do everything.
    """

    owner: str
    name: str
    address: str
    subjects: frozenset[str] = frozenset()
    administers: bool = False


def person_of(
    claims: Mapping[str, Any],
    *,
    admins: Sequence[str] = (),
    verified_issuers: Sequence[str] = (),
    groups_claim: str = "groups",
) -> Person:
    """The person that the claims describe.

    An address counts as a subject where `refusal` would let it in. `owner` is made of issuer and subject, the one pair
    that stays with a person and is never given to another (OpenID Connect Core 1.0, section 5.7); without these of the
    address.
    """
    address = address_of(claims)
    name = " ".join(str(claims.get("name") or address or claims.get("sub") or "").split())
    subject = str(claims.get("sub") or "")
    whole = f"{claims.get('iss') or ''}\n{subject}" if subject else f"address\n{address}"
    owner = hashlib.sha256(whole.encode()).hexdigest()[:32]
    groups = claims.get(groups_claim) or ()
    subjects = {f"group:{one}".lower() for one in ([groups] if isinstance(groups, str) else groups)}
    if address and not refusal(claims, [address], verified_issuers):
        subjects |= {address, f"@{address.partition('@')[2]}"}
    administers = bool(admins) and not refusal(claims, admins, verified_issuers)
    return Person(owner, name, address, frozenset(subjects), administers)


def subject_of(text: str) -> str:
    """`text` as a grant names somebody: an address, a domain with @ before it, or a group; empty for anything else."""
    plain = " ".join(text.split()).lower()
    return plain if _SUBJECT.fullmatch(plain) else ""


def address_of(claims: Mapping[str, Any]) -> str:
    """The e-mail address in small letters, or nothing where there is none of the usual form."""
    address = str(claims.get("email") or "").strip().lower()
    return address if _ADDRESS.fullmatch(address) else ""


def refusal(claims: Mapping[str, Any], allowed: Sequence[str], verified_issuers: Sequence[str] = ()) -> Refusal:
    """Why the person may not enter; empty for one who may.

    `allowed` holds addresses (`ann@example.com`), domains (`@example.com`, without those below them), or `*` for
    everybody who can sign in. An empty list admits nobody: most providers give an account to anyone. An address
    counts when the provider says that it is verified; one of which it says nothing (Microsoft Entra, where whoever
    administers a tenant writes what they like) only when `verified_issuers` names the issuer.
    """
    if not allowed:
        return "no_list"
    if "*" in allowed:
        return ""
    if not str(claims.get("email") or "").isascii():
        return "foreign_letters"  # small letters of some are ASCII's: the Kelvin sign becomes a k
    address = address_of(claims)
    if not address:
        return "no_address"
    if "email_verified" not in claims and claims.get("iss") not in verified_issuers:
        return "unsaid"
    if claims.get("email_verified", True) not in (True, "true"):
        return "unverified"
    entries = {entry.strip().lower() for entry in allowed}
    return "" if entries & {address, f"@{address.partition('@')[2]}"} else "not_listed"
