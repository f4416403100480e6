"""Python in a child process without files, network, other processes or environment, and with limited memory and time.

The child drops its access before it runs the code (`code_child`), and runs nothing if that fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from rag.errors import ToolError
from rag.tools import code_child
from rag.tools.tool import Tool, ToolResources, ToolResult

SECONDS: Final = 5.0
_MAX_CODE: Final = 20_000
_MAX_OUTPUT: Final = 4_000
_CHILD: Final = Path(code_child.__file__)
_PROBE: Final = "1 + 1"
_CODES: Final = {
    code_child.FAILED: "code_failed",
    code_child.REACHED_OUT: "code_reached_out",
    code_child.NO_MEMORY: "code_memory",
    code_child.NOT_CLOSED: "code_not_closed",
}


def run_code(code: str, resources: ToolResources) -> ToolResult:
    """Return what the code prints, and the value of its last line. Raises ToolError."""
    if not resources.code:
        raise ToolError("code_off")
    return ToolResult(execute(code).strip()[:_MAX_OUTPUT] or resources.say("code_silent"))


def can_isolate() -> bool:
    """Start a child, and return True if it can drop access to files and network on this system."""
    try:
        return execute(_PROBE).strip() == "2"
    except ToolError:
        return False


def execute(code: str) -> str:
    """Run the code in a child process, and return what it prints. Raises ToolError."""
    if len(code) > _MAX_CODE:
        raise ToolError("code_long", limit=_MAX_CODE)
    if not sys.platform.startswith("linux"):
        raise ToolError("code_not_closed")
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(_CHILD), str(int(SECONDS))]
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env={}, cwd="/", start_new_session=True
            )
        except OSError as error:
            raise ToolError("code_not_closed") from error
        try:
            child.communicate(code.encode("utf-8", "replace"), timeout=SECONDS + 1)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        text = output.read(code_child.OUTPUT_BYTES).decode("utf-8", "replace")
    if -child.returncode in (signal.SIGKILL, signal.SIGXCPU, signal.SIGALRM):
        raise ToolError("code_slow", seconds=f"{SECONDS:g}")
    if len(text) >= code_child.OUTPUT_BYTES:
        raise ToolError("code_output")
    if child.returncode:
        last = text.strip().rpartition("\n")[2][:300]
        raise ToolError(_CODES.get(child.returncode, "code_failed"), error=last)
    return text


TOOL: Final = Tool(
    "python",
    "Run a short Python program and return its output and the value of its last line. It has the computing modules of"
    " the standard library, but no files, network or environment.",
    "code",
    "the source code of the program",
    SECONDS + 3,
    run_code,
)
