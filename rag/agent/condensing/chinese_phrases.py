"""The nouns of a Chinese question, found by what stands between them, and what the question was about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rag.agent.condensing.about import About
from rag.agent.condensing.chinese_persons import person_in
from rag.agent.condensing.chinese_words import ASKS, BREAK, LEADING_DEED, LITTLE, SIDE

_VERBAL: Final = "做完成想说看到问得地人个册度站次天年月日点钱"
_OPENS: Final = re.compile(
    r"^(?:请问(?:一下)?[，,]?|请|麻烦)?(?:(?:给|跟|和)?我?(?:介绍|解释|讲|说|谈)(?:一下|一讲|一说|讲|说|谈)?|告诉我"
    r"|我?想(?:知道|了解|问)(?:一下)?|帮我查(?:一下)?|查一下"
    r"|(?:如何|怎么)?(?:比较|对比|区分)(?:一下)?)?(?:什么是)?"
)
_SPEAKERS: Final = re.compile(r"^(?:我们|我|咱们|你们|你|您|大家|人们)(?=.|$)(?!国|家|的)")
_TO_DO: Final = re.compile(
    r"(?:如何|怎么样?|怎样|可以|才能|能|要|想|应该|需要|必须|去|来|[？?，,：:]|^)\s*(?:才能|去|来)?\s*$"
)
_HOW: Final = re.compile(r"(?:如何|怎么样?|怎样)(?:才能|能|可以|去|来)?\s*$")
_ENDS: Final = re.compile(r"(?<=..)(?:(?P<done>[丢坏忘换买断破停掉碎])|(?P<does>[吃喝叫住看玩做买卖穿学读]))$")
_AFTER: Final = {"done": re.compile("了"), "does": re.compile("什么|哪|多少|几")}
"""Verbs of one character at the end of a piece, and what shows that they are verbs there."""
_TOGETHER: Final = re.compile(r"\s*(?:和|与|跟|及|以及|或者?|还是|、|,|，|vs\.?)\s*", re.IGNORECASE)
_QUOTED: Final = re.compile(r"[「《“\"].+?[」》”\"]")
_MEASURES: Final = (
    "价格|价钱|价位|售价|费用|时间|时长|地址|位置|原因|期限|人口|人数|数量|面积|高度|长度|宽度|深度|重量|大小|尺寸"
    "|全长|总长|海拔|好处|优点|优势|缺点|坏处|弊端|作用"
    "|功效|特点|特色|特征|区别|差别|差异|不同|关系|意思|含义|定义|历史|由来|来历|起源|产地|产量|票价|限额|押金|有效期"
    "|保质期|保修期|寿命|用途|种类|温度|速度|步骤|流程|用法|症状|病因|原理|机制"
)
_ABSTRACT: Final = re.compile(rf"(?<=.)(?:的|之间的?)(?:主要|最[大高])?(?:{_MEASURES}|门票)$|(?<=..)(?:{_MEASURES})$")
_THINGS: Final = re.compile(
    r"[《》「」“”]|(?:公司|集团|大学|银行|系统|软件|地铁|高铁|故宫|博物馆|门票|票|茶|书|城|塔|桥|寺|山|江|河|湖|岛|机"
    r"|车|店|网)$"
)
_ROLE: Final = re.compile(
    r"(?:人|者|作者|导演|主演|编剧|长|总统|主席|妻子|丈夫|父亲|母亲|儿子|女儿|导师|老师|主角|主人公)$"
)
_WHICH: Final = re.compile(r"^(?:哪|什么(?!是|叫|时候))")


@dataclass(frozen=True, slots=True)
class Part:
    """`frame[start:end]`."""

    text: str
    start: int
    end: int


def about(frame: str, answer: str = "") -> About:
    topic = _topic(frame, answer)
    return About(topic, person_in_question(frame, answer, topic), sides(frame), _deed(frame), counted(frame))


def person_in_question(frame: str, answer: str, topic: str) -> str:
    """Who `他` is: named by the answer where the question asked who, else by the question."""
    if re.search(r"谁|哪位|什么人", frame):
        return person_in(answer, frame) or described(frame)
    owner = re.sub(rf"的(?:主要|最[大高])?{SIDE}$", "", topic) if not _ROLE.search(topic) else topic
    return person_in(answer, "") if not owner or _THINGS.search(owner) else owner


def described(frame: str) -> str:
    """`发明了电话的人`, of who that is asked; `比亚迪的创始人` where it is asked who that is."""
    bare = frame.strip(" ？?。")
    if named := re.fullmatch(r"(?P<role>.+?)(?:都)?(?:是|叫)(?:谁|哪位|什么人)", bare):
        return named["role"]
    did = re.fullmatch(r"(?:是)?(?:谁|哪位|什么人)(?P<deed>(?!是|的).+)", bare)
    return f"{did['deed']}的人" if did and not re.search(ASKS, did["deed"]) else ""


def _topic(frame: str, answer: str) -> str:
    """The first noun, with what stands before it and 的; all of them where several stand side by side."""
    if together := sides(frame):
        first, last = frame.index(together[0]), frame.rindex(together[-1])
        return frame[first : last + len(together[-1])].strip()
    if named := _QUOTED.search(frame):
        return named[0]
    found = parts(frame)
    if len(found) > 1 and frame[found[0].end : found[1].start].strip() in ("到", "至", "去"):
        return frame[found[0].start : found[1].end]
    if found and _WHICH.match(frame) and not re.match(r"什么", frame):
        return chosen(answer) or (_ABSTRACT.sub("", found[1].text) if len(found) > 1 else "")
    if len(found) > 1 and _WHICH.match(frame):
        found = found[1:]  # what is asked for is not what the question is about
    return _ABSTRACT.sub("", found[0].text) if found else ""


def chosen(answer: str) -> str:
    """What a short answer to `哪个…` names."""
    first = re.split(r"[。！？!?\n；;，,（(]", re.sub(r"\[\d+\]|[*_`]", "", answer).strip())[0].strip()
    named = re.match(r"(?P<name>[^是为]{2,12}?)(?:是|为)", first)
    if named and not re.search(rf"的|{ASKS}", named["name"]):
        return named["name"]
    return first if 2 <= len(first) <= 8 and not BREAK.search(first) else ""


def sides(frame: str) -> tuple[str, ...]:
    """`绿茶` and `红茶`, of `绿茶和红茶的功效`; nothing where no two nouns stand side by side."""
    found = parts(frame)
    chain: list[Part] = []
    for part in found:
        if chain and _TOGETHER.fullmatch(frame[chain[-1].end : part.start]):
            chain.append(part)
        elif len(chain) < 2:
            chain = [part]
        else:
            break
    if len(chain) < 2 or (chain[0] not in found[:2]):
        return ()
    return (*(one.text for one in chain[:-1]), _owner(chain[-1].text))


def _owner(text: str) -> str:
    """`天坛`, of `天坛的门票`, and `UDP`, of `UDP 之间的区别`."""
    return re.split(r"的|之间|相比", text)[0].strip()


def _deed(frame: str) -> str:
    """`办理护照`, of `如何办理护照？`."""
    for part in parts(frame):
        begin = _verb_start(frame, part)
        if begin < part.start and _HOW.search(frame[:begin]):
            return frame[begin : part.end]
    return ""


def _verb_start(frame: str, part: Part) -> int:
    """Where the verb begins that was taken off before the part; the part's start if there was none."""
    for begin in range(max(part.start - 5, 0), part.start):
        match = re.match(rf"(?:{LEADING_DEED})\s*", frame[begin:])
        if match and begin + match.end() == part.start and _TO_DO.search(frame[:begin]):
            return begin
    return part.start


def parts(text: str) -> list[Part]:
    """What stands between the words that ask, join, or tell what happens, in order: nouns, mostly."""
    found, at = [], opening(text)
    for match in [*BREAK.finditer(text, at), None]:
        stop = match.start() if match else len(text)
        if part := _trimmed(text, at, stop):
            found.append(part)
        at = match.end() if match else len(text)
    return _merged(text, found)


def opening(text: str) -> int:
    """How long the words are that only lead to the question: `介绍一下`."""
    match = _OPENS.match(text)
    return match.end() if match else 0


def _trimmed(text: str, start: int, stop: int) -> Part | None:
    """The piece without 的 and blanks around it, without whom it is said by, and without a verb before its noun."""
    piece = text[start:stop].strip("的 ")
    begin = text.index(piece, start) if piece else start
    if speaker := _SPEAKERS.match(piece):
        begin, piece = begin + speaker.end(), piece[speaker.end() :]
    verb = re.match(rf"(?:{LEADING_DEED})\s*", piece)
    if verb and begin and _TO_DO.search(text[:begin]):
        begin, piece = begin + verb.end(), piece[verb.end() :]
    if ends := _ENDS.search(piece):
        follows = text[begin + len(piece) :]
        piece = piece[: ends.start()] if _AFTER[ends.lastgroup or ""].match(follows) else piece
    if not piece.strip() or re.fullmatch(f"[{_VERBAL}]+", piece):
        return None
    return Part(piece, begin, begin + len(piece))


def _merged(text: str, found: list[Part]) -> list[Part]:
    """`2 号线` and `末班车` with nothing but 的 or a blank between them are one."""
    out: list[Part] = []
    for part in found:
        if out and text[out[-1].end : part.start].strip() in ("", "的"):
            first = out.pop()
            part = Part(text[first.start : part.end], first.start, part.end)
        out.append(part)
    return out


def noun_at(text: str) -> str:
    """The noun with which the text begins, as far as the next word that asks or joins; may take a verb along."""
    match = re.match(rf"(?:(?!{ASKS}|{LITTLE}|的)[\u4e00-\u9fffA-Za-z]){{1,6}}", text)
    return match[0] if match else ""


def counted(frame: str) -> str:
    """`行星`, of `太阳系有几颗行星？`: what was asked for may be `它们` next."""
    match = re.search(r"(?:哪些|(?:几|多少)[颗个种条座家本部款项台辆只])(?P<noun>[\u4e00-\u9fff]{1,6})[？?]?$", frame)
    return match["noun"] if match else ""
