"""Work that the first visitor would wait for, done while their browser still loads the frame."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rag.errors import RagError
from rag.ui.kit.session import get_app

_DRAWN_FIRST = ("rag.ui.chat.start", "rag.ui.chat.conversation", "streamlit.emojis")


def open_early() -> None:
    """Open the application and its library, and import what draws the first page; why that fails, a page says."""
    with _beside_the_server(), suppress(RagError):
        app = get_app()
        for module in _DRAWN_FIRST:
            importlib.import_module(module)
        inspect.stack()  # Streamlit looks at it once, and Python then looks for the file of every module
        app.library(app.settings.rag_library)


@contextmanager
def _beside_the_server() -> Iterator[None]:
    """Let the server send its scripts meanwhile, and keep what was imported out of every later collection."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(interval / 10)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        sys.setswitchinterval(interval)
