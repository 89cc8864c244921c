# SPDX-License-Identifier: Apache-2.0
"""A program of whose calls the kernel misses returns: more of them are under way in one of its functions than it keeps
until they return."""

import sys

FUNCTION = "eventfd_read"
KERNEL = {"probes": [{"name": "taken", "symbol": FUNCTION, "at": "both"}], "statedump": False}
KEPT = 512
CALLS = 550
MISSED = CALLS - KEPT
# On one CPU: the kernel counts without atomics. 0 is read's number.
SCRIPT = f"""
import os, threading, time
os.sched_setaffinity(0, {{0}})
threading.stack_size(1 << 16)
file = os.eventfd(0, os.EFD_SEMAPHORE)
threads = [threading.Thread(target=os.eventfd_read, args=(file,)) for _ in range({CALLS})]
for thread in threads:
    thread.start()
def waits(thread):
    with open(f"/proc/self/task/{{thread.native_id}}/syscall") as call:
        return call.read().startswith("0 ")
while not all(map(waits, threads)):
    time.sleep(0.01)
os.eventfd_write(file, {CALLS})
for thread in threads:
    thread.join()
"""
PROGRAM = [sys.executable, "-I", "-S", "-c", SCRIPT]
