"""The capacity and speed of chat servers, learned from their own data and from calls."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rag.models.failures import failure_types
from rag.models.refusals import ServerKey, server_key

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

log = logging.getLogger(__name__)

_WINDOW_FIELDS: Final = ("n_ctx", "max_model_len", "loaded_context_length", "context_length", "context_window")
_OLLAMA_WINDOW: Final = 4_096  # tokens, if nothing else is set
_ASK_SECONDS: Final = 2.0
_MIN_TOKENS: Final = 200  # of a prompt to measure speed by: shorter ones are mostly waiting
_MAX_SAMPLES: Final = 5
_DEFAULT_SLOTS: Final = 100
_PASSAGES_TOKENS: Final = 1_000  # of a question with its passages
_PATIENCE: Final = 5.0  # seconds
_REPLY: Final = 800  # tokens
_SLOWEST_SHARE: Final = 0.8  # of the longest silence of a request, for reading its prompt


@dataclass(slots=True)
class Pace:
    """The measured limits of one model of one server, for the lifetime of the process.

    `window` is in tokens, `reads` and `writes` are tokens per second of the last calls, `waits` the seconds until their
    first token; `slots` is how many requests the server works on at a time.
    """

    window: int | None = None
    slots: int | None = None
    reads: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    asked: bool = False
    gates: dict[tuple[int, int], asyncio.Semaphore] = field(default_factory=dict)

    def note(self, tokens_in: int, seconds: float, tokens_out: int, writing: float) -> None:
        """Add a call that read so many tokens before its first one, and then wrote so many."""
        if tokens_in >= _MIN_TOKENS and seconds > 0:
            self.reads = [*self.reads, tokens_in / seconds][-_MAX_SAMPLES:]
            self.waits = [*self.waits, seconds][-_MAX_SAMPLES:]
        if tokens_out >= 10 and writing > 0:
            self.writes = [*self.writes, tokens_out / writing][-_MAX_SAMPLES:]

    def seconds(self, tokens_in: int, tokens_out: int) -> float:
        """Estimate the duration of a call; 0 without data. A prompt may be read faster a second time."""
        reading = tokens_in / min(self.reads) if self.reads else 0.0
        return reading + (tokens_out / min(self.writes) if self.writes else 0.0)

    def room(self, tokens: int, silent: float) -> int:
        """Return at most `tokens`, reply included: as many as fit the window and are read in `silent` seconds."""
        window = tokens if self.window is None else min(tokens, self.window)
        return min(window, int(min(self.reads) * silent * _SLOWEST_SHARE) + _REPLY) if self.reads else window

    def is_slow(self) -> bool:
        """Return whether calls besides the answer itself would take longer than people wait."""
        return self.seconds(_PASSAGES_TOKENS, 0) > _PATIENCE

    def gate(self) -> asyncio.Semaphore:
        """Return a semaphore for as many requests at a time as the server works on."""
        slots = self.slots or _DEFAULT_SLOTS
        return self.gates.setdefault((id(asyncio.get_running_loop()), slots), asyncio.Semaphore(slots))


_paces: dict[ServerKey, Pace] = {}


def pace_of(model: BaseChatModel) -> Pace:
    return _paces.setdefault(server_key(model), Pace())


async def learn(model: BaseChatModel) -> Pace:
    """Return the pace of the model; the first time, ask its server for its limits."""
    pace = pace_of(model)
    client = getattr(model, "root_async_client", None)
    if pace.asked or client is None or not getattr(model, "openai_api_base", None):
        return pace
    pace.asked = True
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            await _ask(pace, client, str(getattr(model, "model_name", "")))
    except failure_types() as error:  # a time-out is an OSError
        log.info("a chat server tells nothing of its window (%s)", type(error).__name__)
    return pace


async def _ask(pace: Pace, client: Any, name: str) -> None:
    quick = client.with_options(max_retries=0)
    models = (await quick.models.list()).data or []
    entry = next((model for model in models if model.id == name), models[0] if len(models) == 1 else None)
    fields = entry.model_dump() if entry is not None else {}
    pace.window = pace.window or _window(fields.get("meta") or {}) or _window(fields)
    root = quick.with_options(base_url=str(client.base_url).removesuffix("/").removesuffix("/v1"))
    if fields.get("owned_by") == "llamacpp":
        props = await root.get("/props", cast_to=object)
        pace.window = _window(props.get("default_generation_settings") or {}) or pace.window
        pace.slots = props.get("total_slots") or pace.slots
    elif fields.get("owned_by") == "library":  # Ollama
        details = await root.post("/api/show", body={"model": name}, cast_to=object)
        pace.window = pace.window or _ollama_window(details)


def _window(fields: dict[str, Any]) -> int | None:
    return next((size for name in _WINDOW_FIELDS if isinstance(size := fields.get(name), int) and size > 0), None)


def _ollama_window(details: Any) -> int:
    """Return the window that a model is loaded with: its own parameter, else the default, which most models exceed."""
    words = str(details.get("parameters", "")).split()
    if "num_ctx" in words[:-1] and (size := words[words.index("num_ctx") + 1]).isdecimal():
        return int(size)
    fields = details.get("model_info", {}).items()
    sizes = [int(size) for key, size in fields if key.endswith(".context_length") and size]
    return min([_OLLAMA_WINDOW, *sizes])
