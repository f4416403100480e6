"""Patch of Streamlit: delivery of all that a script has drawn, even if a timer requests the next run at that moment.

Streamlit's session starts another runner when its current one takes no more requests, and from then on ignores the
remaining messages of the first (`AppSession._handle_scriptrunner_event_on_event_loop`). On a busy server that is half
of a page, or the result of a click: it is missing until somebody clicks again.
"""

from __future__ import annotations

from typing import Any, Final

from streamlit.runtime.app_session import AppSession, AppSessionState

_PAUSE: Final = 0.02  # seconds


def let_runs_end() -> None:
    """Patch `PATCHED_STREAMLIT`: a session starts a runner after the last message of the one before."""
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
