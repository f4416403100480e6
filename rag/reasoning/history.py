"""A conversation as LangChain messages, and the part of it that a model sees.

By default recent exchanges stay in full and older ones are summarised, within a token budget.
A chat model rewrites a follow-up as a standalone question; without one, earlier questions are searched for with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal
from uuid import uuid4

from rag.checking.terms import read_terms
from rag.locales import say
from rag.patterns import lazy_regex
from rag.reasoning.questions import asks, is_about_conversation
from rag.text import estimate_tokens, first_sentence, is_chinese, strip_citations
from rag.types import Exchange, Notice, Step

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

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
class Turn:
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


def turns_of(messages: Sequence[BaseMessage]) -> list[Turn]:
    """Return each question with the first answer before the next question, if any."""
    from langchain_core.messages import AIMessage, HumanMessage

    turns: list[Turn] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append(Turn(message, None))
        elif isinstance(message, AIMessage) and message.text and turns and turns[-1].answer is None:
            turns[-1] = Turn(turns[-1].question, message)
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
    has_answer = exchange.answer and _asks_for_answer(question)
    code = ("recall_first" if is_first else "recall_last") + ("_answer" if has_answer else "")
    params = {"question": exchange.question, "answer": strip_citations(exchange.answer).strip()}
    return say(Notice(code, params), language)


def _asks_for_answer(question: str) -> bool:
    match = _YOU.search(question)
    return bool(match and _ANSWER.search(question, match.end()))


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
    from rag.retrieval.engine import MAX_TURNS  # loads the encoders

    questions = [
        turn.effective_question
        for turn in history
        if not turn.aside and not is_about_conversation(turn.effective_question)
    ]
    return [question[:MAX_STANDALONE] for question in questions][-MAX_TURNS:]


def find_earlier_questions(steps: Sequence[Step]) -> list[str]:
    """Return the earlier questions that were included in a search, according to its steps, oldest first."""
    return next((list(step.detail["before"]) for step in steps if step.detail.get("before")), [])
