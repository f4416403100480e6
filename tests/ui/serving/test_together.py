"""Sessions hear and send in lots; nothing is lost, and all keeps its order."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.runtime import Runtime

from rag.ui.serving import together
from rag.ui.serving.together import send_together


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exchanged here is put back behind each test."""
    for owner, name in (
        (AppSession, "_call_soon_on_event_loop"),
        (AppSession, "flush_browser_queue"),
        (Runtime, "_send_message"),
        (Runtime, "_enqueued_some_message"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))


class Session(AppSession):
    """One of no tab: it has a loop that counts who wakes it, and messages that wait."""

    def __init__(self, *waiting: str) -> None:
        self.woken = 0
        self._event_loop: Any = asyncio.get_running_loop()
        self._browser_queue: Any = SimpleNamespace(flush=lambda: list(waiting))

    def __del__(self) -> None: ...


async def test_what_a_script_tells_in_a_moment_wakes_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wake, woken = AppSession._call_soon_on_event_loop, []
    monkeypatch.setattr(
        AppSession, "_call_soon_on_event_loop", lambda session, told: (woken.append(told), wake(session, told))
    )
    send_together()
    session, heard = Session(), []

    def script() -> None:
        for number in range(500):
            session._call_soon_on_event_loop(lambda told=number: heard.append(told))

    for _ in range(3):
        threads = [threading.Thread(target=script) for _ in range(2)]
        for thread in threads:
            thread.start()
        await asyncio.to_thread(lambda: [thread.join() for thread in threads])  # noqa: B023
    await asyncio.sleep(0.1)
    assert len(heard) == 3000 and sorted(heard) == sorted(6 * list(range(500)))
    assert len(woken) < 600


async def test_one_that_fails_leaves_the_others_in_their_order() -> None:
    send_together()
    session, heard, failed = Session(), [], []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(context["exception"]))
    for told in (lambda: heard.append(1), lambda: 1 // 0, lambda: heard.append(2)):
        session._call_soon_on_event_loop(told)
    await asyncio.sleep(0.1)
    assert heard == [1, 2] and isinstance(failed[0], ZeroDivisionError)


async def test_messages_are_sent_in_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(Runtime, "_send_message", lambda runtime, session, message: sent.append(message))
    send_together()
    waiting = [str(number) for number in range(120)]
    lots: list[Any] = Session(*waiting).flush_browser_queue()
    assert [len(lot) for lot in lots] == [together._AT_ONCE, together._AT_ONCE, 20]
    for lot in lots:
        Runtime._send_message(SimpleNamespace(), SimpleNamespace(), lot)  # type: ignore[arg-type]
    assert sent == waiting
    assert Session().flush_browser_queue() == []


async def test_the_loop_is_told_to_send_from_any_thread_and_only_once() -> None:
    send_together()
    needed, loop = asyncio.Event(), asyncio.get_running_loop()
    told: Any = SimpleNamespace(_get_async_objs=lambda: SimpleNamespace(need_send_data=needed, eventloop=loop))
    Runtime._enqueued_some_message(told)
    assert needed.is_set()
    needed.clear()
    await asyncio.to_thread(Runtime._enqueued_some_message, told)
    await asyncio.wait_for(needed.wait(), 5)
