"""What can be told of a question before anything is searched."""

from __future__ import annotations

import re
from typing import Final

from rag.text import detect_language
from rag.types import Notice

MAX_CHARACTERS: Final = 4_000

_PLEASANTRIES: Final = re.compile(
    r"\b(?:hi|hello|hey|hiya|howdy|good (?:morning|afternoon|evening|night|day)|welcome|there|everyone|all"
    r"|again|how are you(?: doing)?(?: today)?|nice to meet you|thanks?(?: you)?|thx|cheers|so much|many"
    r"|a lot|very much|bye|goodbye|see you|later|ok(?:ay)?|great|nice|cool|perfect|awesome|good|wonderful"
    r"|haha+|lol|wow|yes|no|sure|fine|got it|i see|please|sorry|that(?: was|'s| is)?|it|helped|helpful"
    r"|very)\b|你好|您好|大家好|嗨|哈喽|早上好|下午好|晚上好|早安|晚安|早|谢谢|多谢|感谢|辛苦了?|再见|拜拜|好的?|明白了?"
    r"|知道了|了解|收到|哈+|嘿+|嗯+|是的?|不是|可以|不错|太|棒|厉害|很|非常|请|抱歉|对不起|没关系|你们|你|您"
    r"|吗|呢|啊|呀|吧|了|的|啦|哦|喔",
    re.IGNORECASE,
)
_ABOUT_US: Final = re.compile(
    r"\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:ai|bot|robot|human|person|real|there)\b"
    r"|\b(?:what|how) can (?:you|i) (?:do|help|ask|use)\b|\bhow do (?:you work|i use (?:you|this))\b|\bcan you help\b"
    r"|你是谁|你是(?:什么|哪|不是)|你叫什么|你的名字|你能(?:做|帮|干)|你会(?:做|什么)|你可以(?:做|帮)"
    r"|怎么(?:用|使用)你|你怎么(?:用|工作)",
    re.IGNORECASE,
)
_ABOUT_CONVERSATION: Final = re.compile(
    r"\b(?:did|have) (?:i|you|we) (?:just |already |first )?(?:ask|say|said|talk|discuss|mention)"
    r"|\bi (?:just )?(?:asked|said)\b|\byou (?:just )?(?:said|mentioned|wrote|answered)\b"
    r"|\b(?:our|this|the) (?:conversation|chat)\b|\byour (?:(?:last|first|previous|earlier) )?(?:answer|reply)\b"
    r"|\b(?:my|your|the) (?:previous|last|first|earlier) (?:question|answer|message)\b"
    r"|我刚才|刚才(?:说|问|的)|我们(?:的对话|聊|刚才|之前)|这(?:个|次|段)(?:对话|聊天)|上一?个?(?:问题|回答)|上一条"
    r"|我(?:的)?第一个问题|之前(?:问|说)(?:的|过|了)|你(?:刚才)?(?:的回答|回答的|说的)|我(?:都)?问(?:了|过)(?:哪些|什么|几)",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w")
_FOREIGN: Final = re.compile(
    r"\b(?:le|les|des|une|est|sont|dans|pour|avec|quel|quelle|quels|quelles|comment|pourquoi|qui|où|qu|du|aux|cette"
    r"|der|das|den|dem|ein|eine|ist|sind|nicht|und|für|mit|wie|warum|welche[rns]?|wer|wird|wurde"
    r"|el|los|las|una|es|son|para|con|qué|cuál|cuándo|cómo|por|quién|dónde|del|está"
    r"|il|gli|della|di|che|perché|come|quando|quale|sono|è|nel"
    r"|os|as|um|uma|não|são|como|quem|onde|quais|qual|da|na)\b",
    re.IGNORECASE,
)
_ENGLISH: Final = re.compile(
    r"\b(?:the|is|are|was|were|what|which|who|whom|when|where|why|how|does|did|of|and|in|on|at|to|with|it|its|this"
    r"|that|these|from|by|an|can|has|have|had|be|been|much|many)\b",
    re.IGNORECASE,
)


def question_problem(question: str) -> Notice | None:
    """Say why `question` cannot be asked: it is empty, or longer than MAX_CHARACTERS code points."""
    if not _WORD.search(question):
        return Notice("question_empty")
    if len(question) > MAX_CHARACTERS:
        return Notice("question_long", {"characters": len(question), "limit": MAX_CHARACTERS})
    return None


def is_small_talk(question: str) -> bool:
    """Whether no page can be needed: pleasantries alone, or something about the helper or this conversation.

    Deliberately narrow. What a model answers by itself is believed here only; all else is looked up.
    """
    about_us = _ABOUT_US.search(question) or is_about_conversation(question)
    return bool(about_us) or not _WORD.search(_PLEASANTRIES.sub(" ", question))


def is_about_conversation(question: str) -> bool:
    """Whether the question is answered by what was said before, not by pages."""
    return bool(_ABOUT_CONVERSATION.search(question))


def is_third_language(question: str) -> bool:
    """Whether the question seems neither English nor Chinese, by its script, then by its function words."""
    language = detect_language(question)
    if language != "en":
        return language != "zh" and any(map(str.isalpha, question))
    return len(_FOREIGN.findall(question)) >= 2 > len(_ENGLISH.findall(question))
