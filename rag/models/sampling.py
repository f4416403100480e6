"""How a chat model's text is drawn: the parameters of OpenAI's protocol that a person may choose for a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rag.errors import ModelError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

SAMPLING: Final = ("max_tokens", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop")
"""Beside the temperature. `n`, several answers at once, is not offered: each would be paid for and had to be checked,
and one is shown."""

_BOUND: Final = r"(?<![a-z_]){}(?![a-z_])"


def with_sampling(model: BaseChatModel, chosen: Mapping[str, Any]) -> BaseChatModel:
    """The model with what was chosen; nothing else is sent. Raises ModelError where its class has no such parameter."""
    fields = type(model).model_fields
    known = {name: field for field, info in fields.items() for name in (field, info.alias) if name}
    if unknown := [name for name in chosen if name not in known]:
        raise ModelError("chat_parameter_unknown", names=", ".join(unknown))
    return model.model_copy(update={known[name]: value for name, value in chosen.items()})


def refused_parameters(said: str, sent: Iterable[str]) -> str:
    """Those of the parameters `sent` that a service names in what it says of a request that it refused."""
    said = said.lower().replace("max_completion_tokens", "max_tokens")
    return ", ".join(name for name in sent if re.search(_BOUND.format(name), said))
