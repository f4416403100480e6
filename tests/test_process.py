"""A dead process is recognised as dead, and one that may live is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from rag.process import HEARTBEAT_TIMEOUT, Process


def test_a_silent_process_is_dead() -> None:
    one, other = Process(), Process()
    assert not one.may_be_alive(other.name.replace(str(os.getpid()), "1"), time.time() - HEARTBEAT_TIMEOUT - 1)
    assert not one.may_be_alive("", time.time())


def test_another_life_of_our_own_number_is_over() -> None:
    assert not Process().may_be_alive(Process().name, time.time())


@pytest.mark.skipif(os.name != "posix", reason="numbers of processes are asked on POSIX alone")
def test_a_process_here_is_asked_for() -> None:
    one = Process()
    host = one.name.split(":")[0]
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = f"{host}:{child.pid}:abc"
    assert one.may_be_alive(name, time.time())
    child.kill()
    child.wait()
    assert not one.may_be_alive(name, time.time())


def test_a_process_elsewhere_lives_while_it_speaks() -> None:
    assert Process().may_be_alive("another.host:1:abc", time.time() - 1)
