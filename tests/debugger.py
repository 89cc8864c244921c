# SPDX-License-Identifier: Apache-2.0
"""A debugger that stops nothing, for tests of what weft does about processes under one."""

import contextlib
import ctypes
import pathlib
import threading
import time

PTRACE_SEIZE = 0x4206
PATIENCE = 60


@contextlib.contextmanager
def traced(pid):
    """The process is under a debugger, which does not stop it. Yields the debugger's id."""
    begun, ends = threading.Event(), threading.Event()

    def debug():
        # While weft holds a thread of the process, no debugger can come.
        while ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_SEIZE, pid, None, None) != 0:
            if ends.wait(0.01):
                return
        begun.set()
        ends.wait()

    thread = threading.Thread(target=debug)
    thread.start()  # its end lets the process go
    try:
        if not begun.wait(PATIENCE):
            raise AssertionError(f"process {pid} cannot be traced")
        yield thread.native_id
    finally:
        ends.set()
        thread.join()
        # The thread is over for Python a moment before it is for the kernel; the process may have ended.
        status = pathlib.Path(f"/proc/{pid}/status")
        with contextlib.suppress(OSError):
            while "TracerPid:\t0\n" not in status.read_text(encoding="ascii", errors="replace"):
                time.sleep(0.01)
