"""A reasoner on top of any chat model that LangChain supports, and the parsing of its replies.

The filter hides split characters, reasoning and the sign for "not found"; the parsers return the text, its lines, or
the requested line.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from rag.background import BACKGROUND
from rag.checking.statements import ends_in_colon, find_marks, remove_marks
from rag.checking.verifier import Judgements, build_check, read_judgements
from rag.errors import ModelError
from rag.models.servers import (
    allow_reasoning_tokens,
    answer_text,
    drop_reasoning,
    failure_types,
    is_only_reasoning,
    limit_reply,
    load_capacity,
    model_error,
    model_name,
    refuses_tools,
    remember_no_tools,
    takes_tools,
    was_cut_off_reasoning,
)
from rag.models.structured import fill_schema
from rag.prompts import requests
from rag.prompts.requests import NOT_IN_PAGES, Prompt
from rag.prompts.texts import SHIPPED, PromptTexts
from rag.reasoning import RESET
from rag.reasoning.questions import make_call, unreadable_call
from rag.retrieval.strategies import Need
from rag.text import INTRODUCTION, detect_language, estimate_tokens, join_surrogates, lazy_regex
from rag.types import CheckedBy, Exchange, Passage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

    from rag.checking.verifier import Claim, ClaimJudgement

log = logging.getLogger(__name__)


EXPANSION_SECONDS: Final = 20.0
_MAX_EXPANSION: Final = 1_200  # characters
_MAX_QUERY: Final = 400
_MARK: Final = lazy_regex(r"\[\d+\]")
_FIRST_HALF: Final = lazy_regex("[\ud800-\udbff]\\Z")
_GROWTH: Final = 100  # a text must grow by this fraction (1/n) before it is parsed again


class ShownText:
    """The visible part of a streamed answer: without reasoning and wrappings, and without `sign`.

    A model writes `sign` if the passages do not answer. Other text with the sign is retracted unless it cites a
    passage. `text` is the visible text so far, `signed` whether the sign appeared. A small model may cite the `marker`,
    the name of the tags around the passages, instead of their numbers: such marks are removed.
    """

    def __init__(self, sign: str, marker: str = "") -> None:
        self._sign = sign
        self._tag = f"[{marker.rpartition('-')[2]}]" if marker else sign
        self.text = ""
        self.signed = False

    async def filter(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield the visible pieces; a RESET retracts all before it."""
        reply, parsed = "", 0
        async for piece in pieces:
            reply += piece
            if len(reply) - parsed >= len(reply) // _GROWTH:
                parsed = len(reply)
                for shown in self._next(answer_text(reply, whole=False), whole=False):
                    yield shown
        for shown in self._next(answer_text(reply), whole=True):
            yield shown

    def _next(self, text: str, *, whole: bool) -> Iterator[str]:
        self.signed = self._sign in text
        text = text.replace(self._sign, "").replace(f" {self._tag}", "").replace(self._tag, "").lstrip()
        if self.signed and whole and not _MARK.search(text):
            text = ""
        if not whole:
            text = text[: len(text) - max(_overlap(text, self._sign), _overlap(text, f" {self._tag}"))]
        shown, self.text = self.text, text
        if not text.startswith(shown):
            yield RESET
            shown = ""
        if more := text[len(shown) :]:
            yield more


def _overlap(text: str, word: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `word`."""
    return next((size for size in range(min(len(text), len(word)), 0, -1) if text.endswith(word[:size])), 0)


async def join_halves(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the pieces with split characters rejoined; a first half at the end of a piece waits for the next one."""
    half = ""
    async for piece in pieces:
        if not piece:
            continue
        text, half = half + piece, ""
        if _FIRST_HALF.search(text):
            text, half = text[:-1], text[-1]
        if text:
            yield join_surrogates(text)
    if half:
        yield join_surrogates(half)


_BULLET: Final = lazy_regex(r"(?<!\s)\s*+(?:[-*•·]\s+|•|-(?=[\u4e00-\u9fff]))")
_NUMBERED: Final = lazy_regex(r"\s*(\d{1,2})(?:[.)]\s+|[、．)]\s*)(?!\d)")
_FENCE: Final = lazy_regex(r"\s*(?:```|~~~)\w*\s*")
_PAIRS: Final = {
    '"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`", "**": "**", "*": "*",
}  # fmt: skip
_WITHIN_A_WORD: Final = lazy_regex(r"(?<=\w)['’](?=\w)")

_KINDS: Final = r"(?:standalone|stand-alone|complete|rewritten|rephrased|reformulated|final|last|new|search|improved)"
_NAME: Final = (
    rf"(?:the\s+)?(?:{_KINDS}\s+)*(?:question|query|translation)"
    r"|(?:(?:改写|重写|独立|完整|最终|最后|最新|新|检索|搜索)后?的?)*(?:一个)?(?:问题|问句|检索词|搜索词|查询|译文|翻译)"
)
_LABEL: Final = lazy_regex(rf"#*\s*(\**)(?:{_NAME})\s*(?:\1\s*[:：]|[:：]\1)\s*", re.IGNORECASE)


def reply_text(text: str) -> str:
    """Return a complete reply verbatim, without reasoning."""
    return drop_reasoning(join_surrogates(text)).strip()


def reply_lines(text: str) -> list[str]:
    """Return the lines of a reply, without list marks, enclosing marks, fences and lines without a word.

    Only numbers that enumerate the lines are list marks; others, such as a date's, are part of the text.
    """
    lines, expected = [], 1
    for line in reply_text(text).splitlines():
        if _FENCE.fullmatch(line) or not any(map(str.isalnum, line)):
            continue
        if bullet := _BULLET.match(line):
            line = line[bullet.end() :]
        number = _NUMBERED.match(line)
        if number and int(number[1]) == expected:
            line, expected = line[number.end() :], expected + 1
        if inner := _unwrap(line):
            lines.append(inner)
    return lines


def drop_intro(lines: Sequence[str]) -> list[str]:
    """Return the lines of a list without its introduction."""
    return [line for line in lines if not INTRODUCTION.search(line)] or list(lines)


def one_line(lines: Sequence[str]) -> str:
    """Return the requested line, without a label such as "Question:"; empty if there is none."""
    lines = [text for line in lines if (text := _unwrap(_strip_label(line)))]
    return next((line for line in lines if not INTRODUCTION.search(line)), next(iter(lines), ""))


def prose(text: str) -> str:
    """Return a summary's lines, without bullets if every line has one, so that no minus sign is lost."""
    lines = [line for line in reply_text(text).splitlines() if line.strip()]
    bulleted = all(_BULLET.match(line) for line in lines)
    return "\n".join((_BULLET.sub("", line, count=1) if bulleted else line).strip() for line in lines)


def _strip_label(line: str) -> str:
    match = _LABEL.match(line)
    return line[match.end() :] if match else line


def _unwrap(line: str) -> str:
    """Remove pairs of marks that enclose the whole line, with a full stop after them."""
    line = line.strip()
    for mark in sorted(_PAIRS, key=len, reverse=True):
        body = line.rstrip(".。") if line.startswith(mark) else line
        if _is_enclosed(body, mark, _PAIRS[mark]):
            return _unwrap(body[len(mark) : -len(_PAIRS[mark])])
    return line


def _is_enclosed(line: str, mark: str, end: str) -> bool:
    """Return whether the last mark closes the first one, and no mark between them does."""
    if not (line.startswith(mark) and line.endswith(end) and len(line) > len(mark) + len(end)):
        return False
    inner = _WITHIN_A_WORD.sub("", line[len(mark) : -len(end)])
    if mark == end:
        return mark not in inner
    depth = 0
    for character in inner:
        depth += (character == mark) - (character == end)
        if depth < 0:
            return False
    return depth == 0


SchemaT = TypeVar("SchemaT", bound=BaseModel)

_MAX_ANSWER: Final = 40_000  # characters; the limit for a model that repeats itself
_TAIL: Final = 1_000  # last characters of a reply that are checked for repetition
_RUN, _MIN_REPETITION = 12, 60
_FORM_TOKENS: Final = 40  # minimum tokens of a filled form
_WORD: Final = lazy_regex(r"\w")
NO_TOOLS: Final = "chat_no_tools"
_WITH_FINISH_REASON: Final = "openai-chat"


class Grades(BaseModel):
    """The irrelevant passages."""

    irrelevant: list[int] = Field(default=[], description="numbers of the passages that are unrelated to the question")


class ChatReasoner:
    """A reasoner that asks a chat model, and the `fast` one, if set, for everything but the answer."""

    kind: Literal["chat"] = "chat"
    verifier_kind: CheckedBy = "model"

    def __init__(
        self,
        model: BaseChatModel,
        *,
        fast: BaseChatModel | None = None,
        texts: PromptTexts = SHIPPED,
        notes: Sequence[str] = (),
    ) -> None:
        """`notes` are the user's memory; requests that write an answer include them."""
        self._notes = notes
        self.texts = texts
        self.name = model_name(model)
        self._model = model
        self._fast = fast or model
        self._takes_tools = True

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Ask with the tools bound. If the server supports no tools, search for the question."""
        prompt = requests.decide(self.texts, question)
        try:
            return await self.choose(prompt, [*history, _messages(prompt)[1]], tools, model=self._fast)
        except ModelError as error:
            if error.code != NO_TOOLS:
                raise
            return make_call([question])

    async def choose(
        self,
        prompt: Prompt,
        messages: Sequence[BaseMessage],
        tools: Sequence[Any],
        *,
        model: BaseChatModel | None = None,
    ) -> AIMessage:
        """Return the next message of a conversation, under the prompt's rules, with these tools bound, if any.

        Raises ModelError, with code NO_TOOLS if the service doesn't support tools; later calls then skip the request.
        """
        model = model or self._model
        if tools and not (self._takes_tools and takes_tools(model)):
            raise ModelError(NO_TOOLS, model=self.name)
        refusals: tuple[type[Exception], ...] = (*failure_types(), NotImplementedError)
        with _translate_failures():
            try:
                target = limit_reply(model, prompt.max_tokens)
                reply = await (target.bind_tools(tools) if tools else target).ainvoke([_messages(prompt)[0], *messages])
            except ValidationError:  # LangChain rejects arguments that are JSON but not an object
                return unreadable_call()
            except refusals as error:
                if not (tools and refuses_tools(error, model)):
                    raise
                log.info("%s does not support tools; rules choose them", self.name)
                self._takes_tools = False
                remember_no_tools(model)
                raise ModelError(NO_TOOLS, model=self.name) from error
        return reply.model_copy(update={"content": reply_text(reply.text)})

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Ask in one call which passages do not help."""
        reply = await self.fill(Grades, requests.grade(self.texts, question, passages))
        return [number not in reply.irrelevant for number in range(1, len(passages) + 1)]

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
        """Judge all claims in one call; see `Verifier.verify`."""
        reply = await self.fill(Judgements, build_check(self.texts, claims, passages, question))
        return read_judgements(reply, len(claims))

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        return one_line(await self.ask_lines(requests.rewrite(self.texts, question, tried, passages)))

    async def ask_lines(self, prompt: Prompt) -> list[str]:
        """Return the lines of a complete reply, without list marks and enclosing quotation marks."""
        return reply_lines(await self.ask(prompt))

    async def ask(self, prompt: Prompt) -> str:
        """Return a complete reply verbatim, without its reasoning."""
        await load_capacity(self._fast)
        with _translate_failures():
            while True:
                reply = await limit_reply(self._fast, prompt.max_tokens).ainvoke(_messages(prompt))
                if not was_cut_off_reasoning(self._fast, reply):
                    return reply_text(reply.text)

    def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        return self.stream(requests.answer(self.texts, question, list(enumerate(passages, 1))))

    async def fitting_tokens(self, tokens: int) -> int:
        """Return how many of `tokens` fit into one request that the model can read within its timeout."""
        return (await load_capacity(self._model)).fitting_tokens(tokens, _request_timeout(self._model))

    async def stream(self, prompt: Prompt) -> AsyncIterator[str]:
        """Stream an answer. Raises ModelError after the pieces so far if it is incomplete."""
        await load_capacity(self._model)
        messages, marker = _messages(requests.add_memory(self.texts, prompt, self._notes)), requests.marker_in(prompt)
        shown = ShownText(NOT_IN_PAGES, marker)
        with _translate_failures():
            while True:
                source = _ReplyStream(limit_reply(self._model, prompt.max_tokens), messages, marker)
                async for piece in shown.filter(join_halves(source.pieces())):
                    yield piece
                is_cut_off = source.unfinished == "answer_too_long" and not shown.text
                if not (is_cut_off and is_only_reasoning(source.beginning) and allow_reasoning_tokens(self._model)):
                    break
        if source.unfinished:
            raise ModelError(source.unfinished)
        if not shown.signed and not _has_content(shown.text):
            raise ModelError("answer_empty")

    async def condense(self, question: str, history: Sequence[Exchange], summary: str = "") -> str:
        """Rewrite a follow-up as a standalone question in the same language. Raises ModelError."""
        return one_line(await self.ask_lines(requests.condense(self.texts, question, history, summary)))

    async def summarise(self, before: str, exchanges: Sequence[Exchange], tokens: int) -> str:
        """Summarise `before`, an earlier summary, and `exchanges` in about `tokens`. Raises ModelError."""
        return prose(await self.ask(requests.summarise(self.texts, before, exchanges, tokens)))

    async def suggest(self, question: str, answer: str, passages: Sequence[Passage]) -> list[str]:
        """Suggest follow-up questions that the passages answer. Raises ModelError."""
        return drop_intro(await self.ask_lines(requests.suggest(self.texts, question, answer, passages)))

    async def fill(self, schema: type[SchemaT], prompt: Prompt) -> SchemaT:
        """Return a reply in the form of `schema`. Raises ModelError, also if the reply does not match it."""
        capacity = await load_capacity(self._fast)
        if capacity.estimate_seconds(estimate_tokens(prompt.system + prompt.user), _FORM_TOKENS) > _request_timeout(
            self._fast
        ):
            raise ModelError("model_slow")
        with _translate_failures():
            while True:
                try:
                    return await fill_schema(limit_reply(self._fast, prompt.max_tokens), schema, _messages(prompt))
                except ModelError as error:
                    if error.code != "chat_unusable" or not was_cut_off_reasoning(self._fast, error.__cause__):
                        raise


class _ReplyStream:
    """A streamed reply; `unfinished` is the reason if it is incomplete, as a code of rag.locales.

    Small models sometimes continue their prompt instead of answering. A reply with `marker`, the random name of the
    tags around the passages, is such a copy and is cut off there, as is one that repeats itself.
    """

    def __init__(self, model: BaseChatModel, messages: Sequence[BaseMessage], marker: str) -> None:
        self._model = model
        self._messages = messages
        self._marker = marker
        self.beginning = ""
        self.unfinished = ""

    async def pieces(self) -> AsyncIterator[str]:
        length, tail, reason = 0, "", ""
        async for chunk in self._model.astream(list(self._messages)):
            reasons = map(chunk.response_metadata.get, ("finish_reason", "stop_reason", "done_reason"))
            reason = next((str(one) for one in reasons if one), reason)
            if text := chunk.text:
                length, tail = length + len(text), (tail + text)[-_TAIL - len(text) :]
                self.beginning = (self.beginning + text)[:_TAIL]
                if self._marker and self._marker in tail:
                    self.unfinished = "answer_copied"
                    return
                if _is_repetitive(tail):
                    self.unfinished = "answer_circles"
                    return
                yield text
            if length > _MAX_ANSWER:
                self.unfinished = "answer_too_long"
                return
        if reason in ("length", "max_tokens"):
            self.unfinished = "answer_too_long"
        elif reason == "content_filter" or (not reason and self._model._llm_type == _WITH_FINISH_REASON):
            self.unfinished = "answer_cut_off"  # a lost connection may show only as a missing finish reason


def _is_repetitive(tail: str) -> bool:
    """Return whether text ends with the same words four times in a row."""
    period = len(tail) - _RUN - tail.rfind(tail[-_RUN:], 0, -1)
    cycle = tail[-max(4 * period, _MIN_REPETITION) :]
    repeats = len(tail) >= len(cycle) == max(4 * period, _MIN_REPETITION) and cycle[period:] == cycle[:-period]
    return repeats and any(map(str.isalnum, cycle))


def _request_timeout(model: BaseChatModel) -> float:
    """Return the model's request timeout in seconds, or infinity without one."""
    seconds = getattr(model, "request_timeout", None)
    return float(seconds) if isinstance(seconds, int | float) else math.inf


def _has_content(text: str) -> bool:
    """Return whether text has words besides its citation marks, and is more than a line that introduces something."""
    bare = remove_marks(text, find_marks(text), 0, len(text)).strip()
    return bool(_WORD.search(bare)) and ("\n" in bare or not ends_in_colon(bare))


def _messages(prompt: Prompt) -> list[BaseMessage]:
    """Return the messages of a prompt; the first has the prompt's version as its id, for tracing."""
    from langchain_core.messages import HumanMessage, SystemMessage

    return [SystemMessage(prompt.system, id=prompt.version or None), HumanMessage(prompt.user)]


@contextmanager
def _translate_failures() -> Iterator[None]:
    """Convert the exceptions of a provider's library to ModelError."""
    try:
        yield
    except ModelError:
        raise
    except failure_types() as error:
        raise model_error(error) from error


class ChatExpander:
    """An expander that asks a chat model, one call per text. Blocks, so it must not be called in the background loop.

    Calls count towards the calling run, whose context is passed to the loop.
    """

    uses_model = True

    def __init__(self, writer: ChatReasoner, *, seconds: float = EXPANSION_SECONDS) -> None:
        self.name = writer.name
        self._writer = writer
        self._seconds = seconds

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        return " ".join(self._lines(requests.expansion(self._writer.texts, "hypothetical", question)))[:_MAX_EXPANSION]

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        return [
            line[:_MAX_QUERY]
            for line in drop_intro(self._lines(requests.expansion(self._writer.texts, "phrasings", question)))
        ]

    def translation(self, question: str, language: str) -> str:
        """Return the translated question, or an empty string if the reply is in another language."""
        query = one_line(self._lines(requests.translation(self._writer.texts, question, language)))[:_MAX_QUERY]
        return query if detect_language(query) == language else ""

    def need(self, question: str) -> Need:
        words = " ".join(self._lines(requests.expansion(self._writer.texts, "need", question))).casefold()
        needs: list[Need] = [need for need in ("exact", "concept", "facets") if re.search(rf"\b{need}\b", words)]
        return needs[0] if len(needs) == 1 else ""

    def _lines(self, prompt: Prompt) -> list[str]:
        future = asyncio.run_coroutine_threadsafe(self._writer.ask_lines(prompt), BACKGROUND.loop())
        try:
            return future.result(self._seconds)
        except TimeoutError as error:
            future.cancel()
            raise ModelError("chat_timeout") from error
