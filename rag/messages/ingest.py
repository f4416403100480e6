"""Sentences of rag/ingest."""

MESSAGES: dict[str, tuple[str, str]] = {}
