"""`And in Paris?`: where in the question before the new part belongs."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.english_about import topic
from rag.agent.condensing.phrases import PREPOSITIONS, Phrase, phrases

_SIDES: Final = frozenset(
    "price cost size limit name date reason author address capital population owner colour color weight height length "
    "width depth age speed cause result purpose effect rule rules deadline fee reward penalty duration location "
    "number amount maximum minimum advantage disadvantage risk benefit difference details history origin".split()
)
_PLACES: Final = ("in", "on", "at")
_PEOPLE: Final = re.compile(
    r"(?:children|kids|students|seniors|adults|members|non-members|visitors|tourists|foreigners|employees|interns"
    r"|teachers|veterans|families|groups|guests|pensioners|beginners|women|men|teenagers|babies|infants|residents|locals"
    r"|contractors|managers)$",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"(?:^|\b(?:does|did|do|is|are|was|were|has|have|had|can|could|will|would|should|may|of|than))\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_DAYS: Final = re.compile(
    r"^(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|weekdays|(?:public |bank )?holidays)$", re.IGNORECASE
)
_SEASONS: Final = re.compile(
    r"^(?:(?:19|20)\d\d|(?:the )?(?:summer|winter|spring|autumn|mornings?|evenings?|afternoons?)|january|february"
    r"|march|april"
    r"|may|june|july|august|september|october|november|december)$",
    re.IGNORECASE,
)
_WHEN: Final = re.compile(
    r"^(?:today|tomorrow|yesterday|tonight|now|(?:this|next|last) \w+|daily|weekly|monthly|yearly|annually|hourly"
    r"|online|offline|overnight)$",
    re.IGNORECASE,
)


def as_question(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}?"


def is_side(new: str) -> bool:
    """Whether it names a side of something without saying of what: `price`."""
    return new.lower().split()[-1:][0] in _SIDES if new.split() else False


def by_preposition(bare: str, frame: str) -> Phrase | None:
    first = bare.split()[0].lower() if bare.split() else ""
    if first not in PREPOSITIONS:
        return None
    like = _PLACES if first in _PLACES else (first,)
    found = [one for whole in (True, False) for one in phrases(frame, whole=whole) if one.preposition in like]
    return next((one for one in found if one.preposition == first), found[-1] if found else None)


def in_its_slot(bare: str, frame: str, answer: str) -> str:
    """Ask the frame again with `bare` in the place of what is like it; empty where it is like nothing in it."""
    first, _, after = bare.partition(" ")
    if first.lower() in PREPOSITIONS or _WHEN.match(first):
        bare = bare[:1].lower() + bare[1:]
    governed = first.lower() in PREPOSITIONS
    new = after if governed and after else bare
    slot = by_preposition(bare, frame)
    if slot is None and governed:
        return as_question(f"{frame.rstrip(' ?')} {bare}")
    if is_side(new):
        return as_question(f"what is {new} of {topic(frame, answer)}")
    slot = slot or _like(new, frame)
    if slot is None:
        return _beside(new, frame)
    if not governed and _is_one_of_several(slot, frame):
        return as_question(f"{frame.rstrip(' ?')}, and what about {new}")
    before = frame[: slot.start]
    if governed and slot.preposition and slot.preposition != first.lower():
        before = before.rstrip()[: -len(slot.preposition)] + f"{first} "
    return f"{before}{_determined(new, slot)}{frame[slot.end :]}"


def _beside(new: str, frame: str) -> str:
    """For whom or when the same is asked; nothing of what it may be else."""
    for words, preposition in ((_PEOPLE, "for "), (_DAYS, "on "), (_SEASONS, "in "), (_WHEN, "")):
        if words.search(new):
            return as_question(f"{frame.rstrip(' ?')} {preposition}{new}")
    return ""


def _determined(new: str, slot: Phrase) -> str:
    words = phrases(f"for {new}")
    wants = slot.kind == "determined" and words and words[0].text == new and words[0].kind == "bare"
    return f"the {new}" if wants and not words[0].plural else new


def _like(new: str, frame: str) -> Phrase | None:
    """The phrase of the frame that `new` can stand for: the same head, else the same kind, else the last."""
    found = phrases(frame, whole=False)
    words = phrases(f"for {new}")
    if not found or not words:
        return found[-1] if found and not _is_time(new) else None
    sample = words[0]
    same_head = [one for one in found if one.head == sample.head]
    numbers = [one for one in found if re.search(r"\d", one.text)] if re.search(r"\d", new) else []
    names = [one for one in found if one.kind == "name"] if sample.kind == "name" else []
    kinds = [one for one in found if one.kind == sample.kind]
    beside = [one for one in kinds if one.preposition][-1:] if sample.kind == "bare" else []
    for group in (same_head, numbers, names, beside, kinds):
        if group and _fits(sample, group[0], frame):
            return group[0]
    last = ([one for one in found if not one.preposition] or found)[-1] if sample.kind == "bare" else found[-1]
    return last if not _is_time(new) and _fits(sample, last, frame) else None


def _is_one_of_several(slot: Phrase, frame: str) -> bool:
    """Whether another name may be meant as well: of `install Skiff on Linux` either; a subject is what is compared."""
    if slot.kind != "name" or _SUBJECT.search(frame[: slot.start]):
        return False
    return any(one.kind == "name" and one.start != slot.start for one in phrases(frame, whole=False))


def _is_time(new: str) -> bool:
    return any(words.search(new) for words in (_DAYS, _SEASONS, _WHEN))


def _fits(sample: Phrase, slot: Phrase, frame: str) -> bool:
    """Whether the question would still be one: `refunds` do not open where `does the museum open` was asked."""
    if sample.kind != "bare" or slot.head == sample.head:
        return True
    if _PEOPLE.search(sample.text) or _is_time(sample.text):
        return bool(_PEOPLE.search(slot.text) or _is_time(slot.text))
    before = re.search(r"\b(does|is|was|has|do|are|were|have)\s*$", frame[: slot.start], re.IGNORECASE)
    if not before:
        return True
    return slot.kind == "bare" and sample.plural == slot.plural
