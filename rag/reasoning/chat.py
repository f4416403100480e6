"""A reasoner on top of any chat model that LangChain supports."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from rag.checking.marks import find_marks, remove_marks
from rag.checking.statements import ends_in_colon
from rag.checking.verifier import Judgements, build_check, read_judgements
from rag.errors import ModelError
from rag.models.servers import (
    allow_reasoning_tokens,
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
from rag.patterns import lazy_regex
from rag.prompts import requests
from rag.prompts.requests import NOT_IN_PAGES, Prompt
from rag.prompts.texts import SHIPPED, PromptTexts
from rag.reasoning.composing import Plan, compose_answer
from rag.reasoning.history import make_call, unreadable_call
from rag.reasoning.replies import ShownText, drop_intro, join_halves, one_line, prose, reply_lines, reply_text
from rag.text import estimate_tokens
from rag.types import CheckedBy, Exchange, Passage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
    from langchain_core.tools import BaseTool

    from rag.checking.verifier import Claim, Judgement

log = logging.getLogger(__name__)

SchemaT = TypeVar("SchemaT", bound=BaseModel)
StructuredCall = Callable[["BaseChatModel", type[BaseModel], Sequence["BaseMessage"]], Awaitable[Any]]

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
    """A reasoner that asks a chat model, and the `fast` one, if set, for everything but the answer.

    `structured` replaces `fill_schema`; it may raise ModelError.
    """

    kind: Literal["chat"] = "chat"
    verifier_kind: CheckedBy = "model"

    def __init__(
        self,
        model: BaseChatModel,
        *,
        fast: BaseChatModel | None = None,
        name: str = "",
        structured: StructuredCall | None = None,
        texts: PromptTexts = SHIPPED,
        notes: Sequence[str] = (),
    ) -> None:
        """`notes` are the user's memory; requests that write an answer include them."""
        self._notes = notes
        self.texts = texts
        self.name = name or model_name(model)
        self._model = model
        self._fast = fast or model
        self._structured = structured
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
    ) -> list[Judgement | None]:
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
            reply = await limit_reply(self._fast, prompt.max_tokens).ainvoke(_messages(prompt))
            if was_cut_off_reasoning(self._fast, reply):
                reply = await limit_reply(self._fast, prompt.max_tokens).ainvoke(_messages(prompt))
        return reply_text(reply.text)

    def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        return self.stream(requests.answer(self.texts, question, list(enumerate(passages, 1))))

    def compose(self, question: str, passages: Sequence[Passage], plan: Plan) -> AsyncIterator[str]:
        return compose_answer(self, question, passages, plan)

    async def fitting_tokens(self, tokens: int) -> int:
        """Return how many of `tokens` fit into one request that the model can read within its timeout."""
        return (await load_capacity(self._model)).fitting_tokens(tokens, _request_timeout(self._model))

    async def stream(self, prompt: Prompt) -> AsyncIterator[str]:
        """Stream an answer. Raises ModelError after the pieces so far if it is incomplete."""
        await load_capacity(self._model)
        messages, marker = _messages(requests.add_memory(self.texts, prompt, self._notes)), requests.marker_in(prompt)
        shown, source = (
            ShownText(NOT_IN_PAGES, marker),
            _ReplyStream(limit_reply(self._model, prompt.max_tokens), messages, marker),
        )
        with _translate_failures():
            async for piece in shown.filter(join_halves(source.pieces())):
                yield piece
            is_cut_off = (
                source.unfinished == "answer_too_long" and not shown.text and is_only_reasoning(source.beginning)
            )
            if is_cut_off and allow_reasoning_tokens(self._model):
                source = _ReplyStream(limit_reply(self._model, prompt.max_tokens), messages, marker)
                async for piece in shown.filter(join_halves(source.pieces())):
                    yield piece
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
        fill: Any = self._structured or fill_schema
        capacity = await load_capacity(self._fast)
        if capacity.estimate_seconds(estimate_tokens(prompt.system + prompt.user), _FORM_TOKENS) > _request_timeout(
            self._fast
        ):
            raise ModelError("model_slow")
        with _translate_failures():
            try:
                form: SchemaT = await fill(limit_reply(self._fast, prompt.max_tokens), schema, _messages(prompt))
            except ModelError as error:
                if error.code != "chat_unusable" or not was_cut_off_reasoning(self._fast, error.__cause__):
                    raise
                form = await fill(limit_reply(self._fast, prompt.max_tokens), schema, _messages(prompt))
        return form


class _ReplyStream:
    """A streamed reply; `unfinished` is the reason if it is incomplete, as a code of rag.locales.

    Small models sometimes continue their prompt instead of answering. A reply with `marker`, the random name of the
    tags around the passages, is such a copy and is cut off there, as is one that repeats itself.
    """

    def __init__(self, model: BaseChatModel, messages: Sequence[BaseMessage], marker: str) -> None:
        self._model = model
        self._messages = messages
        self._marker = marker
        self._reason = ""
        self.beginning = ""
        self.unfinished = ""

    async def pieces(self) -> AsyncIterator[str]:
        length, tail = 0, ""
        async for chunk in self._model.astream(list(self._messages)):
            self._reason = _finish_reason(chunk) or self._reason
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
        self.unfinished = self._end_code()

    def _end_code(self) -> str:
        """Return why the reply is incomplete, or "". A lost connection may show only as a missing finish reason."""
        if self._reason in ("length", "max_tokens"):
            return "answer_too_long"
        dropped = not self._reason and self._model._llm_type == _WITH_FINISH_REASON
        return "answer_cut_off" if dropped or self._reason == "content_filter" else ""


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


def _finish_reason(chunk: AIMessageChunk) -> str:
    names = ("finish_reason", "stop_reason", "done_reason")
    return next((str(reason) for name in names if (reason := chunk.response_metadata.get(name))), "")


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
