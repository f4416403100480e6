"""Summaries of a page, of several, of a library, and of what changed in it."""
