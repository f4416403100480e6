"""What an answer says about itself or about its sources, rather than about its subject.

Such a sentence is not held to have a source. But pages, too, tell their readers to do things and deny
things: a remark is only what no passage bears out.
"""

from __future__ import annotations

import re
from typing import Final

_SOURCES: Final = (
    r"(?:passages?|pages?|sources?|texts?|articles?|documents?|excerpts?|snippets?|context|search results?|materials?"
    r"|websites?)"
)
_NOT: Final = r"(?:(?:do|does|did)(?: not|n't|n’t)|never)"
_CANNOT: Final = (
    r"(?:cannot|can not|can't|can’t|could not|couldn't|couldn’t|(?:am|is|are|was|were) (?:not able|unable) to)"
)
_SPEAKS: Final = "mention|say|specify|state|explain|tell|answer|indicate|describe|discuss|address|reveal"
_TELLS: Final = f"{_SPEAKS}|contain|hold|provide|include|cover|give|list|show|offer|have|refer"
_TOLD: Final = (
    "mentioned|stated|given|specified|covered|included|found|provided|described|addressed|discussed|contained"
    "|explained|answered|available|clear"
)
_IN_SOURCES: Final = rf"(?:in|by|from|on|among|with) (?:the|these|those|your|any of the|my)(?: \w+){{0,2}} {_SOURCES}"
_ON: Final = r"[^.。!?\n]"  # on within the sentence
_ENGLISH: Final = (
    rf"\b{_SOURCES}\b{_ON}{{0,30}}\b{_NOT} (?:\w+ ){{0,2}}(?:{_TELLS})\b"
    rf"|\b{_SOURCES}\b{_ON}{{0,20}}\b(?:holds?|contains?|have|has|gives?|offers?|provides?|says?|makes?)"
    r" (?:no|nothing)\b"
    r"|\b(?:no|nothing|insufficient|not (?:any|enough|sufficient"
    rf"|(?:\w+ )?(?:{_TOLD})))\b{_ON}{{0,60}}\b{_IN_SOURCES}\b|\bnot {_IN_SOURCES}\b"
    rf"|\b(?:none of|neither(?: of)?|no)\b(?: \w+){{0,2}} {_SOURCES}\b"
    rf"{_ON}{{0,20}}\b(?:{_TELLS})s?\b"
    rf"|\b(?:{_CANNOT}|(?:not |im)possible to)\b{_ON}{{0,60}}\b{_IN_SOURCES}\b"
    rf"|\b{_IN_SOURCES}\b{_ON}{{0,60}}\b(?:{_CANNOT}|(?:not |im)possible to) "
    rf"|\bI (?:{_CANNOT}|do not|don't|don’t|did not|didn't|didn’t) (?:\w+ )?"
    r"(?:find|answer|tell|say|see|know|determine|confirm|have (?:\w+ ){0,2}(?:information|data|details|access))\b"
)
_ZH_TEXTS: Final = "段落|网页|资料|文章|文中|原文|页面|来源|材料|文档|文本|上下文|片段|搜索结果|检索结果"
_ZH_SOURCES: Final = f"(?:{_ZH_TEXTS}|(?:提供|给出)的(?:内容|信息))"
_ZH_NOT: Final = r"(?:没有|没|并未|并没有|未|不|无)(?:曾|能|直接|明确|具体){0,2}"
_ZH_SPEAKS: Final = "提到|提及|涉及|说明|记载|介绍|指出|回答|描述|讲到|谈到|写明|给出|提供"
_ZH_FINDS: Final = "回答|找到|确定|得知|判断|查到|了解到"
_ZH_ON: Final = "[^。！？\n]"
_CHINESE: Final = (
    rf"{_ZH_SOURCES}{_ZH_ON}{{0,12}}{_ZH_NOT}(?:{_ZH_SPEAKS}|包含|包括|找到|显示|列出|相关|有关|关于|答案)"
    rf"|{_ZH_SOURCES}{_ZH_ON}{{0,12}}(?:无法|不能|难以)(?:{_ZH_FINDS})"
    rf"|(?:无法|不能|难以)(?:根据|依据|从|由){_ZH_ON}{{0,8}}{_ZH_SOURCES}{_ZH_ON}{{0,6}}(?:{_ZH_FINDS})"
    rf"|{_ZH_SOURCES}{_ZH_ON}{{0,10}}找不到|找不到{_ZH_ON}{{0,10}}{_ZH_SOURCES}"
    rf"|我(?!们)(?:无法|不能|未能|没有|没能?)(?:{_ZH_FINDS})"
)
_ON_SOURCES = re.compile(f"{_ENGLISH}|{_CHINESE}", re.IGNORECASE)

_HELPS: Final = (
    "help|assist|answer|find|say|tell|explain|summari[sz]e|describe|provide|give|know|sure|sorry|happy|glad|list|confirm"
    "|determine|recommend|suggest|look|search"
)
_COURTESY = re.compile(
    rf"\b(?:they|it)\b{_ON}{{0,30}}\b{_NOT} (?:{_SPEAKS})\b"
    rf"|\bno (?:information|mention|answer)\b|\b(?:{_CANNOT}|unable to) (?:find|answer|be found|tell|determine)\b"
    r"|^(?:I|We) (?:hope|apologi[sz]e|found|searched|looked)\b|^I (?:can|could|will|am|don't|do not|cannot)\b"
    rf"|^We (?:can|could|will|would|are|do not|don't|don’t|cannot) (?:\w+ ){{0,3}}(?:{_HELPS})\b"
    rf"|^(?:let me|please|sorry) |无法(?:{_ZH_FINDS})|找不到|^(?:请|希望(?:以上|这|对|能|我|本)|如需)"
    rf"|^如果?您?(?:还|需要|有){_ZH_ON}{{0,8}}(?:疑问|问题|帮助|更多|进一步)",
    re.IGNORECASE,
)

# Not as the first part of a name: "no information desk".
_FOLLOWED: Final = (
    r"(?=\W*(?:$|[.,;:!?)]|(?:about|on|of|as|regarding|concerning|in|to|that|for|from|is|was|were|has|had|can|could"
    r"|available|found|here|there|given|provided)\b))"
)
_APART: Final = r"[^\w\n]*+"  # within a line and never given back, or the marks of an answer could freeze the app
_NOTHING_FOUND = re.compile(
    rf"\bno (?:(?:relevant|specific|further) )?(?:information|answer|mention)\b{_FOLLOWED}|^{_APART}not (?:{_TOLD})\b"
    r"|(?:找不到|没有找到|未找到|未能找到|没找到|没有|没|无|缺乏|缺少)(?:任何|足够)?(?:的)?(?:相关|有关|关于|与此|答案)"
    rf"|^{_APART}(?:(?:抱歉|很?遗憾|对不起){_APART})?(?:目前|暂时|其中)?(?:没有|未|并未)(?:{_ZH_SPEAKS}|包含)"
    rf"|^{_APART}(?:(?:抱歉|很?遗憾|对不起){_APART})?(?:目前|暂时)?(?:无法|不能)(?:{_ZH_FINDS})",
    re.IGNORECASE | re.MULTILINE,
)


def is_on_sources(sentence: str) -> bool:
    """Whether it says what the passages lack, whatever it cites."""
    return bool(_ON_SOURCES.search(sentence))


def is_remark(sentence: str) -> bool:
    """Whether it speaks of the passages, or to the reader: as long as it names no passage."""
    return is_on_sources(sentence) or bool(_COURTESY.search(sentence))


def declines(text: str) -> bool:
    """Whether a text says that the answer is not in the passages."""
    return bool(_ON_SOURCES.search(text) or _NOTHING_FOUND.search(text))
