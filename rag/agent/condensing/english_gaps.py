"""What an English follow-up leaves to the question before it: a pronoun's meaning, or all but the new part."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.phrases import AUXILIARIES, PREPOSITIONS, VERBS, WH, Phrase, phrases, subject

MARKS: Final = " ?!.…,;:-–—"
PRONOUN: Final = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|she|him|her|his|hers)\b"
    r"|\b(?:this|these|those)\b(?!\s+(?:year|month|week|time|page|site|website)\b)"
    r"|(?:^|\b(?:about|of|for|in|on|with|do|does|did|is|was|than|after|before|like|from|at|to|by|if))"
    r"\s*\bthat\b(?!\s+\w+\s+(?:from|by|where|called|whose|who)\b)"
    r"|\b(?:of|from|in|to|about|over|get|go|live|work|come|stay|happen\w*) there\b"
    r"|\bones?\b(?=\W*$|\s+(?:of|in)\b(?!\s+(?:the|my|our|your|his|her|its|their|these|those)\b))",
    re.IGNORECASE,
)
_EXPLETIVE: Final = re.compile(
    r"\bit\s+(?:takes?|took|possible|true|necessary|allowed|safe|legal|mean|worth|likely|rain\w*|matter)\b"
    r"|\b(?:does|did|will|would)\s+it\s+(?:take|cost)\s+\w+\s+(?:\w+\s+)?to\b"
    r"|\b(?:does|did|will|would)\s+it\s+take\s+to\b|\bwhat time is it\b|\bthat\s+is\s+to\s+say\b",
    re.IGNORECASE,
)
TO_DO: Final = re.compile(
    r"\b(?P<it>it|that|this)\s+(?:(?:usually|normally|typically|really|also|still)\s+)?"
    r"(?:(?P<takes>take|cost)(?:\s+long)?|possible"
    r"|(?P<may>necessary|required|allowed|safe|legal|hard|difficult|easy|worth(?:\s+it)?))"
    r"(?P<where>\s+(?:on|in|for|with|from|at|without|by|during)\s+(?!.*\bto\s+[a-z]).+)?$",
    re.IGNORECASE,
)
"""`How long does it take`: what is to be done is left out."""
_CLAUSE: Final = re.compile(r"[,;]|\b(?:when|if|after|before|because|while|and|that|which|once|until|than)\b", re.I)
LEAD: Final = re.compile(
    r"^\W*(?:(?:and|but|or|so|ok(?:ay)?|then|now|also|well)\b[\s,]*)*"
    r"(?:(?:what|how)\s+about\b|what\s+of\b|same\s+(?:question\s+)?for\b)?\s*",
    re.IGNORECASE,
)
ABOUT: Final = re.compile(r"\b(?:what|how)\s+about\b|\bwhat\s+of\b|\bsame\s+(?:question\s+)?for\b", re.IGNORECASE)
_MORE: Final = re.compile(
    r"^(?:(?:can|could|would)\s+you\s+)?(?:please\s+)?"
    r"(?:(?:what|any(?:thing|one|where)?|who|where)\s+(?:else|more|others?)"
    r"|(?:tell\s+me\s+|say\s+|give\s+me\s+|show\s+me\s+)?more(?:\s+details?)?(?:\s+about\s+(?:it|that|this))?"
    r"|go\s+on|continue|elaborate|really|(?:are\s+you\s+)?sure|is\s+(?:that|this)\s+(?:true|right|correct|so))"
    r"(?:\s+please)?$",
    re.IGNORECASE,
)
BARE: Final = re.compile(
    r"^(?:(?:since|until|by|for|from|in|at)\s+)?"
    r"(?:why|when|where|who|how|how\s+\w+|what\s+for|which)(?:\s+not|\s+so)?$",
    re.IGNORECASE,
)
_FORMER: Final = re.compile(
    r"\bthe\s+(?:(?P<first>former|first\s+one)(?=\s*$|['’]s\b|\s+(?P<next>\w+))"
    r"|(?P<last>latter)(?!\s+(?:half|part|days|years|stages?)\b|-)"
    r"|(?P<second>second\s+one)(?=\s*$|['’]s\b|\s+(?P<after>\w+)))",
    re.IGNORECASE,
)
_MORE_OR_LESS: Final = (
    r"(?:the\s+)?(?:(?:much|far)\s+)?"
    r"(?:(?:more|most|less|least)\s+\w+|better|best|worse|worst|first|\w{2,}er|\w{2,}est)"
)
_CHOICE: Final = re.compile(
    r"^(?:which|who|what)(?:\s+(?:one|of\s+(?:them|the\s+two|these|those|both)))?\s+"
    r"(?:(?:is|are|was|were|would\s+be|will\s+be|runs?|lasts?|works?|performs?|came|looks?|sounds?|tastes?)"
    rf"\s+{_MORE_OR_LESS}(?:\s+(?:choice|option|one|deal))?"
    r"|(?:has|have|costs?|weighs?|needs?|uses?)\s+(?:the\s+)?"
    r"(?:more|most|less|least|fewer|fewest|better|best|\w+er|\w+est)(?:\s+\w+)?)$"
    r"|^which(?:\s+one)?\s+(?:should|would|do|can|could|must)\s+(?:i|you|we|one)\s+\w+$",
    re.IGNORECASE,
)
OF_WHAT: Final = re.compile(
    r"^(?:what|who|where)(?:\s+(?:is|are|was|were)|['’]s)\s+the\s+"
    r"(?:(?:maximum|minimum|main|average|total|current|biggest|side|default|normal|recommended|daily|annual|monthly"
    r"|typical|exact|full|standard|common|most\s+common|total)\s+)?"
    r"(?:price|cost|size|author|capital|population|owner|founder|colou?r|weight|height|length|width|depth|speed|cause"
    r"|purpose|effect|deadline|fee|duration|advantage|disadvantage|benefit|drawback|risk|limit|limitation|requirement"
    r"|ingredient|symptom|feature|origin|history|headquarters|default|exception|consequence|alternative|area|dose"
    r"|dosage|rate|temperature|salary|currency|climate|time\s+zone|port|licen[sc]e|syntax|difference|similarit(?:y|ie)"
    r"|warranty|meaning|opening\s+hour|use|application|component|pro|con|penalt(?:y|ie)|step|address)s?$",
    re.IGNORECASE,
)


def points_back(question: str) -> bool:
    """Whether the question has a pronoun that it does not explain itself, or leaves its main part out."""
    bare = LEAD.sub("", question).strip(MARKS)
    if says_nothing_new(question) or BARE.match(bare) or ABOUT.search(question[: len(question) - len(bare)]):
        return True
    if TO_DO.search(bare) or chooses(bare) or OF_WHAT.match(bare) or names_side(bare):
        return True
    if any(not explained(question, match) for match in PRONOUN.finditer(without_expletives(question))):
        return True
    words = bare.lower().split()
    verbless = not set(words) & AUXILIARIES and words[0] not in WH
    led = bool(LEAD.match(question)[0].strip())  # type: ignore[index]  # it matches the empty string too
    return verbless and len(words) <= 6 and (led or "?" in question) and (led or len(words) <= 4)


def says_nothing_new(question: str) -> bool:
    """`And?`, `what about?`, `tell me more`: the question before is to be answered once more, or further."""
    bare = LEAD.sub("", question).strip(MARKS)
    return not re.search(r"\w", bare) or bool(_MORE.match(bare))


def chooses(bare: str) -> bool:
    """`Which one is faster`, `which should I use`."""
    one = re.match(r"which\s+(?:one|of\s+the\s+two)\b(?!\s+of\s+(?:the|my|our|your)\b)", bare, re.IGNORECASE)
    return bool(one or _CHOICE.match(bare))


def names_side(bare: str) -> bool:
    """`Is the latter faster`, `do both support it`; not `the former president`, `both parents`."""
    if former(bare):
        return True
    both = re.match(r"(?:do|does|can|did|will|are|were|is|have)\s+(?:both|either)\s+(?P<next>\w+)", bare, re.IGNORECASE)
    if not both:
        return bool(re.match(r"(?:which|what|how|why|when|where)\b.*\b(?:both|either)$", bare, re.IGNORECASE))
    return both["next"].lower() in VERBS | {"of"} or both.end() == len(bare)


def former(bare: str) -> re.Match[str] | None:
    """`the latter`, and `the former` where no noun follows it."""
    match = _FORMER.search(bare)
    word = (match["next"] or match["after"] or "").lower() if match else ""
    if match is None or not word:
        return match
    verb = word in AUXILIARIES | PREPOSITIONS | VERBS | {
        "better",
        "worse",
        "free",
        "safe",
        "more",
        "less",
        "also",
        "need",
    }
    return match if verb or re.search(r"(?:er|[^s]s)$", word) else None


def without_expletives(question: str) -> str:
    return _EXPLETIVE.sub(lambda match: re.sub(r"\b(?:it|that)\b", "--", match[0], flags=re.IGNORECASE), question)


def explained(question: str, match: re.Match[str]) -> bool:
    """Whether a phrase of the question itself is what the pronoun stands for.

    That takes an earlier clause, or for `its` and `their` a name or subject before them.
    """
    pronoun = match[0].lower().split()[-1]
    many = pronoun in ("they", "them", "their", "theirs", "these", "those")
    before = [one for one in phrases(question) if one.end <= match.start()]
    fitting = [one for one in before if one.kind == "name" or one.plural == many or (many and _is_anyone(one))]
    if pronoun in ("its", "their", "his", "her", "he", "she", "they") and _named_before(question, fitting, pronoun):
        return True
    return any(_CLAUSE.search(question, one.end, match.start()) for one in fitting if one.kind != "bare")


def _is_anyone(phrase: Phrase) -> bool:
    """`A user` and `every member` may be `they`."""
    return phrase.text.split()[0].lower() in ("a", "an", "any", "each", "every")


def _named_before(question: str, before: list[Phrase], pronoun: str) -> bool:
    """Whether `Tesla` stands before `his`, or the subject of the question before `its`."""
    if any(one.kind == "name" for one in before):
        return True
    main = subject(question)
    return pronoun in ("its", "their") and any(
        one == main or (pronoun == "their" and (one.plural or _is_anyone(one))) for one in before
    )
