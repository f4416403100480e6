"""The user interface. The only code below `main.py` and `pages/` that knows Streamlit.

`labels` has the words, `kit` what every screen needs, and each screen has its wing, which knows no other.
It asks `rag.app.App` for everything; it decides nothing about pages, chunks or answers.
"""
