"""The scripts of the screens, for what Streamlit has no other way to do.

Each is a constant text: the Content-Security-Policy names its digest, and the browser runs no other. What it is
about it reads from the element before it.
"""

from __future__ import annotations

import html

import streamlit as st

SHOW = "document.querySelector(document.currentScript.previousElementSibling.dataset.about)?.scrollIntoView()"

SCRIPTS: tuple[str, ...] = (SHOW,)


def run_script(script: str, about: str) -> None:
    """Run one of `SCRIPTS` in this tab's browser; `about` is what it reads (for `SHOW`: a CSS selector)."""
    if script not in SCRIPTS:
        raise ValueError("the policy does not name this script")
    body = f'<i data-about="{html.escape(about)}"></i><script>{script}</script>'
    st.html(body, unsafe_allow_javascript=True)
