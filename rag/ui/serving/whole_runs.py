"""Patch of Streamlit: delivery of all that a script has drawn, even if a timer requests the next run at that moment.

Streamlit's session begins another runner when the one it has takes no more requests, and from then on passes over what
the first still has to tell (`AppSession._handle_scriptrunner_event_on_event_loop`). On a busy server that is the half
of a page, or what a click has opened: it stays away until somebody clicks again.
"""

from __future__ import annotations

from typing import Any, Final

from streamlit.runtime.app_session import AppSession, AppSessionState

_PAUSE: Final = 0.02  # seconds


def let_runs_end() -> None:
    """Patch `PATCHED_STREAMLIT`: a session begins a runner once it has heard the last of the one before."""
    begin = AppSession._create_scriptrunner

    def begin_after(session: Any, request: Any) -> None:
        if session._scriptrunner is None:
            begin(session, request)
        else:
            session._event_loop.call_later(_PAUSE, again, session, request)

    def again(session: Any, request: Any) -> None:
        if session._state is AppSessionState.SHUTDOWN_REQUESTED:
            return
        if session._scriptrunner is None or not session._scriptrunner.request_rerun(request):
            begin_after(session, request)

    setattr(AppSession, "_create_scriptrunner", begin_after)  # noqa: B010
