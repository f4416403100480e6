"""A question in its conversation: checks before any search, and the history that a model sees.

A question about the conversation refers to what was said, and has only words from a closed set. Any other word is a
subject to search for.

By default recent exchanges stay in full and older ones are summarised, within a token budget. A chat model rewrites a
follow-up as a standalone question; without one, earlier questions are searched for with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal
from uuid import uuid4

from rag.checking.rules import read_terms
from rag.locales import say
from rag.text import estimate_tokens, first_sentence, is_chinese, lazy_regex, question_language, strip_citations
from rag.types import Exchange, Notice, Step

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

MAX_CHARACTERS: Final = 4_000
MAX_QUESTIONS: Final = 4
"""Maximum number of questions of a message that are answered separately."""

# Evidence of another language; some of these words are English too, and articles occur in place names.
_FOREIGN: Final = lazy_regex(
    r"\b(?:une|est|sont|dans|avec|trouve|quel|quelle|quels|quelles|pourquoi|quand|combien|qui|où|qu|cette"
    r"|ein|eine|ist|sind|nicht|und|für|mit|wie|warum|welche[rns]?|wer|wo|wann|wird|wurde|liegt"
    r"|una|es|qué|cuál|cuándo|cómo|por|quién|dónde|está|fue"
    r"|della|di|che|dove|trova|quanto|perché|quando|quale|sono|è|nel"
    r"|uma|não|são|como|quem|onde|quais|qual|fica|foi)\b",
    re.IGNORECASE,
)
_ARTICLES: Final = lazy_regex(
    r"\b(?:le|la|les|des|du|aux|der|das|den|dem|el|los|las|del|il|gli|os|as|um|da|na)\b", re.IGNORECASE
)
_ENGLISH_TOO: Final = lazy_regex(r"\b(?:pour|comment|son|para|con|come)\b", re.IGNORECASE)
_CAPITALS: Final = lazy_regex(r"\b[A-Z]{2,}\b")
_ENGLISH: Final = lazy_regex(
    r"\b(?:the|is|are|was|were|what|which|who|whom|when|where|why|how|does|did|of|and|in|on|at|to|with|it|its|this"
    r"|that|these|from|by|an|can|has|have|had|be|been|much|many|you|your|my|we|our|they|their|for|if|not|will|would"
    r"|could|should|about|there|vs)\b",
    re.IGNORECASE,
)
_WORD: Final = lazy_regex(r"\w")

_POSITIONS: Final = "previous|last|first|earlier"
_SAYS: Final = "(?:问|说|聊|谈|讨论|提|回答|答|讲|告诉)"
_US: Final = "(?:我们?|你们?|您|咱们?)"
_BEFORE: Final = "(?:刚才|刚刚|之前|先前|前面|上面|一开始|最初)"
_WHEN: Final = (
    f"(?:{_BEFORE}|都|已经|曾经|还|刚|最开始|最早|第[一二三四五][次个句]|上一?[次轮句]|最后|一共|总共|今天"
    "|到(?:目前|现在)(?:为止)?)"
)
_HOW: Final = "(?:是|都|先|在|怎么|如何|怎样|为什么)"
_NAMES_TALK: Final = lazy_regex(
    "|".join(
        (
            r"\b(?:did|have|had|has) (?:i|you|we) (?:\w+ )?"
            r"(?:ask|sa(?:y|id)|talk|discuss|mention|t[eo]ld?l?|answer|repl(?:y|ied)|cover)(?:ed)?\b",
            r"\b(?:i|you|we)(?:'ve)? (?:(?:have|had|just|already|previously|first|last|originally|earlier) )*"
            r"(?:asked|said|talked|discussed|mentioned|told|wrote|answered|replied|covered)\b",
            r"\b(?:(?:were|was|are) (?:we|you|i)|we (?:were|are)) (?:just )?(?:talking|saying|discussing|asking)\b",
            r"\b(?:our|this|the) (?:(?:whole|entire|current|last) )?(?:conversation|chat)\b|\bconversation history\b",
            r"\b(?:our|this) (?:discussion|dialog(?:ue)?)\b",
            rf"\b(?:my|your|our|the) (?:very )?(?:{_POSITIONS})(?: one| two| three| few)? "
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
_OF_TALK_ENGLISH: Final = lazy_regex(
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
    r"|over|please|thanks)(?!\w)"
)
_OF_TALK_CHINESE: Final = lazy_regex(
    "我们?|咱们?|你们?|您们?|刚才|刚刚|刚|之前|以前|先前|前面|上面|上一?|最初|最早|最开始|最后|一开始|开始|开头"
    "|第[一二三四五]|到(?:目前|现在)(?:为止)?|目前|现在|今天|为止|已经|曾经|一共|总共|都|还|在|是|有没有|没有|没"
    "|什么时候说|什么|啥|哪些|哪个|哪儿|哪里|哪|几|多少|怎么|如何|为什么|提问|问题?|对话|聊天|会话|谈话|说到|说"
    "|聊到|聊|谈论|谈|讨论|提到|提过|提|讲|回答|答复|答案|答|回复|告诉|话题|话|内容|消息|记录|历史|总结|概括|回顾"
    "|复述|重复|翻译|成|中文|英文|[英日法德韩]语|简短|简单|简洁|完整|短|一下|一句|一遍|再|帮|给|把|能不能|能否|能"
    "|可以|会|记得|列出|列|过|到|里|全部|所有|整个|本次|这次|这段|那个|这个|关于|事情?|东西|主要|要点|来着"
    "|[这那个次条轮句段些遍跟和向对来先件请的了你您是吗呢]"
)

_FOR_MORE: Final = lazy_regex(
    r"\b(?:more|else|another|other|others|continue|details?|where|comes?|really|true|sources?|ok|okay)\b"
    "|继续|更多|详细|具体|确定|真|来源|出处|其他|别的|一点|一些|有",
    re.IGNORECASE,
)

_FIRST_WORDS: Final = (  # of English questions; others also begin the second verb of a sentence
    "what|which|who|whom|whose|when|where|why|how|is|are|do|does|did|can|could|will|would|should"
)
_ASKS = lazy_regex(
    rf"[?？][\"'”’」)）]*$|^\W*(?:and |but |so )?(?:{_FIRST_WORDS}|was|were|has|have|had)\b"
    "|什么|啥|怎|如何|为何|多少|多[久大长高快]|哪|谁|几|吗|呢|何时|是否|是不是",
    re.IGNORECASE,
)
_QUESTION_END = lazy_regex(r"(?<=[?？])\s*+(?=\w)")
_CLAUSE_BREAK = lazy_regex(
    rf"[,;]?\s++(?:and|but)\s++(?:also\s++)?(?=(?:{_FIRST_WORDS})\b)|[，；,;]\s*+(?=[\u3400-\u9fff])",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_regex(r"[.!。！]\s*+")
_WORD_OR_HAN = lazy_regex(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_MIN_WORDS: Final = 3  # words, or Han characters, of a question that can be answered separately
_SHORT_CLAUSE = lazy_regex(r"[\u3400-\u9fff]{1,4}\W*")
_ASKS_CHOICE = lazy_regex(r"(\w)不\1|咋")
_GREETING = lazy_regex(
    r"\b(?:hi|hiya|hello|hey|yo|good (?:morning|afternoon|evening)|morning)\b|[你您]好|嗨|哈[喽啰]|[早午晚]上?[好安]"
)
_NEWEST = lazy_regex(
    r"\b(?:newest|latest|last|most recent)(?: \w+)? (?:page|article|document)\b"
    r"|\b(?:page|article|document)(?: that)? i(?: have|'ve)?(?: just)? (?:add|sav)ed"
    r"|(?:最[新后近]|刚)[^，。？?几两三些]{0,6}(?:[篇页]|文章)"
)
_THANKS = lazy_regex(r"\b(?:thanks?|thx|ty|cheers|grateful)\b|[谢謝]|感激|辛苦了")


def question_problem(question: str) -> Notice | None:
    """Return why `question` is invalid: it is empty, or longer than MAX_CHARACTERS code points; else None."""
    if not _WORD.search(question):
        return Notice("question_empty")
    if len(question) > MAX_CHARACTERS:
        return Notice("question_long", {"characters": len(question), "limit": MAX_CHARACTERS})
    return None


def is_third_language(question: str) -> bool:
    """Return whether the question seems neither English nor Chinese, by its script, then by its function words."""
    language = question_language(question)
    if language != "en":
        return language != "zh" and any(map(str.isalpha, question))
    plain = unicodedata.normalize("NFKC", question)
    if any(map(str.islower, plain)):
        plain = _CAPITALS.sub(" ", plain)  # in mixed case, words in capitals are names
    foreign, articles, english_too, english = (
        len(set(pattern.findall(plain.lower()))) for pattern in (_FOREIGN, _ARTICLES, _ENGLISH_TOO, _ENGLISH)
    )
    if not foreign:
        return bool(articles and english_too and not english)
    return foreign + articles + english_too >= 2 > english


def asks(text: str) -> bool:
    """Return whether a line is a question, by its question mark, its first words, or Chinese question words."""
    return bool(_ASKS.search(text.strip()))


def split_questions(message: str) -> list[str]:
    """Return the questions of a message that asks up to MAX_QUESTIONS and nothing else; otherwise only the message.

    A question mark ends a question, and so does a comma or conjunction between two clauses with question words.
    Fragments such as "why?" don't count. A short Chinese clause, whose subject may be in the one before, includes that.
    """
    parts = []
    for sentence in _QUESTION_END.split(message):
        start = 0
        for found in _CLAUSE_BREAK.finditer(sentence):
            if _asks_in_words(sentence[start : found.start()]) and _asks_in_words(sentence[found.end() :]):
                parts.append(sentence[start : found.start()].strip())
                start = found.end() if not _SHORT_CLAUSE.fullmatch(sentence, found.end()) else start
        parts.append(sentence[start:].strip())
    ask = all(asks(part) or _asks_in_words(part) for part in parts)
    are_whole = all(len(_WORD_OR_HAN.findall(part)) >= _MIN_WORDS for part in parts)
    return parts if len(parts) <= MAX_QUESTIONS and ask and are_whole else [message]


def _asks_in_words(text: str) -> bool:
    """Return whether the last sentence asks even without its question mark."""
    last = _SENTENCE_END.split(text.rstrip("?？ "))[-1]
    return asks(last) or bool(_ASKS_CHOICE.search(last))


def is_thanks(question: str) -> bool:
    """Return whether a message that needs no page is a thank-you."""
    return bool(_THANKS.search(_normalise(question)))


def is_greeting(question: str) -> bool:
    """Return whether a message that needs no page greets, and asks nothing."""
    return bool(_GREETING.search(_normalise(question))) and not asks(question)


def asks_for_newest(question: str) -> bool:
    """Return whether the question is about the page that was added last."""
    return bool(_NEWEST.search(_normalise(question)))


def is_about_conversation(question: str) -> bool:
    """Return whether the conversation answers the question, not the pages; deliberately narrow."""
    text = _normalise(question)
    return bool(_NAMES_TALK.search(text)) and not _WORD.search(_remove_talk(text))


def has_subject(question: str) -> bool:
    """Return whether a message names a subject, unlike "give me more" or "are you sure?"."""
    return bool(_WORD.search(_FOR_MORE.sub(" ", _remove_talk(_normalise(question)))))


def _remove_talk(text: str) -> str:
    return _OF_TALK_CHINESE.sub(" ", _OF_TALK_ENGLISH.sub(" ", text))


def _normalise(question: str) -> str:
    """Normalise letters, apostrophes and spaces, in lower case."""
    return " ".join(unicodedata.normalize("NFKC", question).replace("’", "'").lower().split())


RETRIEVE: Final = "retrieve"
_STANDALONE: Final = "standalone"
_ASIDE: Final = "aside"


def human_message(
    question: str,
    standalone: str = "",
    id: str | None = None,  # noqa: A002 - the message's name
    *,
    aside: bool = False,
) -> HumanMessage:
    """Return the user's message, with the standalone question if different; an `id` replaces that message."""
    from langchain_core.messages import HumanMessage

    standalone_field = {_STANDALONE: standalone} if standalone and standalone != question else {}
    return HumanMessage(question, additional_kwargs={**standalone_field, **({_ASIDE: True} if aside else {})}, id=id)


def messages_of(exchanges: Sequence[Exchange]) -> list[AnyMessage]:
    """Return the messages of a stored conversation; a question without an answer has none after it."""
    from langchain_core.messages import AIMessage

    messages: list[AnyMessage] = []
    for exchange in exchanges:
        messages.append(human_message(exchange.question, exchange.standalone, aside=exchange.aside))
        if exchange.answer.strip():
            messages.append(AIMessage(exchange.answer))
    return messages


@dataclass(frozen=True, slots=True)
class MessagePair:
    """A question and its answer, if any."""

    question: HumanMessage
    answer: AIMessage | None

    @property
    def exchange(self) -> Exchange:
        fields = self.question.additional_kwargs
        answer = self.answer.text if self.answer else ""
        return Exchange(self.question.text, answer, str(fields.get(_STANDALONE, "")), bool(fields.get(_ASIDE)))

    @property
    def messages(self) -> list[AnyMessage]:
        return [self.question, self.answer] if self.answer else [self.question]


def turns_of(messages: Sequence[BaseMessage]) -> list[MessagePair]:
    """Return each question with the first answer before the next question, if any."""
    from langchain_core.messages import AIMessage, HumanMessage

    turns: list[MessagePair] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append(MessagePair(message, None))
        elif isinstance(message, AIMessage) and message.text and turns and turns[-1].answer is None:
            turns[-1] = MessagePair(turns[-1].question, message)
    return turns


def exchanges_of(messages: Sequence[BaseMessage]) -> list[Exchange]:
    """Return the questions among the messages with their answers, oldest first.

    A question without an answer has an empty one, since the next question may refer to it.
    """
    return [turn.exchange for turn in turns_of(messages)]


def make_call(queries: Sequence[str]) -> AIMessage:
    """Return the message that calls the tool once for each query."""
    from langchain_core.messages import AIMessage

    return AIMessage(
        content="",
        tool_calls=[
            {"name": RETRIEVE, "args": {"query": query}, "id": f"call_{uuid4().hex}", "type": "tool_call"}
            for query in queries
        ],
    )


def unreadable_call() -> AIMessage:
    """Return a message for a tool call that cannot be parsed."""
    from langchain_core.messages import AIMessage
    from langchain_core.messages.tool import invalid_tool_call

    return AIMessage(content="", invalid_tool_calls=[invalid_tool_call(name=RETRIEVE)])


MemoryKind = Literal["recent", "buffer", "window", "summary"]
MEMORIES: Final[tuple[MemoryKind, ...]] = ("recent", "buffer", "window", "summary")
HISTORY_TOKENS: Final = 2_000
"""Tokens of a conversation that stay verbatim; its summary gets up to half as many."""
SUMMARY_OF: Final = "(What was said before, in short.)"
"""The question of an exchange whose answer is the summary of older ones."""
DEFAULT_WINDOW: Final = 5
_MAX_FOLLOW_UP_EXCHANGES: Final = 4  # exchanges that a follow-up may refer to
_OPENING: Final = 600  # characters of an answer
_MIN_VERBATIM: Final = 2  # exchanges that stay in full, however long

_FIRST: Final = lazy_regex(r"\bfirst\b|\bbegin(?:ning)?\b|\bstart(?:ed)?\b|第一|最初|一开始|最早|开头", re.IGNORECASE)
_YOU: Final = lazy_regex(r"\byour?\b|你", re.I)
_ANSWER: Final = lazy_regex(r"\b(?:sa(?:y|id)|answer|repl\w|wr[io]te|mention|t[oe]l?)|[说答]", re.I)
_ALL: Final = lazy_regex(
    r"\b(?:summar\w+|recap|all|talk(?:ed)?|discuss(?:ed)?|conversation|chat|questions|so far)\b"
    r"|总结|概括|回顾|聊|哪些问题|都问|所有问题|对话",
    re.IGNORECASE,
)
MAX_STANDALONE: Final = 600  # characters
_MAX_NEW_WORDS: Final = 2  # new words that a standalone question may add


@dataclass(frozen=True, slots=True)
class Memory:
    """The part of a conversation that a model sees. `recent`: recent exchanges in full, older ones summarised;
    `buffer`: all that fit into `tokens`; `window`: that many exchanges; `summary`: only a summary. The last three match
    LangChain's memories of these names."""

    kind: MemoryKind = "recent"
    window: int = DEFAULT_WINDOW
    tokens: int = 8_000

    @property
    def verbatim(self) -> bool:
        """True if a model sees verbatim exchanges, never a summary."""
        return self.kind in ("buffer", "window")

    def count_summarised(self, exchanges: Sequence[Exchange]) -> int:
        """Return how many of the oldest exchanges go into the summary."""
        if self.verbatim:
            return 0
        return len(exchanges) if self.kind == "summary" else count_overflowing(exchanges)

    def first_visible(self, exchanges: Sequence[Exchange]) -> int:
        """Return the index of the first exchange that a model sees."""
        if self.kind == "window":
            return max(0, len(exchanges) - self.window)
        return count_overflowing(exchanges, self.tokens) if self.kind == "buffer" else 0

    def select_exchanges(self, exchanges: Sequence[Exchange]) -> list[Exchange]:
        """Return the exchanges for rewriting a follow-up; with a summary, the openings of the last answers suffice."""
        if self.verbatim:
            return list(exchanges[self.first_visible(exchanges) :])
        return [
            replace(exchange, answer=exchange.answer.strip()[:_OPENING])
            for exchange in exchanges[-_MAX_FOLLOW_UP_EXCHANGES:]
        ]


def count_overflowing(exchanges: Sequence[Exchange], tokens: int = HISTORY_TOKENS) -> int:
    """Return how many of the oldest exchanges no longer fit; the last two always count as fitting."""
    room = tokens
    for place in range(len(exchanges) - 1, -1, -1):
        room -= estimate_tokens(exchanges[place].effective_question) + estimate_tokens(exchanges[place].answer)
        if room < 0 and len(exchanges) - place > _MIN_VERBATIM:
            return place + 1
    return 0


def summary_by_rules(before: str, exchanges: Sequence[Exchange], tokens: int) -> str:
    """Return each question with the first sentence of its answer, without the oldest lines if there are too many."""
    lines = [
        *before.splitlines(),
        *(f"{exchange.effective_question} — {first_sentence(exchange.answer)}" for exchange in exchanges),
    ]
    while len(lines) > 1 and sum(map(estimate_tokens, lines)) > tokens:
        del lines[0]
    return "\n".join(lines)


def answer_from_conversation(question: str, exchanges: Sequence[Exchange]) -> str:
    """Answer a question about the conversation; return an empty string if it is about something else."""
    summary = ""
    if not is_about_conversation(question):
        return ""
    language = "zh" if is_chinese(question) else "en"
    if exchanges and exchanges[0].question == SUMMARY_OF:
        summary, exchanges = exchanges[0].answer, exchanges[1:]
    if not exchanges:
        return say(Notice("recall_nothing"), language)
    if _ALL.search(question) and not _FIRST.search(question):
        lines = [*summary.splitlines(), *(f"{past.question} — {first_sentence(past.answer)}" for past in exchanges)]
        return f"{say(Notice('recall_all'), language)}\n\n" + "\n".join(f"- {line}" for line in lines)
    is_first = bool(_FIRST.search(question))
    exchange = exchanges[0] if is_first else exchanges[-1]
    if is_first and summary:
        exchange = Exchange(summary.splitlines()[0].partition(" — ")[0], "")
    you = _YOU.search(question)
    has_answer = exchange.answer and you and _ANSWER.search(question, you.end())
    code = ("recall_first" if is_first else "recall_last") + ("_answer" if has_answer else "")
    params = {"question": exchange.question, "answer": strip_citations(exchange.answer).strip()}
    return say(Notice(code, params), language)


def is_valid_standalone(standalone: str, question: str, history: Sequence[Exchange]) -> bool:
    """Return whether a model's standalone version of a follow-up is still about the same thing.

    It must be a question if the follow-up is one, in the same language, share a word with it, and use mostly words of
    the conversation. Small models may answer the question instead, or write about something else.
    """
    if standalone == question:
        return True
    if is_chinese(standalone) != is_chinese(question) or (asks(question) and not asks(standalone)):
        return False
    before, after = _content_terms(question), _content_terms(standalone)
    seen = before.union(*(_content_terms(f"{exchange.effective_question} {exchange.answer}") for exchange in history))
    new = after - seen
    return (not before or bool(before & after)) and len(new) <= max(_MAX_NEW_WORDS, len(after) // 2)


def _content_terms(text: str) -> set[str]:
    return {term.key for term in read_terms(text).terms}


def questions_before(history: Sequence[Exchange]) -> list[str]:
    """Return the last questions to include in a search, in standalone form, oldest first, without asides."""
    from rag.retrieval.strategies import MAX_TURNS

    questions = [
        turn.effective_question
        for turn in history
        if not turn.aside and not is_about_conversation(turn.effective_question)
    ]
    return [question[:MAX_STANDALONE] for question in questions][-MAX_TURNS:]


def find_earlier_questions(steps: Sequence[Step]) -> list[str]:
    """Return the earlier questions that an answer depends on, according to its steps, oldest first."""
    return _read_list(steps, "before")


def find_history(steps: Sequence[Step]) -> list[str]:
    """Return the earlier questions that were included in a search, whether or not the answer depends on them."""
    return _read_list(steps, "history") or find_earlier_questions(steps)


def _read_list(steps: Sequence[Step], key: str) -> list[str]:
    return next((list(step.detail[key]) for step in steps if step.detail.get(key)), [])
