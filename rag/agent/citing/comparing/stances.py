"""How firmly and of how many something is said: must and may, all and some, always and sometimes, only, perhaps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rag.agent.citing.comparing.coverage import stands
from rag.agent.citing.comparing.reading import Reading, Token

_BE = r"(?:is|are|was|were|be|been|being|get|gets)(?: also| only| always)?"
_DUTY = (
    ("exempt", r"need not|needn't|(?:do|does|did|will|would)(?: not|n't) (?:need|have) to|(?:not|n't) (?:required"
               r"|obliged"
               r"|necessary|mandatory|compulsory|needed)|unnecessary|optional|voluntary|at (?:their|his|her"
               r"|your) discretion"
               "|不必|无需|无须|不需要?|不用|毋须|毋需|不强制|非强制|可选|自愿"),
    ("forbid", r"(?:must|may|shall|can|should)(?: not|n't| never)|cannot|不得(?!不)|禁止|严禁|不准|不许|不可(?!或缺"
               r"|避免|思议|分)|不能"),
    ("must", r"must|shall|(?:has|have|had|having|needs?|needed) to"
             r"|" + _BE + r" (?:required|obliged|obligated|compelled|bound"
             r"|forced) to|required|mandatory|compulsory|obligatory"
             "|必须|必需|务必|务须|应当|不得不|强制|须(?![发眉知根])|应(?=[在于向由将按支提承自予为缴交赔付])(?!对"
             "|用|付自如)|需(?=[要在提缴交向])(?!要求)"),
    ("should", r"should|ought to|recommended|advis(?:ed|able)|encouraged to|应该|最好|建议|宜(?=[在于先])"),
    ("may", r"may|might|can|could|" + _BE + r" (?:allowed|permitted|free|able|entitled) to|allowed|permitted"
            "|可以|可(?=[在于向由将按自选免申提参携])|允许|准许|有权|获准"),
)  # fmt: skip
_AMOUNT = (
    ("few", r"(?<!\ba )(?<!\bquite a )few(?! more|er)|hardly any|a minority of|极少数|极少|很少有?|少数(?!民族)"
            r"|个别(?!的)"),
    ("most", r"(?<!\bthe )(?<!\bat )most(?= of\b| [a-z]+s\b| people\b)|(?:the|a|vast|large) majority of|绝?大多数"
             r"|大部分|多数"),
    ("some", r"some(?! ?(?:how|what|times|\d))|several|certain|a few|a number of|a minority|parts? of|有些|某些|一些"
             r"|若干|(?<!大)部分"),
    ("all", r"all(?! over| along| right| time)|every|each|any(?! ?(?:more|longer))|entire|the whole|所有|全部|全体"
            r"|一切|每一?[个名位家座人项种]"
            "|任何|各[个位项类家]"),
)  # fmt: skip
_OFTEN = (
    ("rarely", r"rarely|seldom|hardly ever|infrequently|很少|极少|鲜少|罕有|难得"),
    ("sometimes", r"sometimes|occasionally|at times|from time to time|有时候?|偶尔|间或|时而"),
    (
        "usually",
        r"usually|often|frequently|generally|typically|normally|commonly|mostly|regularly|通常|经常|往往|时常|常常"
        r"|一般",
    ),
    ("always", r"always|invariably|every time|without exception|constantly|总是|始终|永远|每次|向来|从来都"),
)
_KINDS: Final = (("duty", _DUTY), ("amount", _AMOUNT), ("often", _OFTEN))
_RANKS: Final = {"few": 0, "some": 1, "most": 2, "all": 3, "rarely": 0, "sometimes": 1, "usually": 2, "always": 3}
_FIRM: Final = {"may": 0, "should": 1, "must": 2}


def _pattern(rows: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    """Latin words stand between borders, Chinese ones anywhere."""
    parts = []
    for name, forms in rows:
        latin = [form for form in _split(forms) if not _is_han(form)]
        han = [form for form in _split(forms) if _is_han(form)]
        parts.append(f"(?P<{name}>(?<![\\w'-])(?:{'|'.join(latin)})(?![\\w'-])|{'|'.join(han)})")
    return re.compile("|".join(parts), re.IGNORECASE)


def _split(forms: str) -> list[str]:
    return re.split(r"\|(?![^(\[]*[)\]])", forms)


def _is_han(form: str) -> bool:
    return bool(re.search("[\u4e00-\u9fff]", form))


_PATTERNS = {kind: _pattern(rows) for kind, rows in _KINDS}
_ONLY = re.compile(
    r"(?<!not )(?<!n't )\b(?:only|solely|exclusively|nothing but|no one but|nobody but)\b(?! (?:about "
    r"|around )?[$€£]?[\d])"
    r"|(?<![不并])(?:只有|仅限|仅有|仅仅|唯一|唯有)(?!\d)|(?<!不)仅(?![\d仅限有一二三四五六七八九十])"
    r"|(?<![不\d一二两三四五六七八九十几这那每])只(?=[能可对向允准限])",
    re.IGNORECASE,
)  # fmt: skip
_EXCLUSIVE = re.compile(
    r"\b(?:only|solely|sole|exclusive|exclusively|just|merely|alone|restricted to|limited to|reserved for|nothing but"
    r"|no other|nobody else|no one (?:else|but)|other than|except|unless)\b|[仅只唯独]|专供|专门|限于|除非|除了?",
    re.IGNORECASE,
)
_NOT_ONLY = re.compile(r"(?:\bnot|n't) (?:only|just|merely|solely|exclusively)\b|不[仅只]仅?", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:may|might|possibly|perhaps|maybe|probably|allegedly|reportedly|supposedly|purportedly|suspected|rumou?red"
    r"|believed to|thought to|said to|claimed|likely)\b|可能(?!性)|或许|也许|据称|据说|疑似|传闻|谣传|据传|有望|涉嫌"
    r"|似乎|恐怕",
)  # fmt: skip
_UNSURE = re.compile(
    _HEDGE.pattern
    + r"|\b(?:can|could|would|should|believe|think|suspected|suggest|appear|seem|estimate|expect|potential|risk"
    r"|allow|permit|free to|able to)\w*|可以|可(?=[能在于以])|推测|估计|预计|认为|大概|能够?|允许",
    re.IGNORECASE,
)


_RANKED = re.compile(
    r"\b(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:nd|rd|th)|one of (?:the|its|their"
    r"|[a-z]+'s)"
    r"|among (?:the|its|their))(?: |-)(?P<latin>[a-z]+est|best|worst|most|least)\b"
    "|第[二三四五六七八九十\\d]+(?P<han>[大小高低长短多少深快慢老强])"
    "|最(?P<one>[大小高低长短多少深快慢老强早])[^，。]{0,12}之一",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Stance:
    """`name` said of the tokens `of`: those behind it, else those before."""

    name: str
    of: tuple[Token, ...]


def stance(statement: Reading, evidence: Reading) -> str:
    """What differs in how it is said: `direction` for the contrary, `exchanged` for more or less of it, or empty."""
    found = {
        _conflict(mine.name, {other.name for other in others if _of_the_same(mine, other)})
        for kind, pattern in _PATTERNS.items()
        if (others := list(_stances(evidence, pattern)))
        for mine in _stances(statement, pattern)
    }
    if "direction" in found or _extends(statement, evidence) or _extends(evidence, statement):
        return "direction"
    if _outranks(statement, evidence):
        return "direction"
    return "exchanged" if "exchanged" in found or _narrows(statement, evidence) or _firms(statement, evidence) else ""


def _conflict(mine: str, theirs: set[str]) -> str:
    if not theirs or mine in theirs:
        return ""
    if mine in _RANKS:
        lower = all(_RANKS[mine] < _RANKS[other] for other in theirs) and mine not in ("few", "rarely")
        return "exchanged" if lower else "direction"
    if mine in _FIRM:
        if "exempt" in theirs:
            return "direction" if mine == "must" else ""
        firm = [_FIRM[other] for other in theirs if other in _FIRM]
        if firm and _FIRM[mine] > max(firm):
            return "direction"
        return (
            "direction"
            if firm and mine == "may" and min(firm) == 2
            else "exchanged"
            if firm and mine == "should"
            else ""
        )
    return "direction" if mine == "exempt" and theirs & {"must", "forbid"} else ""


def _stances(reading: Reading, pattern: re.Pattern[str]) -> Iterator[_Stance]:
    for match in pattern.finditer(reading.unbound if len(reading.unbound) == len(reading.text) else reading.text):
        if match.lastgroup:
            yield _Stance(match.lastgroup, _beside(reading, match.start(), match.end()))


def _beside(reading: Reading, start: int, end: int) -> tuple[Token, ...]:
    after = [token for token in reading.tokens if token.start >= end and not _breaks(reading, end, token.start)][:3]
    return tuple(after or [token for token in reading.tokens if token.end <= start][-3:])


def _breaks(reading: Reading, start: int, end: int) -> bool:
    return bool(re.search(r"[,;:，；：。.!?]", reading.text[start:end]))


def _of_the_same(mine: _Stance, other: _Stance) -> bool:
    """Whether both are said of the same words: of Chinese, of two neighbouring signs."""
    if any(a.same(b) for a in mine.of for b in other.of if a.kind != "han"):
        return True
    return bool(set(_signs(mine.of)) & set(_signs(other.of)))


def _signs(tokens: tuple[Token, ...]) -> list[str]:
    return [a.key + b.key for a, b in pairwise(tokens) if a.kind == b.kind == "han"]


def _outranks(statement: Reading, evidence: Reading) -> bool:
    """The largest here, where the page has the second largest or one of the largest."""
    for match in _RANKED.finditer(evidence.text):
        best = re.escape(match["latin"]) if match["latin"] else f"最{match['han'] or match['one']}"
        mine = re.search(best, statement.text, re.IGNORECASE)
        ranked = _RANKED.search(statement.text)
        if mine and not ranked and not re.search(best, _RANKED.sub(" ", evidence.text), re.IGNORECASE):
            return True
    return False


def _narrows(statement: Reading, evidence: Reading) -> bool:
    """Whether the statement says `only` where the evidence does not."""
    return bool(_ONLY.search(statement.text)) and not _EXCLUSIVE.search(_NOT_ONLY.sub(" ", evidence.text))


def _extends(one: Reading, other: Reading) -> bool:
    """Whether `not only` stands here where `only` stands there."""
    without = _NOT_ONLY.sub(" ", other.text)
    return bool(_NOT_ONLY.search(one.text)) and without == other.text and bool(_ONLY.search(without))


def _firms(statement: Reading, evidence: Reading) -> bool:
    """Whether the statement says for sure what the evidence holds for possible."""
    if _UNSURE.search(statement.text):
        return False
    return any(_repeats(statement, _beside(evidence, *match.span())) for match in _HEDGE.finditer(evidence.text))


def _repeats(statement: Reading, tokens: tuple[Token, ...]) -> bool:
    if signs := _signs(tokens):
        return signs[0] in statement.pairs
    return bool(tokens) and all(stands(token, statement) for token in tokens[:2])
