"""Chinese follow-ups completed: pronouns, left-out subjects, and 那……呢."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.about import About
from rag.agent.condensing.chinese_gaps import (
    ABOUT_SIDE,
    CHOOSES,
    PROCESS,
    PRONOUN,
    TURNS,
    WAY,
    explained,
    lacks_subject,
)
from rag.agent.condensing.chinese_phrases import noun_at, parts
from rag.agent.condensing.chinese_slots import in_its_slot, turned
from rag.agent.condensing.chinese_words import ASKS, CLASS, DEED, LEAD, MARKS, TIME

_ROUTE: Final = re.compile(r"[\u4e00-\u9fff](?:到|至|去)[\u4e00-\u9fff]|怎么[去走]|多远")
_SUPPOSES: Final = re.compile(r"^(?:如果|要是|假如|万一)")
_KINDS: Final = re.compile(rf"(?:{CLASS}|版本|方案|选项|概念|方法|方式|型号|协议|数据库|模型|平台|人物|词|语言)")


def resolved(question: str, frame: str, about: About) -> str:
    """The follow-up complete in itself. `frame` is the question before it, empty if that was in another language."""
    bare = LEAD.sub("", question).strip(MARKS)
    if not (about.topic or about.person):
        return question
    if _SUPPOSES.match(bare) and bare.endswith("呢"):
        return f"{about.deed or about.topic}，{bare.removesuffix('呢')}怎么办？"
    pronoun = next((match for match in PRONOUN.finditer(bare) if not explained(bare, match)), None)
    if pronoun:
        return _with_names(bare, pronoun, frame, about) or question
    turn = TURNS.match(bare)
    if turn and not re.search(ASKS, turn["new"]):
        return turned(turn, question, frame, about)
    if why := _reason(bare, frame):
        return why
    if WAY.match(bare) and _ROUTE.search(frame):
        return f"{beside(about.topic, bare)}？"
    if len(about.sides) > 1 and CHOOSES.match(bare):
        return f"{beside(about.topic, bare)}？"
    if "，" not in bare and lacks_subject(bare):
        return _with_subject(bare, about)
    if LEAD.match(question) and frame and not re.search(rf"{ASKS}|[吗么]$|{DEED}", bare):
        return in_its_slot(bare, frame) or question
    return f"{bare}？" if LEAD.match(question) else question


def _reason(bare: str, frame: str) -> str:
    """`为什么？` after a question that could be answered by yes or no asks for the reason of that."""
    claim = frame.strip(MARKS)
    return (
        f"{beside('为什么', claim.removesuffix('吗'))}？" if bare in ("为什么", "为何") and claim.endswith("吗") else ""
    )


def _with_subject(bare: str, about: About) -> str:
    topic = about.deed if about.deed and PROCESS.match(bare) else about.topic
    if not topic or topic in bare:
        return f"{bare}？"
    joined = "的" if ABOUT_SIDE.match(bare) and not TIME.match(bare) else ""
    return f"{beside(topic, joined + bare)}？"


def _with_names(bare: str, match: re.Match[str], frame: str, about: About) -> str:
    """The question with what the pronoun stands for; empty where nothing tells what that is."""
    name = _stands_for(match, about)
    if not name:
        return ""
    turn = TURNS.match(bare)
    if turn and turn["new"] == match[0] and (match["first"] or match["last"]):
        return f"{name}呢？"
    named = _named(bare, match, name, frame)
    return f"{named.removesuffix('呢')}？"


def _stands_for(match: re.Match[str], about: About) -> str:
    if match["first"] or match["last"]:
        return about.sides[0 if match["first"] else -1] if len(about.sides) == 2 else ""
    if match["both"]:
        return beside(about.topic, "的" if match[0].endswith("的") else "") if len(about.sides) > 1 else ""
    if match[0] == "它们" and about.counted and not about.sides:
        return f"{about.topic}的{about.counted}"
    if match[0] in ("他", "她"):
        return about.person
    if match[0] in ("他们", "她们") and not about.sides:
        return about.person or about.topic
    return about.topic


def _named(bare: str, match: re.Match[str], name: str, frame: str) -> str:
    """Put the name in the place of the pronoun; `这种茶` takes its noun along where the topic has it."""
    before, rest = bare[: match.start()], bare[match.end() :]
    if match["manner"] and rest[:1] and rest[0] in name:  # 这样泡, of 冷泡茶, is 冷泡
        return f"{before}{name[: name.index(rest[0])]}{rest}"
    if match["both"] and (kinds := _KINDS.match(rest)):
        return beside(beside(before, name), rest[kinds.end() :])
    if match["this"]:
        if kind := re.match(CLASS, rest):
            same = _sharing_end(kind[0], name, frame) or name
            return f"{before}{same}{rest[kind.end() :]}"
        noun = noun_at(rest)
        if same := _sharing_end(noun, name, frame):
            return f"{before}{same}{rest[len(noun) - _extra(noun, same) :]}"
        return f"{before}{name}{'的' if len(noun) >= 2 else ''}{rest}"
    return beside(beside(before, name), rest)


def _extra(noun: str, same: str) -> int:
    """How much of what was read as a noun comes after it: `茶存放` is 茶 and a verb."""
    for size in range(len(noun), 0, -1):
        if same.endswith(noun[:size]):
            return len(noun) - size
    return 0


def _sharing_end(noun: str, about: str, frame: str) -> str:
    """The topic, or the part of the frame, that ends as the noun does."""
    for size in range(len(noun), 0, -1):
        for text in (about, *(part.text for part in parts(frame))):
            if text.endswith(noun[:size]):
                return text
    return ""


def beside(left: str, right: str) -> str:
    """Both together, with a blank where Latin letters or digits meet something else than a mark."""
    latin = left[-1:].isascii() or right[:1].isascii()
    return f"{left} {right}" if latin and left[-1:].isalnum() and right[:1].isalnum() else f"{left}{right}"
