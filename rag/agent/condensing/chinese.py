"""Chinese follow-ups: pronouns, left-out subjects, and 那……呢."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_MARKS: Final = " \t？?！!。.，,；;：:、"
_LEAD: Final = re.compile(
    r"^(?:那么|那(?![个些里儿种样时位次天年])|然后|还有|另外|而且|以及|可是|但是|但|所以|对了|再问一下|请问)+[，,]?\s*"
)
_PRONOUN: Final = re.compile(
    r"(?P<thing>它们?|他们|她们|他(?!人|乡|国)|她|其(?![他中实余次它间])|此(?![外时前后刻]))"
    r"|(?P<place>(?:那|这)[里儿边]|那个地方|这个地方)"
    r"|(?P<manner>这样|那样|这么|那么做)"
    r"|(?P<this>该(?!怎|如何|不该|用|做|去|放|泡)|(?:[这那](?:[个些种类样项位款条部本次]|几[个种位条])|(?<![\u4e00-\u9fff])[这那])(?=[\u4e00-\u9fffA-Za-z]))"
    r"|(?P<bare>[这那](?:[个些种]|一点)?(?=[是呢？?，,]|$))"
)
_ASKS: Final = (
    "什么时候|什么时间|什么地方|为什么|为什么会|怎么样|怎么办|怎么|怎样|如何|为何|什么|多少钱|多少|多久|多长时间|多长|多大|多高|多远|多快|多宽"
    "|几点|几号|几年|几月|几天|几次|几个|几人|几册|几折|几|哪些|哪个|哪里|哪儿|哪年|哪一年|哪一?[天站种位]|哪|谁|何时|是否|是不是|有没有|能不能|要不要|可不可以"
)
_LITTLE: Final = (
    "应该|应当|必须|需要|可以|能够|最多|最少|至少|一共|总共|共有|共(?!享|同|和)|适合|属于|包括|包含|导致|发生|位于|建于|成立于|推迟|购买|经过|举行"
    "|(?<![还可但或不])是(?!否)|(?<![没所享拥])有(?![效限关趣名害机])|(?<![存现])在(?![线职校])|(?<![需主重必不])要(?![求点素闻])"
    "|(?<![可性功技智只])能(?![力源量])|(?<![机社协大年开])会(?![议员展计场话])|从(?!业|事)|(?<![达遇迟签收])到(?![期达岗场账])"
    "|(?<![反相面])对(?![象比于])|把|被|(?<![使费试应作利实租信])用(?![户品具途法期语餐])|(?<![行作成因认])为|(?<![自理])由(?!于)"
    "|(?<![方倾])向|(?<![交以])往|(?<![乘])坐(?![标位])|(?<![过])去(?![年世])|(?<![原未本])来(?![源宾访自])"
    "|了(?!解)|吗|呢|吧|啊|(?<![超通经不])过(?![程期滤敏])|和(?![平谐])|(?<![参])与|或|(?<![首古])都(?![市])|也|(?<![归借偿退])还(?![书款车])"
    "|就(?!业)|(?<![人天])才(?!能)|每|各"
)
_VERBAL: Final = "做完成想说看到问得地人个册度站次天年月日点钱"
_TIME: Final = re.compile(
    r"每[年月周天日次个]+(?:[最都]多)?|(?:周|星期|礼拜)[一二三四五六日天末](?:[到至、和](?:周|星期)?[一二三四五六日天末])*"
    r"|工作日|节假日|周末|寒暑?假|暑假|[今明][年天]|去年|昨天|晚上|早上|上午|下午|[春夏秋冬]天|\d+ ?[年月日号](?!线)"
)
_BREAK: Final = re.compile(rf"(?:{_TIME.pattern}|{_ASKS}|{_LITTLE}|[{re.escape(_MARKS.strip())}])")
_LEFT_OUT: Final = re.compile(
    rf"^(?:{_ASKS}|可以|能|要|需要|应该|应当|必须|会|是|有|在|从|最多|最少|至少|一共|属于|包括|包含|具体|大概|通常|一般)"
)
_ATTRIBUTE: Final = re.compile(
    r"^(?:票价|门票|价格|价钱|费用|收费|时间|地址|地点|位置|电话|热线|原因|理由|期限|条件|名字|名称|全名|人数|人口|数量|面积|高度|长度|宽度|深度|重量|大小"
    r"|好处|优点|缺点|坏处|作者|利息|用法|步骤|流程|规定|规则|限制|要求|结果|影响|作用|目的|区别|首都|特点|例子|细节|历史|来历|别名|颜色|味道|成分"
    r"|营业时间|开放时间|押金|罚款|补贴|奖励|负责人|联系方式|有效期|上限|下限|标准|频率|周期)"
)
_ABSTRACT: Final = re.compile(
    r"(?<=.)的(?:价格|价钱|费用|时间|地址|原因|期限|人口|人数|数量|面积|高度|长度|宽度|深度|重量|大小|好处|缺点|作用|历史|票价|门票|限额|押金)$"
)
_ENDS_IN_ATTRIBUTE: Final = re.compile(r"(?:票价|门票|价格|费用|时间|地址|电话|期限|人数|面积|押金|补贴|奖励|规定)$")
_NUMBER: Final = re.compile(r"[\d一二三四五六七八九十百]")
_AT_BEGINNING: Final = 15
_SUPPOSES: Final = re.compile(r"^(?:如果|要是|假如|万一)")
_DEFINES: Final = re.compile(r"^(?:什么(?:是|叫)|谁是|何谓|介绍|解释|如何评价)|(?:是什么意思|指的?是什么)[？?]?$")
_TURNS: Final = re.compile(
    r"^(?P<new>.{1,24}?)(?:的话|又|会)?(?:呢|怎么样|又如何|如何呢|也是(?:这样|一样)?吗|也一样吗)[？?]?$"
)


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    start: int
    end: int


def points_back(question: str) -> bool:
    """Whether something in it stands for what was said before, or its subject is left out."""
    bare = _LEAD.sub("", question).strip(_MARKS)
    if not bare or _DEFINES.search(bare):
        return not bare
    if _LEAD.match(question) and len(bare) <= 12:
        return True
    if _TURNS.match(bare) and len(bare) <= 16 and not re.search(_ASKS, bare.removesuffix("怎么样")):
        return True
    if any(not _explained(bare, match) for match in _PRONOUN.finditer(bare)):
        return True
    if "，" in bare or "," in bare:
        return False
    return _is_left_out(bare)


def _explained(bare: str, match: re.Match[str]) -> bool:
    """Whether an earlier clause of the question names what the pronoun stands for."""
    clause = re.split(r"[，,；;。]", bare[: match.start()])
    if match["thing"] or match[0] == "该":
        named = [part.text for part in _parts(clause[-1]) if len(part.text) >= 2 and not _ATTRIBUTE.match(part.text)]
        if named and match.start() > 2:
            return True
    return len(clause) > 1 and any(len(part.text) >= 2 for part in _parts("，".join(clause[:-1])))


def _is_left_out(bare: str) -> bool:
    """Whether the question begins with what is asked of a subject that it does not name."""
    timeless = _TIME.sub("", bare, count=1) if _TIME.match(bare) else bare
    attribute = _ATTRIBUTE.match(timeless)
    if attribute:
        rest = timeless[attribute.end() :]
        return not rest.startswith("的") and sum(len(part.text) for part in _parts(rest)) <= 2
    named = sum(len(part.text) for part in _parts(timeless))
    if timeless != bare and named <= 3:
        return True
    return bool(_LEFT_OUT.match(timeless)) and named <= 3 and not re.search(r"[A-Za-z0-9]", timeless)


def topic(frame: str) -> str:
    """What the question `frame` was about: its first noun, with what stands before it and 的."""
    if named := re.search(r"[「《“\"].+?[」》”\"]", frame):
        return named[0]
    parts = _parts(frame)
    if len(parts) > 1 and re.match(r"(?:哪|什么)", frame):
        parts = parts[1:]  # what is asked for is not what the question is about
    return _ABSTRACT.sub("", parts[0].text) if parts else ""


def _parts(text: str) -> list[_Part]:
    """What stands between the words that ask or only join, in order: nouns, mostly, some with their verb."""
    found, at = [], 0
    for match in [*_BREAK.finditer(text), None]:
        stop = match.start() if match else len(text)
        piece = text[at:stop]
        trimmed = piece.strip("的 ")
        if trimmed and not re.fullmatch(f"[{_VERBAL}]+", trimmed):
            start = at + piece.index(trimmed)
            found.append(_Part(trimmed, start, start + len(trimmed)))
        at = match.end() if match else len(text)
    return _merged(text, found)


def _merged(text: str, parts: list[_Part]) -> list[_Part]:
    """`2 号线` and `末班车` with nothing but 的 or a blank between them are one."""
    out: list[_Part] = []
    for part in parts:
        if out and text[out[-1].end : part.start].strip() in ("", "的"):
            first = out.pop()
            part = _Part(text[first.start : part.end], first.start, part.end)
        out.append(part)
    return out


def resolved(question: str, frame: str, known_topic: str | None = None) -> str:
    """The follow-up complete in itself, with what `frame`, the question before it, was about."""
    bare = _LEAD.sub("", question).strip(_MARKS)
    about = topic(frame) if known_topic is None else known_topic
    if not bare or not about:
        return question
    pronoun = next((match for match in _PRONOUN.finditer(bare) if not _explained(bare, match)), None)
    turn = _TURNS.match(bare)
    if _SUPPOSES.match(bare) and bare.endswith("呢"):
        return f"{about}，{bare.removesuffix('呢')}怎么办？"
    if turn and not pronoun and not re.search(_ASKS, turn["new"]):
        if known_topic is not None or _ATTRIBUTE.fullmatch(turn["new"]):
            return f"{about}的{turn['new']}是什么？"
        return _in_its_slot(turn["new"], frame)
    if pronoun:
        bare = _named(bare, pronoun, about, frame)
        return f"{bare.removesuffix('呢')}？"
    if _is_left_out(bare):
        return f"{about}{'的' if _ATTRIBUTE.match(bare) else ''}{bare}？"
    if _LEAD.match(question) and not re.search(_ASKS, bare):
        return _in_its_slot(bare.removesuffix("呢"), frame)
    return f"{bare}？"


def _named(bare: str, match: re.Match[str], about: str, frame: str) -> str:
    """Put the topic in the place of the pronoun; `这种茶` takes its noun along where the topic has it."""
    rest = bare[match.end() :]
    if match["manner"] and rest[:1] and rest[0] in about:  # 这样泡, of 冷泡茶, is 冷泡
        return f"{bare[: match.start()]}{about[: about.index(rest[0])]}{rest}"
    if match["this"]:
        noun = re.match(rf"(?:(?!{_ASKS}|{_LITTLE}|的)[\u4e00-\u9fffA-Za-z]){{1,6}}", rest)
        same = _sharing_end(noun[0], about, frame) if noun else ""
        if noun and same:
            return f"{bare[: match.start()]}{same}{rest[noun.end() - _extra(noun[0], same) :]}"
        return f"{bare[: match.start()]}{about}{'的' if noun and len(noun[0]) >= 2 else ''}{rest}"
    return f"{bare[: match.start()]}{about}{rest}"


def _extra(noun: str, same: str) -> int:
    """How much of what was read as a noun comes after it: `茶存放` is 茶 and a verb."""
    for size in range(len(noun), 0, -1):
        if same.endswith(noun[:size]):
            return len(noun) - size
    return 0


def _sharing_end(noun: str, about: str, frame: str) -> str:
    """The topic, or the part of the frame, that ends as the noun does."""
    for size in range(len(noun), 0, -1):
        for text in (about, *(part.text for part in _parts(frame))):
            if text.endswith(noun[:size]):
                return text
    return ""


def _in_its_slot(new: str, frame: str) -> str:
    """Ask the frame again with `new` in the place of what is like it."""
    new = new.strip(_MARKS)
    if _TIME.fullmatch(new):
        return _at_time(new, frame)
    slot = _like(new, frame)
    if slot is None:
        return f"{new}{frame}"
    return f"{frame[: slot.start]}{new}{frame[slot.end :]}"


def _at_time(new: str, frame: str) -> str:
    if old := _TIME.search(frame):
        return f"{frame[: old.start()]}{new}{frame[old.end() :]}"
    first = _parts(frame)[:1]
    at = first[0].end if first else 0
    return f"{frame[:at]}{new}{frame[at:]}"


def _like(new: str, frame: str) -> _Part | None:
    """The piece of the frame that ends or begins as `new` does; else its first noun; None if that is only a time."""
    best: tuple[int, _Part] | None = None
    for part in _parts(frame):
        for piece in _pieces(part):
            score = _alike(new, piece.text) + (_AT_BEGINNING if _begins(piece, part, new) else 0)
            if score > _AT_BEGINNING and (best is None or score > best[0]):
                best = (score, piece)
    if best:
        return _with_number(best[1], new, frame)
    parts = _parts(frame)
    if not parts or _TIME.match(frame):
        return None
    owner = parts[0].text.split("的")[0]
    if "的" in new or _ENDS_IN_ATTRIBUTE.search(new):
        return parts[0]
    return _Part(owner, parts[0].start, parts[0].start + len(owner))


def _with_number(piece: _Part, new: str, frame: str) -> _Part:
    """`日票` in `一日票` takes its number along, unless the new noun brings one."""
    start = piece.start
    while start and not _NUMBER.match(new) and _NUMBER.match(frame[start - 1]):
        start -= 1
    return _Part(frame[start : start + len(piece.text) + piece.start - start], start, piece.start + len(piece.text))


def _begins(piece: _Part, part: _Part, new: str) -> bool:
    """Whether the piece begins where a noun does; a number may begin inside one."""
    inside = piece.start - part.start
    return not _NUMBER.match(new) and (not inside or part.text[inside - 1] == "的")


def _pieces(part: _Part) -> list[_Part]:
    """The part itself and what stands before and after each 的 in it, and its beginnings."""
    cuts = [0, *(match.end() for match in re.finditer("的", part.text)), len(part.text) + 1]
    found = [part]
    for begin, end in pairwise(cuts):
        text = part.text[begin : end - 1]
        found += [_Part(text[:size], part.start + begin, part.start + begin + size) for size in range(2, len(text) + 1)]
        found += [
            _Part(text[skip:], part.start + begin + skip, part.start + begin + len(text))
            for skip in range(1, len(text))
        ]
    return found


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
