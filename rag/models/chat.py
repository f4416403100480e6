"""Chat models, configured in the settings or connected by a user."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag.config import Settings
from rag.errors import ModelError
from rag.models.servers import UNREACHABLE_CODES, failure_types, model_error

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from rag.models.http_clients import Admit, Key

TIMEOUT_SECONDS = 60.0
"""Seconds without data after which a request times out, streamed or not, unless LLM_TIMEOUT is set."""

RETRIES = 2
"""Retries of a request, by Pagelight for OpenAI's protocol and by the provider's package for others."""

_NO_KEY_NEEDED = "not-needed"
_LIST_SECONDS = 15.0
_MAX_NAMES, _MAX_NAME_LENGTH = 500, 200


def build_chat_model(settings: Settings, *, temperature: float | None = None) -> BaseChatModel:
    """Build the chat model of LLM_MODEL; `temperature` overrides LLM_TEMPERATURE.

    Sends no request yet. With LLM_BASE_URL, LLM_MODEL is the model's name on that server, after an optional `openai:`;
    without, it is `provider:name`, as for langchain's init_chat_model. Raises ModelError if no model is set, the
    provider is unknown, its package is missing, or a key is needed.
    """
    name = settings.llm_model.strip()
    if not name:
        raise ModelError("chat_not_set")
    temperature = settings.llm_temperature if temperature is None else temperature
    key = settings.llm_api_key.get_secret_value() or None
    timeout = settings.llm_timeout or TIMEOUT_SECONDS
    if base_url := settings.llm_base_url:
        return _build_openai_model(name, temperature, key or _NO_KEY_NEEDED, base_url, timeout)
    if name.startswith("openai:"):
        return _build_openai_model(name, temperature, key, None, timeout)
    return _build_other_model(name, temperature, key, timeout)


def build_user_model(
    name: str, base_url: str, key: Key, *, temperature: float, timeout: float | None = None, admit: Admit | None = None
) -> BaseChatModel:
    """Build a model that a user connected, with a separate HTTP client (`http_clients.py`). OpenAI's protocol only.

    Sends no request yet; calls may raise a ModelError of `admit` or `key`.
    """
    from rag.models.http_clients import UserTransport, client_options

    clients = client_options(UserTransport(base_url, key, admit))
    placeholder = key if isinstance(key, str) and key else _NO_KEY_NEEDED  # the transport sends the key
    return _build_openai_model(name, temperature, placeholder, base_url, timeout or TIMEOUT_SECONDS, clients)


def build_fast_model(settings: Settings) -> BaseChatModel | None:
    """Build the model of FAST_LLM_MODEL on the same service; None if unset or equal to LLM_MODEL. Raises ModelError."""
    fast = settings.fast_llm_model.strip()
    if not fast or fast == settings.llm_model.strip():
        return None
    return build_chat_model(settings.model_copy(update={"llm_model": fast}), temperature=0.0)


async def check_chat_model(model: BaseChatModel) -> None:
    """Send a test request for one word. Raises ModelError if it fails or takes longer than TIMEOUT_SECONDS."""
    from langchain_core.messages import HumanMessage

    limited_model = model.bind(max_tokens=16) if hasattr(model, "max_tokens") else model
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await limited_model.ainvoke([HumanMessage("Reply with the word: ready")])
    except failure_types() as error:
        raise model_error(error) from error


async def list_models(model: BaseChatModel) -> list[str]:
    """Return the sorted names of all models that the service of `model` offers; empty if it does not list them.

    Raises ModelError if the service cannot be reached or refuses the key.
    """
    client = getattr(model, "root_async_client", None)
    if client is None:
        return []
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            page = await client.models.list()
            names = {str(entry.id) for entry in page.data}
    except failure_types() as error:
        problem = model_error(error)
        if problem.code in UNREACHABLE_CODES | {"chat_wrong_key", "chat_forbidden", "chat_timeout"}:
            raise problem from error
        return []
    return sorted(name for name in names if 0 < len(name) <= _MAX_NAME_LENGTH)[:_MAX_NAMES]


def _build_openai_model(
    name: str,
    temperature: float,
    key: str | None,
    base_url: str | None,
    timeout: float,
    clients: Mapping[str, Any] | None = None,
) -> BaseChatModel:
    from openai import OpenAIError

    from rag.models.http_clients import EnvironmentTransport, client_options
    from rag.models.openai_chat import CompatibleChat

    options = dict(clients or client_options(EnvironmentTransport()))
    if key is not None:
        options["api_key"] = SecretStr(key)
    if base_url is not None:
        # Only OpenAI has the Responses API; every compatible server has chat completions.
        options |= {"base_url": base_url.removesuffix("/chat/completions"), "use_responses_api": False}
    try:
        return CompatibleChat(
            model=name.removeprefix("openai:"),
            temperature=temperature,
            timeout=timeout,
            stream_chunk_timeout=None,  # some servers send only comments while they read a prompt
            stream_usage=True,
            max_retries=0,
            attempts=1 + RETRIES,
            **options,
        )
    except OpenAIError as error:
        raise ModelError("chat_key_missing") from error


def _build_other_model(name: str, temperature: float, key: str | None, timeout: float) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    from rag.models.http_clients import check_environment

    check_environment()
    options: dict[str, Any] = {} if key is None else {"api_key": key}
    try:
        model: BaseChatModel = init_chat_model(
            name, temperature=temperature, timeout=timeout, max_retries=RETRIES, **options
        )
    except ImportError as error:
        package = f"langchain-{name.split(':', 1)[0].replace('_', '-')}"
        raise ModelError("chat_package_missing", name=name, package=package) from error
    except (ValueError, TypeError, KeyError) as error:
        code = "chat_key_missing" if "api_key" in str(error).lower() else "chat_unknown_provider"
        raise ModelError(code, name=name) from error
    return model
