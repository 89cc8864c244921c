#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""folder_test.py LIBWEFT: checks with strace where the library looks for its control file."""

import os
import re
import subprocess
import sys
import unittest

LIBRARY = None


def looked_for(**variables):
  """Returns the control files that a program with the library opened, or tried to open."""
  env = {k: v for k, v in os.environ.items() if not k.startswith('WEFT_')} | variables
  command = ['strace', '-f', '-e', 'trace=openat', '-E', f'LD_PRELOAD={LIBRARY}', 'true']
  done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=60, check=True)
  return re.findall(r'openat\(\w+, "([^"]*\.ctl)"', done.stderr)


class Folder(unittest.TestCase):

  def test_in_a_pod_the_containers_name_is_enough(self):
    self.assertEqual(looked_for(WEFT_CONTAINER='app'), ['/weft/app.ctl'])

  def test_a_folder_that_is_given_wins(self):
    self.assertEqual(looked_for(WEFT_CONTAINER='app', WEFT_DIR='/nowhere'), ['/nowhere/app.ctl'])
    self.assertEqual(looked_for(WEFT_DIR='/nowhere'), ['/nowhere/local.ctl'])

  def test_without_both_no_folder_is_searched(self):
    self.assertEqual(looked_for(), [])


if __name__ == '__main__':
  LIBRARY = sys.argv.pop(1)
  unittest.main()
