"""One browser tab as the server sees it: Streamlit's protocol over its WebSocket, without a browser.

A tab sends a user's actions (reruns with the values of widgets), reruns fragments at the intervals that the page
requests, and receives elements. This client implements only what it needs to ask a question and to see the answer end.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

_TIMEOUT = 120.0


class Tab:
    """A tab, used as an async context manager, by one coroutine at a time."""

    def __init__(self, address: str, name: str = "") -> None:
        """Connect later to `address`, the app's http://… URL; `name` is for messages."""
        self._url = f"ws://{urlsplit(address).netloc}/_stcore/stream"
        self._name = name
        self._socket: ClientConnection
        self._cached: dict[str, ForwardMsg] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._page = ""
        self._query = ""
        self._box = ""
        self._whole_run = True
        self._keys: set[str] = set()
        self.updates: list[float] = []
        """Arrival times of text of a running answer (time.perf_counter)."""

    async def __aenter__(self) -> Self:
        self._socket = await connect(
            self._url, subprotocols=[Subprotocol("streamlit")], max_size=None, open_timeout=_TIMEOUT
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for timer in self._timers.values():
            timer.cancel()
        await self._socket.close()

    async def open(self) -> None:
        """Load the first page; return when it is drawn, with a box for questions."""
        await self._send()
        await self._receive_until(lambda: bool(self._box))

    async def ask(self, question: str) -> float:
        """Ask; return the seconds until the whole answer is drawn with its sources."""
        self.updates.clear()
        began = time.perf_counter()
        await self._send(question=question)
        await self._receive_until(lambda: any("-source-" in key for key in self._keys))
        return time.perf_counter() - began

    async def _receive_until(self, reached: Any) -> None:
        """Receive until a run of the whole page ends at which `reached` is true. Raises TimeoutError."""
        async with asyncio.timeout(_TIMEOUT):
            while True:
                message = ForwardMsg()
                message.ParseFromString(await self._socket.recv(decode=False))
                if self._process(self._resolve(message)) and reached():
                    return

    def _resolve(self, message: ForwardMsg) -> ForwardMsg:
        """Resolve a reference to a message that the server sent before."""
        if message.WhichOneof("type") != "ref_hash":
            if message.metadata.cacheable:
                self._cached[message.hash] = message
            return message
        resolved = ForwardMsg()
        resolved.CopyFrom(self._cached[message.ref_hash])
        resolved.metadata.CopyFrom(message.metadata)
        return resolved

    def _process(self, message: ForwardMsg) -> bool:
        """Process a message; return True at the end of a run of the whole page."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._whole_run = not message.metadata.run.fragment_ids
            self._page = message.new_session.page_script_hash
            if self._whole_run:
                self._keys.clear()
                self._stop_timers()
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self._start_timer(message.auto_rerun.fragment_id, message.auto_rerun.interval)
        elif kind == "delta":
            self._add_element(message)
        elif kind == "script_finished":
            return message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY and self._whole_run
        return False

    def _add_element(self, message: ForwardMsg) -> None:
        delta = message.delta
        if delta.WhichOneof("type") == "add_block":
            self._keys.add(delta.add_block.id)
            return
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "chat_input":
            self._box = element.chat_input.id
        elif kind == "exception":
            raise RuntimeError(f"{self._name}: {element.exception.message}")
        elif kind == "markdown" and not self._whole_run:
            self.updates.append(time.perf_counter())

    def _start_timer(self, fragment: str, interval: float) -> None:
        async def rerun() -> None:
            while True:
                await asyncio.sleep(interval)
                await self._send(fragment=fragment)

        if (running := self._timers.get(fragment)) is not None:
            running.cancel()
        self._timers[fragment] = asyncio.get_running_loop().create_task(rerun())

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def _send(self, *, fragment: str = "", question: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = self._query, self._page
        state.cached_message_hashes.extend(self._cached)
        if fragment:
            state.fragment_id, state.is_auto_rerun = fragment, True
        if question:
            widget = state.widget_states.widgets.add()
            widget.id, widget.chat_input_value.data = self._box, question
        with contextlib.suppress(ConnectionError):
            await self._socket.send(message.SerializeToString())
