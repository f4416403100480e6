"""The app: `streamlit run main.py` serves it, with the security headers, and draws it.

Streamlit imports this file once to find `app` and runs it again for every tab.
"""

from __future__ import annotations

import logging
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rag.ui.headers import SecurityHeaders
from rag.ui.shell import draw_shell, report_unexpected

if get_script_run_ctx(suppress_warning=True) is None:
    # Else Streamlit takes the folder pages/ for its older navigation until the first visitor has drawn ours,
    # and shows that visitor a page without its frame.
    PagesManager.uses_pages_directory = False
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    app = st.App(
        Path(__file__).resolve(),
        middleware=[Middleware(SecurityHeaders)],
        on_script_error=report_unexpected,
    )
else:
    draw_shell()
