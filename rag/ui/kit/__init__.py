"""Shared parts of all pages: session, safe renderers, sources and widgets."""
