"""What the pages are made of: labels, session, the safe renderer, and parts drawn on several pages.

The only code below `main.py` and `pages/` that knows Streamlit. It asks `rag.app.App` for everything
and hands on drawn widgets; it decides nothing about pages, chunks or answers.
"""
