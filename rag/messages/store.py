"""Sentences of rag/store."""

MESSAGES: dict[str, tuple[str, str]] = {}
