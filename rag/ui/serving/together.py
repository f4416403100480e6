"""Patch of Streamlit: batching of a script's messages to its browser.

Streamlit wakes its server's loop twice for each element, and lets the loop turn once for each message that it sends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.runtime import Runtime

_MOMENT: Final = 0.005  # seconds; between two rounds of sending Streamlit itself lets twice as long pass
_AT_ONCE: Final = 50  # messages in one turn of the loop, a tenth of what may wait for a browser


class _Lot(list[Any]):
    """Messages for one browser that are sent in one turn of the loop."""


def send_together() -> None:
    """Patch `PATCHED_STREAMLIT`: from now on sessions hear their scripts, and send, in lots. Called once."""
    wake, send = AppSession._call_soon_on_event_loop, Runtime._send_message

    def hear(session: Any, told: Callable[[], None]) -> None:
        """Have the loop do in their order, a moment later, what scripts tell: whoever is first wakes it for all."""
        state = vars(session)
        state.setdefault("_heard", deque()).append(told)  # before the look at what is awaited, and taken after it
        if not state.get("_awaited"):
            state["_awaited"] = True
            wake(session, lambda: session._event_loop.call_later(_MOMENT, _take, session) and None)

    def send_all(runtime: Any, session: Any, messages: Any) -> None:
        for message in messages if isinstance(messages, _Lot) else (messages,):
            send(runtime, session, message)

    setattr(AppSession, "_call_soon_on_event_loop", hear)  # noqa: B010
    setattr(AppSession, "flush_browser_queue", _in_lots)  # noqa: B010
    setattr(Runtime, "_send_message", send_all)  # noqa: B010
    setattr(Runtime, "_enqueued_some_message", _wake)  # noqa: B010


def _take(session: Any) -> None:
    session._awaited = False
    while session._heard:
        session._event_loop.call_soon(session._heard.popleft())


def _in_lots(session: Any) -> list[_Lot]:
    waiting = session._browser_queue.flush()
    return [_Lot(waiting[at : at + _AT_ONCE]) for at in range(0, len(waiting), _AT_ONCE)]


def _wake(runtime: Any) -> None:
    """Let the loop send; on any thread. It clears what is set here before it looks for messages."""
    told = runtime._get_async_objs()
    if told.need_send_data.is_set():
        return
    if asyncio._get_running_loop() is told.eventloop:
        told.need_send_data.set()
    else:
        told.eventloop.call_soon_threadsafe(told.need_send_data.set)
