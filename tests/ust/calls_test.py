#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""calls_test.py LIBWEFT QUIET: checks with strace which system calls a program makes with the
library in it. While nothing is enabled, there are none after start-up (property P2). With events
enabled, there are none after the ring set was made (P1)."""

import collections
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

from tests.matrix.weft_folder import WeftFolder

LIBRARY = QUIET = None
# quiet.c's marks, as strace shows them.
IN_MAIN, BEGIN, END, LEAVES_MAIN = (f'close(-{number})' for number in (1001, 1002, 1003, 1004))
EVENTS = {'events': 2 * 5001, 'threads': 2 * (2 * 5001)}  # that quiet.c emits
# Number of calls that the library makes at the start of a process with one object that has
# tracepoints: "about a dozen", memory, and three for the object (docs/compatibility.md).
START_UP = range(1, 21)
# The calls with which an object is removed: the lock of the slow path.
LEAVE = ['rt_sigprocmask', 'gettid', 'rt_sigprocmask']
WAITS = ('sched_yield', 'nanosleep')
NO_RSEQ = {'GLIBC_TUNABLES': 'glibc.pthread.rseq=0'}

# A line of strace -f -i: the process, the address, the call.
CALL = re.compile(r'(?:\d+ +)?\[([0-9a-f?]+)\] ((\w+)\(.*)')
# ld.so's first mapping of a file, as large as all of them.
MAPPED = re.compile(r'mmap\(NULL, (\d+), .*MAP_DENYWRITE, \d+, 0\) = (0x[0-9a-f]+)')


class Run:
  """One run of quiet under strace."""

  def __init__(self, what, library=True, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('WEFT_', 'LD_', 'GLIBC_'))}
    with tempfile.NamedTemporaryFile(mode='r', prefix='weft-calls-') as log:
      command = ['strace', '-f', '-i', '-o', log.name]
      for name, value in (variables | ({'LD_PRELOAD': LIBRARY} if library else {})).items():
        command += ['-E', f'{name}={value}']
      self.printed = subprocess.run([*command, QUIET, what], env=env, text=True, capture_output=True,
                                    timeout=120, check=True).stdout
      self.calls = [match.groups() for match in map(CALL.match, log) if match]

  def find(self, start):
    """Returns the number of the call whose text begins with `start`."""
    return next(i for i, (_, text, _) in enumerate(self.calls) if text.startswith(start))

  def quiet_part(self):
    """Returns how often each call is made between the marks, by all code."""
    return collections.Counter(name for _, _, name in self.calls[self.find(BEGIN) + 1:self.find(END)])

  def of_library(self):
    """Returns the calls that libweft.so itself makes, after ld.so has mapped it: before main, in
    it, and behind it."""
    opened = self.find(f'openat(AT_FDCWD, "{LIBRARY}"')
    size, base = next(match.groups() for match in (MAPPED.match(text) for _, text, _ in self.calls[opened:])
                      if match)
    begin, end = int(base, 16), int(base, 16) + int(size)
    mine = [i for i, (at, _, _) in enumerate(self.calls) if '?' not in at and begin <= int(at, 16) <= end]
    marks = [-1, self.find(IN_MAIN), self.find(LEAVES_MAIN), len(self.calls)]
    return [[self.calls[i][2] for i in mine if first < i < last] for first, last in zip(marks, marks[1:])]


@contextlib.contextmanager
def weft_folder(**more):
  with tempfile.TemporaryDirectory(prefix='weft-calls-') as parent:
    with WeftFolder(os.path.join(parent, 'weft'), **more) as folder:
      yield folder


class Calls(unittest.TestCase):
  maxDiff = None

  def check_quiet(self, what, run, lawful=()):
    """Checks that a run is as without the library: the calls between the marks, but `lawful` ones, and the
    program's output."""
    bare = Run(what, library=False)
    calls = {name: count for name, count in run.quiet_part().items() if name not in lawful}
    self.assertEqual(calls, bare.quiet_part())
    self.assertEqual(run.printed, bare.printed)
    if what != 'fork':
      self.assertEqual(calls, {})

  def check_off(self, leave, **variables):
    """Checks a run in which nothing is enabled: the library makes its calls before main, and
    `leave` after it. Returns the calls before main."""
    for what in ('events', 'threads', 'fork'):
      with self.subTest(what):
        run = Run(what, **variables)
        self.check_quiet(what, run)
        before, *later = run.of_library()
        self.assertEqual(later, [[], leave])
    return before

  def test_no_folder_is_named(self):
    self.assertEqual(self.check_off([]), ['mmap'])  # for the list of its tracepoints

  def test_before_any_agent(self):
    with tempfile.TemporaryDirectory(prefix='weft-calls-') as unused:
      self.assertIn(len(self.check_off(LEAVE, WEFT_DIR=unused)), START_UP)

  def test_nothing_is_enabled(self):
    with weft_folder() as folder:
      self.assertIn(len(self.check_off(LEAVE, WEFT_DIR=folder.path)), START_UP)
      folder.settle()
      self.assertEqual(len(folder.rings), 0)

  def check_on(self, what, clock='tsc', variables=None, **more):
    """Checks a run in which everything is enabled. The sub-buffers are small, so that they are
    switched all the time, and get full."""
    with self.subTest(f'{what} {clock} {variables} {more}'), weft_folder(clock=clock) as folder:
      folder.enable('quiet:*', subbuf_shift=12, **more)
      run = Run(what, WEFT_DIR=folder.path, **(variables or {}))
      # Without rseq, threads share the atomic slot: one waits if the other lost its CPU as the slot's owner.
      self.check_quiet(what, run, WAITS if what == 'threads' and variables == NO_RSEQ else ())
      folder.settle()
      if what in EVENTS:
        recorded, discarded = folder.counts()
        self.assertEqual(recorded + sum(discarded.values()), EVENTS[what])
        self.assertGreater(recorded, 0)

  def test_an_enabled_event_makes_no_call(self):
    for what in ('events', 'threads'):
      self.check_on(what)
      self.check_on(what, mode='overwrite')
      self.check_on(what, variables=NO_RSEQ)
    self.check_on('events', contexts=(1, 2))  # vpid, vtid

  def test_an_enabled_event_makes_no_call_with_clock_monotonic(self):
    if Run('clock', library=False).quiet_part():
      self.skipTest('CLOCK_MONOTONIC takes a system call here')
    for what in ('events', 'threads'):
      self.check_on(what, clock='monotonic')
    self.check_on('events', clock='monotonic', variables=NO_RSEQ)

  def test_a_fork_costs_nothing_until_the_child_emits(self):
    self.check_on('fork')


if __name__ == '__main__':
  QUIET = sys.argv.pop(2)
  LIBRARY = sys.argv.pop(1)
  unittest.main()
