"""How much a model may write for a job, and which models think before they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rag.models.refusals import ServerKey, server_key
from rag.models.reply_text import answer_text

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_THOUGHTS: Final = 4_000  # tokens; where a server counts them as written
_OPENAI: Final = "api.openai.com"  # always counts them

# Models whose reply was seen to end before their thoughts did, for as long as the process lives.
_think: set[ServerKey] = set()


def limited(model: BaseChatModel, tokens: int) -> BaseChatModel:
    """The model with a reply of at most so many tokens, beside its thoughts; a person's own limit stays."""
    if not hasattr(model, "job_limit") or getattr(model, "max_tokens", None):
        return model
    thinks = server_key(model) in _think or _OPENAI in (getattr(model, "openai_api_base", None) or _OPENAI)
    return model.model_copy(update={"max_tokens": tokens + (_THOUGHTS if thinks else 0), "job_limit": True})


def remember_thoughts(model: BaseChatModel) -> bool:
    """Give the model room for thoughts from now on; False where it had that already, or is not limited."""
    key = server_key(model)
    if key in _think or not hasattr(model, "job_limit") or getattr(model, "max_tokens", None):
        return False
    _think.add(key)
    return True


def was_cut_thinking(model: BaseChatModel, ended: Any) -> bool:
    """Whether a reply, or the failure to read one, ended at its limit without an answer, and so is worth another try
    with room for thoughts."""
    metadata = getattr(ended, "response_metadata", None) or {}
    at_limit = metadata.get("finish_reason") == "length" or "LengthFinish" in type(ended).__name__
    return at_limit and only_thought(_written(ended)) and remember_thoughts(model)


def only_thought(reply: str) -> bool:
    """Whether a reply that ended at its limit can be thoughts alone, which some servers leave out.

    Blanks are none: small models fill a form with them until they are stopped.
    """
    return not reply or bool(reply.strip() and not answer_text(reply).strip())


def _written(ended: Any) -> str:
    """The text of a reply, or of the one that could not be read."""
    if completion := getattr(ended, "completion", None):
        return str(completion.choices[0].message.content or "")
    return str(getattr(ended, "text", "") or "")
