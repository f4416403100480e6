"""English follow-ups completed: pronouns, `one`, and questions of which only the new part is said."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.about import About
from rag.agent.condensing.english_about import about, antecedent, doing, plainly, several, together
from rag.agent.condensing.english_gaps import (
    ABOUT,
    BARE,
    LEAD,
    MARKS,
    OF_WHAT,
    PRONOUN,
    TO_DO,
    chooses,
    explained,
    former,
    names_side,
    without_expletives,
)
from rag.agent.condensing.english_slots import as_question, by_preposition, in_its_slot, is_side
from rag.agent.condensing.phrases import AUXILIARIES, PREPOSITIONS, VERBS, WH, phrases, subject

_AT_MOST: Final = 8  # pronouns of one question
_DO_THAT: Final = re.compile(r"\bdo\s+(?:that|this|it|so)\b(?!\s+(?:for|with)\b)", re.IGNORECASE)
_DOING_THAT: Final = re.compile(
    r"\b(?:that|this|it)(?=\s+(?:fails?|failed|(?:does\s*n[o']t|doesn’t|did\s*n[o']t)\s+(?:work|help)))"
    r"|(?:(?<=\bfor\s)|(?<=\bbefore\s)|(?<=\bafter\s)|(?<=\bwithout\s))that$",
    re.IGNORECASE,
)
_SAID_OF: Final = re.compile(
    r"possible|free|safe|true|legal|necessary|allowed|good|bad|normal|enough|included|available|expensive|cheap"
    r"|important|common|dangerous|correct|right|hard|easy"
    r"|also|always|still|really|not|better|worse|faster|\w+ly|\w+ing",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"^(?:(?:since|until|by|for|from|in|at|to|with|of)\s+)?"
    r"(?:how\s+(?:many|much|long|often|far|old|large|big|high|tall|fast|quickly|soon|early|late)"
    r"|what\s+(?:time|year|day|date)|which|what|who|when|where|why|how)\b",
    re.IGNORECASE,
)
_BOTH: Final = re.compile(
    r"\b(?:both(?:\s+of\s+(?:them|these|those))?|the\s+two|either(?:\s+of\s+them)?)\b", re.IGNORECASE
)


def resolved(question: str, frame: str, answer: str, known: About | None = None) -> str:
    """The follow-up complete in itself, or as it is where no rule fits.

    `frame` is the question before it; `known` what that was about if it was in another language.
    """
    frame = plainly(frame)
    lead = LEAD.match(question)
    asks_about = bool(lead and ABOUT.search(lead[0]))
    bare = question[lead.end() if lead else 0 :].strip().rstrip(MARKS)
    if BARE.match(bare):
        return question if known else _asked_anew(bare, frame)
    if chooses(bare):
        return _chosen(bare, frame, known or about(frame, answer)) or question
    if whole := _with_what_is_left_out(bare, known or about(frame, answer)):
        return whole
    asked, bare = bare, _with_ones(bare, frame)
    words = bare.lower().split()
    fragment = asks_about or (not set(words) & AUXILIARIES and words[0] not in WH)
    if PRONOUN.search(bare):
        bare = _with_names(bare, frame, answer, known)
        if not fragment or is_side(bare):
            return as_question(f"what is {bare}" if fragment else bare)
    elif not fragment:
        return as_question(bare) if bare != asked or (lead and lead[0].strip()) else question
    if known is not None:
        return as_question(f"what is {bare} of {known.topic}") if known.topic and is_side(bare) else question
    return in_its_slot(bare, frame, answer) or question


def _with_what_is_left_out(bare: str, known: About) -> str:
    """Of what, of which, or what to do; empty where nothing of that kind is left out."""
    if (to_do := TO_DO.search(bare)) and (whole := _with_deed(bare, to_do, known)):
        return as_question(whole)
    if known.deed and (does := _DO_THAT.search(bare)):
        return as_question(f"{bare[: does.start()]}{known.deed}{bare[does.end() :]}")
    if known.deed and (fails := _DOING_THAT.search(bare)):
        return as_question(f"{bare[: fails.start()]}{doing(known.deed)}{bare[fails.end() :]}")
    if one := former(bare):
        side = known.sides[0 if one["first"] else -1] if len(known.sides) == 2 else one[0]
        return as_question(f"{bare[: one.start()]}{side}{bare[one.end() :]}")
    if names_side(bare) and known.sides:
        return as_question(_BOTH.sub(together(known.sides), bare, count=1))
    if OF_WHAT.match(bare) and known.topic and not PRONOUN.search(bare):
        between = re.search(r"\bdifferences?$", bare) and len(known.sides) > 1
        return as_question(f"{bare} {'between' if between else 'of'} {known.topic}")
    return ""


def _with_deed(bare: str, match: re.Match[str], known: About) -> str:
    """`Is it safe for children`: to do what, or what is."""
    at = match.start("where") if match["where"] else len(bare)
    if known.deed:
        return f"{bare[:at]} to {known.deed}{bare[at:]}"
    if (match["may"] or match["takes"]) and known.topic:
        return f"{bare[: match.start('it')]}{known.topic}{bare[match.end('it') :]}"
    return ""


def _chosen(bare: str, frame: str, known: About) -> str:
    """`Which is faster, TCP or UDP`, or `which of the plans is cheapest`; empty where no two were named."""
    bare = re.sub(r"^(\w+)\s+of\s+(?:them|the\s+two|these|those|both)\b", r"\1", bare, flags=re.IGNORECASE)
    if len(known.sides) > 1:
        return as_question(f"{bare}, {together(known.sides, 'or')}")
    them = several(frame)
    return as_question(re.sub(r"^which(?:\s+one)?\b", f"which of {them}", bare, flags=re.IGNORECASE)) if them else ""


def _asked_anew(bare: str, frame: str) -> str:
    """`Why?` after `When did it begin?`: the old question with the new question word."""
    rest = _ASKS.sub("", frame, count=1).strip()
    if rest == frame.strip():
        return as_question(f"{bare}: {frame.rstrip(' ?')}")
    if rest.split()[:1] and rest.split()[0].lower() not in AUXILIARIES:  # `how many guests may …`: the noun goes too
        auxiliary = re.search(rf"\b(?:{'|'.join(sorted(AUXILIARIES))})\b.*", rest, re.IGNORECASE)
        rest = auxiliary[0] if auxiliary else rest
    return as_question(f"{bare} {rest.rstrip(' ?')}")


def _with_ones(bare: str, frame: str) -> str:
    """`a critical one` takes its noun from the frame."""
    match = re.search(r"\bones?\b", bare, re.IGNORECASE)
    source = by_preposition(bare, frame) or subject(frame)
    if not match or source is None:
        return bare
    head, of, rest = source.bare.partition(" of ")
    noun = head.split(" ", 1)[-1] if " " in head else head
    return f"{bare[: match.start()]}{noun}{of}{rest}{bare[match.end() :]}"


def _with_names(bare: str, frame: str, answer: str, known: About | None) -> str:
    """Put what they stand for in the place of the pronouns; only the first takes the full name."""
    shielded = without_expletives(bare)
    for match in reversed(list(PRONOUN.finditer(shielded))[:_AT_MOST]):
        if not explained(bare, match):
            bare = _replaced(bare, match, frame, answer, known)
    return bare


def _replaced(bare: str, match: re.Match[str], frame: str, answer: str, known: About | None) -> str:
    lead, pronoun = match[0].rpartition(" ")[0], match[0].lower().split()[-1]
    name = _known(pronoun, known) if known else antecedent(pronoun, frame, answer)
    if not name:
        return bare
    rest = bare[match.end() :]
    if pronoun in ("its", "their", "his") or (pronoun == "her" and re.match(r"\s+\w", rest)):
        name += "'" if name.endswith("s") else "'s"
    noun = re.match(r"\s+([A-Za-z-]+)", rest) if pronoun in ("this", "that", "these", "those") else None
    if noun and noun[1].lower() not in AUXILIARIES | PREPOSITIONS | VERBS and not _SAID_OF.fullmatch(noun[1]):
        same = [one for one in phrases(frame) if one.head.rstrip("s") == noun[1].lower().rstrip("s")]
        name, rest = (same[0].definite if same else name), rest[noun.end() :]
    start = match.start() + len(lead)
    gap = " " if lead else ""
    return f"{bare[:start]}{gap}{name}{rest}"


def _known(pronoun: str, known: About) -> str:
    return known.person if pronoun in ("he", "she", "him", "her", "his", "hers") else known.topic
