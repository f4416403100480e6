"""What only a browser can do for its page: the language of the document, a way past the sidebar, the place on the page.

A script is a constant text: the Content-Security-Policy names its digest, and the browser runs no other. What it
is about it reads from the data of its own element.
"""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

_PAGE = (Path(__file__).resolve().parent / "static" / "page.js").read_text(encoding="utf-8").strip()

SCRIPTS: tuple[str, ...] = (_PAGE,)


def tell_browser(key: str, **told: str) -> None:
    """Run the script with these labels and ids of the app's own. The same ones again do nothing.

    `language` is that of the document, `skip` the label of the link past the sidebar, which leads to the newest answer,
    and `upload` that of the button which chooses files. `show` is the class of what to scroll to, or `end`; it stays in
    sight while the page grows, until the person scrolls or types.
    """
    data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in told.items())
    with st.container(key=f"told-{key}"):
        st.html(f"<script {data}>{_PAGE}</script>", unsafe_allow_javascript=True)
