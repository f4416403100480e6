"""What stands around a number and turns it: at least, at most, until, from, by, to."""

from __future__ import annotations

import re
from typing import Final

_LEAST = r"at least|a minimum of|minimum(?: of)?|no (?:fewer|less|earlier) than|not (?:fewer|less) than|≥"
_MOST = (
    r"at most|up to|a maximum of|maximum(?: of)?|no (?:more|greater|later|longer|higher) than|not (?:more|greater"
    r"|later"
    r"|longer) than|(?:not|never|cannot|can't|(?:do|does|did|must|may|shall|will|should)(?: not|n't)) (?:to )?"
    r"exceed(?:ed|ing|s)?|not over|≤"
)
_OVER = (
    r"(?:more|greater|higher|larger|longer|later|older) than|over|above|exceed(?:s|ed|ing)?|in excess of|upwards of|>"
)
_UNDER = r"(?:less|fewer|lower|smaller|shorter|earlier|younger) than|under|below|<"
_ABOUT = r"(?:\s+(?:about|around|roughly|approximately|nearly|almost|some|the|a|an|age|ages|aged|early|late|mid))*"
_LEAST_ZH = "不少于|不低于|不小于|不早于|不下于|不下|至少|最少|起码|最低|年满|已满|(?<![不未])满"
_MOST_ZH = "不超过|不多于|不高于|不大于|不晚于|不得超过|不得多于|不能超过|不得晚于|不逾|至多|最多|最高|上限为?"
_OVER_ZH = "超过|超出|多于|大于|高于|逾|晚于"
_UNDER_ZH = "少于|小于|低于|不到|不足|不满|未满|未及|未到|早于|将近"
_GAP_ZH = r"(?:了|达|为|有|要|需要?|约|是|第|公元|\s)*"
_AMOUNT = (
    r"[\s$€£¥]*(?=[\d.+-]|(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|half|\w+teen|\w+ty|\w+ty-\w+"
    r"|twelve|eleven|dozen|hundred)\b)"
)
_COUNTED_ZH = "(?=[0-9〇零一二两三四五六七八九十百千万半])"

_BEFORE = tuple(
    (mark, re.compile(rf"(?:(?<![\w-])(?:{english}){_ABOUT}[\s$€£¥-]*|(?:{chinese}){_GAP_ZH})$", re.IGNORECASE))
    for mark, english, chinese in (
        ("most", _MOST, _MOST_ZH),
        ("least", _LEAST, _LEAST_ZH),
        ("over", _OVER, _OVER_ZH),
        ("under", _UNDER, _UNDER_ZH),
    )
)
_AFTER = (
    ("least", re.compile(r"\s*(?:[A-Za-z%]+\s+){0,2}(?:or (?:more|over|above|older|longer|later|higher)|and (?:above"
                         r"|over|older|up))\b", re.I)),
    ("most", re.compile(r"\s*(?:[A-Za-z%]+\s+){0,2}(?:or (?:less|fewer|under|below|younger|shorter|earlier|lower)"
                        r"|and (?:below|under|younger)|at (?:the )?(?:most|latest))\b", re.I)),
    ("least", re.compile(r"\s*(?:[A-Za-z%]+\s+){0,2}at (?:the )?least\b", re.I)),
    ("least", re.compile("[一-龥]{0,2}?(?:以上|及以上|或以上|或更多|起步)")),
    ("most", re.compile("[一-龥]{0,2}?(?:以下|及以下|或以下|以内|之内|或更少|封顶)")),
    ("over", re.compile("[一-龥]{0,1}?(?:开外|有余)")),
)  # fmt: skip
_EDGES = (
    ("end", re.compile(rf"(?:\b(?:until|till|before|within|prior to|by|through|ends?|ended"
                       rf"|closes?(?: at)?){_ABOUT}\s*|(?:直到|直至|截至|截止到?|早于"
                       rf"|(?<![达得收受看找碰遇感增升降涨跌])到|(?<![增升降涨跌])至){_GAP_ZH})$", re.I)),
    ("start", re.compile(rf"(?:\b(?:from|since|after|as of|starting|beginning|opens?(?: at)?"
                         rf"|onwards? from){_ABOUT}(?: (?:on|in|at))?\s*|(?:自从|自|从|晚于){_GAP_ZH})$", re.I)),
)  # fmt: skip
_EDGES_AFTER = (
    ("end", re.compile(r"(?:[^，,。；;\d]{0,6}?)(?:之前|以前|前(?!后|往|进|夕)|为止|截止)|\s*at the latest")),
    (
        "start",
        re.compile(r"(?:[^，,。；;\d]{0,6}?)(?:之后|以后|后(?!者|来|期|台)|以来|起(?!点|义|诉|飞))|\s*onwards?\b"),
    ),
)
_CHANGED = re.compile(
    r"\b(?:rose|ris|r[ai]is|grow|grew|increas|decreas|declin|fell|fall|drop|climb|jump|surg|shr[aiu]nk|reduc|cut"
    r"|lower|expand|went"
    r"|gain|slid|slip|plung|soar|chang|extend|shorten)\w*[^.,;]{0,40}?\b(by|to)\s+(?:about |around |nearly |almost "
    r"|some )?[$€£¥]?$",
    re.IGNORECASE,
)
_JUST_CHANGED = re.compile(
    r"\b(?:rose|grew|fell|increased|decreased|declined|dropped|climbed"
    r"|jumped)\s+[$€£¥]?$",
    re.I,
)
_CHANGED_ZH = re.compile(
    "(?:上涨|上升|增长|增加|提高|升高|扩大|下降|下跌|减少|降低|缩短|延长|缩小|上调|下调|涨|升|增|降|跌|减)"
    "(?P<way>到了?|至|为|了|幅度?为?|超过|约|近)*$"
)
_CONFLICTS: Final = frozenset(
    map(
        frozenset,
        (
            ("least", "most"),
            ("least", "under"),
            ("over", "most"),
            ("over", "under"),
            ("start", "end"),
            ("start", "most"),
            ("by", "to"),
        ),
    )
)
_BOUNDS: Final = frozenset(("least", "most", "over", "under"))

BOUND = re.compile(
    rf"(?<![\w-])(?:{_LEAST}|{_MOST}|{_OVER}|{_UNDER})(?={_ABOUT}{_AMOUNT})|(?:{_LEAST_ZH}|{_MOST_ZH}"
    rf"|{_UNDER_ZH})(?={_GAP_ZH}{_COUNTED_ZH})"
    r"|\bor (?:more|less|fewer)\b|(?:or|and) (?:over|above|under|below)\b",
    re.IGNORECASE,
)
"""Words before or behind a number that bound it: no denial, and no direction of their own."""


def marks(text: str, start: int, end: int) -> frozenset[str]:
    """How the number at `start:end` is bounded, and which end of a span or change it is."""
    before, after = text[max(0, start - 60) : start], text[end : end + 24]
    found = {mark for mark, pattern in _AFTER if pattern.match(after)} - {""}
    bound = next((mark for mark, pattern in _BEFORE if pattern.search(before)), "")
    found |= {bound} if bound else set()
    found |= {mark for mark, pattern in _EDGES if pattern.search(before)}
    found |= {mark for mark, pattern in _EDGES_AFTER if pattern.match(after)}
    if changed := _CHANGED.search(before):
        found.discard("end")
        found.add(changed[1].lower())
    elif _JUST_CHANGED.search(before):
        found.add("by")
    elif changed := _CHANGED_ZH.search(before):
        found.add("to" if re.search("[到至为]", changed.group()) and "幅" not in changed.group() else "by")
    return frozenset(found)


def conflict(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether one turns the number where the other turns it otherwise."""
    return any(frozenset((a, b)) in _CONFLICTS for a in mine - theirs for b in theirs - mine)


def is_bounded(marked: frozenset[str]) -> bool:
    return bool(marked & _BOUNDS)
