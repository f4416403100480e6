"""How a model computes, for `doctor`."""

from __future__ import annotations

MESSAGES: dict[str, tuple[str, str]] = {
    "engine_own": (
        "{precision} on {device} by the forward pass of this program",
        "在 {device} 上以 {precision} 计算，使用本程序的前向计算",
    ),
    "engine_loaded": (
        "{precision} on {device} by the loaded model",
        "在 {device} 上以 {precision} 计算，使用所加载的模型",
    ),
}
