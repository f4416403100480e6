"""The entry point: `streamlit run main.py` serves the app and draws its pages.

Streamlit imports this file once to find `app`, then runs it for every tab, again on each rerun.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rag.config import Settings, load_settings
from rag.errors import ConfigError, RagError
from rag.process import configure_logging
from rag.ui.kit.browser import BrowserCookie
from rag.ui.serving.first_load import FirstLoad, manifest
from rag.ui.serving.protection import AllowedHosts, HideInternals, SecurityHeaders, check_cookie_secret
from rag.ui.serving.startup import patch_message_queue, patch_script_runner, preload_app, skip_component_scan
from rag.ui.serving.uploads import UploadLimits
from rag.ui.shell import draw_shell, report_unexpected


def settings() -> Settings:
    """Return the settings, or the defaults if a setting is invalid; the page then shows which."""
    with suppress(RagError):
        return load_settings()
    return Settings.model_construct()


@asynccontextmanager
async def serving(_: st.App) -> AsyncIterator[None]:
    """Open the app in a background thread as soon as the server starts."""
    threading.Thread(target=preload_app, name="opening", daemon=True).start()
    yield


if get_script_run_ctx(suppress_warning=True) is None:
    # Otherwise Streamlit builds its legacy navigation from pages/ until ours is drawn for the first time,
    # and the first visitor sees a page without its frame.
    PagesManager.uses_pages_directory = False
    patch_script_runner()
    patch_message_queue()
    skip_component_scan()
    configure_logging(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    options = settings()
    try:
        check_cookie_secret(options)
    except ConfigError as error:
        raise SystemExit(str(error)) from None
    app = st.App(
        Path(__file__).resolve(),
        lifespan=serving,
        routes=[Route("/manifest.webmanifest", manifest)],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(AllowedHosts, options.allowed_hosts),
            Middleware(HideInternals),
            Middleware(BrowserCookie),
            Middleware(UploadLimits, options.upload_session_mb, options.upload_total_mb),
            Middleware(FirstLoad),
        ],
        on_script_error=report_unexpected,
    )
else:
    draw_shell()
