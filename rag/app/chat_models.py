"""The chat model of the settings, and those that people connect for themselves."""

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
from rag.models.chat import build_chat_model, build_fast_model, build_own_model, check_chat_model, served_models
from rag.models.pace import Pace, pace_of
from rag.prompts.texts import PromptTexts
from rag.types import Notice
from rag.web.guard import allow_list, check_addresses, check_url
from rag.web.transport import resolve_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel

    from rag.models.own_client import Admit, Key

T = TypeVar("T")

SERVICES: Final = {
    "DeepSeek": ("https://api.deepseek.com/v1", "deepseek-chat"),
    "DashScope": ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus"),
    "Ollama": ("http://127.0.0.1:11434/v1", "qwen3:8b"),
    "OpenAI": ("https://api.openai.com/v1", "gpt-5-mini"),
}
"""Services by name: address, and a model of theirs."""

_OPENAI: Final = SERVICES["OpenAI"][0]
_ADDRESS: Final = re.compile(r"https?://[^\s/@?#\\]+(?:/[^\s?#\\]*)?", re.ASCII)
_KEY: Final = re.compile(r"[\x21-\x7e]*")
_LONGEST: Final = 2000
# Failures that have a sentence in the words of the form, `connect_…` instead of `chat_…`.
_FORM: Final = frozenset(
    "key_missing wrong_key forbidden unreachable unknown_model wrong_address unusable redirected refused".split()
)
KEPT_SECONDS: Final = 12 * 3600.0
MOST_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Holder:
    """The owner of a connected chat model: the secret id of a browser session, and the person signed in, if any."""

    browser: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """A chat model for one browser, instead of the one in the settings; never stored.

    One that was connected has a `holder`, from whom its key is asked at each request.
    """

    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    fast_model: str = ""
    temperature: float | None = None
    holder: Holder | None = field(default=None, repr=False, compare=False)

    @property
    def service(self) -> tuple[str, str]:
        """Return the service of the key, as `service_of` names it."""
        return service_of(self.model, self.base_url)


class ChatModels:
    """Safe to share between threads. Methods raise ModelError.

    Options that name the settings' service and bring no key choose among the operator's models, over the operator's
    connection. All others are a person's own: see `rag.models.own_client`, and where people sign in the address
    passes the guard of page fetching too.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.connected = Connected()
        self.prompts = PromptTexts(settings.rag_data_dir / "prompts")

    def of_settings(self) -> ChatOptions | None:
        """Return the configured model without its key, or None."""
        given = self._settings
        if not given.has_chat_model:
            return None
        return ChatOptions(
            given.llm_model, given.llm_base_url, fast_model=given.fast_llm_model, temperature=given.llm_temperature
        )

    def chat(self, options: ChatOptions | None = None) -> BaseChatModel:
        """The chat model of `options`, or of the settings. Raises ModelError when it is set up wrong."""
        if options is None:
            return build_chat_model(self._settings)
        self._check_allowed(options)
        if self.is_own(options):
            return self._own(options)
        return build_chat_model(self._chosen(options), temperature=options.temperature)

    def fast_chat(self, options: ChatOptions | None = None) -> BaseChatModel | None:
        """The model for all but the answer, where it is another one."""
        if options is None:
            return build_fast_model(self._settings)
        if not self.is_own(options):
            return build_fast_model(self._chosen(options))
        if options.fast_model in ("", options.model):
            return None
        return self._own(replace(options, model=options.fast_model, temperature=0.0))

    def test(self, options: ChatOptions | None = None) -> Notice:
        """Ask the models for one word each. Raises ModelError with the reason, and which one, when none comes."""
        ours = self._settings
        name, fast = (options.model, options.fast_model) if options else (ours.llm_model, ours.fast_llm_model)
        _ask(self.chat(options), name)
        if (model := self.fast_chat(options)) is not None:
            _ask(model, fast)
        return Notice("chat_works", {"model": name})

    def connect(self, options: ChatOptions, browser: str, owner: str = "") -> Notice:
        """Test what was entered in the form, and keep it for this browser. Raises ModelError in the form's words."""
        if not options.model:
            raise ModelError("connect_no_model")
        _in_form(lambda: self.test(options), options)
        self.connected.keep(browser, owner, options)
        return Notice("connect_works", {"model": options.model})

    def served(self, options: ChatOptions) -> list[str]:
        """The models that the service says it has, `options.model` aside. Raises ModelError in the form's words."""
        asking = replace(options, model=options.model or "any")
        names = _in_form(lambda: BACKGROUND.wait(served_models(self.chat(asking))), options)
        if not names:
            raise ModelError("connect_no_list", address=_shown(options))
        return names

    def pace(self, options: ChatOptions) -> Pace:
        """Return what is known of the model's window and speed; nothing before its first call."""
        return pace_of(self.chat(options))

    @property
    def own_allowed(self) -> bool:
        return self._settings.own_models

    def _check_allowed(self, options: ChatOptions) -> None:
        ours = self._settings
        named = (options.model, options.base_url, options.fast_model, options.api_key)
        if options.holder is not None and not ours.own_models:
            raise ModelError("chat_own_forbidden")
        if not ours.own_models and named != (ours.llm_model, ours.llm_base_url, ours.fast_llm_model, ""):
            raise ModelError("chat_own_forbidden")

    def is_own(self, options: ChatOptions | None) -> bool:
        """Return whether it is a person's own model rather than the operator's."""
        if options is None:
            return False
        ours = self._settings
        own = options.holder is not None or bool(options.api_key)
        return own or options.service != service_of(ours.llm_model, ours.llm_base_url)

    def _chosen(self, options: ChatOptions) -> Settings:
        """The settings with the session's choices."""
        chosen = {"llm_model": options.model, "fast_llm_model": options.fast_model}
        return self._settings.model_copy(update=chosen)

    def _own(self, options: ChatOptions) -> BaseChatModel:
        address = options.base_url or (_OPENAI if options.model.startswith("openai:") else "")
        key: Key = options.api_key
        _check_form(address, options.api_key)
        if options.holder is not None:  # what is built of it may outlive the connection
            key = partial(self.connected.key, replace(options, api_key=""))
        address, admit = self._admitted(address)
        usual = self._settings.llm_temperature
        temperature = usual if options.temperature is None else options.temperature
        timeout = self._settings.llm_timeout
        return build_own_model(options.model, address, key, temperature=temperature, timeout=timeout, admit=admit)

    def _admitted(self, address: str) -> tuple[str, Admit | None]:
        """The address as it is asked, and what judges the answers of the DNS; the operator's own needs no judge."""
        if not self._settings.auth_allow or address.rstrip("/") == self._settings.llm_base_url:
            return address, None
        try:
            checked = check_url(address, allow_list(self._settings.fetch_allow_private_hosts))
        except FetchError as error:
            raise _blocked(error) from error

        def admit(host: str, port: int) -> Sequence[str]:
            found = resolve_host(host, port)
            try:
                check_addresses(checked, found)
            except FetchError as error:
                raise _blocked(error) from error
            return found

        return f"{checked.scheme}://{checked.authority}{checked.target}", admit


def service_of(model: str, address: str) -> tuple[str, str]:
    """The address of a chat model's service; without one, whose it is: `anthropic` of `anthropic:a-model`."""
    return address.rstrip("/"), "" if address else model.strip().partition(":")[0]


def entered(model: str, base_url: str, api_key: str, fast_model: str, temperature: float) -> ChatOptions:
    """Return the form's input, stripped."""
    model, base_url, api_key, fast_model = (text.strip()[:_LONGEST] for text in (model, base_url, api_key, fast_model))
    return ChatOptions(model, base_url, api_key, fast_model, temperature)


def _check_form(address: str, key: str) -> None:
    if not address:
        raise ModelError("connect_no_address")
    if not _ADDRESS.fullmatch(address) or not _can_name_port(address):
        raise ModelError("connect_not_http")
    if not key and address == _OPENAI:
        raise ModelError("connect_key_missing")
    if not _KEY.fullmatch(key):
        raise ModelError("connect_wrong_key", address=address)


def _can_name_port(address: str) -> bool:
    """Tell whether the address names no port, or a number that a port can have."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


def _ask(model: BaseChatModel, name: str) -> None:
    try:
        BACKGROUND.wait(check_chat_model(model))
    except ModelError as error:
        raise ModelError(error.code, **{"model": name, **error.notice.params}) from error


def _in_form(work: Callable[[], T], options: ChatOptions) -> T:
    """Return the result of `work`; failures are worded for the form."""
    try:
        return work()
    except ModelError as error:
        kind = error.code.removeprefix("chat_")
        if kind not in _FORM:
            raise
        values = {"address": _shown(options), "model": options.model, **error.notice.params}
        raise ModelError(f"connect_{kind}", **values) from error


def _shown(options: ChatOptions) -> str:
    return options.base_url or _OPENAI


def _blocked(error: FetchError) -> ModelError:
    return ModelError("chat_address_blocked", **error.notice.params)


class Connected:
    """The one place that keeps keys. Safe to share between threads. Nothing of it is ever written down.

    `browser` is the secret id of a browser session, `owner` whoever is signed in there, or empty: a browser whose
    person changes has connected nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, str, ChatOptions]] = OrderedDict()  # oldest first

    def keep(self, browser: str, owner: str, options: ChatOptions) -> None:
        """From now on for KEPT_SECONDS, in the place of what was connected before; the oldest of too many goes."""
        options = replace(options, holder=Holder(browser, owner))
        with self._lock:
            self._kept.pop(browser, None)
            self._kept[browser] = (self._clock() + KEPT_SECONDS, owner, options)
            self._sweep()

    def of(self, browser: str, owner: str) -> ChatOptions | None:
        with self._lock:
            self._sweep()
            _, person, options = self._kept.get(browser, (0.0, "", None))
            if options is not None and person != owner:
                del self._kept[browser]
                return None
            return options

    def held_by(self, holder: Holder) -> ChatOptions | None:
        """Return the same for work without a browser; unlike `held`, it changes nothing for the person there now."""
        with self._lock:
            self._sweep()
            _, person, options = self._kept.get(holder.browser, (0.0, "", None))
            return options if person == holder.owner else None

    def key(self, options: ChatOptions) -> str:
        """The key for a request to what was connected. Raises ModelError("chat_disconnected") where it is not any more,
        or another service is."""
        kept = self.held_by(options.holder) if options.holder else None
        if kept is None or kept.service != options.service:
            raise ModelError("chat_disconnected")
        return kept.api_key

    def forget(self, browser: str) -> None:
        with self._lock:
            self._kept.pop(browser, None)

    def _sweep(self) -> None:
        now = self._clock()
        while self._kept:
            oldest, (until, _, _) = next(iter(self._kept.items()))
            if until > now and len(self._kept) <= MOST_KEPT:
                return
            del self._kept[oldest]
