"""What can be told of a question before anything is searched.

Whether it can need a page at all, or is only about the helper or the conversation: what such a question is made of is a
closed set of words, and it must name one of us: the helper, or what was said. One word more is a subject, and a subject
is looked up.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from rag.text import question_language
from rag.types import Notice

__all__ = ["MAX_CHARACTERS", "is_about_conversation", "is_small_talk", "is_third_language", "question_problem"]

MAX_CHARACTERS: Final = 4_000

_ANY_WORD: Final = re.compile(r"\w")
# Evidence of another language; some of these words are English too, and articles stand in names of places.
_FOREIGN: Final = re.compile(
    r"\b(?:une|est|sont|dans|avec|trouve|quel|quelle|quels|quelles|pourquoi|quand|combien|qui|où|qu|cette"
    r"|ein|eine|ist|sind|nicht|und|für|mit|wie|warum|welche[rns]?|wer|wo|wann|wird|wurde|liegt"
    r"|una|es|qué|cuál|cuándo|cómo|por|quién|dónde|está|fue"
    r"|della|di|che|dove|trova|quanto|perché|quando|quale|sono|è|nel"
    r"|uma|não|são|como|quem|onde|quais|qual|fica|foi)\b",
    re.IGNORECASE,
)
_ARTICLES: Final = re.compile(
    r"\b(?:le|la|les|des|du|aux|der|das|den|dem|el|los|las|del|il|gli|os|as|um|da|na)\b", re.IGNORECASE
)
_ENGLISH_TOO: Final = re.compile(r"\b(?:pour|comment|son|para|con|come)\b", re.IGNORECASE)
_CAPITALS: Final = re.compile(r"\b[A-Z]{2,}\b")
_ENGLISH: Final = re.compile(
    r"\b(?:the|is|are|was|were|what|which|who|whom|when|where|why|how|does|did|of|and|in|on|at|to|with|it|its|this"
    r"|that|these|from|by|an|can|has|have|had|be|been|much|many|you|your|my|we|our|they|their|for|if|not|will|would"
    r"|could|should|about|there|vs)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w")

_PLEASANTRIES: Final = re.compile(
    r"\b(?:hi|hello|hey|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|night|day)|welcome|there|everyone"
    "|everybody|folks|all|again|how (?:are|r) (?:you|u|things)(?: doing)?(?: (?:today|going))?"
    "|how(?: is|'s) (?:it|everything)(?: going)?|what(?: is|'s) up|long time no see|and you"
    "|(?:nice|good|great|lovely|pleased) to (?:meet|see|talk to) you|it(?: was|'s| is) a pleasure|thanks?(?: you)?"
    "|thank u|thx|ty|cheers|so (?:much|kind)|much appreciated|(?:i )?(?:really )?appreciate (?:it|that)"
    "|(?:that is|that's|you are|you're|how) (?:very |so |too )?(?:kind|nice|sweet|great)(?: of you)?|many"
    "|a (?:lot|bunch)|a million|very much"
    "|for (?:your|the|all your) (?:help|time|answers?|reply|patience|explanation)|bye(?:[- ]bye)?|goodbye"
    "|(?:see (?:you|ya)|talk to you)(?: again| soon| then| tomorrow)?|take care|later|ciao"
    "|have a (?:nice|good|great|lovely) (?:day|evening|night|one|weekend|time)|ok(?:ay)?|k|great|nice|cool|perfect"
    "|awesome|amazing|excellent|brilliant|fantastic|lovely|good|well done|wonderful"
    "|(?:good|great|nice) (?:job|work)|sounds? (?:good|great)|makes sense|that(?: is|'s) all|(?:that|it) works"
    "|ha(?:ha)+h?|lol|wow|oh|ah|hm+|yes|yeah|yep|no(?: problem| worries)?|nope|sure|fine|exactly|indeed|right"
    "|(?:i )?(?:got|understand|understood)(?: (?:it|that|you|now))?|i see|never ?mind"
    "|you(?:'re| are) (?:welcome|the best|awesome|amazing|great|wonderful)|i(?:'m| am) new(?: here)?"
    "|please|(?:i am |i'm )?(?:so |very )?sorry|excuse me|my (?:friend|bad)|that(?: was|'s| is)?|it|helped|helps"
    "|helpful|very|really|is any(?:one|body) (?:there|here)|don't mention it|by the way|btw|mate|buddy"
    r"|just (?:testing|a test))(?!\w)|你好|您好|大家好|各位|嗨|哈喽|哈啰|早上好|上午好|中午好|下午好|晚上好|早安"
    "|午安|晚安|早|在吗|在不在|最近(?:好|怎么样|如何)|吃(?:饭)?了吗|很?高兴认识你|好久不见|谢谢|多谢|感谢|谢啦|谢了"
    "|辛苦了?|麻烦(?:你|您)?了|非常感激|再见|拜拜|回头见|明天见|回见|先这样|就这样|没(?:有)?别的(?:事|问题)了?"
    "|祝(?:你|您)?|(?:周末|节日|生活|工作)?(?:愉快|快乐|顺利)|新年(?:快乐|好)|好的?|明白了?|知道了|懂了|清楚了|了解"
    "|收到|原来如此|这样啊|哈+|嘿+|呵+|嗯+|是的?|不是|可以|不错|没错|太|棒|厉害|很|非常|真(?:的|是)?"
    "|帮了?(?:我)?大忙|(?:很|真|非常)(?:有帮助|有用)|请|抱歉|不好意思|打扰了?|对不起|没关系|不客气|不用谢|没事"
    r"|没问题|不用了|你(?:的)?(?:回答|帮助|解答|耐心)(?=\W*$)|你们|你|您|吗|呢|啊|呀|吧|了|的|啦|哦|喔|哇|测试一下"
)
_TOOL: Final = r"(?:assistant|chat ?bot|bot|chat|helper)"
_CLAUSE: Final = re.compile(r"[,.!?;:，。！？；：、…]+")
_LEADS_IN: Final = re.compile(r"^\W*(?:(?:so|and|well|but|then|also)(?!\w)|那么?|所以|另外)\W*")
_FRAME: Final = re.compile(  # what asks politely for something else, or only hands a question back
    "|".join(
        (
            r"\b(?:can|could|would|will) you (?:(?:please|kindly|just) )?(?:tell|show|give|explain to|let) (?:me|us)"
            r"(?: know)?(?!\w)",
            r"\b(?<!what )do you (?:know|think|happen to know)\b",
            r"^\W*(?:can|could|will|would|do|did|are|have|should) you(?: please)?\W*$",
            "[你您](?:能|可以|能不能|可不可以)?(?:知道|晓得|觉得|认为|告诉我们?)(?!(?:些|点)?(?:什么|啥|哪些))",
            r"^\W*[你您](?:会|能)(?:吗|么)?\W*$",
        )
    )
)
_POINTS_BACK: Final = re.compile(r"\b(?:it|that|there|sure|right)\b|为什么|[那它他她]")
_NAMES_HELPER: Final = re.compile(
    "|".join(
        (
            rf"\b(?:you|u|yourself|this {_TOOL})\b",
            r"\byour (?:name|purpose|job|role|function|abilities|capabilities|features|limits?)\b",
            r"\bwhat (?:can|should|could|may) (?:i|we) ask\b",
            r"\bhow (?:do|can|should) (?:i|we) use this\b",
            r"^\W*(?:please )?help(?: me)?(?: please)?\W*$",
            r"\bi need (?:some |your )?help\b",
            r"\bwho am i (?:talking|speaking|chatting)\b",
            r"\bi (?:have|had|have got) (?:an?|another|some|one more) questions?\b",
            r"\bis this (?:an? )?(?:ai|bot|chat ?bot|robot)\b",
            "[你您](?!们)|这个?(?:聊天机器人|助手)|自我介绍",
            "我们?(?:能|可以|该|应该)问(?:什么|些|哪|啥)",
            "我(?:有|想问|想请教)(?:一?个|一些|几个|点)?问题",
            "有(?:什么|啥)(?:可以|能)帮",
            r"^\W*(?:帮助|帮忙|帮我|需要帮助|我需要帮助)\W*$",
        )
    )
)
_OF_HELPER_ENGLISH: Final = re.compile(
    r"\b(?:i (?:need|want|would like)|i'd like"
    r"|what (?:do|can|could) you (?:know|tell|say|explain)|what (?:should|do|can|may) i call you|can you offer"
    rf"|how (?:do|does) (?:you|this {_TOOL}) (?:\w+ly )?(?:work|function)|are you there|tell (?:me|us)|who|what"
    "|what's|who's|how|which|can|could|would|will|should|may|do|does|did|are|r|is|were|have|has|'s|am|you|u|your"
    rf"|yourself|i|me|we|us|my|this {_TOOL}|use this|(?:for|to) (?:me|us|you)|(?:you|called|made|built) (?:for|of)"
    "|an? (?:real |actual )?(?:ai|bot|chat ?bot|robot|computer|machine|program|human(?: being)?|person"
    "|(?:language )?model|assistant|name|questions?)|ai|human|bot|robot|real|alive|chatgpt|name|called|purpose|job"
    "|role|function|abilities|capabilities|features|limits?|able to|to|capable of|good at|doing|made|built|created"
    "|developed|trained|programmed|help|helping|assist|answer|ask|use (?:you|u)|introduce|with|about|or|and|on|out"
    "|here|today|now|exactly|actually|even|really|just|possibly"
    "|(?:what |which )?(?:(?:sorts?|kinds?|types?) of )?(?:questions?|things?|stuff|topics|help)"
    "|(?:talking|speaking|chatting) (?:to|with)|(?:speak|understand) (?:english|chinese|mandarin)|is this"
    "|(?:kind|sort|type) of (?:ai|(?:chat ?)?bot|assistant|model)|one|another|be(?: of help)?|something|anything"
    r"|a (?:bit|little|few)|some|more|also|else|not)(?!\w)"
)
_OF_HELPER_CHINESE: Final = re.compile(
    "干[嘛吗]|一个|谁|什么|啥|哪(?:些|个|位|方面|里|家)?|怎么样?|怎样|如何|是不是|是|叫|称呼|名字|到底|究竟|其实"
    "|能不能|可不可以|能够?|会|可以?|都|还|帮忙|帮助|帮|忙|做|干|回答|解答|解决"
    "|提供(?=(?:什么|哪些|啥)?(?:样的?)?帮)|擅长|知道|懂|问题?|事情?|东西|功能|用途|用处|作用|能力|本事|本领|职责"
    "|(?:使用|用)(?=[你您这])|(?<=怎么)用|(?<=如何)用|工作|运作|开发|创造|训练|制作|设计|自我介绍|介绍|自己|一下"
    "|一些|一点|[些点个位来先我给为向跟和被由出有要该]|应该|我们|说(?:中文|英[文语]|汉语|普通话)|在(?:做|干嘛?)|想"
    "|有|聊天机器人|机器人|真人|人工智能|人类|人|程序|语言模型|大模型|模型|助手|ai|chatgpt|还是|方面|类型|种类|样"
    "|这|说话|聊天|需要"
)
_STANDS: Final = "previous|last|first|earlier"
_SAYS: Final = "(?:问|说|聊|谈|讨论|提|回答|答|讲|告诉)"
_US: Final = "(?:我们?|你们?|您|咱们?)"
_BEFORE: Final = "(?:刚才|刚刚|之前|先前|前面|上面|一开始|最初)"
_WHEN: Final = (
    f"(?:{_BEFORE}|都|已经|曾经|还|刚|最开始|最早|第[一二三四五][次个句]|上一?[次轮句]|最后|一共|总共|今天"
    "|到(?:目前|现在)(?:为止)?)"
)
_HOW: Final = "(?:是|都|先|在|怎么|如何|怎样|为什么)"
_NAMES_TALK: Final = re.compile(
    "|".join(
        (
            r"\b(?:did|have|had|has) (?:i|you|we) (?:\w+ )?"
            r"(?:ask|sa(?:y|id)|talk|discuss|mention|t[eo]ld?l?|answer|repl(?:y|ied)|cover)(?:ed)?\b",
            r"\b(?:i|you|we)(?:'ve)? (?:(?:have|had|just|already|previously|first|last|originally|earlier) )*"
            r"(?:asked|said|talked|discussed|mentioned|told|wrote|answered|replied|covered)\b",
            r"\b(?:(?:were|was|are) (?:we|you|i)|we (?:were|are)) (?:just )?(?:talking|saying|discussing|asking)\b",
            r"\b(?:our|this|the) (?:(?:whole|entire|current|last) )?(?:conversation|chat)\b|\bconversation history\b",
            r"\b(?:our|this) (?:discussion|dialog(?:ue)?)\b",
            rf"\b(?:my|your|our|the) (?:very )?(?:{_STANDS})(?: one| two| three| few)? "
            r"(?:question|answer|message|reply|response)s?\b",
            r"\b(?:my|your|our) (?:(?:second|third|prior|initial|opening) )?(?:question|answer|reply|response)s?\b",
            r"\b(?:repeat|say|rephrase) (?:that|it|this)(?: again)?\W*(?:please\W*)?$",
            r"\b(?:did|have) we (?:\w+ )?(?:start|beg[iau]n)(?:ed)?\b",
            r"^\W*(?:(?:please )?give me )?(?:an? )?(?:short |brief |quick )?(?:recap|summary)(?: please)?\W*$",
            r"\b(?:said|asked|discussed) (?:so far|earlier|before)\b",
            f"{_US}{_WHEN}*+[向跟和对]?{_US}?{_HOW}*+{_SAYS}{_US}?(?:了|过|的|到|什么|啥|哪|几|多少)",
            f"{_BEFORE}{_US}?{_HOW}*+{_SAYS}",
            f"{_BEFORE}的?(?:那个)?(?:问题|提问|回答|答案|回复|对话|聊天|内容)",
            "(?:我们|咱们|这个?|这次|这段|本次|整个|全部)的?(?:对话|聊天|会话|谈话)|(?:聊天|对话)记录",
            "再(?:说|讲|重复)一[遍次下]|重复(?:一[遍下次]|你)",
            "(?:总结|概括|回顾)(?:一下)?(?:刚才|之前|前面)",
            "上一条|上一?[个条句次](?:问题|提问|回答|答案|回复|消息|话)|第一个(?:问题|回答|提问)",
            "[我你您]的?(?:第[一二三四五]|最后一?|最[初早]|上一?)个?的?(?:问题|提问|回答|答案|回复|句话)",
            "[你您]的?(?:回答|答案|回复)|我的?(?:问题|提问)",
        )
    )
)
_OF_TALK_ENGLISH: Final = re.compile(
    r"\b(?:so far|who|what|what's|how|which|why|can|could|would|will|do|does|did|are|is|was|were|be|have|has|had"
    "|been|'s|'ve|i|you|we|me|us|my|your|our|the|an?|this|that|these|those|it|to|of|on|in|at|from|with|about|and|or"
    "|for|up|so|if|not|ask|asked|asking|say|said|saying|talk|talked|talking|discuss|discussed|discussing|discussion"
    "|mention|mentioned|tell|told|write|wrote|written|answer|answers|answered|reply|replies|replied|respond"
    "|response|responses|cover|covered|conversation|chat|dialog|dialogue|question|questions|message|messages"
    "|topics?|things?|subjects?|first|second|third|last|previous|previously|prior|earlier|initial|initially"
    "|originally|opening|just|already|before|after|ago|now|today|moments?|minutes?|beginning|start|started|begin"
    "|began|end|one|two|three|few|both|every|everything|many|much|whole|entire|current|very|remind|remember|recall"
    r"|repeat|summar\w+|sum|recap|quick|list|show|give|short|shorter|shorten|brief|briefly|simpler|simplify|rephrase"
    "|translate|into|english|chinese|french|german|spanish|japanese|korean|sentences?|words?|bullet points?"
    "|(?:(?:key|main) )?points?|overview|history|until|anything|sure|correct|again|exactly|like|get|go|back"
    r"|over)(?!\w)"
)
_OF_TALK_CHINESE: Final = re.compile(
    "我们?|咱们?|你们?|您们?|刚才|刚刚|刚|之前|以前|先前|前面|上面|上一?|最初|最早|最开始|最后|一开始|开始|开头"
    "|第[一二三四五]|到(?:目前|现在)(?:为止)?|目前|现在|今天|为止|已经|曾经|一共|总共|都|还|在|是|有没有|没有|没"
    "|什么时候说|什么|啥|哪些|哪个|哪儿|哪里|哪|几|多少|怎么|如何|为什么|提问|问题?|对话|聊天|会话|谈话|说到|说"
    "|聊到|聊|谈论|谈|讨论|提到|提过|提|讲|回答|答复|答案|答|回复|告诉|话题|话|内容|消息|记录|历史|总结|概括|回顾"
    "|复述|重复|翻译|成|中文|英文|[英日法德韩]语|简短|简单|简洁|完整|短|一下|一句|一遍|再|帮|给|把|能不能|能否|能"
    "|可以|会|记得|列出|列|过|到|里|全部|所有|整个|本次|这次|这段|那个|这个|关于|事情?|东西|主要|要点|来着"
    "|[这那个次条轮句段些遍跟和向对来先件]"
)


_THANKS = re.compile(r"\b(?:thanks?|thx|ty|cheers|grateful)\b|[谢謝]|感激|辛苦了")


def question_problem(question: str) -> Notice | None:
    """Say why `question` cannot be asked: it is empty, or longer than MAX_CHARACTERS code points."""
    if not _ANY_WORD.search(question):
        return Notice("question_empty")
    if len(question) > MAX_CHARACTERS:
        return Notice("question_long", {"characters": len(question), "limit": MAX_CHARACTERS})
    return None


def is_third_language(question: str) -> bool:
    """Whether the question seems neither English nor Chinese, by its script, then by its function words."""
    language = question_language(question)
    if language != "en":
        return language != "zh" and any(map(str.isalpha, question))
    plain = unicodedata.normalize("NFKC", question)
    if any(map(str.islower, plain)):
        plain = _CAPITALS.sub(" ", plain)  # what is in capitals is a name there
    foreign, articles, english_too, english = (
        len(set(pattern.findall(plain.lower()))) for pattern in (_FOREIGN, _ARTICLES, _ENGLISH_TOO, _ENGLISH)
    )
    if not foreign:
        return bool(articles and english_too and not english)
    return foreign + articles + english_too >= 2 > english


def is_small_talk(question: str) -> bool:
    """Whether no page can be needed: pleasantries alone, or something about the helper or this conversation.

    Deliberately narrow. What a model answers by itself is believed here only; all else is looked up.
    """
    asked = _folded(question)
    return _is_pleasant(asked) or _is_about_helper(asked) or is_about_conversation(question)


def is_thanks(question: str) -> bool:
    """Whether small talk is a thank-you."""
    return bool(_THANKS.search(_folded(question)))


def is_about_conversation(question: str) -> bool:
    """Whether the question is answered by what was said before, not by pages."""
    asked = _folded(question)
    return bool(_NAMES_TALK.search(asked)) and _is_pleasant(_without(asked, _OF_TALK_ENGLISH, _OF_TALK_CHINESE))


def _is_about_helper(asked: str) -> bool:
    """Whether some clause is, and each other one is a pleasantry."""
    clauses = [clause for clause in _CLAUSE.split(_LEADS_IN.sub("", asked)) if not _is_pleasant(clause)]
    return bool(clauses) and all(map(_names_helper, clauses))


def _names_helper(clause: str) -> bool:
    bare = _LEADS_IN.sub("", _FRAME.sub(" ", clause))
    left = _without(bare, _OF_HELPER_ENGLISH, _OF_HELPER_CHINESE)
    return bool(_NAMES_HELPER.search(bare)) and not _POINTS_BACK.search(left) and _is_pleasant(left)


def _without(asked: str, *vocabularies: re.Pattern[str]) -> str:
    for words in vocabularies:
        asked = words.sub(" ", asked)
    return asked


def _is_pleasant(asked: str) -> bool:
    return not _WORD.search(_PLEASANTRIES.sub(" ", asked))


def _folded(question: str) -> str:
    """One form of each letter, in lower case, apostrophe and blank."""
    return " ".join(unicodedata.normalize("NFKC", question).replace("’", "'").lower().split())
