"""Server startup: patches of Streamlit, and preloading for the first visitor.

When a session's script runner accepts no more requests, Streamlit starts a new one and ignores the remaining messages
of the old one (`AppSession._handle_scriptrunner_event_on_event_loop`). On a busy server half of a page, or the result
of a click, is then missing until the next click. `patch_script_runner` delivers everything that a script has drawn,
even if a timer requests the next run at that moment.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.runtime.app_session import AppSession, AppSessionState

from rag.errors import RagError
from rag.ui.kit.session import get_app

_FIRST_MODULES = ("rag.ui.chat.start", "rag.ui.chat.conversation", "streamlit.emojis")
PATCHED_STREAMLIT = "1.67.0"
"""The version whose methods are replaced here; `rag/ui/static/page.js` depends on its dialogs."""
_PAUSE: Final = 0.02  # seconds


def preload_app() -> None:
    """Open the application and its default library, and import the first page's modules; pages show any failure."""
    with _low_priority(), suppress(RagError):
        app = get_app()
        for module in _FIRST_MODULES:
            importlib.import_module(module)
        inspect.stack()  # Streamlit calls it, and the first call looks up the file of every module
        app.library(app.settings.rag_library)


@contextmanager
def _low_priority() -> Iterator[None]:
    """Switch threads more often, so that the server stays responsive, and exempt the imports from later collections."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(interval / 10)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        sys.setswitchinterval(interval)


def skip_component_scan() -> None:
    """Patch Streamlit so that it doesn't search packages for custom components: it takes 0.2 s, and none is used."""
    setattr(BidiComponentManager, "discover_and_register_components", lambda _, **__: None)  # noqa: B010


def patch_message_queue() -> None:
    """Patch Streamlit (`PATCHED_STREAMLIT`) so that an upload starts even if the page is redrawn at that moment.

    The start of a script run removes unsent messages of the last one, and with them the addresses for an upload.
    """
    clear = AppSession._clear_queue

    def clear_drawings(session: Any, fragment_ids: Any = None) -> None:
        queue = session._browser_queue
        replies = [message for message in queue._queue if message.WhichOneof("type") == "file_urls_response"]
        clear(session, fragment_ids)
        for reply in replies:
            if all(reply is not message for message in queue._queue):
                queue.enqueue(reply)

    setattr(AppSession, "_clear_queue", clear_drawings)  # noqa: B010


def patch_script_runner() -> None:
    """Patch Streamlit (`PATCHED_STREAMLIT`) so that a session starts a runner only after the previous one has ended."""
    begin = AppSession._create_scriptrunner

    def begin_after(session: Any, request: Any) -> None:
        if session._scriptrunner is None:
            begin(session, request)
        else:
            session._event_loop.call_later(_PAUSE, retry, session, request)

    def retry(session: Any, request: Any) -> None:
        if session._state is AppSessionState.SHUTDOWN_REQUESTED:
            return
        if session._scriptrunner is None or not session._scriptrunner.request_rerun(request):
            begin_after(session, request)

    setattr(AppSession, "_create_scriptrunner", begin_after)  # noqa: B010
