"""What is said of a number beyond its value: the date it is part of, its bounds, and what it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rag.agent.citing.comparing import bounds, english
from rag.agent.citing.comparing.coverage import stands
from rag.agent.citing.comparing.measures import measured
from rag.agent.citing.comparing.reading import Reading, Token

_DAY_BEFORE = re.compile(r"\s*(?:of\s+)?$|\s*(?:-|–|to|and|,|or)\s*$")
_DAY_BEHIND = re.compile(r"\s*(?:the\s+)?|[-/.]")
_YEAR = re.compile(r"[\s,]*(?:of\s+)?|[-/.]|\s*年\s*")
_NEXT_WORD = re.compile(r"\s+([A-Za-z]+)")
_NEXT_SIGN = re.compile(r"\s?([\u4e00-\u9fff])")
_CLASSIFIERS: Final = frozenset(
    "的多余个名位人口座所家条件种项只支台部本张辆架艘间栋幢层户组次回届、和与及至到时点之以左为"
)
_RATE = re.compile(
    r"(?:\bper|(?<=[a-z0-9%$€£])\s+an?|\bevery|\beach|/)\s*(second|minute|hour|day|night|week|month|quarter|year)\b"
    r"|\b(hourly|daily|nightly|weekly|monthly|quarterly|yearly|annual|annually)\b"
    "|(?:每个?|/)(小时|分钟|天|日|晚|周|星期|月|季度|年)"
)
_PERIODS: Final = {
    form: row.split()[0]
    for row in (
        "second", "minute 分钟", "hour hourly 小时", "day night daily nightly 天 日 "
                              "晚", "week weekly 周 星期", "month monthly 月",
        "quarter quarterly 季度", "year yearly annual annually 年",
    )
    for form in row.split()
}  # fmt: skip
_CALENDAR: Final = frozenset(("year", "month", "day", "weekday", "clock", "time", "century", "年代", "version"))


class _Date(NamedTuple):
    year: float | None
    month: float
    days: frozenset[float]


def dates_differ(statement: Reading, evidence: Reading) -> bool:
    """Whether a date of the statement agrees with none there: 5 March and 7 May are no 7 March."""
    theirs = list(_dates(evidence))
    return bool(theirs) and not all(any(_agree(mine, other) for other in theirs) for mine in _dates(statement))


def _agree(mine: _Date, other: _Date) -> bool:
    years = mine.year is None or other.year is None or mine.year == other.year
    days = not mine.days or not other.days or bool(mine.days & other.days)
    return mine.month == other.month and years and days


def _dates(reading: Reading) -> Iterator[_Date]:
    tokens, text = reading.tokens, reading.text
    for i, token in enumerate(tokens):
        if token.unit != "month" or not 1 <= token.value <= 12:
            continue
        days: set[float] = set()
        j = i - 1
        while j >= 0 and _is_day(tokens[j]) and _DAY_BEFORE.fullmatch(text[tokens[j].end : tokens[j + 1].start]):
            days.add(tokens[j].value)
            j -= 1
        k = i + 1
        while k < len(tokens) and _is_day(tokens[k]) and _joins(text[tokens[k - 1].end : tokens[k].start], k > i + 1):
            days.add(tokens[k].value)
            k += 1
        behind = tokens[k] if k < len(tokens) and _YEAR.fullmatch(text[tokens[k - 1].end : tokens[k].start]) else None
        before = tokens[j] if j >= 0 and _YEAR.fullmatch(text[tokens[j].end : tokens[j + 1].start]) else None
        yield _Date(_year(behind, before), token.value, frozenset(days))


def _is_day(token: Token) -> bool:
    return token.unit in ("", "day") and token.kind == "number" and 1 <= token.value <= 31


def _joins(gap: str, further: bool) -> bool:
    return bool((_DAY_BEFORE if further else _DAY_BEHIND).fullmatch(gap))


def _year(behind: Token | None, before: Token | None) -> float | None:
    for token in (behind, before):
        if token and token.kind == "number" and (token.unit == "year" or (not token.unit and token.value > 31)):
            return token.value
    return None


def rates_differ(statement: Reading, evidence: Reading) -> bool:
    """A day here, a week there."""
    mine, theirs = _rates(statement), _rates(evidence)
    return bool(mine and theirs) and not mine & theirs


def _rates(reading: Reading) -> set[str]:
    return {_PERIODS[match[1] or match[2] or match[3]] for match in _RATE.finditer(reading.text.lower())}


def _is_of_another(statement: Reading, i: int, evidence: Reading) -> bool:
    """Students pay 20, where the page has: students pay 10 and adults pay 20."""
    tokens, number = evidence.tokens, statement.tokens[i]
    if not i or not (places := [j for j, other in enumerate(tokens) if number.same(other)]) or len(places) > 1:
        return False
    at, verb = places[0], statement.tokens[i - 1]
    others = [j for j, other in enumerate(tokens) if other.kind == "number" and j != at and other.unit == number.unit]
    others = [j for j in others if j and at and tokens[j - 1].same(verb) and tokens[at - 1].same(verb)]
    before = max((j for j in others if j < at), default=None)
    if verb.kind == "number" or before is None or any(tokens[j].same(n) for j in others for n in statement.numbers):
        return False
    own = [token for token in tokens[before + 1 : at - 1] if token.kind != "number"]
    behind = tokens[at + 1 : next((j for j in others if j > at), len(tokens) + 1) - 1]
    strange = any(not stands(token, statement) for token in own)
    return strange and not any(stands(token, statement) for token in (*own, *behind) if not token.same(verb))


def turned(statement: Reading, evidence: Reading) -> bool:
    """Whether a number is at least there and at most here, until here and from there, by and to."""
    for number in statement.numbers:
        others = _same(number, evidence)
        others = [other for other in others if other.unit == number.unit] or others
        if number.marks and others and all(bounds.conflict(number.marks, other.marks) for other in others):
            return True
    return False


def counted_otherwise(statement: Reading, evidence: Reading) -> str:
    """`numbers` where one is said of something else; `exchanged` where it counts other things, or gained a bound."""
    if any(t.kind == "number" and _is_of_another(statement, i, evidence) for i, t in enumerate(statement.tokens)):
        return "numbers"
    for number in statement.numbers:
        others = _same(number, evidence)
        if all(_counts_another(number, statement, other, evidence) for other in others):
            return "exchanged"
        added = bounds.is_bounded(number.marks) and measured(number.unit)[0] != "time"
        if added and not any(bounds.is_bounded(other.marks) for other in others) and not _hints(evidence):
            return "exchanged"
    return ""


def _hints(evidence: Reading) -> bool:
    return evidence.unbound != evidence.text or bool(
        re.search(r"\b(?:or|than|least|most|over|under)\b|[超过足到上下]", evidence.text)
    )


def _same(number: Token, evidence: Reading) -> list[Token]:
    return [other for other in evidence.numbers if number.same(other)]


def _counts_another(mine: Token, statement: Reading, other: Token, evidence: Reading) -> bool:
    if mine.unit in _CALENDAR or other.unit in _CALENDAR or (mine.unit and other.unit):
        return False
    if mine.unit or other.unit:
        bare, where, elsewhere = (other, evidence, statement) if mine.unit else (mine, statement, evidence)
        noun = _noun(where, bare)
        return bool(noun) and bare.value < 1e15 and not _stands(noun, elsewhere) and _is_measure(where, bare)
    here, there = _noun(statement, mine), _noun(evidence, other)
    if not here or not there or here == there:
        return False
    return not _stands(here, evidence) and not _stands(there, statement)


def _is_measure(reading: Reading, number: Token) -> bool:
    """A noun in the plural right behind a number: 5 florins."""
    match = _NEXT_WORD.match(reading.text, number.end)
    return bool(match and match[1].endswith("s") and not match[1].endswith("ss"))


def _noun(reading: Reading, number: Token) -> str:
    if match := _NEXT_WORD.match(reading.text, number.end):
        word = match[1].lower()
        plain = word not in english.FUNCTION_WORDS and word not in english.NEGATORS
        return english.stem(word) if plain and not match[1][0].isupper() else ""
    match = _NEXT_SIGN.match(reading.text, number.end)
    return match[1] if match and match[1] not in _CLASSIFIERS else ""


def _stands(noun: str, reading: Reading) -> bool:
    if "\u4e00" <= noun <= "\u9fff":
        return noun in reading.text
    token = Token(noun, "word", noun, 0, english.SYNONYM_GROUPS.get(noun, frozenset()))
    return stands(token, reading) or noun in reading.lowered
