# SPDX-License-Identifier: Apache-2.0
"""The two tracers of bench/ust, behind one interface: run(program, config) records one run of a program
and says what it printed, how much was discarded and how many bytes are on disk."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from report import Failed

SUBBUFS = 4  # for each CPU
PATIENCE = 20  # seconds, with a daemon that ends


@dataclass
class Config:
    """What a session records. overwrite: flight recorder mode; subbuf_kib: size of a sub-buffer; children:
    with what the tracer documents for programs whose children, too, are to be traced; folder: where the
    trace lies, the tracer's own unless given."""
    event: str = "bench:*"
    subbuf_kib: int = 512
    overwrite: bool = False
    children: bool = False
    contexts: list = field(default_factory=list)
    filter: str = ""
    folder: str = ""


@dataclass
class Outcome:
    text: str       # what the program printed
    discarded: int
    bytes: int      # of the trace's streams on disk


def tree_bytes(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*")
               if p.is_file() and p.name != "metadata" and p.suffix != ".idx")


class Lttng:
    """LTTng-UST from Debian's packages, with a session daemon of our own. Close it."""
    name = "lttng"

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="weft-bench-lttng-")
        self.env = dict(os.environ, LTTNG_HOME=self.home, HOME=self.home)
        # All of root's have one place, whatever LTTNG_HOME says.
        if self._lttng("list", check=False).returncode == 0:
            shutil.rmtree(self.home)
            raise Failed("there is an lttng-sessiond already, which would be measured too: end it first")
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], env=self.env,
                                       stderr=subprocess.DEVNULL)
        for _ in range(100):
            if self._lttng("list", check=False).returncode == 0:
                return
            time.sleep(0.1)
        self.close()
        raise Failed("lttng-sessiond does not answer")

    def close(self):
        self.daemon.terminate()
        try:
            self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # it waits for its consumer, which waits for a program
            self.daemon.kill()
            self.daemon.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def _lttng(self, *args, check=True, timeout=None):
        return subprocess.run(["lttng", "-n", "-q", *args], env=self.env, check=check, text=True, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, argv, config, look=None):
        """One run. `look` is called with the trace's folder before that goes away."""
        out = os.path.join(config.folder or self.home, "trace")
        shutil.rmtree(out, ignore_errors=True)
        self._lttng("create", "b", "--output=" + out)
        try:
            return self._record(argv, config, look, out)
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):  # of one that failed; the next has the same name
                self._lttng("destroy", "b", "--no-wait", check=False, timeout=PATIENCE)
            shutil.rmtree(out, ignore_errors=True)

    def _record(self, argv, config, look, out):
        self._lttng("enable-channel", "-u", "-s", "b", "c", f"--subbuf-size={config.subbuf_kib}k",
                    f"--num-subbuf={SUBBUFS}", "--overwrite" if config.overwrite else "--discard")
        if config.contexts:
            types = [a for c in config.contexts for a in ("-t", c)]
            self._lttng("add-context", "-u", "-s", "b", "-c", "c", *types)
        extra = ["--filter", config.filter] if config.filter else []
        self._lttng("enable-event", "-u", "-s", "b", "-c", "c", config.event, *extra)
        self._lttng("start", "b")
        env = dict(self.env, LD_PRELOAD="liblttng-ust-fork.so") if config.children else self.env
        ran = subprocess.run(argv, env=env, check=True, text=True, stdout=subprocess.PIPE)
        stopped = subprocess.run(["lttng", "-n", "stop", "b"], env=self.env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        lost = sum(int(n) for n in re.findall(r"(\d+) events? (?:was|were) discarded", stopped))
        self._lttng("destroy", "b")
        outcome = Outcome(ran.stdout, lost, tree_bytes(out))
        if look is not None:
            look(out)
        return outcome


class Weft:
    """weft record from an install tree."""
    name = "weft"

    def __init__(self, install):
        self.weft = os.path.join(install, "bin", "weft")
        self.home = tempfile.mkdtemp(prefix="weft-bench-")

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, argv, config, look=None):
        """One run. `look` is called with the trace's folder before that goes away."""
        out = os.path.join(config.folder or self.home, "trace")
        shutil.rmtree(out, ignore_errors=True)
        summary = os.path.join(self.home, "summary.json")
        command = [self.weft, "record", "--quiet", "--summary", summary, "-o", out,
                   "--event", config.event, "--subbuf-size", f"{config.subbuf_kib}Ki",
                   "--subbufs", str(SUBBUFS)]
        if config.overwrite:
            command += ["--mode", "overwrite"]
        if config.filter:
            command += ["--filter", config.filter]
        for context in config.contexts:
            command += ["--context", context]
        ran = subprocess.run([*command, "--", *argv], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False)
        if ran.returncode != 0:
            raise Failed("weft record failed: " + ran.stderr)
        with open(summary, encoding="utf-8") as file:
            trace = json.load(file)["traces"][0]
        outcome = Outcome(ran.stdout, sum(trace["discarded"].values()), tree_bytes(out))
        if look is not None:
            look(out)
        shutil.rmtree(out, ignore_errors=True)
        return outcome
