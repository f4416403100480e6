"""How a model computes, for `doctor`."""

from __future__ import annotations

MESSAGES: dict[str, tuple[str, str]] = {
    "engine_own": (
        "{precision} on {device} by the forward pass of this program, {times} times as fast as the loaded model's",
        "在 {device} 上以 {precision} 计算，使用本程序的前向计算，速度为所加载模型的 {times} 倍",
    ),
    "engine_loaded_faster": (
        "{precision} on {device}, {times} times as fast as float32",
        "在 {device} 上以 {precision} 计算，速度为 float32 的 {times} 倍",
    ),
    "engine_loaded": (
        "{precision} on {device}",
        "在 {device} 上以 {precision} 计算",
    ),
}
