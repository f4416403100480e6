"""What checks statements besides rules."""

from __future__ import annotations

from rag.app.chat_models import ChatModels
from rag.app.models import Models
from rag.checking.verifier import LocalVerifier, Verifier
from rag.config import Settings
from rag.reasoning.chat import ChatReasoner


def verifiers_of(settings: Settings) -> list[Verifier]:
    """The best first: the chat model of the settings, then their local model. Raises ModelError for wrong settings."""
    local = Models(settings).verifier
    found: list[Verifier] = [LocalVerifier(local)] if local else []
    if settings.has_chat_model:
        chats = ChatModels(settings)
        found.insert(0, ChatReasoner(chats.chat(), fast=chats.fast_chat(), texts=chats.prompts))
    return found
