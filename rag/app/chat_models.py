"""The configured chat model, and those that users connect."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from rag.background import BACKGROUND
from rag.config import Settings
from rag.errors import FetchError, ModelError
from rag.models.chat import build_chat_model, build_fast_model, build_user_model, check_chat_model, list_models
from rag.models.servers import ServerCapacity, capacity_of
from rag.prompts.texts import PromptTexts
from rag.text import lazy_regex
from rag.types import Notice
from rag.web.connections import resolve_host
from rag.web.guard import allow_list, check_addresses, check_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel

    from rag.models.http_clients import Admit, Key

T = TypeVar("T")

SERVICES: Final = {
    "DeepSeek": ("https://api.deepseek.com/v1", "deepseek-chat"),
    "DashScope": ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus"),
    "Ollama": ("http://127.0.0.1:11434/v1", "qwen3:8b"),
    "OpenAI": ("https://api.openai.com/v1", "gpt-5-mini"),
}
"""Services by name, with their URL and one of their models."""

_OPENAI: Final = SERVICES["OpenAI"][0]
_ADDRESS: Final = lazy_regex(r"https?://[^\s/@?#\\]+(?:/[^\s?#\\]*)?", re.ASCII)
_KEY: Final = lazy_regex(r"[\x21-\x7e]*")
_LONGEST: Final = 2000
# Failures with a different message in the form: `connect_…` instead of `chat_…`.
_FORM: Final = frozenset(
    "key_missing wrong_key forbidden unreachable unknown_model wrong_address unusable redirected refused".split()
)
CONNECTION_SECONDS: Final = 12 * 3600.0
MAX_CONNECTIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Holder:
    """The owner of a connected chat model: the secret id of a browser session, and the signed-in user, if any."""

    browser: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """A chat model for one browser, in place of the configured one; never stored.

    A connected one has a `holder`, by which its key is looked up for each request.
    """

    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    fast_model: str = ""
    temperature: float | None = None
    holder: Holder | None = field(default=None, repr=False, compare=False)

    @property
    def service(self) -> tuple[str, str]:
        """Service that the key is for, as returned by `service_of`."""
        return service_of(self.model, self.base_url)


class ChatModels:
    """The configured chat models and those of users. Thread-safe; methods raise ModelError.

    Options that name the configured service without a key select one of the operator's models, over the operator's
    connection. All others belong to the user: see `rag.models.http_clients`; with sign-in, their address must also pass
    the checks of page fetching.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.connections = ConnectionStore()
        self.prompts = PromptTexts(settings.rag_data_dir / "prompts")

    def of_settings(self) -> ChatOptions | None:
        """Return the configured model without its key, or None."""
        config = self._settings
        if not config.has_chat_model:
            return None
        return ChatOptions(
            config.llm_model, config.llm_base_url, fast_model=config.fast_llm_model, temperature=config.llm_temperature
        )

    def chat(self, options: ChatOptions | None = None) -> BaseChatModel:
        """Return the chat model of `options`, or of the settings. Raises ModelError if it is misconfigured."""
        if options is None:
            return build_chat_model(self._settings)
        self._check_allowed(options)
        if self.is_own(options):
            return self._build_own(options)
        return build_chat_model(self._settings_for(options), temperature=options.temperature)

    def fast_chat(self, options: ChatOptions | None = None) -> BaseChatModel | None:
        """Return the model for everything except the answer, or None if it is the same."""
        if options is None:
            return build_fast_model(self._settings)
        if not self.is_own(options):
            return build_fast_model(self._settings_for(options))
        if options.fast_model in ("", options.model):
            return None
        return self._build_own(replace(options, model=options.fast_model, temperature=0.0))

    def test(self, options: ChatOptions | None = None) -> Notice:
        """Request one word from each model. Raises ModelError with the reason and the model if one fails."""
        config = self._settings
        name, fast = (options.model, options.fast_model) if options else (config.llm_model, config.fast_llm_model)
        _ask(self.chat(options), name)
        if (model := self.fast_chat(options)) is not None:
            _ask(model, fast)
        return Notice("chat_works", {"model": name})

    def connect(self, options: ChatOptions, browser: str, owner: str = "") -> Notice:
        """Test the form's input, and store it for this browser. Raises ModelError with the form's messages."""
        if not options.model:
            raise ModelError("connect_no_model")
        _reword_failures(lambda: self.test(options), options)
        self.connections.add(browser, owner, options)
        return Notice("connect_works", {"model": options.model})

    def list_models(self, options: ChatOptions) -> list[str]:
        """Return the service's models; `options.model` may be empty. Raises ModelError with the form's messages."""
        request = replace(options, model=options.model or "any")
        names = _reword_failures(lambda: BACKGROUND.wait(list_models(self.chat(request))), options)
        if not names:
            raise ModelError("connect_no_list", address=_address_of(options))
        return names

    def capacity(self, options: ChatOptions) -> ServerCapacity:
        """Return the model's measured context window and speed; empty before its first call."""
        return capacity_of(self.chat(options))

    @property
    def own_allowed(self) -> bool:
        return self._settings.own_models

    def _check_allowed(self, options: ChatOptions) -> None:
        config = self._settings
        values = (options.model, options.base_url, options.fast_model, options.api_key, options.holder)
        configured = (config.llm_model, config.llm_base_url, config.fast_llm_model, "", None)
        if not config.own_models and values != configured:
            raise ModelError("chat_own_forbidden")

    def is_own(self, options: ChatOptions | None) -> bool:
        """Return whether the model is the user's rather than the operator's."""
        if options is None:
            return False
        config = self._settings
        return bool(options.api_key) or options.service != service_of(config.llm_model, config.llm_base_url)

    def _settings_for(self, options: ChatOptions) -> Settings:
        choices = {"llm_model": options.model, "fast_llm_model": options.fast_model}
        return self._settings.model_copy(update=choices)

    def _build_own(self, options: ChatOptions) -> BaseChatModel:
        address = options.base_url or (_OPENAI if options.model.startswith("openai:") else "")
        key: Key = options.api_key
        _check_form(address, options.api_key)
        if options.holder is not None:  # the model built with it may outlive the connection
            key = partial(self.connections.key, replace(options, api_key=""))
        address, admit = self._admit_address(address)
        default = self._settings.llm_temperature
        temperature = default if options.temperature is None else options.temperature
        timeout = self._settings.llm_timeout
        return build_user_model(options.model, address, key, temperature=temperature, timeout=timeout, admit=admit)

    def _admit_address(self, address: str) -> tuple[str, Admit | None]:
        """Return the URL to request, and the check of its DNS results; the operator's URL needs none."""
        if not self._settings.auth_allow or address.rstrip("/") == self._settings.llm_base_url:
            return address, None
        try:
            target = check_url(address, allow_list(self._settings.fetch_allow_private_hosts))
        except FetchError as error:
            raise _blocked_error(error) from error

        def admit(host: str, port: int) -> Sequence[str]:
            addresses = resolve_host(host, port)
            try:
                check_addresses(target, addresses)
            except FetchError as error:
                raise _blocked_error(error) from error
            return addresses

        return f"{target.scheme}://{target.authority}{target.target}", admit


def service_of(model: str, address: str) -> tuple[str, str]:
    """Return the URL of a chat model's service; without one, its provider: `anthropic` for `anthropic:a-model`."""
    return address.rstrip("/"), "" if address else model.strip().partition(":")[0]


def from_form(model: str, base_url: str, api_key: str, fast_model: str, temperature: float) -> ChatOptions:
    """Return the form's input, stripped."""
    model, base_url, api_key, fast_model = (text.strip()[:_LONGEST] for text in (model, base_url, api_key, fast_model))
    return ChatOptions(model, base_url, api_key, fast_model, temperature)


def _check_form(address: str, key: str) -> None:
    if not address:
        raise ModelError("connect_no_address")
    try:
        is_valid = _ADDRESS.fullmatch(address) is not None and urlsplit(address).port != 0
    except ValueError:  # of the port
        is_valid = False
    if not is_valid:
        raise ModelError("connect_not_http")
    if not key and address == _OPENAI:
        raise ModelError("connect_key_missing")
    if not _KEY.fullmatch(key):
        raise ModelError("connect_wrong_key", address=address)


def _ask(model: BaseChatModel, name: str) -> None:
    try:
        BACKGROUND.wait(check_chat_model(model))
    except ModelError as error:
        raise ModelError(error.code, **{"model": name, **error.notice.params}) from error


def _reword_failures(work: Callable[[], T], options: ChatOptions) -> T:
    """Return the result of `work`; its errors get the form's messages."""
    try:
        return work()
    except ModelError as error:
        kind = error.code.removeprefix("chat_")
        if kind not in _FORM:
            raise
        values = {"address": _address_of(options), "model": options.model, **error.notice.params}
        raise ModelError(f"connect_{kind}", **values) from error


def _address_of(options: ChatOptions) -> str:
    return options.base_url or _OPENAI


def _blocked_error(error: FetchError) -> ModelError:
    return ModelError("chat_address_blocked", **error.notice.params)


class ConnectionStore:
    """The only store of users' API keys. Thread-safe; never written to disk.

    `browser` is the secret id of a browser session, `owner` the user signed in there, or "". When the user changes, the
    browser's connection is lost.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._connections: OrderedDict[str, tuple[float, str, ChatOptions]] = OrderedDict()  # oldest first

    def add(self, browser: str, owner: str, options: ChatOptions) -> None:
        """Store options for CONNECTION_SECONDS in place of the browser's earlier ones.

        The oldest beyond MAX_CONNECTIONS are evicted.
        """
        options = replace(options, holder=Holder(browser, owner))
        with self._lock:
            self._connections.pop(browser, None)
            self._connections[browser] = (self._clock() + CONNECTION_SECONDS, owner, options)
            self._sweep()

    def get(self, browser: str, owner: str) -> ChatOptions | None:
        with self._lock:
            options = self.snapshot_of(Holder(browser, owner))
            if options is None:
                self.forget(browser)
            return options

    def snapshot_of(self, holder: Holder) -> ChatOptions | None:
        """Return the holder's options for background work; unlike `get`, keep those of another user of the browser."""
        with self._lock:
            self._sweep()
            _, person, options = self._connections.get(holder.browser, (0.0, "", None))
            return options if person == holder.owner else None

    def key(self, options: ChatOptions) -> str:
        """Return the key for a request to a connected service. Raises ModelError("chat_disconnected") if it is no
        longer connected, or another service is."""
        current = self.snapshot_of(options.holder) if options.holder else None
        if current is None or current.service != options.service:
            raise ModelError("chat_disconnected")
        return current.api_key

    def forget(self, browser: str) -> None:
        with self._lock:
            self._connections.pop(browser, None)

    def _sweep(self) -> None:
        now = self._clock()
        while self._connections:
            oldest, (until, _, _) = next(iter(self._connections.items()))
            if until > now and len(self._connections) <= MAX_CONNECTIONS:
                return
            del self._connections[oldest]
