"""The phrases of an English question that another may point back to, found without a parser."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["name", "determined", "counted", "bare"]

_WORD: Final = re.compile(r"[A-Za-z0-9](?:[\w'’.-]*\w)?|[€$£%]")
_DETERMINERS: Final = frozenset("a an the our my your some any each every all another no".split())
AUXILIARIES: Final = frozenset(
    "do does did is are was were be been being am can could will would shall should may might must has have had".split()
)
_INVERTING: Final = frozenset("do does did can could will would should may might must".split())
WH: Final = frozenset("what which who whom whose when where why how".split())
PREPOSITIONS: Final = frozenset(
    "in on at to for by with from of about into onto within without after before during since until under over "
    "between among through against beyond behind near per than as like via towards across around inside outside".split()
)
_OTHERS: Final = frozenset(
    "i you we he she it they me him her us them his hers its their theirs this that these those and or but not if so "
    "then there here while anything something nothing everything because though although also too only just instead "
    "else please tell show most more less least".split()
)
_MEASURED: Final = frozenset(
    "many much long often far old large big high tall fast quickly soon early late wide deep".split()
)
VERBS: Final = frozenset(
    "stay cost have take last need get work begin start end happen happens run live keep use allow mean make go come "
    "contain include say cover pay offer support require exist stand lie sit play win lose die erupt open close call "
    "become give put bring send receive hold carry build grow fall rise change move know think see find want like "
    "leave enter join break fix repair describe explain compare differ belong apply affect store save share book "
    "travel synchronise install write wrote won lost played took gave built led became began ran held kept said found "
    "left met paid sent sold told brought bought design designed cause causes caused happening back up out down off "
    "written made done born".split()
)
_STOPS: Final = AUXILIARIES | WH | PREPOSITIONS | _OTHERS | _DETERMINERS


@dataclass(frozen=True, slots=True)
class Phrase:
    """`question[start:end]`, with its determiner; `preposition` is what stands before it, if one does."""

    text: str
    start: int
    end: int
    kind: Kind
    preposition: str = ""

    @property
    def bare(self) -> str:
        """Without the determiner."""
        first, _, rest = self.text.partition(" ")
        return rest if rest and first.lower() in _DETERMINERS else self.text

    @property
    def definite(self) -> str:
        """As it is said the second time: `a file` becomes `the file`."""
        if self.kind == "determined":
            return f"the {self.bare}"
        return f"the {self.text}" if self.kind == "counted" else self.text

    @property
    def head(self) -> str:
        return re.split(r"\s+of\s+", self.bare)[0].split()[-1].lower()

    @property
    def plural(self) -> bool:
        head = self.head
        if re.match(r"an?\s", self.text, re.IGNORECASE):
            return False
        return head in ("people", "children", "men", "women") or (
            head.endswith("s") and not head.endswith(("ss", "us"))
        )


def phrases(question: str, *, whole: bool = True) -> list[Phrase]:
    """The noun phrases in order, as far as determiners, prepositions and capitals show them.

    `whole` keeps `the capital of France` as one.
    """
    words = [(match[0], match.start(), match.end()) for match in _WORD.finditer(question)]
    found: list[Phrase] = []
    at = 0
    while at < len(words):
        stop = _run_end(question, words, at)
        if stop == at:
            at += 1
            continue
        end = _without_verb(words, at, stop)
        begin = _after_verb(words, at, end)
        if end > begin:
            found.append(_phrase(question, words, begin, end))
        at = stop
    return _joined(question, found) if whole else found


def _run_end(question: str, words: list[tuple[str, int, int]], at: int) -> int:
    """Where the run of words that belong together ends; `at` itself if none begins there."""
    stop = at
    while stop < len(words) and not _stops(words, stop):
        if stop > at and re.search(r"[,;:?!()\"“”]", question[words[stop - 1][2] : words[stop][1]]):
            break
        stop += 1
    return stop


def _stops(words: list[tuple[str, int, int]], at: int) -> bool:
    if _is_named_a(words, at):
        return False
    word = words[at][0].lower()
    return word in _STOPS or (word in _MEASURED and at > 0 and words[at - 1][0].lower() == "how")


def _is_named_a(words: list[tuple[str, int, int]], at: int) -> bool:
    """`Plan A`: a letter, no article."""
    return at > 0 and words[at][0] == "A"


def _after_verb(words: list[tuple[str, int, int]], at: int, stop: int) -> int:
    """Leave the verb out with which a run begins after a pronoun, `to` or `who`: `I travel first class`."""
    before = words[at - 1][0].lower() if at else ""
    inverted = stop < len(words) and words[stop][0].lower() in AUXILIARIES
    if before in ("who", "what") and not inverted and words[at][0].islower():  # `who designed …`, not `what year did …`
        return at + 1
    subject = words[at - 2][0].lower() if at > 1 else ""
    if (before in ("i", "you", "we", "they", "he", "she") and subject in _INVERTING) or (subject, before) == (
        "how",
        "to",
    ):
        return at + 1  # `can I cancel …`
    verb = words[at][0].lower() in VERBS and stop - at > 1 and words[at][0].islower()
    return at + 1 if verb and before in ("i", "you", "we", "they", "he", "she", "it", "to", "who", "that") else at


def _is_verb(word: str) -> bool:
    return word.lower() in VERBS or (word.islower() and word.endswith("ed"))


def _without_verb(words: list[tuple[str, int, int]], at: int, stop: int) -> int:
    """Leave verbs out at the end of a run: nothing tells them from nouns but their place and their form."""
    if any(word.lower() in _INVERTING for word, _, _ in words[:at]):  # `does the team share files`
        stop = next((place for place in range(at + 1, stop) if words[place][0].lower() in VERBS), stop)
    if at and words[at - 1][0].lower() in ("which", "many"):  # `which team won the cup`
        stop = next((place for place in range(at + 1, stop) if _is_verb(words[place][0])), stop)
    before = words[at - 1][0].lower() if at else ""
    passive = any(word.lower() in ("is", "are", "was", "were", "been", "be", "get", "got") for word, _, _ in words[:at])
    while stop > at:
        last = words[stop - 1][0].lower()
        alone = stop - at == 1
        subject = before in AUXILIARIES or before in _DETERMINERS
        shown = words[stop - 1][0][0].isupper() and stop > 1  # `Go`, the language
        is_verb = (last in VERBS and not shown) or (passive and last.endswith(("ed", "ing")) and not alone)
        if not is_verb or (alone and subject and before in _DETERMINERS):
            break
        stop -= 1
    return stop


def _phrase(question: str, words: list[tuple[str, int, int]], at: int, stop: int) -> Phrase:
    begin, before = at, words[at - 1][0].lower() if at else ""
    kind: Kind = "bare"
    if before in _DETERMINERS:
        begin, kind = at - 1, "determined"
    elif before in ("many", "much", "which"):
        kind = "counted"
    shown = words[at:stop] if at else words[at + 1 : stop]  # the first word has a capital anyway
    if kind == "bare" and any(character.isupper() or character.isdigit() for word, _, _ in shown for character in word):
        kind = "name"
    lead = words[begin - 1][0].lower() if begin else ""
    start, end = words[begin][1], words[stop - 1][2]
    return Phrase(question[start:end], start, end, kind, lead if lead in PREPOSITIONS else "")


def _joined(question: str, found: list[Phrase]) -> list[Phrase]:
    """Put `the outage` and `of November` together."""
    out: list[Phrase] = []
    for phrase in found:
        if out and phrase.preposition == "of" and question[out[-1].end : phrase.start].strip().lower() == "of":
            first = out.pop()
            text = question[first.start : phrase.end]
            out.append(Phrase(text, first.start, phrase.end, first.kind, first.preposition))
        else:
            out.append(phrase)
    return out


def subject(question: str) -> Phrase | None:
    """The phrase after the auxiliary, which is what most questions are about; else the first."""
    found = phrases(question)
    stated = re.search(r"\s(?:is|are|was|were)\b", question)  # `the storage is full`: the phrase before the verb
    if stated and (before := [one for one in found if one.end == stated.start() and not one.preposition]):
        return before[0]
    auxiliary = re.search(rf"\b(?:{'|'.join(sorted(AUXILIARIES))})\b", question, re.IGNORECASE)
    if auxiliary:
        after = [one for one in found if one.start >= auxiliary.end() and not one.preposition]
        if after:
            return after[0]
    return found[0] if found else None
