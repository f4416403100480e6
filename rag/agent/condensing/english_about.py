"""What an English question was about: its subject, its person, the things it compares, what was to be done."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.about import About
from rag.agent.condensing.phrases import AUXILIARIES, VERBS, Phrase, phrases, subject

_OPENS: Final = re.compile(
    r"^\W*(?:please\s+)?(?:explain|describe|define|summari[sz]e|list|show\s+me"
    r"|tell\s+me(?:\s+about)?|give\s+me)\s+(?=\w)"
    r"(?!(?:what|who|where|how|when|why|which|if|whether)\b)",
    re.IGNORECASE,
)
_VERSUS: Final = re.compile(
    r"^\W*(?P<a>[\w .+#-]+?)\s+(?:vs\.?|versus)\s+(?P<b>[\w .+#-]+?)(?=[:?,]|\.?\s*$|\s+(?:for|in|on|which|what)\b)",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"\s*(?:,\s*)?(?:and|or|&|vs\.?|versus|compared\s+(?:to|with)|,)\s*", re.IGNORECASE)
_COMPARED: Final = re.compile(
    r"\s*(?:(?:compare[sd]?|differs?|differ(?:ent|ence))\s+)?(?:with|to|from|than)\s*", re.IGNORECASE
)
_COMPARES: Final = re.compile(
    r"\b(?:compare[sd]?|differ\w*|different|\w+er)\b(?=[^?]*\b(?:with|to|from|than)\b)", re.IGNORECASE
)
_JUDGED: Final = (
    r"(?:(?:more|less|most|the)\s+)?(?:better|best|worse|free|safe|open|available|good|the same|similar|different"
    r"|compatible|healthy|reliable|secure"
    r"|(?:fast|cheap|saf|larg|small|old|young|new|strong|high|long|short|light|heavi|healthi|easi|quick|slow|bigg|tall"
    r"|warm|cold)(?:er|est))"
)
_BESIDE: Final = ("", "between", "of", "for", "about", "from", "with", "than", "to")
_HOW_TO: Final = re.compile(
    r"^\W*(?:please\s+)?(?:(?:how|where|when|what|why|which)\b.*?\b)?"
    r"(?:(?:do|can|should|could|may|must|would|might)\s+(?:i|you|we|one|people)|(?<=how\s)to)\s+(?P<deed>[a-z][^?]*)",
    re.IGNORECASE,
)
_HOLLOW: Final = re.compile(
    r"^the\s+(?:\w+\s+)?(?:price|cost|size|date|reason|colou?r|weight|height|length|width|depth|age|speed|cause|result"
    r"|purpose|effect"
    r"|difference|number|amount|history|origin|population|meaning|definition|area|duration|value|advantage|benefit|use"
    r"|role|point|function)s?"
    r"\s+(?:of|for|between)\s+(?P<thing>.+)$",
    re.IGNORECASE,
)
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?]\s+)[\"“(]*")
_NAME: Final = re.compile(
    r"\b(?:[A-Z]\.\s*)*[A-Z][\w'’-]+(?:\s+(?:of\s+|the\s+|de\s+|von\s+|van\s+|da\s+)?[A-Z][\w'’.-]+)*"
)
_ANSWERS_WITH: Final = re.compile(rf"(?P<name>{_NAME.pattern})(?=\s*(?:\[\d+\])?\.?\s*$|\s+(?:is|was|has|are)\b)")
_NOT_A_NAME: Final = re.compile(r"^(?:The|A|An|In|On|At|It|This|That|Yes|No|I|He|She|They|We)\b\s*")
_WHO: Final = re.compile(r"^\W*who\b", re.IGNORECASE)
_WHO_DID: Final = re.compile(r"^\W*who\s+(?P<deed>(?!is\b|are\b|was\b|were\b)[a-z][^?]*)", re.IGNORECASE)
_WHO_IS: Final = re.compile(r"^\W*who(?:\s+(?:is|was)|['’]s)\s+(?P<role>(?:the|a|an)\s+[^?]+)", re.IGNORECASE)
_IRREGULAR: Final = {"lie": "lying", "die": "dying", "tie": "tying"}


def plainly(frame: str) -> str:
    """The question without what only leads to it, and with its verb in full: `What's …` as `What is …`."""
    frame = re.sub(r"^(\W*(?:what|who|where|how|when))['’]s\b", r"\1 is", frame, flags=re.IGNORECASE)
    return _OPENS.sub("", frame) or frame


def about(frame: str, answer: str = "") -> About:
    frame = plainly(frame)
    return About(topic(frame, answer), person(frame, answer) or topic(frame, answer), sides(frame), deed(frame))


def topic(frame: str, answer: str = "") -> str:
    """What the question `frame` was about, as it would be named again; of `the price of tea`, the tea."""
    main = subject(frame)
    named = (answer_to_which(frame, answer) or (main.definite if main else "")).strip()
    hollow = _HOLLOW.match(named)
    if main and (hollow or main.head.startswith(("differen", "similarit"))) and (pair := sides(frame)):
        return together(pair)
    return hollow["thing"] if hollow else named


def together(names: tuple[str, ...], word: str = "and") -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def sides(frame: str) -> tuple[str, ...]:
    """`TCP` and `UDP`, of `the difference between TCP and UDP`; nothing where no two nouns stand side by side."""
    if versus := _VERSUS.match(frame):
        return versus["a"].strip(), versus["b"].strip()
    compares = bool(_COMPARES.search(frame))
    chain: list[Phrase] = []
    for one in phrases(frame, whole=False):
        between = frame[chain[-1].end : one.start] if chain else ""
        if chain and (_BETWEEN.fullmatch(between) or (compares and _COMPARED.fullmatch(between))):
            chain.append(one)
        elif len(chain) < 2:
            chain = [one] if one.preposition in _BESIDE else []
        else:
            break
    judged = compares or re.match(r"\W*(?:is|are|was|were|which|what|who)\b", frame, re.IGNORECASE)
    names = [_unjudged(one.definite) if judged else one.definite for one in chain]
    return tuple(names) if len(names) > 1 else ()


def _unjudged(name: str) -> str:
    """`Podman`, of `compare Podman`, and `MySQL`, of `MySQL better`."""
    return re.sub(rf"^(?:compare)\s+|(?<=\w)\s+{_JUDGED}$", "", name, flags=re.IGNORECASE)


def several(frame: str) -> str:
    """What `they` are: the things named together, else the first that are many."""
    if pair := sides(frame):
        return together(pair)
    plural = [one for one in phrases(frame) if one.plural]
    if plural:
        hollow = _HOLLOW.match(plural[0].definite)
        return hollow["thing"] if hollow else plural[0].definite
    return ""


def deed(frame: str) -> str:
    """`install Docker on Ubuntu`, of `How do I install Docker on Ubuntu?`."""
    match = _HOW_TO.match(frame.strip())
    return match["deed"].strip(" .!") if match else ""


def doing(done: str) -> str:
    """`installing Docker`, of `install Docker`."""
    verb, _, rest = done.partition(" ")
    if verb in _IRREGULAR:
        form = _IRREGULAR[verb]
    elif re.search(r"[^aeiouy]e$|ue$", verb):
        form = f"{verb[:-1]}ing"
    elif re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]|.*(?:set|get|mit|gin|put|cut|run|fer)", verb):
        form = f"{verb}{verb[-1]}ing"
    else:
        form = f"{verb}ing"
    return f"{form} {rest}".strip()


def person(frame: str, answer: str) -> str:
    """Who `he` or `she` is: named by the answer where the question asked who, else by the question."""
    if _WHO.match(frame):
        return person_in(answer, frame) or _who_that_is(frame)
    return person_in(frame) or person_in(answer, frame)


def _who_that_is(frame: str) -> str:
    """`the person who wrote Dune`, where no answer tells a name."""
    if role := _WHO_IS.match(frame):
        return role["role"].strip()
    did = _WHO_DID.match(frame)
    return f"the person who {did['deed'].strip()}" if did else ""


def person_in(text: str, frame: str = "") -> str:
    """The first name in the text that the question did not hold, and that is not just a sentence's first word."""
    text = re.sub(r"\[\d+\]|[*_`]", "", text)
    if by := re.search(rf"\bby\s+(?P<name>{_NAME.pattern})", text):
        return _plain(by["name"])
    if frame and (doer := _first_word(text, frame)):
        return doer
    begins = {match.end() for match in _SENTENCE_START.finditer(text)}
    found = [match[0] for match in _NAME.finditer(text) if match.start() not in begins or " " in match[0]]
    names = [name for name in map(_plain, found) if name and not (frame and name.lower() in frame.lower())]
    return names[0] if names else ""


def _plain(name: str) -> str:
    return re.sub(r"['’]s?$", "", _NOT_A_NAME.sub("", name)).strip(" .")


def _first_word(text: str, frame: str) -> str:
    """`Bell`, of `Bell invented it.` after `Who invented …?`, or of `Bell.`."""
    name = _NAME.match(text.strip())
    did = _WHO_DID.match(frame)
    if not name or _NOT_A_NAME.match(name[0]):
        return ""
    rest = text.strip()[name.end() :].strip(" .!")
    verb = did["deed"].split()[0].lower() if did else ""
    return _plain(name[0]) if not rest or (verb and rest.lower().startswith(verb)) else ""


def antecedent(pronoun: str, frame: str, answer: str) -> str:
    """What the pronoun stands for after `frame`, or nothing."""
    if pronoun in ("he", "she", "him", "her", "his", "hers"):
        return person(frame, answer) or topic(frame)
    found = [one for one in phrases(frame) if one.kind != "counted"] or phrases(frame)
    if pronoun in ("they", "them", "their", "theirs", "these", "those"):
        return several(frame) or topic(frame, answer)
    if pronoun == "there" and (chosen := answer_to_which(frame, answer)):
        return f"in {chosen}"
    if pronoun == "there":
        places = [one for one in phrases(frame, whole=False) if one.preposition in ("in", "at") or one.kind == "name"]
        return f"{'at' if places[-1].preposition == 'at' else 'in'} {places[-1].definite}" if places else topic(frame)
    chosen = answer_to_which(frame, answer)
    main = subject(frame)
    if chosen or main is None or not main.plural:
        return chosen or topic(frame)
    singular = [one for one in found if not one.plural and (one.kind != "bare" or one.preposition)]
    return (singular[0] if singular else main).definite


def answer_to_which(frame: str, answer: str) -> str:
    """`Which plan …?` was answered by a name: that is what `it` means next."""
    match = re.match(r"\W*(?:which|what)\s+([a-z]+)\b", frame, re.IGNORECASE)
    if not match or match[1].lower() in AUXILIARIES | VERBS:
        return ""
    alone = _ANSWERS_WITH.match(answer.strip())
    if alone and not _NOT_A_NAME.match(alone["name"]):
        return alone["name"]
    noun = re.escape(match[1])
    named = re.search(rf"\b(?:[A-Z][\w-]*\s+)+{noun}\b|\b{noun}\s+[A-Z0-9][\w.]*\w", answer)
    return "the " + re.sub(r"^(?:The|A|An)\s+", "", named[0]) if named else ""
