"""Shared parts of all pages: session, labels, safe renderers, sources and widgets."""
