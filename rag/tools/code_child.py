"""The process that runs code: `python -I -S code_child.py SECONDS`, with the code on stdin and its output on stdout.

It limits itself, and the kernel then refuses all but reading and writing open files and allocating memory (seccomp with
an allow-list of system calls, see seccomp(2); Linux on x86-64 and ARM64). If that fails, it runs nothing. It imports
only the standard library, since it is started by its path.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import os
import platform
import signal
import struct
import sys

FAILED, REACHED_OUT, NO_MEMORY, NOT_CLOSED = 10, 11, 12, 13
OUTPUT_BYTES = 64 * 1024
_MEMORY_BYTES = 256 * 1024 * 1024
# read write close fstat lseek mmap mprotect munmap brk rt_sigprocmask rt_sigreturn sched_yield mremap madvise getpid
# exit gettimeofday sigaltstack futex clock_gettime clock_nanosleep exit_group getrandom
_ALLOWED = {
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 8, 9, 10, 11, 12, 14, 15, 24, 25, 28, 39, 60, 96, 131, 202, 228, 230, 231, 318),
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 57, 80, 62, 222, 226, 215, 214, 135, 139, 124, 216, 233, 172, 93, 169, 132, 98, 113, 115, 94, 278),
    ),
}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # instructions of the Berkeley packet filter
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000  # refused with EPERM
_SET_SECCOMP, _NO_NEW_PRIVILEGES, _PARENT_DEATH, _FILTER = 22, 38, 1, 2


def main() -> int:
    code = sys.stdin.buffer.read().decode("utf-8", "replace")
    _load()
    try:
        _close(int(sys.argv[1]))
    except (OSError, KeyError, AttributeError, ImportError, ValueError):
        return NOT_CLOSED
    return _run(code)


def _load() -> None:
    """Import the modules that code may use, while files are accessible; `socket` so that the system refuses it."""
    names = "_strptime calendar cmath csv decimal encodings.idna fractions itertools json random re resource socket"
    for name in f"{names} statistics string subprocess textwrap threading".split():
        importlib.import_module(name)


def _close(seconds: int) -> None:
    """Limit this process, and have the kernel refuse all but the allowed calls. Raises OSError if it does not."""
    import resource

    limits = {
        resource.RLIMIT_AS: _MEMORY_BYTES,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: OUTPUT_BYTES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,
    }
    for limit, maximum in limits.items():
        resource.setrlimit(limit, (maximum, maximum))
    arch, calls = _ALLOWED[platform.machine()]
    signal.setitimer(signal.ITIMER_REAL, seconds)
    libc = ctypes.CDLL(None, use_errno=True)
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    steps += [(_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    rules = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(rules)))
    options = ((_PARENT_DEATH, signal.SIGKILL, 0), (_NO_NEW_PRIVILEGES, 1, 0))
    for option, value, argument in (*options, (_SET_SECCOMP, _FILTER, ctypes.addressof(program))):
        if libc.prctl(*(ctypes.c_ulong(one) for one in (option, value, argument, 0, 0))) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    _check()


def _check() -> None:
    """Raise OSError if a file or a socket can still be opened."""
    import socket

    for reach in (lambda: os.open("/", os.O_RDONLY), socket.socket):
        try:
            reach()
        except PermissionError:
            continue
        raise OSError("not closed")


def _run(code: str) -> int:
    names: dict[str, object] = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        tree = ast.parse(code, "code")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "code", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "code", "eval"), names)
            if value is not None:
                sys.stdout.write(f"{value}\n")
        sys.stdout.flush()
    except MemoryError:
        return NO_MEMORY
    except PermissionError:
        return REACHED_OUT
    except BaseException as error:  # noqa: BLE001 - all errors of the code are reported
        return _report(error)
    return 0


def _report(error: BaseException) -> int:
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return 0
    sys.stdout.write(f"\n{type(error).__name__}: {error}"[:300])
    return FAILED


if __name__ == "__main__":
    status = main()
    try:
        sys.stdout.flush()
    except OSError:
        status = FAILED
    os._exit(status)
