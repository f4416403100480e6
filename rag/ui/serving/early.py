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

_FIRST_MODULES = ("rag.ui.chat.start", "rag.ui.chat.conversation", "streamlit.emojis")


def open_early() -> None:
    """Open the application and its library, and import what draws the first page; a page shows failures."""
    with _low_priority(), suppress(RagError):
        app = get_app()
        for module in _FIRST_MODULES:
            importlib.import_module(module)
        inspect.stack()  # Streamlit calls it once, and Python then looks for the file of every module
        app.library(app.settings.rag_library)


@contextmanager
def _low_priority() -> Iterator[None]:
    """Let the server send its scripts meanwhile, and keep the imports out of every later garbage collection."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(interval / 10)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        sys.setswitchinterval(interval)
