"""The chat model that the settings name, and one clear sentence for each way in which it can fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag.config import Settings
from rag.errors import ModelError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from rag.models.own_client import Admit

TIMEOUT_SECONDS = 60.0
"""How long a request may stay silent, streamed or not."""

RETRIES = 2
"""How often a request is repeated, by us for OpenAI's protocol and by the provider's package for others."""

_NO_KEY_NEEDED = "not-needed"
_LIST_SECONDS = 15.0
_MOST_NAMES, _LONGEST_NAME = 500, 200
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


def build_chat_model(
    settings: Settings, *, api_key: str | None = None, temperature: float | None = None
) -> BaseChatModel:
    """The chat model of LLM_MODEL; `api_key` goes before LLM_API_KEY, `temperature` before LLM_TEMPERATURE.

    Asks nothing of the network yet.

    With LLM_BASE_URL the whole of LLM_MODEL is the model's name on that server, except a leading
    `openai:`; without, it is `provider:name` as langchain's init_chat_model takes it. Raises ModelError
    when no model is set, the provider is unknown or its package missing, or a key is needed.
    """
    name = settings.llm_model.strip()
    if not name:
        raise ModelError("chat_not_set")
    temperature = settings.llm_temperature if temperature is None else temperature
    key = api_key or settings.llm_api_key.get_secret_value() or None
    if settings.llm_base_url:
        server = settings.llm_base_url.removesuffix("/chat/completions")
        return _openai_protocol(name.removeprefix("openai:"), temperature, key or _NO_KEY_NEEDED, server)
    if name.startswith("openai:"):
        return _openai_protocol(name.removeprefix("openai:"), temperature, key, None)
    return _other_provider(name, temperature, key)


def build_own_model(
    name: str, base_url: str, api_key: str, *, temperature: float, admit: Admit | None = None
) -> BaseChatModel:
    """A model that a person connected, by its own client (`rag.models.own_client`): OpenAI's protocol only.

    Asks nothing of the network yet; what it raises in use may be a ModelError of `admit`.
    """
    from rag.models.own_client import own_clients

    server = base_url.removesuffix("/chat/completions")
    clients = own_clients(server, api_key, admit)
    return _openai_protocol(name.removeprefix("openai:"), temperature, api_key or _NO_KEY_NEEDED, server, clients)


def build_fast_model(settings: Settings, *, api_key: str | None = None) -> BaseChatModel | None:
    """The model of FAST_LLM_MODEL on the same service; None where that is LLM_MODEL itself. Raises ModelError."""
    fast = settings.fast_llm_model.strip()
    if not fast or fast == settings.llm_model.strip():
        return None
    return build_chat_model(settings.model_copy(update={"llm_model": fast}), api_key=api_key, temperature=0.0)


async def check_chat_model(model: BaseChatModel) -> None:
    """Ask for one word. Raises ModelError with the reason when no answer comes, in TIMEOUT_SECONDS at most."""
    from langchain_core.messages import HumanMessage

    with_limit = model.bind(max_tokens=16) if hasattr(model, "max_tokens") else model
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await with_limit.ainvoke([HumanMessage("Reply with the word: ready")])
    except failures() as error:
        raise model_error(error) from error


async def served_models(model: BaseChatModel) -> list[str]:
    """The names of the models that the service of `model` has, in order; none where it does not tell.

    Raises ModelError where the service cannot be reached or refuses the key.
    """
    client = getattr(model, "root_async_client", None)
    if client is None:
        return []
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            page = await client.models.list()
            names = {str(entry.id) for entry in page.data}
    except failures() as error:
        problem = model_error(error)
        if problem.code in ("chat_wrong_key", "chat_forbidden", "chat_unreachable", "chat_timeout"):
            raise problem from error
        return []
    return sorted(name for name in names if 0 < len(name) <= _LONGEST_NAME)[:_MOST_NAMES]


def failures() -> tuple[type[Exception], ...]:
    """What a chat model's library raises when a request fails; `model_error` puts it into words.

    A garbled reply surfaces as a plain ValueError, TypeError, KeyError or AttributeError there.
    """
    from langchain_core.exceptions import LangChainException
    from openai import OpenAIError

    return (OpenAIError, LangChainException, OSError, ValueError, TypeError, LookupError, AttributeError)


def model_error(error: BaseException) -> ModelError:
    """The sentence for what a chat model's library raised; `error` itself belongs into `__cause__`."""
    return error if isinstance(error, ModelError) else ModelError(_code(error), status=_status(error) or "")


def _code(error: BaseException) -> str:
    from langchain_core import exceptions as core

    status, text = _status(error), str(error)[:_MOST_READ].lower()
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
    return _code_without_status(error, text)


def _code_without_status(error: BaseException, text: str) -> str:
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


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _openai_protocol(
    name: str, temperature: float, key: str | None, server: str | None, clients: Mapping[str, Any] | None = None
) -> BaseChatModel:
    from openai import OpenAIError

    from rag.models.wire import AnyServerChat

    options: dict[str, Any] = dict(clients or {}) | ({} if key is None else {"api_key": SecretStr(key)})
    if server is not None:
        # OpenAI's newer protocol is OpenAI's own; every compatible server speaks chat completions.
        options |= {"base_url": server, "use_responses_api": False}
    try:
        return AnyServerChat(
            model=name,
            temperature=temperature,
            timeout=TIMEOUT_SECONDS,
            stream_chunk_timeout=TIMEOUT_SECONDS,
            stream_usage=True,
            max_retries=0,
            attempts=1 + RETRIES,
            **options,
        )
    except OpenAIError as error:
        raise ModelError("chat_key_missing") from error


def _other_provider(name: str, temperature: float, key: str | None) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    options: dict[str, Any] = {} if key is None else {"api_key": key}
    try:
        model: BaseChatModel = init_chat_model(
            name, temperature=temperature, timeout=TIMEOUT_SECONDS, max_retries=RETRIES, **options
        )
    except ImportError as error:
        package = f"langchain-{name.split(':', 1)[0].replace('_', '-')}"
        raise ModelError("chat_package_missing", name=name, package=package) from error
    except (ValueError, TypeError, KeyError) as error:
        code = "chat_key_missing" if "api_key" in str(error).lower() else "chat_unknown_provider"
        raise ModelError(code, name=name) from error
    return model
