"""The user interface: the only code besides `main.py` and `pages/` that uses Streamlit.

`kit` has the parts that all screens share; each screen is a package that imports no other screen.
Data and decisions come from `rag.app.App`; this package only draws.
"""
