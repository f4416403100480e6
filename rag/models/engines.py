"""Forward passes to text vectors or pair scores, by Pagelight or by the loaded model, and the choice between them.

Concurrent calls share a batch; a single caller waits for no others. Threads work on separate batches instead of sharing
each operation. On two cores, two single-core threads took 0.70 s, against 0.83 s by torch's parallelism, and 1.0 s
against 4.4 s while other programs used the cores: nothing waits at a barrier for a thread that is not running.
"""

from __future__ import annotations

import logging
import platform
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.models.model_files import Pooling
from rag.models.tokens import Batch
from rag.models.transformer import EncoderPass, can_run

log = logging.getLogger(__name__)

Kind = Literal["native", "loaded"]
Rows = NDArray[np.float32]
Forward = Callable[[Batch], Rows]

# Minimum cosine between a vector and that of the loaded model in float32.
MIN_COSINE = 0.999
# Maximum difference between a score (0 to 1) and that of the loaded model in float32.
MAX_DIFFERENCE = 0.01
Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """The kind and precision of a forward pass."""

    kind: Kind
    half: bool

    @property
    def precision(self) -> str:
        return "bfloat16" if self.half else "float32"


def choose(
    engines: Embedders | Scorers, sample: Batch, *, half: bool, run: Callable[[Callable[[], Any]], Any]
) -> tuple[Forward, Choice]:
    """Return the fastest forward pass that agrees with the loaded model in float32.

    `half` allows half precision; `run` executes work in the thread that will do it later. Takes two passes of the
    sample if the first candidate agrees.
    """
    expected: Rows = run(lambda: engines.loaded_pass(half=False)(sample))
    candidates: tuple[tuple[Kind, bool], ...] = (("native", True), ("native", False), ("loaded", True))
    for kind, is_half in candidates if half else candidates[1:2]:
        make_pass = engines.native_pass if kind == "native" else engines.loaded_pass
        engine = run(partial(make_pass, half=is_half))  # torch's own threads would wait for those that draw pages
        if engine is None:
            continue
        if engines.are_close(expected, run(partial(engine, sample))):
            return engine, Choice(kind, is_half)
        log.info("The %s pass (half precision: %s) would change the results, so it is not used", kind, is_half)
    return engines.loaded_pass(half=False), Choice("loaded", False)


def has_bfloat16(device: str) -> bool:
    """True if `device` multiplies bfloat16 in hardware; emulated, it would be slower than float32."""
    if device.startswith("cuda"):
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu" or platform.system() != "Linux":
        return False
    try:
        flags = set(Path("/proc/cpuinfo").read_text("utf-8").split())
    except OSError:
        return False
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


class _HalfLinears:
    """A model's linear layers, in bfloat16 on request: autocast would convert their weights in every forward pass."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._kind = device.split(":", 1)[0]
        self._originals: list[tuple[Any, Any, Any]] = []

    def set(self, half: bool) -> None:
        """Convert the layers, or restore their original weights."""
        import torch

        for layer, weight, bias in self._originals:
            layer.weight, layer.bias = weight, bias
        layers = [layer for layer in self._model.modules() if half and isinstance(layer, torch.nn.Linear)]
        self._originals = [(layer, layer.weight, layer.bias) for layer in layers]
        for layer, weight, bias in self._originals:
            layer.weight = torch.nn.Parameter(weight.detach().to(torch.bfloat16), requires_grad=False)
            if bias is not None:
                layer.bias = torch.nn.Parameter(bias.detach().to(torch.bfloat16), requires_grad=False)

    def autocast(self, half: bool) -> Any:
        import torch

        return torch.autocast(self._kind, torch.bfloat16, enabled=half)


class Embedders:
    """The forward passes of an embedding model: batches to L2-normalised vectors, (n, d)."""

    def __init__(self, model: Any, pooling: Pooling, device: str) -> None:
        self._model = model
        self._pooling: Pooling = pooling
        self._device = device
        self._linears = _HalfLinears(model, device)

    def native_pass(self, *, half: bool) -> Forward | None:
        if self._device != "cpu" or not can_run(self._model):
            return None
        encode, pooling = EncoderPass(self._model, half=half), self._pooling

        def embed(batch: Batch) -> Rows:
            import torch

            with torch.inference_mode():
                hidden = encode(batch, first=pooling == "cls").float()
                return _unit_vectors(hidden if pooling == "cls" else _pool(hidden, batch, pooling))

        return embed

    def loaded_pass(self, *, half: bool) -> Forward:
        if not callable(self._model) and (native := self.native_pass(half=half)):
            return native  # the model is weights only: tests compare these vectors with FlagEmbedding's
        self._linears.set(half)

        def embed(batch: Batch) -> Rows:
            import torch

            inputs = torch.from_numpy(batch.ids).to(self._device)
            # A mask of ones costs time without effect.
            mask = None if batch.mask.all() else torch.from_numpy(batch.mask).to(self._device).long()
            with torch.inference_mode():
                with self._linears.autocast(half):
                    hidden = self._model(input_ids=inputs, attention_mask=mask).last_hidden_state
                return _unit_vectors(_pool(hidden.float(), batch, self._pooling))

        return embed

    def are_close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum(axis=1).min() >= MIN_COSINE)


def _pool(hidden: Any, batch: Batch, pooling: Pooling) -> Any:
    """Pool (n, tokens, d) to (n, d)."""
    import torch

    if pooling == "cls":
        return hidden[:, 0]
    lengths = torch.from_numpy(batch.lengths).to(hidden.device)[:, None]
    if pooling == "last":
        return hidden.take_along_dim((lengths - 1).unsqueeze(-1), dim=1)[:, 0]
    mask = torch.from_numpy(batch.mask).to(hidden.device, hidden.dtype)
    return torch.bmm(mask[:, None], hidden)[:, 0] / lengths


def _unit_vectors(pooled: Any) -> Rows:
    import torch

    vectors: Rows = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
    return vectors


class Scorers:
    """The forward passes of a cross-encoder: batches to logits, (n, 1)."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device
        self._linears = _HalfLinears(model, device)

    def native_pass(self, *, half: bool) -> Forward | None:
        body = getattr(self._model, self._model.base_model_prefix, None)
        head = _find_head(self._model)
        if self._device != "cpu" or body is None or head is None or not can_run(body):
            return None
        encode = EncoderPass(body, half=half)

        def score(batch: Batch) -> Rows:
            import torch

            with torch.inference_mode():
                hidden = encode(batch, first=True).float()
                logits: Rows = head(hidden[:, None]).view(-1, 1).numpy()
            return logits

        return score

    def loaded_pass(self, *, half: bool) -> Forward:
        self._linears.set(half)

        def score(batch: Batch) -> Rows:
            import torch

            arrays = {"input_ids": batch.ids, "attention_mask": batch.mask.astype(np.int64)}
            if batch.types is not None:
                arrays["token_type_ids"] = batch.types
            tensors = {key: torch.from_numpy(rows).to(self._device) for key, rows in arrays.items()}
            with torch.inference_mode(), self._linears.autocast(half):
                logits: Rows = self._model(**tensors).logits.view(-1, 1).float().cpu().numpy()
            return logits

        return score

    def are_close(self, exact: Rows, rows: Rows) -> bool:
        return bool(np.abs(sigmoid(exact) - sigmoid(rows)).max() <= MAX_DIFFERENCE)


def sigmoid(logits: Rows) -> NDArray[np.float64]:
    """Return 1 / (1 + e⁻ˣ), without overflow."""
    scores: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -60.0, 60.0)))
    return scores


def _find_head(model: Any) -> Callable[[Any], Any] | None:
    """Return the head from the hidden states of first tokens, (n, 1, d), to logits; None for an unknown layout."""
    body, classifier = getattr(model, model.base_model_prefix, None), getattr(model, "classifier", None)
    if classifier is None:
        return None
    if model.config.model_type != "bert":
        return lambda hidden: classifier(hidden)  # RoBERTa's classifier takes the first token itself
    pooler = getattr(body, "pooler", None)
    return None if pooler is None else lambda hidden: classifier(pooler(hidden))


class _Group(Generic[Item, Result]):
    """The items that arrived since the last batch began."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.results: Future[Sequence[Result]]


class CallBatcher(Generic[Item, Result]):
    """A batcher that turns many calls with one item each into few calls of `work` with a list.

    There is no timer: items that arrive while the thread is busy are processed together once it is free. `submit`
    queues a task for that thread.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Result]],
        submit: Callable[[Callable[[], Sequence[Result]]], Future[Sequence[Result]]],
        *,
        max_items: int,
    ) -> None:
        self._work = work
        self._submit = submit
        self._max_items = max_items
        self._lock = threading.Lock()
        self._open: _Group[Item, Result] | None = None

    def process(self, item: Item) -> Result:
        """Return the result for `item`. Raises the errors of `work`."""
        with self._lock:
            group = self._open
            if group is None or len(group.items) >= self._max_items:
                group = self._open = _Group()
                group.results = self._submit(lambda: self._run(group))
            place = len(group.items)
            group.items.append(item)
        return group.results.result()[place]

    def _run(self, group: _Group[Item, Result]) -> Sequence[Result]:
        with self._lock:  # the next caller begins a new group
            if self._open is group:
                self._open = None
        return self._work(group.items)


class Workers:
    """Worker threads that share the cores; a single thread if `serial`, as for a GPU."""

    def __init__(self, *, serial: bool = False) -> None:
        import torch

        cores = torch.get_num_threads()
        self.count = 1 if serial else min(cores, _MAX_WORKERS)
        self._share = max(1, cores // self.count)
        self._batches = ThreadPoolExecutor(self.count, "encode", initializer=self._take_share)
        # In a separate thread, a query does not wait behind the batches of an import.
        self._single = self._batches if serial else ThreadPoolExecutor(1, "query", initializer=self._take_share)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Submit a task that a caller is waiting for, such as a query."""
        return self._single.submit(work)

    def run(self, work: Callable[[], Result]) -> Result:
        """Run a task that a caller is waiting for, and return its result."""
        return self.submit(work).result()

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result, in order; few are submitted ahead, so that callers take turns."""
        return map_ahead(self._batches, work, items, 2 * self.count)

    def _take_share(self) -> None:
        import torch

        torch.set_num_threads(self._share)  # for this thread only


def map_ahead(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], depth: int
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order, while `pool` processes up to `depth` more."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        waiting.append((item, pool.submit(work, item)))
        if len(waiting) > depth:
            finished, future = waiting.popleft()
            yield finished, future.result()
    for finished, future in waiting:
        yield finished, future.result()
