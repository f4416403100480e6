"""Collect web pages, ask questions about them, check every statement of the answer."""

__version__ = "0.1.0"
