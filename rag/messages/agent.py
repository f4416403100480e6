"""Sentences of rag/agent."""

MESSAGES: dict[str, tuple[str, str]] = {}
