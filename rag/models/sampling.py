"""Sampling parameters of OpenAI's protocol that a person may choose for a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag.errors import ModelError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

SAMPLING: Final = ("max_tokens", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop")
"""Parameters besides the temperature. `n`, several answers at once, is not offered: each costs money and a check, and
one is shown."""

_BOUND: Final = r"(?<![a-z_]){}(?![a-z_])"


def with_sampling(model: BaseChatModel, chosen: Mapping[str, Any]) -> BaseChatModel:
    """Return the model with the chosen parameters only. Raises ModelError if its class has no such parameter."""
    fields = type(model).model_fields
    field_names = {name: field for field, info in fields.items() for name in (field, info.alias) if name}
    if unknown := [name for name in chosen if name not in field_names]:
        raise ModelError("chat_parameter_unknown", names=", ".join(unknown))
    return model.model_copy(update={field_names[name]: value for name, value in chosen.items()})


def refused_parameters(message: str, sent: Iterable[str]) -> str:
    """Return those of the parameters `sent` that a service names in the message of its refusal."""
    message = message.lower().replace("max_completion_tokens", "max_tokens")
    return ", ".join(name for name in sent if re.search(_BOUND.format(name), message))
