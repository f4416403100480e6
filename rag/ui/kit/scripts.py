"""Scripts for the browser: document language, skip link, scroll position.

A script is a constant text: the Content-Security-Policy has its digest, and the browser runs no other. All code is sent
once, with the page that is opened; it reads its input from the data of a script's element.
"""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

PAGE = (Path(__file__).resolve().parents[1] / "static" / "page.js").read_text(encoding="utf-8").strip()
_TELL = "told(document.currentScript.dataset)"

SCRIPTS: tuple[str, ...] = (PAGE, _TELL)


def tell_browser(key: str, **values: str) -> None:
    """Send the browser labels and ids of the app's own; the same ones again have no effect.

    `language` is that of the document, `skip` the label of the link past the sidebar to the newest answer, `upload`
    that of the button which chooses files, `copied` the message after an answer was copied. `show` is the class of the
    element to scroll to, or `end`; it stays in view while the page grows, until the person scrolls or types. `source`
    is the open source, or empty, and `name` the label of its panel.
    """
    data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in values.items())
    with st.container(key=f"told-{key}"):
        st.html(f"<script {data}>{_TELL}</script>", unsafe_allow_javascript=True)
