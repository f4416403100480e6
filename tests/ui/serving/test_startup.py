"""The patches of Streamlit: a session waits for the end of a script runner; packages are not searched."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import streamlit
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest

from rag.ui.serving.startup import PATCHED_STREAMLIT, patch_message_queue, patch_script_runner

REQUEST = RerunData(fragment_id="a timer's")


class Runner:
    """A runner that accepts requests, or rejects them, like one whose script has ended."""

    def __init__(self, *, takes: bool = False) -> None:
        self.takes = takes
        self.taken: list[RerunData] = []

    def request_rerun(self, request: RerunData) -> bool:
        self.taken += [request] if self.takes else []
        return self.takes


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[RerunData]:
    """Record the requests that runners were started with."""
    with_what: list[RerunData] = []

    def begin(session: Any, request: RerunData) -> None:
        with_what.append(request)
        session._scriptrunner = Runner(takes=True)

    monkeypatch.setattr(AppSession, "_create_scriptrunner", begin)
    patch_script_runner()
    return with_what


class Session(AppSession):
    """A session without a tab: it can start a runner, and has nothing to clean up."""

    def __init__(self, runner: Runner | None) -> None:
        self._scriptrunner: Any = runner
        self._state = AppSessionState.APP_NOT_RUNNING
        self._event_loop = asyncio.get_running_loop()

    def __del__(self) -> None: ...


async def test_the_first_runner_is_begun_at_once(begun: list[RerunData]) -> None:
    Session(None)._create_scriptrunner(REQUEST)
    assert begun == [REQUEST]


async def test_the_next_is_begun_once_the_last_was_heard_out(begun: list[RerunData]) -> None:
    session = Session(ended := Runner())
    session._create_scriptrunner(REQUEST)
    await asyncio.sleep(0.1)
    assert not begun and session._scriptrunner is ended
    session._scriptrunner = None  # its last event was handled
    await asyncio.sleep(0.1)
    assert begun == [REQUEST]


async def test_requests_that_waited_go_to_one_runner(begun: list[RerunData]) -> None:
    session = Session(Runner())
    other = RerunData(fragment_id="another timer's")
    for request in (REQUEST, other):
        session._create_scriptrunner(request)
    session._scriptrunner = None
    await asyncio.sleep(0.1)
    assert begun == [REQUEST]
    assert session._scriptrunner.taken == [other]


async def test_nothing_is_begun_for_a_tab_that_is_gone(begun: list[RerunData]) -> None:
    session = Session(Runner())
    session._create_scriptrunner(REQUEST)
    session._state, session._scriptrunner = AppSessionState.SHUTDOWN_REQUESTED, None
    await asyncio.sleep(0.1)
    assert not begun


@pytest.mark.parametrize("fragments", [None, ["a timer's"]])
async def test_the_addresses_for_an_upload_survive_the_start_of_a_run(
    monkeypatch: pytest.MonkeyPatch, fragments: list[str] | None
) -> None:
    monkeypatch.setattr(AppSession, "_clear_queue", AppSession._clear_queue)  # restored after the test
    patch_message_queue()
    session = Session(None)
    session._browser_queue = ForwardMsgQueue()
    drawing, reply = ForwardMsg(), ForwardMsg()
    drawing.delta.fragment_id = "a timer's"
    drawing.delta.new_element.markdown.body = "drawn before"
    reply.file_urls_response.response_id = "7"
    for message in (drawing, reply):
        session._browser_queue.enqueue(message)
    session._clear_queue(fragments)
    assert session._browser_queue.flush() == [reply]


def test_patches_are_reviewed_for_each_version_of_streamlit() -> None:
    """After an upgrade, check the patches and page.js's dialogs, then update PATCHED_STREAMLIT."""
    assert streamlit.__version__ == PATCHED_STREAMLIT


def test_packages_are_not_searched_for_components(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", lambda: pytest.fail("packages were searched"))
    assert not AppTest.from_string("import streamlit; streamlit.write('Page')").run().exception
