"""Limits on the length of replies, and the models that think before they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rag.models.refusals import ServerKey, server_key
from rag.models.reply_text import answer_text

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_THOUGHTS: Final = 4_000  # tokens, if a server counts them as part of the reply
_OPENAI: Final = "api.openai.com"  # always counts them

# Models with a reply that ended before their thoughts did; for the lifetime of the process.
_thinking_models: set[ServerKey] = set()


def limit_reply(model: BaseChatModel, tokens: int) -> BaseChatModel:
    """Limit the model's reply to so many tokens, not counting its thoughts; a person's own limit stays."""
    if not hasattr(model, "job_limit") or getattr(model, "max_tokens", None):
        return model
    thinks = server_key(model) in _thinking_models or _OPENAI in (getattr(model, "openai_api_base", None) or _OPENAI)
    return model.model_copy(update={"max_tokens": tokens + (_THOUGHTS if thinks else 0), "job_limit": True})


def remember_thoughts(model: BaseChatModel) -> bool:
    """Give the model room for thoughts from now on; False if it has that already, or is not limited."""
    key = server_key(model)
    if key in _thinking_models or not hasattr(model, "job_limit") or getattr(model, "max_tokens", None):
        return False
    _thinking_models.add(key)
    return True


def was_cut_thinking(model: BaseChatModel, ended: Any) -> bool:
    """True if a reply, or the failure to read one, ended at its limit without an answer, and another try with room
    for thoughts is worthwhile."""
    metadata = getattr(ended, "response_metadata", None) or {}
    at_limit = metadata.get("finish_reason") == "length" or "LengthFinish" in type(ended).__name__
    return at_limit and is_only_thought(_reply_text(ended)) and remember_thoughts(model)


def is_only_thought(reply: str) -> bool:
    """True if a reply that ended at its limit can be thoughts alone, which some servers leave out.

    Blanks are no thoughts: small models fill a form with them until they are stopped.
    """
    return not reply or bool(reply.strip() and not answer_text(reply).strip())


def _reply_text(ended: Any) -> str:
    """Return the text of a reply, or of the one that could not be read."""
    if completion := getattr(ended, "completion", None):
        return str(completion.choices[0].message.content or "")
    return str(getattr(ended, "text", "") or "")
