"""The background loop is uvloop's where there is a build, else asyncio's."""

from __future__ import annotations

import asyncio
import sys

import pytest

from rag.background import Background


async def _loop_of_answers() -> str:
    return type(asyncio.get_running_loop()).__module__


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no build for Windows")
def test_answers_run_on_uvloop() -> None:
    assert Background().wait(_loop_of_answers()) == "uvloop"


def test_without_uvloop_they_run_on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert Background().wait(_loop_of_answers()).startswith("asyncio.")
