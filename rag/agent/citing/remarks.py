"""What an answer says about itself or about its sources, rather than about its subject.

A remark names the sources and denies that they tell something. It is not held to have a source. But pages, too, deny
things: a remark is only what no passage bears out.
"""

from __future__ import annotations

import re
from typing import Final

_SOURCE: Final = (
    r"\b(?:passages?|pages?|sources?|texts?|articles?|documents?|excerpts?|snippets?|context|search results?|materials?"
    r"|websites?)\b"
)
_LACKS: Final = r"(?:\b(?:no|not|none|nothing|neither|never|cannot|unable|impossible|insufficient)\b|n['’]t\b)"
_ZH_SOURCE: Final = (
    "(?:段落|网页|资料|文章|文中|原文|页面|来源|材料|文档|文本|上下文|片段|搜索结果|检索结果"
    "|(?:提供|给出)的(?:内容|信息))"
)
_ZH_LACKS: Final = "(?:没|未|无|不[能提涉包]|难以|找不到)"
_ON: Final = r"[^.。!?！？\n]{0,40}"  # on within the sentence
_ON_SOURCES = re.compile(
    rf"{_SOURCE}{_ON}{_LACKS}|{_LACKS}{_ON}{_SOURCE}|\bI {_ON}{_LACKS}"
    rf"|{_ZH_SOURCE}{_ON}{_ZH_LACKS}|{_ZH_LACKS}{_ON}{_ZH_SOURCE}|我(?!们){_ON}{_ZH_LACKS}",
    re.IGNORECASE,
)
_TOLD: Final = (
    "mentioned|stated|given|specified|covered|included|found|provided|described|addressed|discussed|contained"
    "|explained|answered|available|clear"
)
_ZH_TOLD: Final = (
    "提到|提及|涉及|说明|记载|介绍|指出|回答|描述|讲到|谈到|写明|给出|提供|找到|确定|得知|判断|查到|了解到"
)
_TELLS = re.compile(
    rf"\b(?:{_TOLD}|mention|say|specif|stat|expla|tell|answer|indicat|describ|discuss|address|reveal|contain|hold|provid"
    rf"|includ|cover|giv|list|show|offer|refer|inform|find|know|determin|confirm|possible|enough|sufficient|in the)"
    rf"|{_ZH_TOLD}|显示|列出|相关|有关|关于|答案|信息|包含|包括",
    re.IGNORECASE,
)
_COURTESY = re.compile(r"^(?:I|let me|please|sorry)\b|^(?:请|希望(?:以上|这|对|能|我|本)|如需|如果?您)", re.IGNORECASE)

# Not as the first part of a name: "no information desk".
_FOLLOWED: Final = (
    r"(?=\W*(?:$|[.,;:!?)]|(?:about|on|of|as|regarding|concerning|in|to|that|for|from|is|was|were|has|had|can|could"
    r"|available|found|here|there|given|provided)\b))"
)
_APART: Final = r"[^\w\n]*+"  # within a line and never given back, or the marks of an answer could freeze the app
_NOTHING_FOUND = re.compile(
    rf"\bno (?:(?:relevant|specific|further) )?(?:information|answer|mention)\b{_FOLLOWED}|^{_APART}not (?:{_TOLD})\b"
    r"|(?:找不到|没有找到|未找到|未能找到|没找到|没有|没|无|缺乏|缺少)(?:任何|足够)?(?:的)?(?:相关|有关|关于|与此|答案)"
    rf"|^{_APART}(?:(?:抱歉|很?遗憾|对不起){_APART})?(?:目前|暂时|其中)?(?:没有|未|并未|无法|不能)(?:{_ZH_TOLD}|包含)",
    re.IGNORECASE | re.MULTILINE,
)


def is_on_sources(sentence: str) -> bool:
    """Whether it says what the passages lack, whatever it cites."""
    return bool(_ON_SOURCES.search(sentence) and _TELLS.search(sentence))


def is_remark(sentence: str) -> bool:
    """Whether it speaks of the passages, or to the reader: as long as it names no passage."""
    return is_on_sources(sentence) or bool(_COURTESY.search(sentence))


def declines(text: str) -> bool:
    """Whether a text says that the answer is not in the passages."""
    return is_on_sources(text) or bool(_NOTHING_FOUND.search(text))
