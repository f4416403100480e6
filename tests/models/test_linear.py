"""Packed linear layers beside torch's plain ones."""

from __future__ import annotations

import pytest

from rag.models import linear as module
from rag.models.linear import Linear


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("tokens", [1, 13, 700])
def test_it_is_a_linear_layer(monkeypatch: pytest.MonkeyPatch, packed: bool, tokens: int) -> None:
    import torch

    if packed and not module.can_pack():
        pytest.skip("this build of torch has no packed layers")
    monkeypatch.setattr(module, "can_pack", lambda: packed)
    make = torch.Generator().manual_seed(1)
    x, other = torch.randn(tokens, 32, generator=make), torch.randn(tokens, 48, generator=make)
    weight, bias = torch.randn(48, 32, generator=make), torch.randn(48, generator=make)
    plain = torch.nn.functional.linear(x, weight, bias)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.3)):
        layer = Linear(weight, bias, dtype)
        given = x.to(dtype)
        with torch.inference_mode():
            assert torch.allclose(layer(given).float(), plain, atol=tolerance)
            assert torch.allclose(layer.gelu(given).float(), torch.nn.functional.gelu(plain), atol=tolerance)
            assert torch.allclose(layer.plus(given, other.to(dtype)).float(), plain + other, atol=tolerance)
