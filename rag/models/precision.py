"""Half precision where the processor computes it in hardware and the vectors stay what they were."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

MIN_COSINE = 0.999


def has_bfloat16(device: str) -> bool:
    """Whether `device` multiplies bfloat16 in hardware; emulated, it would be slower than float32."""
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


def use_bfloat16(model: Any, encode: Callable[[bool], NDArray[np.float32]]) -> bool:
    """Turn the model's linear layers to bfloat16 if its vectors stay: cosine >= 0.999 to float32.

    `encode(half)` encodes the same few texts at every call, under autocast when `half`. Weights are
    turned once here, else autocast would turn them in every forward pass.
    """
    import torch

    exact = encode(False)
    kept = [(layer, layer.weight, layer.bias) for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
    for layer, weight, bias in kept:
        layer.weight = torch.nn.Parameter(weight.detach().to(torch.bfloat16), requires_grad=False)
        if bias is not None:
            layer.bias = torch.nn.Parameter(bias.detach().to(torch.bfloat16), requires_grad=False)
    cosine = float((exact * encode(True)).sum(axis=1).min())
    if cosine >= MIN_COSINE:
        return True
    for layer, weight, bias in kept:
        layer.weight, layer.bias = weight, bias
    log.info("bfloat16 would change the vectors (cosine %.5f), staying with float32", cosine)
    return False
