"""One clear sentence for each way in which a chat model can fail."""

from __future__ import annotations

import re

from rag.errors import ModelError

# Services say it with 400 and 403 too; 404 alone may mean the path.
_NO_MODEL = re.compile(
    r"model[^\n]{0,200}?(?:not[ _](?:exist|found)|does(?:n't| not) exist)|(?:unknown|no such|invalid) model|模型不存在"
)
_MOST_READ = 2_000
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


def failures() -> tuple[type[Exception], ...]:
    """What a chat model's library raises when a request fails; `model_error` puts it into words.

    A garbled reply surfaces as a plain ValueError, TypeError, KeyError or AttributeError there.
    """
    from langchain_core.exceptions import LangChainException
    from openai import OpenAIError

    return (OpenAIError, LangChainException, OSError, ValueError, TypeError, LookupError, AttributeError)


def model_error(error: BaseException) -> ModelError:
    """The sentence for what a chat model's library raised; `error` itself belongs into `__cause__`."""
    return error if isinstance(error, ModelError) else ModelError(_code(error), status=status_of(error) or "")


def _code(error: BaseException) -> str:
    from langchain_core import exceptions as core

    status, text = status_of(error), str(error)[:_MOST_READ].lower()
    if isinstance(error, core.ContextOverflowError) or "context length" in text:
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
    return _code_withoutstatus_of(error, text)


def _code_withoutstatus_of(error: BaseException, text: str) -> str:
    from langchain_core import exceptions as core

    if isinstance(error, core.OutputParserException) or _named(error, ("LengthFinish", "ContentFilterFinish")):
        return "chat_unusable"
    # An exchange that broke off while the answer was being read, as against one that never began.
    if _named(error, ("RemoteProtocol", "ReadError", "IncompleteRead", "ConnectionReset")):
        return "chat_broken_off"
    if isinstance(error, OSError | core.ModelConnectionError) or "Connection" in type(error).__name__:
        return "chat_unreachable"
    if isinstance(error, ValueError | TypeError | LookupError | AttributeError):
        return "chat_unusable"
    return "chat_key_missing" if "api_key" in text else "chat_failed"


def _named(error: BaseException, parts: tuple[str, ...]) -> bool:
    """Whether the error or what it came from has one of `parts` in the name of its class.

    The transport below the SDK is a dependency of a dependency, so its classes are known by name.
    """
    cause: BaseException | None = error
    while cause is not None:
        if any(part in type(cause).__name__ for part in parts):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def status_of(error: BaseException) -> int | None:
    """The HTTP status that the service answered with, if it did."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None
