"""Half precision where the processor computes it in hardware."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

# The lowest cosine between a vector and what the loaded model gives in float32.
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


class HalfLinears:
    """A model's linear layers in bfloat16: autocast would turn their weights in every forward pass."""

    def __init__(self, model: Any) -> None:
        import torch

        layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
        self._kept = [(layer, layer.weight, layer.bias) for layer in layers]
        for layer, weight, bias in self._kept:
            layer.weight = torch.nn.Parameter(weight.detach().to(torch.bfloat16), requires_grad=False)
            if bias is not None:
                layer.bias = torch.nn.Parameter(bias.detach().to(torch.bfloat16), requires_grad=False)

    def undo(self) -> None:
        """Put the layers' own weights back."""
        for layer, weight, bias in self._kept:
            layer.weight, layer.bias = weight, bias
