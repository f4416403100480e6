"""English follow-ups: pronouns, `one`, and questions of which only the new part is said."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.phrases import AUXILIARIES, PREPOSITIONS, VERBS, WH, Phrase, phrases, subject

_PERSONS: Final = r"he|she|him|her|his|hers"
_PRONOUN: Final = re.compile(
    rf"\b(?:it|its|they|them|their|theirs|{_PERSONS})\b"
    r"|\b(?:this|these|those)\b(?!\s+(?:year|month|week|time|page|site|website)\b)"
    r"|(?:^|\b(?:about|of|for|in|on|with|do|does|did|is|was|than|after|before|like|from|at|to|by))\s*\bthat\b"
    r"|\b(?:of|from|in|to|about|over|get|go|live|work|come|stay|happen\w*) there\b|\bones?\b(?=\W*$|\s+(?:of|in))",
    re.IGNORECASE,
)
_EXPLETIVE: Final = re.compile(
    r"\bit\s+(?:takes?|took|possible|true|necessary|allowed|safe|legal|mean|worth|likely|rain\w*|matter)\b"
    r"|\b(?:does|did|will|would)\s+it\s+(?:take|cost)\s+\w+\s+(?:\w+\s+)?to\b"
    r"|\b(?:does|did|will|would)\s+it\s+take\s+to\b|\bwhat time is it\b|\bthat\s+is\s+to\s+say\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"[,;]|\b(?:when|if|after|before|because|while|and|that|which|once|until|than)\b", re.I)
_LEAD: Final = re.compile(
    r"^\W*(?:(?:and|but|or|so|ok(?:ay)?|then|now|also|well)\b[\s,]*)*"
    r"(?:(?:what|how)\s+about\b|what\s+of\b|same\s+(?:question\s+)?for\b)?\s*",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(r"\b(?:what|how)\s+about\b|\bwhat\s+of\b|\bsame\s+(?:question\s+)?for\b", re.IGNORECASE)
_BARE: Final = re.compile(
    r"^(?:(?:since|until|by|for|from|in|at)\s+)?(?:why|when|where|who|how|how\s+\w+|what\s+for|which)(?:\s+not|\s+so)?$",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"^(?:(?:since|until|by|for|from|in|at|to|with|of)\s+)?"
    r"(?:how\s+(?:many|much|long|often|far|old|large|big|high|tall|fast|quickly|soon|early|late)"
    r"|what\s+(?:time|year|day|date)|which|what|who|when|where|why|how)\b",
    re.IGNORECASE,
)
_ATTRIBUTES: Final = frozenset(
    "price cost size limit name date reason author address capital population owner colour color weight height length "
    "width depth age speed cause result purpose effect rule rules deadline fee reward penalty duration location "
    "number amount maximum minimum advantage disadvantage risk benefit difference details history origin".split()
)
_PLACES: Final = ("in", "on", "at")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?]\s+)[\"“(]*")
_NAME: Final = re.compile(r"\b[A-Z][\w'’-]+(?:\s+(?:of\s+|the\s+|de\s+|von\s+)?[A-Z][\w'’-]+)*")


def points_back(question: str) -> bool:
    """Whether the question has a pronoun that it does not explain itself, or leaves its main part out."""
    bare = _LEAD.sub("", question).strip(" ?!.")
    if not bare or _BARE.match(bare) or _ABOUT.search(question[: len(question) - len(bare)]):
        return True
    if any(not _explained(question, match) for match in _PRONOUN.finditer(_without_expletives(question))):
        return True
    words = bare.lower().split()
    verbless = not set(words) & AUXILIARIES and words[0] not in WH
    led = bool(_LEAD.match(question)[0].strip())  # type: ignore[index]  # it matches the empty string too
    return verbless and len(words) <= 6 and (led or "?" in question) and (led or len(words) <= 4)


def _without_expletives(question: str) -> str:
    return _EXPLETIVE.sub(lambda match: re.sub(r"\b(?:it|that)\b", "--", match[0], flags=re.IGNORECASE), question)


def _explained(question: str, match: re.Match[str]) -> bool:
    """Whether a phrase of the question itself is what the pronoun stands for.

    That takes an earlier clause, or for `its` and `their` a name or subject before them.
    """
    pronoun = match[0].lower().split()[-1]
    many = pronoun in ("they", "them", "their", "theirs", "these", "those")
    before = [one for one in phrases(question) if one.end <= match.start()]
    fitting = [one for one in before if one.kind == "name" or one.plural == many]
    if pronoun in ("its", "their", "his", "her", "he", "she", "they") and _named_before(question, fitting, pronoun):
        return True
    return any(_CLAUSE.search(question, one.end, match.start()) for one in fitting if one.kind != "bare")


def _named_before(question: str, before: list[Phrase], pronoun: str) -> bool:
    """Whether `Tesla` stands before `his`, or the subject of the question before `its`."""
    if any(one.kind == "name" for one in before):
        return True
    main = subject(question)
    return pronoun in ("its", "their") and any(one == main or (pronoun == "their" and one.plural) for one in before)


def topic(frame: str, answer: str = "") -> str:
    """What the question `frame` was about, as it would be named again."""
    main = subject(frame)
    return (_answer_to_which(frame, answer) or (main.definite if main else "")).strip()


def resolved(question: str, frame: str, answer: str, known_topic: str | None = None) -> str:
    """The follow-up complete in itself, with what `frame`, the question before it, was about."""
    lead = _LEAD.match(question)
    about = bool(lead and _ABOUT.search(lead[0]))
    bare = question[lead.end() if lead else 0 :].strip().rstrip(" ?!.")
    if _BARE.match(bare):
        return _asked_anew(bare, frame)
    bare = _with_ones(bare, frame)
    words = bare.lower().split()
    fragment = about or (not set(words) & AUXILIARIES and words[0] not in WH)
    if not fragment:
        if _PRONOUN.search(bare):
            bare = _with_names(bare, frame, answer, known_topic)
        return _as_question(bare)
    if _PRONOUN.search(bare):
        bare = _with_names(bare, frame, answer, known_topic)
        if _is_attribute(bare):
            return _as_question(f"what is {bare}")
    if known_topic is not None:
        return _as_question(f"{bare} {known_topic}")
    return _in_its_slot(bare, frame, answer)


def _as_question(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}?"


def _asked_anew(bare: str, frame: str) -> str:
    """`Why?` after `When did it begin?`: the old question with the new question word."""
    rest = _ASKS.sub("", frame, count=1).strip()
    if rest == frame.strip():
        return _as_question(f"{bare}: {frame.rstrip(' ?')}")
    if rest.split()[:1] and rest.split()[0].lower() not in AUXILIARIES:  # `how many guests may …`: the noun goes too
        auxiliary = re.search(rf"\b(?:{'|'.join(sorted(AUXILIARIES))})\b.*", rest, re.IGNORECASE)
        rest = auxiliary[0] if auxiliary else rest
    return _as_question(f"{bare} {rest.rstrip(' ?')}")


def _with_ones(bare: str, frame: str) -> str:
    """`a critical one` takes its noun from the frame."""
    match = re.search(r"\bones?\b", bare, re.IGNORECASE)
    source = _slot_by_preposition(bare, frame) or subject(frame)
    if not match or source is None:
        return bare
    head, of, rest = source.bare.partition(" of ")
    noun = head.split(" ", 1)[-1] if " " in head else head
    return f"{bare[: match.start()]}{noun}{of}{rest}{bare[match.end() :]}"


def _with_names(bare: str, frame: str, answer: str, known_topic: str | None) -> str:
    """Put what they stand for in the place of the pronouns; only the first takes the full name."""
    shielded = _without_expletives(bare)
    for match in reversed(list(_PRONOUN.finditer(shielded))):
        if not _explained(bare, match):
            bare = _replaced(bare, match, frame, answer, known_topic)
    return bare


def _replaced(bare: str, match: re.Match[str], frame: str, answer: str, known_topic: str | None) -> str:
    lead, pronoun = match[0].rpartition(" ")[0], match[0].lower().split()[-1]
    name = known_topic or _antecedent(pronoun, frame, answer)
    if not name:
        return bare
    rest = bare[match.end() :]
    if pronoun in ("its", "their", "his") or (pronoun == "her" and re.match(r"\s+\w", rest)):
        name += "'" if name.endswith("s") else "'s"
    noun = re.match(r"\s+([A-Za-z-]+)", rest) if pronoun in ("this", "that", "these", "those") else None
    if noun and noun[1].lower() not in AUXILIARIES | PREPOSITIONS | VERBS:
        same = [one for one in phrases(frame) if one.head.rstrip("s") == noun[1].lower().rstrip("s")]
        name, rest = (same[0].definite if same else name), rest[noun.end() :]
    start = match.start() + len(lead)
    gap = " " if lead else ""
    return f"{bare[:start]}{gap}{name}{rest}"


def _antecedent(pronoun: str, frame: str, answer: str) -> str:
    if re.fullmatch(_PERSONS, pronoun):
        asked = re.match(r"\W*who\b", frame, re.IGNORECASE)
        return (_person(answer) if asked else "") or _person(frame) or _person(answer) or topic(frame)
    found = [one for one in phrases(frame) if one.kind != "counted"] or phrases(frame)
    if pronoun in ("they", "them", "their", "theirs", "these", "those"):
        plural = [one for one in phrases(frame) if one.plural]
        return plural[0].definite if plural else topic(frame, answer)
    if pronoun == "there":
        places = [one for one in phrases(frame, whole=False) if one.preposition in ("in", "at") or one.kind == "name"]
        return f"{'at' if places[-1].preposition == 'at' else 'in'} {places[-1].definite}" if places else topic(frame)
    chosen = _answer_to_which(frame, answer)
    main = subject(frame)
    if chosen or main is None or not main.plural:
        return chosen or topic(frame)
    singular = [one for one in found if not one.plural and (one.kind != "bare" or one.preposition)]
    return (singular[0] if singular else main).definite


def _person(text: str) -> str:
    """The first name in the text that is not just the word a sentence begins with."""
    begins = {match.end() for match in _SENTENCE_START.finditer(text)}
    names = [match[0] for match in _NAME.finditer(text) if match.start() not in begins or " " in match[0]]
    return re.sub(r"['’]s?$", "", names[0]) if names else ""


def _answer_to_which(frame: str, answer: str) -> str:
    """`Which plan …?` was answered by a name: that is what `it` means next."""
    match = re.match(r"\W*(?:which|what)\s+([a-z]+)\b", frame, re.IGNORECASE)
    if not match or match[1].lower() in AUXILIARIES:
        return ""
    noun = re.escape(match[1])
    named = re.search(rf"\b(?:[A-Z][\w-]*\s+)+{noun}\b|\b{noun}\s+[A-Z0-9][\w.]*\w", answer)
    return "the " + re.sub(r"^(?:The|A|An)\s+", "", named[0]) if named else ""


def _slot_by_preposition(bare: str, frame: str) -> Phrase | None:
    first = bare.split()[0].lower() if bare.split() else ""
    if first not in PREPOSITIONS:
        return None
    like = _PLACES if first in _PLACES else (first,)
    found = [one for one in phrases(frame) if one.preposition in like]
    return next((one for one in found if one.preposition == first), found[-1] if found else None)


def _in_its_slot(bare: str, frame: str, answer: str) -> str:
    """Ask the frame again with `bare` in the place of what is like it."""
    first, _, after = bare.partition(" ")
    governed = first.lower() in PREPOSITIONS
    new = after if governed and after else bare
    slot = _slot_by_preposition(bare, frame)
    if slot is None and governed:
        return _as_question(f"{frame.rstrip(' ?')} {bare}")
    slot = slot or _like(new, frame)
    if slot is None or _is_attribute(new):
        return _as_question(f"what is {new} of {topic(frame, answer)}" if _is_attribute(new) else f"{new}: {frame}")
    before = frame[: slot.start]
    if governed and slot.preposition and slot.preposition != first.lower():
        before = before.rstrip()[: -len(slot.preposition)] + f"{first} "
    return f"{before}{_determined(new, slot)}{frame[slot.end :]}"


def _is_attribute(new: str) -> bool:
    return new.lower().split()[-1] in _ATTRIBUTES


def _determined(new: str, slot: Phrase) -> str:
    words = phrases(f"for {new}")
    wants = slot.kind == "determined" and words and words[0].text == new and words[0].kind == "bare"
    return f"the {new}" if wants and not words[0].plural else new


def _like(new: str, frame: str) -> Phrase | None:
    """The phrase of the frame that `new` can stand for: the same head, else the same kind, else the last."""
    found = phrases(frame, whole=False)
    words = phrases(f"for {new}")
    if not found or not words:
        return found[-1] if found else None
    sample = words[0]
    same_head = [one for one in found if one.head == sample.head]
    numbers = [one for one in found if re.search(r"\d", one.text)] if re.search(r"\d", new) else []
    names = [one for one in found if one.kind == "name"] if sample.kind == "name" else []
    kinds = [one for one in found if one.kind == sample.kind]
    beside = [one for one in kinds if one.preposition][-1:] if sample.kind == "bare" else []
    for group in (same_head, numbers, names, beside, kinds):
        if group:
            return group[0]
    return found[-1]
