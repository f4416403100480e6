"""What a Chinese follow-up leaves to the question before it: a pronoun's meaning, its subject, all but the new part."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.chinese_phrases import parts
from rag.agent.condensing.chinese_words import ASKS, BREAK, DEED, DEPENDENT, LEAD, MARKS, PEOPLE, SIDE, STATES, TIME

PRONOUN: Final = re.compile(
    r"(?P<both>(?:这|那|它|他|她)们?[两俩三几](?:[者个种款家位人座本条部项样]|(?=$|[都有是的谁哪，,]))"
    r"|[两二]者(?!之一)|双方|^各自的?)"
    r"|(?P<first>前者|^第一[个种款家位座本条部])|(?P<last>后者|^第二[个种款家位座本条部])"
    r"|(?P<thing>它们?|他们|她们|他(?!人|乡|国)|她|其(?![他中实余次它间])|此(?![外时前后刻次事]))"
    r"|(?P<place>(?:那|这)[里儿边]|那个地方|这个地方)"
    r"|(?P<manner>这样|那样|这么|那么做)"
    r"|(?P<this>该(?!怎|如何|不该|用|做|去|放|泡)"
    r"|(?:[这那](?:[个些种类样项位款条部本次座家所间台辆只首张片场届件名支]|几[个种位条])|(?<![\u4e00-\u9fff])[这那])"
    r"(?=[\u4e00-\u9fffA-Za-z]))"
    r"|(?P<bare>[这那](?:[个些种]|一点)?(?=[是呢？?，,]|$))"
)
_EVENT: Final = re.compile(
    r"[这那此](?:[个些种类样项次件场]|一)?(?:事情?|情况|问题|现象|时候?|期间|时期|之[前后]|以[前后]|话|年|天|一?点|方面)"
)
"""Points to something that was told, not to something that was named."""
_MORE: Final = re.compile(
    r"^(?:再|还|能|能不能|可以|请|麻烦|给我|多)*(?:详细|具体|深入|展开|继续|接着|多|举个?例子?|细)"
    r"(?:地|一点|一些|点|些)?(?:再|多)?(?:说|讲|介绍|解释|谈|聊|举例|描述|展开)*"
    r"(?:一下|下去|说|讲|一点|点|些)*(?:吗|吧|呢|可以吗|好吗)?$"
    r"|^(?:你?确定|是?真的|对|是这样)(?:的)?吗$"
    r"|^还有(?:什么|哪些|别的|其他的?|其它的?|更多的?)?(?:吗|呢)?$"
)
_LEFT_OUT: Final = re.compile(
    rf"^(?:{ASKS}|可以|能|要|需要|应该|应当|必须|会|是|有|在|从|最多|最少|至少|一共|属于|包括|包含|具体|大概|通常|一般)"
)
_COMPLETE: Final = re.compile(
    r"^(?:现在|今天|明天|昨天|当前|北京时间)*(?:是?几点|是?几号|是?星期几|是?周几|几月几[号日])了?$"
    rf"|^(?:{TIME.pattern})+是|^[一二两三四五六七八九十百\d]+(?![共般直定起])\S{{1,3}}(?:等于|是|有)(?:多少|几)"
)
_SPEAKER: Final = re.compile(rf"^(?:我们|我|咱们|你们|你|您|{PEOPLE})(?!国|的|[票证卡车])")
_ASIDE: Final = re.compile(
    r"^(?:也|还|又|都|再|是否|是不是|能不能|能否|可以|能|会|一般|通常|主要|现在|目前|到底|究竟|分别|具体|大概)+"
)
_STATE: Final = re.compile(rf"^(?:{STATES}|(?:没|没有)?有|是(?!否|不是))")
_QUESTION: Final = re.compile(rf"{ASKS}|[吗么呢？?]|多[长大高远快宽深重少]")
_ASKED_FOR: Final = re.compile(
    r"(?:哪些|哪几?[个种位条座家款]|什么|多少[个种位条座家款名]?|几[个种位条座家款名次])"
    r"(?:主要|重要|其他|不同)?的?(?P<noun>[\u4e00-\u9fff]{1,3})$"
)
_NAMES_OTHERS: Final = re.compile(
    r"^(?:哪些|什么(?!时候|时间|地方))[\u4e00-\u9fff]{1,4}?(?:可以|能|会|需?要|应该|最|比较|更|不|适合|有|是)"
)
"""`哪些费用可以报销`: what is asked for is what it is about."""
CHOOSES: Final = re.compile(
    rf"^(?:哪一?[个种款家座条位边](?=更|最|比较|适合|支持|能|可以|会|有|没|不|值得|好|{DEED})|谁(?=更|最|比较|先))"
)
ABOUT_SIDE: Final = re.compile(rf"^(?:{TIME.pattern})?(?P<side>{SIDE})(?=$|{BREAK.pattern}|都|也|怎|如|大|高|低|贵)")
WAY: Final = re.compile(r"^(?:(?:坐|乘坐?|骑)[\u4e00-\u9fff]{1,3}?|开车|走路|步行|打车|自驾)(?=要|需|大概|多|怎)")
_DEFINES: Final = re.compile(r"^(?:什么(?:是|叫)|谁是|何谓|介绍|解释|如何评价)|(?:是什么意思|指的?是什么)[？?]?$")
TURNS: Final = re.compile(
    r"^(?P<new>.{1,24}?)(?:的话|又|会)?(?P<end>呢|怎么样|又如何|如何呢|也(?:是|是这样|一样|有|行|能|要|可以|需要|适用)吗)[？?]?$"
)
HOW: Final = re.compile(r"(?:如何|怎么样?|怎样)")
PROCESS: Final = re.compile(
    r"^(?:价格|价钱|时间|地点|地址|条件|期限|方法|方式|要求|押金|手续费|需要|要|得|必须|应该|多久|多长时间|多少钱|几天"
    r"|大概|一般|什么时候|费用|流程|材料|手续|步骤)"
)
"""What is asked of something that is done: what it needs, how long it takes."""


def points_back(question: str) -> bool:
    """Whether something in it stands for what was said before, or its subject is left out."""
    bare = LEAD.sub("", question).strip(MARKS)
    if says_nothing_new(question):
        return True
    if _DEFINES.search(bare) or _COMPLETE.search(bare):
        return False
    if LEAD.match(question) and len(bare) <= 12:
        return True
    turn = TURNS.match(bare)
    if turn and len(bare) <= 16 and not re.search(ASKS, turn["new"]) and not _is_judged_alone(turn, question):
        return True
    if _EVENT.match(bare) or any(not explained(bare, match) for match in PRONOUN.finditer(bare)):
        return True
    if "，" in bare or "," in bare:
        return False
    return bool(WAY.match(bare)) or lacks_subject(bare) or _may_lack_subject(bare)


def says_nothing_new(question: str) -> bool:
    """`然后呢？`, `能详细说说吗？`: the question before is to be answered once more, or further."""
    bare = LEAD.sub("", question).strip(MARKS)
    return not bare.strip("呢吗吧啊那这的") or not re.search(r"\w", bare) or bool(_MORE.search(bare))


def _is_judged_alone(turn: re.Match[str], question: str) -> bool:
    """`ThinkPad 怎么样？` is whole, unlike `那上海怎么样？`."""
    return turn["end"] == "怎么样" and not LEAD.match(question) and not ABOUT_SIDE.match(turn["new"])


def explained(bare: str, match: re.Match[str]) -> bool:
    """Whether an earlier clause of the question names what the pronoun stands for."""
    if _EVENT.match(bare, match.start()):
        return True
    clause = re.split(r"[，,；;。]", bare[: match.start()])
    if match["thing"] or match[0] == "该":
        named = [part.text for part in parts(clause[-1]) if len(part.text) >= 2 and not re.match(SIDE, part.text)]
        if named and match.start() > 2:
            return True
    return len(clause) > 1 and any(len(part.text) >= 2 for part in parts("，".join(clause[:-1])))


def lacks_subject(bare: str) -> bool:
    """Whether nothing in it says what it is about: `几点关门`, `最高时速是多少`, `途经哪些城市`.

    `如何退款` and `可以带宠物吗` have an object of their own, and may belong to anything.
    """
    if _COMPLETE.search(bare) or not _QUESTION.search(bare):
        return False
    if _NAMES_OTHERS.match(bare) or (re.match(PEOPLE, bare) and re.search(SIDE, bare)):
        return False
    bare = _SPEAKER.sub("", bare)
    if side := ABOUT_SIDE.match(bare):
        own = own_words(bare[side.end() :])
        return not bare[side.end() :].startswith("的") and len(own) <= (0 if HOW.search(bare) else 2)
    own = own_words(bare)
    if not own:
        return True
    return _tells_of_it(_ASIDE.sub("", bare), own)


def _tells_of_it(bare: str, own: str) -> bool:
    """`支持 Windows 吗`, `属于哪个省`: what begins so is said of something; `支持向量机是什么` is not."""
    state = _STATE.match(bare)
    if not state or len(own) > (4 if state[0] in ("有", "没有") else 8) or "的" in bare.rstrip("的吗"):
        return False
    said = bare[state.end() :]
    return bool(re.match(ASKS, said)) or (said.endswith("吗") and not re.search(DEED, said))


def own_words(bare: str) -> str:
    """What is left of it without the words that could be said of anything."""
    asked = _ASKED_FOR.search(bare.rstrip(MARKS + "吗呢"))
    if asked:
        bare = bare[: asked.start("noun")]
    return re.sub(r"\s", "", DEPENDENT.sub("", bare))


def _may_lack_subject(bare: str) -> bool:
    """Whether a person might leave a subject out so; only what knows the conversation can tell."""
    named = sum(len(part.text) for part in parts(bare))
    if HOW.match(bare) or re.search(r"[A-Za-z0-9]", bare):
        return False
    return bool(_LEFT_OUT.match(bare)) and named <= 3
