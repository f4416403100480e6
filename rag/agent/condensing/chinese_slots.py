"""`红茶呢？`: where in the question before the new noun belongs."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from rag.agent.condensing.about import About
from rag.agent.condensing.chinese_gaps import ABOUT_SIDE, HOW, PROCESS, own_words
from rag.agent.condensing.chinese_phrases import Part, parts
from rag.agent.condensing.chinese_words import DEED, GROUPS, LEAD, LITTLE, MARKS, PLACES, TIME, WAYS

_ENDS_IN_SIDE: Final = re.compile(
    r"(?:票价|门票|价格|费用|时间|地址|电话|期限|人数|面积|押金|补贴|奖励|规定|标准|额度|限额|工资|税率|政策|流程"
    r"|上限)$"
)
_NUMBER: Final = re.compile(r"[\d一二三四五六七八九十百]")
_AT_BEGINNING: Final = 15
_TOO: Final = re.compile("也[^是一]")
_HOW_TO: Final = re.compile(rf"(?:{HOW.pattern})(?:才能|可以)?(?P<verb>{DEED})[？?]?$")


def turned(turn: re.Match[str], question: str, frame: str, about: About) -> str:
    """`红茶呢？`: the question before, asked of another thing, of a side of the same thing, or at another time."""
    new = turn["new"].strip(MARKS)
    if ABOUT_SIDE.fullmatch(new) and not GROUPS.match(new) and (not about.deed or PROCESS.match(new)):
        return f"{about.topic}的{new}{'怎么样' if turn['end'] == '怎么样' else '是什么'}？"
    as_before = turn["end"] != "怎么样" or LEAD.match(question) or frame.strip(MARKS).endswith("怎么样")
    if not frame or not as_before:
        return question
    alike = like(new, frame, sure=True)
    if TIME.fullmatch(new) or (alike is None and (_TOO.match(turn["end"]) or _goes_beside(new, frame))):
        return at_time(new, frame)
    if alike is None and re.match(DEED, new):
        return _other_deed(new, frame, about) or question
    if alike is None and len(about.sides) > 1:
        return f"{frame.strip(MARKS)}，{new}呢？"
    return in_its_slot(new, frame) or question


def _goes_beside(new: str, frame: str) -> bool:
    """Whether it is a way, or a group of people where none was named, which takes nothing's place."""
    if GROUPS.match(new):
        return not TIME.match(frame) and not any(GROUPS.match(part.text) for part in parts(frame))
    return bool(re.match(rf"{WAYS}.", new))


def _other_deed(new: str, frame: str, about: About) -> str:
    """`卸载呢？` after `如何安装 Docker？`; nothing where the question before asked for no way."""
    if asked := _HOW_TO.search(frame):
        return f"{frame[: asked.start('verb')]}{new}{frame[asked.end('verb') :]}"
    if not about.deed or about.deed not in frame:
        return ""
    start = frame.index(about.deed)
    noun = next((part for part in parts(frame) if start < part.start < start + len(about.deed)), None)
    whole = own_words(new) or noun is None  # it brings its own object
    end = start + len(about.deed) if whole or noun is None else noun.start
    gap = " " if not whole and noun is not None and noun.text[:1].isascii() else ""
    return f"{frame[:start]}{new}{gap}{frame[end:]}"


def in_its_slot(new: str, frame: str) -> str:
    """Ask the frame again with `new` in the place of what is like it."""
    new = new.strip(MARKS)
    if TIME.fullmatch(new):
        return at_time(new, frame)
    slot = like(new, frame)
    if slot is None:
        return f"{new}{frame}"
    return f"{frame[: slot.start]}{new}{frame[slot.end :]}" if _leaves_something(slot, frame) else ""


def _leaves_something(slot: Part, frame: str) -> bool:
    """Whether anything of the question stays: of `可以带宠物吗` nothing but `可以…吗` would."""
    return bool(re.sub(rf"{LITTLE}|[{re.escape(MARKS)}]", "", frame[: slot.start] + frame[slot.end :]))


def at_time(new: str, frame: str) -> str:
    """Ask the frame again of another time, in another way, or for a group of people."""
    if TIME.fullmatch(new) and (old := TIME.search(frame)):
        return f"{frame[: old.start()]}{new}{frame[old.end() :]}"
    first = parts(frame)[:1]
    at = first[0].end if first else 0
    return f"{frame[:at]}{new}{frame[at:].lstrip()}"


def like(new: str, frame: str, *, sure: bool = False) -> Part | None:
    """The piece of the frame that ends or begins as `new` does; else its first noun; None if that is only a time.

    With `sure`, only what is alike.
    """
    place = PLACES.search(frame) if PLACES.fullmatch(new) else None
    if place:
        return Part(place[0], place.start(), place.end())
    best: tuple[int, Part] | None = None
    for part in parts(frame):
        for piece in _pieces(part):
            score = _alike(new, piece.text) + (_AT_BEGINNING if _begins(piece, part, new) else 0)
            if score > _AT_BEGINNING and (best is None or score > best[0]):
                best = (score, piece)
    if best:
        return _with_number(best[1], new, frame)
    found = parts(frame)
    if GROUPS.match(new) and (group := next((part for part in found if GROUPS.match(part.text)), None)):
        return group
    if sure or not found or TIME.match(frame) or (PLACES.fullmatch(new) and _ENDS_IN_SIDE.search(found[0].text)):
        return None
    owner = found[0].text.split("的")[0]
    if "的" in new or _ENDS_IN_SIDE.search(new):
        return found[0]
    return Part(owner, found[0].start, found[0].start + len(owner))


def _with_number(piece: Part, new: str, frame: str) -> Part:
    """`日票` in `一日票` takes its number along, unless the new noun brings one."""
    start = piece.start
    while start and not _NUMBER.match(new) and _NUMBER.match(frame[start - 1]):
        start -= 1
    return Part(frame[start : start + len(piece.text) + piece.start - start], start, piece.start + len(piece.text))


def _begins(piece: Part, part: Part, new: str) -> bool:
    """Whether the piece begins where a noun does; a number may begin inside one."""
    inside = piece.start - part.start
    return not _NUMBER.match(new) and (not inside or part.text[inside - 1] == "的")


def _pieces(part: Part) -> list[Part]:
    """The part itself and what stands before and after each 的 in it, and its beginnings."""
    cuts = [0, *(match.end() for match in re.finditer("的", part.text)), len(part.text) + 1]
    found = [part]
    for begin, end in pairwise(cuts):
        text = part.text[begin : end - 1]
        found += [Part(text[:size], part.start + begin, part.start + begin + size) for size in range(2, len(text) + 1)]
        found += [
            Part(text[skip:], part.start + begin + skip, part.start + begin + len(text)) for skip in range(1, len(text))
        ]
    return [
        one for one in found if not (_cuts(part.text, one.start - part.start) or _cuts(part.text, one.end - part.start))
    ]


def _cuts(text: str, at: int) -> bool:
    """Whether a Latin word would be cut in two there."""
    around = text[max(at - 1, 0) : at + 1] if 0 < at < len(text) else ""
    return around.isascii() and around.isalpha()


def _alike(new: str, old: str) -> int:
    """How much two nouns look like members of one class; 0 where nothing speaks for it.

    A common ending counts most (绿茶 and 红茶), then a common beginning, then the same length.
    """
    if not new or not old or new == old:
        return 0
    end = next((i for i in range(min(len(new), len(old))) if new[-1 - i] != old[-1 - i]), min(len(new), len(old)))
    begin = next((i for i in range(min(len(new), len(old))) if new[i] != old[i]), min(len(new), len(old)))
    if not end and not (begin and len(new) == len(old)):
        return 0
    return 40 * end + 10 * begin + 10 * (len(new) == len(old)) - 3 * abs(len(new) - len(old))
