"""The ModelError for each way in which a chat model can fail."""

from __future__ import annotations

from rag.errors import ModelError
from rag.patterns import lazy_regex

# Services use 400 and 403, too; 404 alone may mean the path.
_NO_MODEL = lazy_regex(
    r"model[^\n]{0,200}?(?:not[ _](?:exist|found)|does(?:n't| not) exist)|(?:unknown|no such|invalid) model|模型不存在"
)
# Messages of llama.cpp, Ollama, vLLM, LM Studio, DashScope, DeepSeek, Moonshot, Zhipu and others for a request larger
# than the model's window; not those for a limit on the reply or on tokens a minute.
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
_GARBLED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
UNREACHED = frozenset(
    [
        "chat_unreachable",
        "chat_proxy_unreachable",
        "chat_proxy_invalid",
        "chat_proxy_package",
        "chat_certificates_missing",
    ]
)
"""Codes of requests that never reached a service."""

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
    """Return the exceptions of a chat model's library for a failed request; `model_error` translates them.

    A garbled reply causes a plain ValueError, TypeError, KeyError or AttributeError there, and one nested too deeply a
    RecursionError.
    """
    from langchain_core.exceptions import LangChainException
    from openai import OpenAIError

    return (OpenAIError, LangChainException, OSError, *_GARBLED)


def model_error(error: BaseException) -> ModelError:
    """Return the ModelError for an exception of a chat model's library; `error` itself belongs into `__cause__`."""
    return error if isinstance(error, ModelError) else ModelError(_code(error), status=status_of(error) or "")


def _code(error: BaseException) -> str:
    from langchain_core import exceptions as core

    status, text = status_of(error), str(error)[:_MAX_TEXT].lower()
    if isinstance(error, core.ContextOverflowError) or _says_too_long(status, text):
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
    return _code_without_status(error, text)


def _says_too_long(status: int | None, text: str) -> bool:
    if status in (401, 402, 403, 404, 408, 429, 504) or _NOT_WINDOW.search(text):
        return False
    return "context length" in text or bool(_TOO_LONG.search(text))


def read_window(error: BaseException) -> int | None:
    """Return the tokens of the model's window, if the service names them when it refuses a request."""
    match = _SIZE.search(str(error)[:_MAX_TEXT].lower())
    return int(next(filter(None, match.groups()))) if match else None


def _code_without_status(error: BaseException, text: str) -> str:
    from langchain_core import exceptions as core

    if isinstance(error, core.OutputParserException) or _has_class_name(error, ("LengthFinish", "ContentFilterFinish")):
        return "chat_unusable"
    # The connection was lost while the answer was being read, not before.
    if _has_class_name(error, ("RemoteProtocol", "ReadError", "IncompleteRead", "ConnectionReset")):
        return "chat_broken_off"
    if isinstance(error, OSError | core.ModelConnectionError) or "Connection" in type(error).__name__:
        return "chat_unreachable"
    if isinstance(error, _GARBLED):
        return "chat_unusable"
    return "chat_key_missing" if "api_key" in text else "chat_failed"


def _has_class_name(error: BaseException, parts: tuple[str, ...]) -> bool:
    """True if the error or one of its causes has one of `parts` in the name of its class.

    The transport below the SDK is a dependency of a dependency, so its classes are known by name.
    """
    cause: BaseException | None = error
    while cause is not None:
        if any(part in type(cause).__name__ for part in parts):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that the service answered with, if it did."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None
