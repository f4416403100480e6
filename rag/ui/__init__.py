"""The user interface: the only code besides `main.py` and `pages/` that uses Streamlit.

`kit` has what every screen shares; each screen has its own package, which imports no other screen.
Everything comes from `rag.app.App`; nothing about pages, chunks or answers is decided here.
"""
