# SPDX-License-Identifier: Apache-2.0
"""The disk that traces are written to for `sustained`: a separate file system in a file that was
written from beginning to end before. A virtual machine's disk often has no block until it is
written for the first time, or again after it was trimmed. Getting one took twice as long as writing
one (400 to 1150 MB/s, and up to 2400), and differed from minute to minute. Needs root, a loop
device and BYTES; without them traces go to the folder itself.
"""

import contextlib
import mmap
import os
import shutil
import subprocess
import tempfile
import time

BYTES = 6 * 1024 ** 3
BLOCK = 1024 ** 2
LOOK_BLOCKS = 128
SETTLED = 4     # seconds
SLOW = 0.8      # of the speed that it mostly had
PATIENCE = 8    # looks at a slow disk


class Disk:
    """The disk of the folder `parent`. `folder` is a folder on it, `name` describes it. Close it after use."""

    def __init__(self, parent):
        self.speeds = []  # MB/s, of every look
        self.block = mmap.mmap(-1, BLOCK)  # at the beginning of a page
        self.block.write(os.urandom(BLOCK))
        self.undo = contextlib.ExitStack()
        home = tempfile.mkdtemp(prefix="weft-bench-disk-", dir=parent)
        self.undo.callback(shutil.rmtree, home, ignore_errors=True)
        self.folder = os.path.join(home, "mounted")
        os.mkdir(self.folder)
        with contextlib.ExitStack() as failed:
            failed.callback(self.close)
            self.name = self._mount(os.path.join(home, "image"))
            self.look = os.open(os.path.join(self.folder, "look"), os.O_RDWR | os.O_CREAT | os.O_DIRECT)
            self.undo.callback(os.close, self.look)
            self.write(self.look, LOOK_BLOCKS)
            failed.pop_all()

    def close(self):
        self.undo.close()

    def _mount(self, image):
        try:
            file = os.open(image, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
            try:
                self.write(file, BYTES // BLOCK)
            finally:
                os.close(file)
            device = self._run("losetup", "--find", "--show", "--direct-io=on", image)
            self.undo.callback(self._run, "losetup", "--detach", device)
            self._run("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", device)
            self._run("mount", "-o", "nodiscard", device, self.folder)
            # It ends when the last process has closed its files; that may be a daemon of a run that
            # was ended.
            self.undo.callback(self._run, "umount", "--lazy", self.folder)
            return "a file system in a file that was written before"
        except (OSError, subprocess.CalledProcessError) as error:
            with contextlib.suppress(OSError):
                os.unlink(image)
            return f"that of the folder for temporary files ({getattr(error, 'stderr', None) or error})"

    @staticmethod
    def _run(*command):
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE).stdout.strip()

    def write(self, file, blocks):
        """Returns the MB/s of direct writes, one after the other."""
        start = time.monotonic()
        for i in range(blocks):
            os.pwrite(file, self.block, i * BLOCK)
        return blocks * BLOCK / 1e6 / (time.monotonic() - start)

    def rest(self):
        """Waits until the disk has finished with earlier files: a virtual machine's kernel reports
        their memory to its host two seconds later, and a disk may trim their blocks. Either was
        seen to block all processes for 100 ms and more. Then waits, for a limited time, until the
        disk is about as quick as its usual speed."""
        os.sync()
        time.sleep(SETTLED)
        for _ in range(PATIENCE):
            speed = self.write(self.look, LOOK_BLOCKS)
            self.speeds.append(speed)
            if speed >= SLOW * sorted(self.speeds)[len(self.speeds) // 2]:
                return
            time.sleep(1)
