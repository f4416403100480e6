"""Serving the app: host checks, headers, uploads and hidden endpoints. Nothing is drawn here."""

PATCHED_STREAMLIT = "1.67.0"
"""The version whose private method `startup.py` replaces; `rag/ui/static/page.js` depends on its dialogs."""
