"""Interpretation of chat servers' replies: the answer's text, a ModelError for each failure, facts for later requests.

Models and servers wrap an answer in many ways: reasoning before it; tags, JSON or a code fence around it; end-of-turn
tokens or a list of sources after it. All are recognised by their position, since an answer may mention such a tag.

The facts are the features that a server rejects, whether its model reasons, and its capacity and speed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rag.errors import ModelError
from rag.text import lazy_regex

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

log = logging.getLogger(__name__)


_REASONING_NAME: Final = lazy_regex(
    r"think|thought|reason|analy|reflect|scratch|plan|monolog|tool|function|detail", re.IGNORECASE
)
_ANSWER_NAME: Final = lazy_regex(r"answer|response|final|output|result|reply|text|content|sentence|statement", re.I)
_HTML: Final = frozenset(
    "a b blockquote br cite code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s section"
    " small span strong sub sup table tbody td th thead tr u ul".split()
)
_LEAD: Final = lazy_regex(
    r"\s*+(?:<(?P<tag>[a-z_][\w:-]{0,30})(?:\s[^<>\n]{0,200})?>|\[(?P<square>[A-Z][A-Z_]{2,20})\]|◁(?P<triangle>\w{2,20})▷)",
    re.IGNORECASE,
)
_OPEN: Final = lazy_regex(r"<(?:think|thinking|thought)>", re.IGNORECASE)
_CLOSE: Final = lazy_regex(r"</(?:think|thinking|thought)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_CHANNELS: Final = lazy_regex(r"\s*+(?:<\|start\|>assistant)?(?:<\|channel\|>|(?:analysis|commentary)(?=[A-Z]))")
_FINAL: Final = lazy_regex(r"<\|channel\|>\s*+final[^<]{0,40}<\|message\|>|(?<!\w)assistant\s?final(?=\W|[A-Z])")
_SPECIAL_TOKEN: Final = lazy_regex(
    r"<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>|<(?:end|start)_of_\w{1,20}>|<eos>|\[/?(?:INST|TOOL_CALLS)\]"
)
_REASONING_LABELS: Final = (
    "thinking",
    "thoughts",
    "thought process",
    "reasoning",
    "analysis",
    "思考过程",
    "思考",
    "推理",
)
_ANSWER_LABELS: Final = ("final answer", "answer", "response", "最终答案", "答案", "回答")
_LABELLED_REASONING: Final = lazy_regex(
    rf"[*#_\s]*+(?:{'|'.join(_REASONING_LABELS)})(?: process)?[*_]*+\s?(?:[:：]|\.{{3}}|…)[*_]*+\s", re.IGNORECASE
)
_ANSWER_LABEL: Final = rf"[*#_ ]*+(?:{'|'.join(_ANSWER_LABELS)})[*_]*+(?:\s?[:：][*_]*+[ \t]*+|[ \t]*+\n)"
_ANSWER_START: Final = lazy_regex(rf"\s*+{_ANSWER_LABEL}\s*+(?=\S)", re.IGNORECASE)
_REASONING_END: Final = lazy_regex(rf"\.{{3}}done thinking\.?|^{_ANSWER_LABEL}", re.IGNORECASE | re.MULTILINE)
_FENCED: Final = lazy_regex(r"\s*+(?P<marks>`{3,}+|~{3,}+)(?P<language>[\w+-]{0,20})[ \t]*+\n(?P<inner>.*)", re.DOTALL)
_PROSE: Final = frozenset({"markdown", "md", "text", "txt", "plaintext"})
_CITES: Final = lazy_regex(r"\[\d{1,2}\]")
_WORD: Final = lazy_regex(r"\w")
_TAIL: Final = lazy_regex(
    r"\n[ \t]*+(?:#{1,6}[ \t]|[*_]{2})?[ \t]*+(?:references|sources|citations|footnotes|bibliography|works cited"
    r"|参考(?:文献|资料|来源)?|(?:资料)?来源|引用(?:来源)?|出处)[ \t]*+[*_]*+[ \t]*+[:：]?[*_]*+[ \t]*+"
    r"(?P<entries>(?:(?:\n|^|\[)[^\n]*)*+)\Z",
    re.IGNORECASE,
)
_ENTRY: Final = lazy_regex(r"\s*(?:[-*•–]|\[\^?\d|\(?\d{1,3}[.)\]]|https?:|【|<http)|\s*\Z")
_LINK_LINE: Final = lazy_regex(r"[ \t]*+(?:\[\^?\d{1,2}\]|\d{1,2}\.)")
_OPEN_TAG: Final = lazy_regex(r"(?:<(?:[/|｜a-z_][^<>\n]{0,60})?|\[/?[A-Z_]{0,20}|◁[^▷\n]{0,20})\Z", re.IGNORECASE)
_OPENERS: Final = tuple("\"'“‘「『《`*(（[【")
_ENDINGS: Final = tuple("\r\n.!?…。！？")
_CLOSERS: Final = tuple('.!?…。！？]】)）}>"”’*_')
_MENTION: Final = lazy_regex(
    r"(?:标[签记志识]|符号|字[样符]|[和与及或以用由到在是为的叫写现])$"
)  # Chinese has no spaces


def answer_text(reply: str, *, whole: bool = True) -> str:
    """Return the answer in a reply, which is partial if not `whole`; empty if the answer has not started yet."""
    text = _cut_at_turn_end(drop_reasoning(reply.lstrip("\ufeff"), whole=whole))
    start = text.strip("*#_ \n.…:：").lower()
    if not whole and any(label.startswith(start) for label in (*_REASONING_LABELS, *_ANSWER_LABELS)):
        return ""  # it may turn out to be a label, such as "Answer:"
    text = _unwrap(text, whole)
    text = text[label.end() :] if (label := _ANSWER_START.match(text)) else text
    text = _drop_sources(text)
    return text if whole else _OPEN_TAG.sub("", text)


def drop_reasoning(reply: str, *, whole: bool = True) -> str:
    """Return the reply without the reasoning before it; an unclosed block extends to the end."""
    text, has_reasoning = reply, False
    if _CHANNELS.match(reply):
        channels = list(_FINAL.finditer(reply))
        text = reply[channels[-1].end() :] if channels else ""
    while lead := _LEAD.match(text):
        following = _skip_block(text, lead, whole)
        if following is None:
            break
        text, has_reasoning = following, True
    if label := _LABELLED_REASONING.match(text):
        end = _REASONING_END.search(text, label.end())
        if end:
            return text[end.end() :].lstrip()
        return text if whole else ""
    return text if has_reasoning else _drop_unopened_reasoning(text, whole)


def _skip_block(text: str, lead: re.Match[str], whole: bool) -> str | None:
    """Return the text after its leading block, or inside it if that is the answer; None if there is no block."""
    name = next(filter(None, lead.groups()))
    if name.lower() in _HTML or (lead["square"] and not (_REASONING_NAME.search(name) or _ANSWER_NAME.search(name))):
        return None
    shut = f"</{name}>" if lead["tag"] else f"[/{name}]" if lead["square"] else f"◁/{name}▷"
    closing = re.compile(re.escape(shut), re.IGNORECASE).search(text, lead.end())
    is_answer = bool(_ANSWER_NAME.search(name))
    if closing is None:
        is_reasoning = _REASONING_NAME.search(name) or not (whole or is_answer)
        return "" if is_reasoning and not is_answer else text[lead.end() :]
    inner, rest = text[lead.end() : closing.start()], text[closing.end() :]
    if is_answer:
        return inner
    return rest if _REASONING_NAME.search(name) or rest.strip() else inner if whole else ""


def _drop_unopened_reasoning(text: str, whole: bool) -> str:
    """Drop reasoning whose opening tag the server swallowed, up to a closing tag that is more than a mention."""
    opening = _OPEN.search(text)
    for tag in _CLOSE.finditer(text, 0, opening.start() if opening else len(text)):
        before, after = text[: tag.start()], text[tag.end() :]
        if _is_quoted(before):
            continue
        lead, following = before.rstrip(" \t"), after.lstrip(" \t")
        may_be_mention = lead and not lead.endswith(_ENDINGS) and (lead != before or _MENTION.search(lead))
        if not may_be_mention or (whole and not following) or following.startswith(("\r", "\n")):
            return after
        if not following:
            return before  # the rest of the reply will show if it is one
    return text


def _is_quoted(before: str) -> bool:
    """True if text after `before` is in quotes or inline code."""
    return before.rstrip(" \t").endswith(_OPENERS) or before.rpartition("\n")[2].count("`") % 2 == 1


def _is_ended(text: str) -> bool:
    """True if an answer can end after this text: at the end of a sentence or a line."""
    stripped = text.rstrip()
    return not stripped or stripped.endswith(_CLOSERS) or "\n" in text[len(stripped) :]


def _cut_at_turn_end(text: str) -> str:
    """Return the text up to its end-of-turn token."""
    begin = 0
    for token in _SPECIAL_TOKEN.finditer(text):
        before = text[begin : token.start()]
        if not before.strip():
            begin = token.end()
        elif not _is_quoted(before) and (_is_ended(before) or not text[token.end() :].strip()):
            return before
    return text[begin:]


def _unwrap(text: str, whole: bool) -> str:
    """Return an answer without the JSON or fence that contains all of it."""
    if text.lstrip()[:1] == "{" or re.match(r"\s*\[\s*[{\"]", text):
        return _from_json(text, whole)
    if not (fenced := _FENCED.match(text)):
        return "" if not whole and re.fullmatch(r"\s*[`~]{1,}[\w+-]*", text) else text
    inner, _, rest = fenced["inner"].partition(f"\n{fenced['marks']}")
    if rest.strip():
        return text
    if re.match(r"\s*[{\[]", inner) and fenced["language"].lower() in ("", "json"):
        answer = _from_json(inner, whole)
        return text if answer == inner else answer
    prose = fenced["language"].lower() in _PROSE or (not fenced["language"] and _CITES.search(inner))
    if prose:
        return inner
    return text if whole or fenced["language"] else ""


def _from_json(text: str, whole: bool) -> str:
    """Return the answer in a JSON reply, empty if it calls a tool. Other text is unchanged."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.strip())
    except (ValueError, RecursionError):
        return text if whole else ""
    return _json_text(value) if isinstance(value, dict | list) else text


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(filter(None, map(_json_text, value)))
    if not isinstance(value, dict) or ("name" in value and {"arguments", "parameters"} & set(value)):
        return ""
    texts = {key: text for key, item in value.items() if (text := _json_text(item).strip())}
    text = next((texts[key] for key in texts if _ANSWER_NAME.search(key)), max(texts.values(), key=len, default=""))
    numbers = [] if not text or _CITES.search(text) else list(_integers(value))
    return text + "".join(f" [{number}]" for number in numbers[:5])


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _integers(item)
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100:
        yield value


def _drop_sources(text: str) -> str:
    """Drop a list of sources after the answer, since its sentences cite them, or a final paragraph of links."""
    for tail in _TAIL.finditer(text):
        if all(_ENTRY.match(line) for line in tail["entries"].split("\n")) and _WORD.search(text[: tail.start()]):
            return text[: tail.start()]
    lines = text.rstrip().split("\n")
    begin = len(lines)
    while begin and _LINK_LINE.match(lines[begin - 1]) and re.search("https?://", lines[begin - 1]):
        begin -= 1
    behind_blank = 2 <= begin < len(lines) and not lines[begin - 1].strip()
    return "\n".join(lines[:begin]).rstrip() if behind_blank else text


# Services also use 400 and 403; 404 alone may mean the path.
_NO_MODEL = lazy_regex(
    r"model[^\n]{0,200}?(?:not[ _](?:exist|found)|does(?:n't| not) exist)|(?:unknown|no such|invalid) model|模型不存在"
)
# Messages of llama.cpp, Ollama, vLLM, LM Studio, DashScope, DeepSeek, Moonshot, Zhipu and others for a request that
# exceeds the context window, as opposed to a limit on the reply or on tokens per minute.
_WINDOW = r"context|prompt|input|tokens?|model length|上下文|输入|提示|文本"
_BEYOND = r"exceed|too (?:long|large)|longer than|greater than|overflow|maximum|is only|of only|超[过出长]|过长|太长"
_TOO_LONG = lazy_regex(
    rf"(?:{_WINDOW})[^\n]{{0,120}}(?:{_BEYOND})"
    rf"|(?:{_BEYOND})[^\n]{{0,40}}(?:context|prompt|input|model) (?:length|size|window)|range of input length"
    r"|context shift is disabled|exceed_context_size|model token limit"
)
_NOT_WINDOW = lazy_regex(r"(?:valid range of|invalid) ['\"`]?max_(?:completion_)?tokens|per (?:minute|day|second|hour)")
_SIZE = lazy_regex(
    r"n_ctx\W{1,4}(\d{3,8})|context (?:size|length|window)[^\d\n]{0,30}(\d{3,8})"
    r"|(?:maximum|max) (?:model |context )?length[^\d\n]{0,12}(\d{3,8})"
    r"|range of input length should be \[\d, ?(\d{3,8})\]|token limit\D{0,6}(\d{3,8})"
    r"|> (\d{3,8}) maximum|上下文长度[^\d\n]{0,12}(\d{3,8})"
)
_MAX_TEXT = 2_000
_PARSE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
UNREACHABLE_CODES = frozenset(
    [
        "chat_unreachable",
        "chat_proxy_unreachable",
        "chat_proxy_invalid",
        "chat_proxy_package",
        "chat_certificates_missing",
    ]
)
"""Error codes of requests that never reached a service."""

_BY_STATUS = {
    400: "chat_refused",
    401: "chat_wrong_key",
    402: "chat_no_credit",
    403: "chat_forbidden",
    404: "chat_wrong_address",
    408: "chat_timeout",
    413: "chat_too_long",
    422: "chat_refused",
    429: "chat_rate_limit",
    504: "chat_timeout",
}


def failure_types() -> tuple[type[Exception], ...]:
    """Return the exceptions that chat model libraries raise for a failed request; `model_error` translates them.

    A garbled reply causes a plain ValueError, TypeError, KeyError or AttributeError, and a deeply nested one a
    RecursionError.
    """
    from langchain_core.exceptions import LangChainException
    from openai import OpenAIError

    return (OpenAIError, LangChainException, OSError, *_PARSE_ERRORS)


def model_error(error: BaseException) -> ModelError:
    """Return the ModelError for an exception of a chat model's library; raise it `from error`."""
    return error if isinstance(error, ModelError) else ModelError(_code(error), status=_status_of(error) or "")


def _code(error: BaseException) -> str:
    from langchain_core import exceptions as core

    status, text = _status_of(error), str(error)[:_MAX_TEXT].lower()
    may_be_too_long = status not in (401, 402, 403, 404, 408, 429, 504) and not _NOT_WINDOW.search(text)
    says_too_long = may_be_too_long and ("context length" in text or _TOO_LONG.search(text))
    if isinstance(error, core.ContextOverflowError) or says_too_long:
        return "chat_too_long"
    if status == 429 and ("insufficient_quota" in text or "balance" in text):
        return "chat_no_credit"
    if status in (400, 403, 404) and _NO_MODEL.search(text):
        return "chat_unknown_model"
    if status is not None and 300 <= status < 400:
        return "chat_redirected"
    if status is not None:
        return "chat_server_error" if status >= 500 and status != 504 else _BY_STATUS.get(status, "chat_refused")
    if isinstance(error, TimeoutError | core.ModelTimeoutError) or "Timeout" in type(error).__name__:
        return "chat_timeout"
    if isinstance(error, core.OutputParserException) or _has_class_name(error, ("LengthFinish", "ContentFilterFinish")):
        return "chat_unusable"
    # The connection was lost while the answer was being read, not before.
    if _has_class_name(error, ("RemoteProtocol", "ReadError", "IncompleteRead", "ConnectionReset")):
        return "chat_broken_off"
    if isinstance(error, OSError | core.ModelConnectionError) or "Connection" in type(error).__name__:
        return "chat_unreachable"
    if isinstance(error, _PARSE_ERRORS):
        return "chat_unusable"
    return "chat_key_missing" if "api_key" in text else "chat_failed"


def read_window(error: BaseException) -> int | None:
    """Return the size of the context window in tokens, if the service's error message states it."""
    match = _SIZE.search(str(error)[:_MAX_TEXT].lower())
    return int(next(filter(None, match.groups()))) if match else None


def _has_class_name(error: BaseException, parts: tuple[str, ...]) -> bool:
    """True if the class name of the error or of one of its causes contains one of `parts`.

    The SDK's transport is a transitive dependency, so its classes are recognised by name.
    """
    cause: BaseException | None = error
    while cause is not None:
        if any(part in type(cause).__name__ for part in parts):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _status_of(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


ServerKey = tuple[str, str]

UNSUPPORTED_STATUSES: Final = frozenset({400, 422, 501})
"""Statuses of a server that does not understand the request, whatever its message."""

# The key, credit, size or rate was refused, or a gateway gave up: the same would happen without tools.
_OTHER_STATUSES: Final = frozenset({401, 402, 408, 413, 429, 504})
_TOOL_WORDS: Final = lazy_regex(r"(?<![a-z])tool(?!ong|kit|box)|function[ _-]?call|工具|函数调用")
_FORM_WORDS: Final = lazy_regex(
    r"response[ _-]?format|schema|json[ _-]?(?:object|mode|output)|structured[ _-]?output|guided[ _-]|grammar"
    r"|结构化|json ?(?:模式|格式)"
)
_HTML_PAGE: Final = lazy_regex(r"<(?:!doctype|html|body)\b")

# Servers that refused tools, for the lifetime of the process.
_without_tools: set[ServerKey] = set()

_REASONING_TOKENS: Final = 4_000  # tokens for reasoning, if a server counts it as part of the reply
_OPENAI_HOST: Final = "api.openai.com"  # always counts it

# Models that hit the limit of a reply while still reasoning; for the lifetime of the process.
_reasoning_models: set[ServerKey] = set()

SAMPLING: Final = ("max_tokens", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop")
"""Parameters besides the temperature. `n` is not offered: each answer costs money and a check, yet one is shown."""

_WHOLE_WORD: Final = r"(?<![a-z_]){}(?![a-z_])"

_WINDOW_FIELDS: Final = ("n_ctx", "max_model_len", "loaded_context_length", "context_length", "context_window")
_OLLAMA_WINDOW: Final = 4_096  # tokens, if nothing else is set
_LOAD_SECONDS: Final = 2.0
_MIN_TOKENS: Final = 200  # of a prompt whose speed is measured; for shorter ones, latency dominates
_MAX_SAMPLES: Final = 5
_DEFAULT_SLOTS: Final = 100
_PASSAGES_TOKENS: Final = 1_000  # of a question with its passages
_MAX_WAIT: Final = 5.0  # seconds
_REPLY_TOKENS: Final = 800
_SLOWEST_SHARE: Final = 0.8  # of the timeout of a request, for reading its prompt


def server_key(model: BaseChatModel) -> ServerKey:
    """Return the key for facts about a server: its address and the model's name."""
    return (_address(model) or model._llm_type, model_name(model))


def takes_tools(model: BaseChatModel) -> bool:
    return server_key(model) not in _without_tools


def remember_no_tools(model: BaseChatModel) -> None:
    """Remember that the server does not support tools, if its address identifies it."""
    if _address(model):
        _without_tools.add(server_key(model))


def refuses_tools(error: BaseException, model: BaseChatModel) -> bool:
    """True if the server says that it does not support tools. Statuses vary, so its message decides."""
    from langchain_core.exceptions import ModelInvalidRequestError

    if isinstance(error, NotImplementedError):
        return True
    message = _server_message(error, model) if _status_of(error) or isinstance(error, ModelInvalidRequestError) else ""
    return bool(_TOOL_WORDS.search(message))


def refuses_structured_output(error: BaseException, model: BaseChatModel) -> bool:
    """True if the server, or the model's class, does not support this way of requesting structured output."""
    if isinstance(error, NotImplementedError) or _status_of(error) in UNSUPPORTED_STATUSES:
        return True
    message = _server_message(error, model) if _status_of(error) else ""
    return bool(_TOOL_WORDS.search(message) or _FORM_WORDS.search(message))


def _server_message(error: BaseException, model: BaseChatModel) -> str:
    """Return the server's message about the request; empty if it has another cause, or is a gateway's HTML page.

    The model's name is removed, since it may contain any of the words that callers search for.
    """
    text = str(error).lower()
    if _status_of(error) in _OTHER_STATUSES or _HTML_PAGE.search(text) or model_error(error).code == "chat_too_long":
        return ""
    return re.sub(rf"(?<![\w-]){re.escape(model_name(model).lower())}(?![\w-])", " ", text)


def _address(model: BaseChatModel) -> str:
    return str(getattr(model, "openai_api_base", None) or getattr(model, "base_url", None) or "")


def model_name(model: BaseChatModel) -> str:
    """Return the model's name on the server, or else the name of its class."""
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)


def limit_reply(model: BaseChatModel, tokens: int) -> BaseChatModel:
    """Limit the model's reply to `tokens`, not counting its reasoning; a limit set by the user has priority."""
    if not hasattr(model, "is_job_limit") or getattr(model, "max_tokens", None):
        return model
    base_url = getattr(model, "openai_api_base", None) or _OPENAI_HOST
    reasons = server_key(model) in _reasoning_models or _OPENAI_HOST in base_url
    return model.model_copy(update={"max_tokens": tokens + (_REASONING_TOKENS if reasons else 0), "is_job_limit": True})


def allow_reasoning_tokens(model: BaseChatModel) -> bool:
    """Allow extra tokens for the model's reasoning from now on; False if it has them already, or is not limited."""
    key = server_key(model)
    if key in _reasoning_models or not hasattr(model, "is_job_limit") or getattr(model, "max_tokens", None):
        return False
    _reasoning_models.add(key)
    return True


def was_cut_off_reasoning(model: BaseChatModel, outcome: Any) -> bool:
    """True if a reply, or the failure to read one, hit its limit before the answer, and a retry with more may help."""
    metadata = getattr(outcome, "response_metadata", None) or {}
    at_limit = metadata.get("finish_reason") == "length" or "LengthFinish" in type(outcome).__name__
    # an error has the reply that could not be parsed
    completion = getattr(outcome, "completion", None)
    text = completion.choices[0].message.content if completion else getattr(outcome, "text", "")
    return at_limit and is_only_reasoning(str(text or "")) and allow_reasoning_tokens(model)


def is_only_reasoning(reply: str) -> bool:
    """True if a reply that hit its limit may be nothing but reasoning, which some servers omit.

    White space is not reasoning: small models fill a form with it until they are stopped.
    """
    return not reply or bool(reply.strip() and not answer_text(reply).strip())


def with_sampling(model: BaseChatModel, chosen: Mapping[str, Any]) -> BaseChatModel:
    """Return the model with the chosen parameters. Raises ModelError if its class lacks one of them."""
    fields = type(model).model_fields
    field_names = {name: field for field, info in fields.items() for name in (field, info.alias) if name}
    if unknown := [name for name in chosen if name not in field_names]:
        raise ModelError("chat_parameter_unknown", names=", ".join(unknown))
    return model.model_copy(update={field_names[name]: value for name, value in chosen.items()})


def refused_parameters(message: str, sent: Iterable[str]) -> str:
    """Return the parameters among `sent` that a service names in its error message, joined by commas."""
    message = message.lower().replace("max_completion_tokens", "max_tokens")
    return ", ".join(name for name in sent if re.search(_WHOLE_WORD.format(name), message))


@dataclass(slots=True)
class ServerCapacity:
    """The limits and measured speed of a model on a server, for the lifetime of the process.

    `window` is in tokens, `reads` and `writes` are tokens per second of the last calls, `waits` the seconds until their
    first token; `slots` is the number of requests that the server processes in parallel.
    """

    window: int | None = None
    slots: int | None = None
    read_speeds: list[float] = field(default_factory=list)
    write_speeds: list[float] = field(default_factory=list)
    first_token_waits: list[float] = field(default_factory=list)
    is_loaded: bool = False
    semaphores: dict[tuple[int, int], asyncio.Semaphore] = field(default_factory=dict)

    def record(self, tokens_in: int, seconds: float, tokens_out: int, writing: float) -> None:
        """Record a call that read `tokens_in` in `seconds`, then wrote `tokens_out` in `writing` seconds."""
        if tokens_in >= _MIN_TOKENS and seconds > 0:
            self.read_speeds = [*self.read_speeds, tokens_in / seconds][-_MAX_SAMPLES:]
            self.first_token_waits = [*self.first_token_waits, seconds][-_MAX_SAMPLES:]
        if tokens_out >= 10 and writing > 0:
            self.write_speeds = [*self.write_speeds, tokens_out / writing][-_MAX_SAMPLES:]

    def estimate_seconds(self, tokens_in: int, tokens_out: int) -> float:
        """Estimate the duration of a call; 0 without data. A cached prompt may be read faster."""
        reading = tokens_in / min(self.read_speeds) if self.read_speeds else 0.0
        return reading + (tokens_out / min(self.write_speeds) if self.write_speeds else 0.0)

    def fitting_tokens(self, tokens: int, timeout: float) -> int:
        """Return how many of `tokens`, reply included, fit the window and can be read within `timeout` seconds."""
        fitting = tokens if self.window is None else min(tokens, self.window)
        if self.read_speeds:
            fitting = min(fitting, int(min(self.read_speeds) * timeout * _SLOWEST_SHARE) + _REPLY_TOKENS)
        return fitting

    def is_slow(self) -> bool:
        """True if calls besides the answer would take longer than users want to wait."""
        return self.estimate_seconds(_PASSAGES_TOKENS, 0) > _MAX_WAIT

    def semaphore(self) -> asyncio.Semaphore:
        """Return a semaphore for the number of requests that the server processes in parallel."""
        slots = self.slots or _DEFAULT_SLOTS
        return self.semaphores.setdefault((id(asyncio.get_running_loop()), slots), asyncio.Semaphore(slots))


_capacities: dict[ServerKey, ServerCapacity] = {}


def capacity_of(model: BaseChatModel) -> ServerCapacity:
    return _capacities.setdefault(server_key(model), ServerCapacity())


async def load_capacity(model: BaseChatModel) -> ServerCapacity:
    """Return the capacity of the model; the first call asks the server for its limits."""
    capacity = capacity_of(model)
    client = getattr(model, "root_async_client", None)
    if capacity.is_loaded or client is None or not getattr(model, "openai_api_base", None):
        return capacity
    capacity.is_loaded = True
    client, name = client.with_options(max_retries=0), str(getattr(model, "model_name", ""))
    try:
        async with asyncio.timeout(_LOAD_SECONDS):
            models = (await client.models.list()).data or []
            entry = next((model for model in models if model.id == name), models[0] if len(models) == 1 else None)
            fields = entry.model_dump() if entry is not None else {}
            capacity.window = capacity.window or _window(fields.get("meta") or {}) or _window(fields)
            root = client.with_options(base_url=str(client.base_url).removesuffix("/").removesuffix("/v1"))
            if fields.get("owned_by") == "llamacpp":
                props = await root.get("/props", cast_to=object)
                capacity.window = _window(props.get("default_generation_settings") or {}) or capacity.window
                capacity.slots = props.get("total_slots") or capacity.slots
            elif fields.get("owned_by") == "library":  # Ollama
                details = await root.post("/api/show", body={"model": name}, cast_to=object)
                capacity.window = capacity.window or _ollama_window(details)
    except failure_types() as error:  # TimeoutError is an OSError
        log.info("A chat server did not report its limits (%s)", type(error).__name__)
    return capacity


def _window(fields: dict[str, Any]) -> int | None:
    return next((size for name in _WINDOW_FIELDS if isinstance(size := fields.get(name), int) and size > 0), None)


def _ollama_window(details: Any) -> int:
    """Return the context window of a loaded model: its parameter, else the default or the model's maximum if lower."""
    words = str(details.get("parameters", "")).split()
    if "num_ctx" in words[:-1] and (size := words[words.index("num_ctx") + 1]).isdecimal():
        return int(size)
    fields = details.get("model_info", {}).items()
    sizes = [int(size) for key, size in fields if key.endswith(".context_length") and size]
    return min([_OLLAMA_WINDOW, *sizes])
