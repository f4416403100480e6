"""Access control based on a user's OpenID Connect claims."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag.text import lazy_regex

Refusal = Literal["", "no_list", "no_address", "foreign_letters", "unverified", "unsaid", "not_listed"]

_ADDRESS = lazy_regex(r"[^\s@]+@[^\s@]+")
_SUBJECT = lazy_regex(r"[^\s@:]*@[^\s@]+|group:\S.{0,100}")


@dataclass(frozen=True, slots=True)
class Person:
    """A signed-in user. `owner` identifies their conversations; `name` and `address` are for display.

    `subjects` are the names by which grants refer to the user: `ann@example.com`, `@example.com`, `group:editors`.
    An admin (`is_admin`) may do everything.
    """

    owner: str
    name: str
    address: str
    subjects: frozenset[str] = frozenset()
    is_admin: bool = False


def build_person(
    claims: Mapping[str, Any],
    *,
    admins: Sequence[str] = (),
    verified_issuers: Sequence[str] = (),
    groups_claim: str = "groups",
) -> Person:
    """Return the user that the claims describe.

    The address becomes a subject if `find_refusal` accepts it. `owner` is derived from issuer and subject, the only
    pair that is stable and never reassigned (OpenID Connect Core 1.0, section 5.7), else from the address.
    """
    address = extract_email(claims)
    name = " ".join(str(claims.get("name") or address or claims.get("sub") or "").split())
    subject = str(claims.get("sub") or "")
    identity = f"{claims.get('iss') or ''}\n{subject}" if subject else f"address\n{address}"
    owner = hashlib.sha256(identity.encode()).hexdigest()[:32]
    groups = claims.get(groups_claim) or ()
    subjects = {f"group:{group}".lower() for group in ([groups] if isinstance(groups, str) else groups)}
    if address and not find_refusal(claims, [address], verified_issuers):
        subjects |= {address, f"@{address.partition('@')[2]}"}
    is_admin = bool(admins) and not find_refusal(claims, admins, verified_issuers)
    return Person(owner, name, address, frozenset(subjects), is_admin)


def parse_subject(text: str) -> str:
    """Normalise the subject of a grant (address, @domain or group); return "" for anything else."""
    plain = " ".join(text.split()).lower()
    return plain if _SUBJECT.fullmatch(plain) else ""


def extract_email(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address in lower case, or an empty string if it is missing or malformed."""
    address = str(claims.get("email") or "").strip().lower()
    return address if _ADDRESS.fullmatch(address) else ""


def find_refusal(claims: Mapping[str, Any], allowed: Sequence[str], verified_issuers: Sequence[str] = ()) -> Refusal:
    """Return the reason for denying access, or "" to grant it.

    `allowed` contains addresses (`ann@example.com`), domains (`@example.com`, not subdomains), or `*` for everyone who
    can sign in. An empty list denies everyone, since most providers let anyone register. Except for `*`, the provider
    must report the address as verified. If it reports nothing (Microsoft Entra, where tenant administrators can set any
    address), `verified_issuers` must contain the issuer.
    """
    if not allowed:
        return "no_list"
    if "*" in allowed:
        return ""
    if not str(claims.get("email") or "").isascii():
        return "foreign_letters"  # lower-casing makes some ASCII: the Kelvin sign becomes k
    address = extract_email(claims)
    if not address:
        return "no_address"
    if "email_verified" not in claims and claims.get("iss") not in verified_issuers:
        return "unsaid"
    if claims.get("email_verified", True) not in (True, "true"):
        return "unverified"
    entries = {entry.strip().lower() for entry in allowed}
    return "" if entries & {address, f"@{address.partition('@')[2]}"} else "not_listed"
