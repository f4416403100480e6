"""Sentences of rag/models."""

MESSAGES: dict[str, tuple[str, str]] = {}
