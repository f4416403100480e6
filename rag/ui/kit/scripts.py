"""Scripts for the browser: document language, skip link, scroll position.

A script is a constant text: the Content-Security-Policy names its digest, and the browser runs no other. All that
there is to do comes once, with the page that is opened; what it is about is read from the data of a script's element.
"""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

PAGE = (Path(__file__).resolve().parents[1] / "static" / "page.js").read_text(encoding="utf-8").strip()
_TELL = "told(document.currentScript.dataset)"

SCRIPTS: tuple[str, ...] = (PAGE, _TELL)


def tell_browser(key: str, **told: str) -> None:
    """Tell it these labels and ids of the app's own. The same ones again do nothing.

    `language` is that of the document, `skip` the label of the link past the sidebar, which leads to the newest answer,
    `upload` that of the button which chooses files, `copied` what is said once an answer was copied. `show` is the
    class of what to scroll to, or `end`; it stays in sight while the page grows, until the person scrolls or types.
    `source` is the source that is open, or empty, and `name` what its panel is called.
    """
    data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in told.items())
    with st.container(key=f"told-{key}"):
        st.html(f"<script {data}>{_TELL}</script>", unsafe_allow_javascript=True)
