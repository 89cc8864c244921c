# SPDX-License-Identifier: Apache-2.0
"""Starts and ends a node of the test cluster that is a guest with another kernel."""

import os
import pathlib
import shutil
import subprocess
import sys

from tests.cluster import groups, inside, pki, programs
from tests.cluster.settings import CLIENTS, PATIENCE, STATE, TOP
from tests.vm import kubernetes_guest
from tests.vm.kubernetes_guest import END, NODE, PORT

MEMORY = "3G"  # it holds the images, twice, and what containers write
LIMIT = 7200   # in seconds, of the guest's life
LOGS = TOP / "build/logs/kubernetes_guest"  # what is in /out there, and the console


class GuestNode:
    def __init__(self, kernel, images):
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir(parents=True)
        pki.make_for(NODE)
        # The address is the machine's, but calls from it come from the first node's: in the guest it is its own.
        inside.run("ip", "route", "replace", "local", NODE.address, "dev", "lo", "src",
                   inside.CONTROL_PLANE.address)
        images = [STATE / "images/pause.tar", *images]
        command = [TOP / "dev", "vm", "run", kernel, "--memory", MEMORY, "--timeout", LIMIT,
                   "--network", f"hostfwd=tcp:{NODE.address}:{PORT}-:{PORT}", "--out", LOGS,
                   "--console", LOGS / "console", "--", sys.executable, "-B",
                   kubernetes_guest.__file__, programs.folder(), *images]
        with open(LOGS / "guest.log", "wb") as log:
            # pylint: disable-next=consider-using-with
            self.process = subprocess.Popen(
                inside.command(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=os.environ, preexec_fn=lambda: groups.enter(CLIENTS))

    def is_ready(self):
        """Is it a node? Fails if the guest has ended."""
        if self.process.poll() is not None:
            raise AssertionError(self.what_happened())
        return inside.kubectl("wait", "--for=condition=Ready", f"node/{NODE.name}", "--timeout=1s",
                              check=False).returncode == 0

    def end(self):
        """Ends the guest, whose kernel must have had no complaint."""
        (LOGS / END).touch()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        if self.process.returncode != 0:
            raise AssertionError(self.what_happened())

    def what_happened(self):
        log = pathlib.Path(LOGS / "guest.log").read_text(encoding="utf-8", errors="replace")
        return f"the guest ended with status {self.process.returncode}; see {LOGS}\n{log[-3000:]}"
