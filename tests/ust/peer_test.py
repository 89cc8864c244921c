#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_test.py SOURCE_TREE WORK_FOLDER [WEFT]: compares weft's tracepoints with LTTng-UST's.

  * every macro of LTTng's headers is used by the tests' own providers
  * the examples of Debian's liblttng-ust-dev build unchanged with weft's headers, and trace
  * every.c, built with LTTng's headers and recorded by LTTng, and built with weft's headers and
    recorded by WEFT (bin/weft of a build or install tree), is the same to babeltrace2, with every
    context of user space

Tests whose programs or packages this machine does not have are skipped, and say so. LTTng's session
daemon is one of the test's own, of an ordinary user, with its own home."""

import contextlib
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from tests.ust import check_macros

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = WORK = WEFT = None
PACKAGE = 'liblttng-ust-dev'
OTHER_USER = 65534  # an unprivileged user: root's daemon would be the machine's
# Contexts of both (of the user's, LTTng has cpu_id in filters only). SAME ones have the same values in two
# runs of one program by one user.
OWN = ['vpid', 'vtid', 'pthread_id', 'ip']
IDS = ['vuid', 'veuid', 'vsuid', 'vgid', 'vegid', 'vsgid']
SAME = ['procname', *IDS, 'cgroup_ns', 'ipc_ns', 'mnt_ns', 'net_ns', 'pid_ns', 'time_ns', 'user_ns',
        'uts_ns']
TEXT = r'"(?:[^"\\]|\\.)*"'  # as readers show it
EVERY = ['every.c', *sorted(p.name for p in HERE.glob('every_*.c'))]


def run(command, cwd=HERE, **more):
  done = subprocess.run([str(c) for c in command], cwd=cwd, text=True, capture_output=True,
                        errors='replace', **more)
  if done.returncode != 0:
    raise AssertionError(f'{" ".join(map(str, command))}: {done.returncode}\n{done.stdout[-1500:]}\n'
                         f'{done.stderr[-3000:]}')
  return done.stdout


def include_flags():
  include = SOURCE / 'ust-injector/include'
  return f'-I{include}/weft-lttng -I{include}'


def unpacked_package():
  """Returns Debian's package, downloaded and unpacked once; a machine may have it without its
  examples."""
  folder = WORK / 'package'
  root = folder / 'root'
  if not root.is_dir():
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'cache/archives/partial').mkdir(parents=True, exist_ok=True)
    done = subprocess.run(['apt-get', '-qq', '-o', f'Dir::Cache={folder}/cache', 'download', PACKAGE],
                          cwd=folder, text=True, capture_output=True)
    packages = glob.glob(f'{folder}/{PACKAGE}_*.deb')
    if done.returncode != 0 or not packages:
      raise unittest.SkipTest(f'{PACKAGE} cannot be downloaded: {done.stderr.strip()[-200:]}')
    run(['dpkg-deb', '-x', packages[0], str(root) + '.new'])
    os.rename(str(root) + '.new', root)
  return root


def examples():
  """Returns the examples of the installed package, if the machine keeps documentation."""
  folder = f'usr/share/doc/{PACKAGE}/examples'
  installed = pathlib.Path('/') / folder
  return installed if (installed / 'demo').is_dir() else unpacked_package() / folder


class Macros(unittest.TestCase):

  def test_every_macro_of_the_peer_is_used(self):
    headers = glob.glob('/usr/include/**/lttng/ust-tracepoint-event.h', recursive=True) or \
        [str(p) for p in unpacked_package().glob('usr/include/**/lttng/ust-tracepoint-event.h')]
    self.assertEqual(len(headers), 1)
    sources = [str(p) for p in HERE.glob('every*.[ch]')]
    self.assertEqual(check_macros.main(os.path.dirname(headers[0]), sources), 0)


@contextlib.contextmanager
def running(command, **more):
  """Runs a program that is ended by its pid at the end."""
  process = subprocess.Popen([str(c) for c in command], **more)
  try:
    yield process
  finally:
    process.kill()
    process.wait()
    for pipe in (process.stdout, process.stderr):
      if pipe:
        pipe.close()


class Examples(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    (WORK / 'lib').mkdir(parents=True, exist_ok=True)
    cls.capture = WORK / 'lib/libcapture.so'
    run(['gcc', '-fPIC', '-shared', f'-I{SOURCE}', '-o', cls.capture, 'capture.c'])
    # Makes the files of the install tree's lib/weft-lttng.
    run(['gcc', '-c', '-o', WORK / 'lib/none.o', SOURCE / 'ust-injector/include/no_library.c'])
    run(['ar', 'rcs', WORK / 'lib/liblttng-ust.a', WORK / 'lib/none.o'])

  def make(self, name, *more):
    original = examples() / name
    folder = WORK / 'examples' / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    run(['make', f'CPPFLAGS={include_flags()}', f'LDFLAGS=-L{WORK}/lib', *more], cwd=folder)
    return folder

  def first_events(self, program, count, *libraries):
    env = dict(os.environ, LD_PRELOAD=':'.join(map(str, [self.capture, *libraries])))
    lines = []
    with running([program], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                 cwd=program.parent) as process:
      for line in process.stderr:
        line = re.sub(r'^Tracing\.\.\. ', '', line.rstrip('\n'))
        if re.match(r'\w+:\w+( |$)', line):
          lines.append(line)
        if len(lines) == count:
          break
    return lines

  def test_demo(self):
    folder = self.make('demo')
    one, three = (folder / f'lttng-ust-provider-ust-tests-demo{n}.so' for n in ('', '3'))
    loop = ('ust_tests_demo2:loop intfield={0} intfield2=0x{0} longfield={0} netintfield={0} '
            'netintfieldhex=0x{0} arrfield1=[1, 2, 3] arrfield2="test" '
            'seqfield1=[116, 101, 115, 116](u64) seqfield2="test"(u64) stringfield="test" '
            'floatfield=2222 doublefield=2')
    wanted = ['ust_tests_demo:starting value=123', *(loop.format(i) for i in range(5)),
              'ust_tests_demo:done value=456', 'ust_tests_demo3:done value=42']
    self.assertEqual(self.first_events(folder / 'demo', 99, one, three), wanted)
    # A provider that is not loaded leaves its events out.
    self.assertEqual(self.first_events(folder / 'demo', 99, three), wanted[-1:])

  def test_easy_ust(self):
    folder = self.make('easy-ust')
    self.assertEqual(self.first_events(folder / 'sample', 2),
                     ['sample_component:message message="Hello World"'] * 2)

  def test_hello_static_lib(self):
    folder = self.make('hello-static-lib')
    lines = self.first_events(folder / 'hello', 3)
    self.assertEqual([re.sub(r' intfield2.*', '', line) for line in lines],
                     [f'ust_tests_hello:tptest intfield={i}' for i in range(3)])

  def test_tracef_and_tracelog(self):
    for example, programs in (('demo-tracef', ('demo-tracef', 'demo-vtracef')),
                              ('demo-tracelog', ('demo-tracelog', 'demo-vtracelog'))):
      folder = self.make(example)
      for program in programs:
        with self.subTest(program):
          lines = self.first_events(folder / program, 2)
          self.assertEqual(len(lines), 2)
          provider = 'lttng_ust_' + program.replace('demo-', '').lstrip('v')
          self.assertTrue(all(line.startswith(provider + ':') for line in lines), lines)

  def test_generated_provider(self):
    tool = pathlib.Path(shutil.which('lttng-gen-tp') or unpacked_package() / 'usr/bin/lttng-gen-tp').parent
    folder = self.make('gen-tp', f'LTTNG_GEN_TP_PATH={tool}/', f'PYTHON={sys.executable}')
    self.assertEqual(len(self.first_events(folder / 'sample', 2)), 2)

  def test_plugins_build(self):
    self.make('getcpu-override')
    self.make('clock-override')

  @unittest.skipUnless(shutil.which('cmake'), 'no cmake')
  def test_cmake_shared_libraries(self):
    original = examples() / 'cmake-multiple-shared-libraries'
    folder = WORK / 'examples/cmake'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    (folder / 'cmake').mkdir()
    shutil.move(folder / 'FindLTTngUST.cmake', folder / 'cmake')
    include = SOURCE / 'ust-injector/include'
    run(['cmake', '-S', folder, '-B', folder / 'build', '-Wno-dev',
         f'-DLTTNGUST_INCLUDE_DIRS={include}/weft-lttng', f'-DCMAKE_CXX_FLAGS=-I{include}',
         f'-DLTTNGUST_INCLUDE_DIRS_GENERATED={include}/weft-lttng',
         f'-DLTTNGUST_LIBRARIES={WORK}/lib/liblttng-ust.a'])
    run(['cmake', '--build', folder / 'build'])
    lines = self.first_events(folder / 'build/tester', 99)
    self.assertTrue(lines and all(line.startswith('gydle_om:') for line in lines), lines)


class Lttng:
  """A session daemon of our own and one session; `trace` is a folder that babeltrace2 reads."""

  def __init__(self, home):
    self.home = home
    self.user = {'user': OTHER_USER, 'group': OTHER_USER, 'extra_groups': []} \
        if os.geteuid() == 0 else {}
    self.env = {k: v for k, v in os.environ.items() if not k.startswith(('LTTNG_', 'LD_'))}
    # A program waits until LTTng has enabled its events, however busy the machine is.
    self.env |= {'LTTNG_HOME': str(home), 'HOME': str(home), 'LTTNG_UST_REGISTER_TIMEOUT': '-1'}
    self.trace = home / 'trace'

  def command(self, *words):
    return run(['lttng', *words], env=self.env, **self.user)

  def record(self, program, log):
    """Records all user-space events of the program."""
    with running(['lttng-sessiond', '--no-kernel', '--verbose'], env=self.env, stdout=log, stderr=log,
                 **self.user) as daemon:
      try:
        self.wait_for_daemon(daemon)
        self.command('create', 'every', f'--output={self.trace}')
        self.command('enable-event', '--userspace', '--all')
        self.command('add-context', '--userspace', *(f'--type={name}' for name in OWN + SAME))
        self.command('start')
        output = run([program], env=self.env, **self.user)
        self.command('stop')
        self.command('destroy', 'every')
        return output
      finally:
        daemon.terminate()  # it ends its consumer
        with contextlib.suppress(subprocess.TimeoutExpired):
          daemon.wait(20)

  def wait_for_daemon(self, daemon):
    for _ in range(2000):  # only a failure waits so long
      done = subprocess.run(['lttng', 'list'], env=self.env, capture_output=True, **self.user)
      if done.returncode == 0:
        return
      if daemon.poll() is not None:
        raise AssertionError('lttng-sessiond ended')
      time.sleep(0.05)
    raise AssertionError('lttng-sessiond does not answer')


def can_run_weft(user):
  with contextlib.suppress(OSError):
    return subprocess.run([WEFT, '--version'], capture_output=True, **user).returncode == 0
  return False


class Event:
  """Readers show an event as 'provider:event { payload }', with its contexts as texts."""

  def __init__(self, name, scopes):
    self.payload = f'{name} {scopes[2] if len(scopes) > 2 else ""}'
    self.contexts = dict(re.findall(r'(\w+) = ("[^"]*"|[^ ,]+)', scopes[1]))


def lines_of(trace):
  """Returns the lines of all events, from `weft view`; checks that babeltrace2 shows equal lines.
  The exception is an empty text: babeltrace2 uses its event objects again, and shows the text of
  the event before."""
  own = run([WEFT, 'view', trace]).splitlines()
  for line, peer in zip(own, run(['babeltrace2', trace, '--color=never']).splitlines(), strict=True):
    parts = re.split(f'({TEXT})', line)
    if not re.fullmatch(''.join(TEXT if p == '""' else re.escape(p) for p in parts), peer):
      raise AssertionError(f'{line}\n{peer}')
  return own


def events(trace):
  """Returns an Event for each event of the tests' providers, in the trace's order."""
  found = []
  for line in lines_of(trace):
    match = re.match(r'\[[^]]*\] \([^)]*\) (?:\S+ )?((?:every_\w+|lttng_ust_trace\w+):\w+): (.*)$', line)
    if match:
      found.append(Event(match.group(1), scopes_of(match.group(2))))
  return found


def scopes_of(text):
  """Splits `{ ... }, { ... }` into parts; strings may contain braces."""
  scopes, depth, start, quoted, i = [], 0, 0, False, 0
  while i < len(text):
    if text[i] == '\\' and quoted:
      i += 1
    elif text[i] == '"':
      quoted = not quoted
    elif text[i] == '{' and not quoted:
      start = i if depth == 0 else start
      depth += 1
    elif text[i] == '}' and not quoted:
      depth -= 1
      if depth == 0:
        scopes.append(text[start:i + 1])
    i += 1
  return scopes


def context_declarations(trace):
  """Returns (name, bits, is signed, is text) of each context, by the metadata. It ignores how
  contexts are shown (weft shows the two addresses in hex), and how long a text may be (LTTng keeps
  room for a NUL behind procname)."""
  folder = next(pathlib.Path(trace).rglob('metadata')).parent
  text = run(['babeltrace2', '--output-format=ctf-metadata', folder])
  found = re.search(r'event\.context := struct \{(.*?)\n\t?\}', text, re.DOTALL)
  fields = re.findall(r'integer \{ size = (\d+);[^}]* signed = (\w+);([^}]*)\} _(\w+)(?:\[\d+\])?;',
                      found.group(1))
  return [(name, size, signed in ('1', 'true'), 'UTF8' in rest) for size, signed, rest, name in fields]


class SameTrace(unittest.TestCase):
  maxDiff = 3000

  @classmethod
  def setUpClass(cls):
    for program in ('lttng', 'lttng-sessiond', 'babeltrace2'):
      if not shutil.which(program):
        raise unittest.SkipTest(f'no {program}')
    if not (WEFT and WEFT.exists()):
      raise unittest.SkipTest(f'no {WEFT}')

  def test_event_by_event(self):
    with tempfile.TemporaryDirectory(prefix='weft-peer-') as folder, \
        open(WORK / 'lttng.log', 'w') as log:
      folder = pathlib.Path(folder)
      for flags, compiler in (('', 'gcc -O2'), ('', 'g++ -x c++ -O2')):
        with self.subTest(compiler):
          home = folder / compiler.split()[0]
          # One name: it is a context.
          theirs, ours = home / 'of_lttng/every', home / 'of_weft/every'
          for program in (theirs, ours):
            program.parent.mkdir(parents=True)
          compiler = compiler.split()
          run([*compiler, '-w', '-I.', '-o', theirs, *EVERY, '-llttng-ust', '-ldl'])
          run([*compiler, '-w', '-I.', *include_flags().split(), '-o', ours, *EVERY])
          folder.chmod(0o755)
          os.chown(home, OTHER_USER, OTHER_USER) if os.geteuid() == 0 else None
          lttng = Lttng(home)
          self.assertEqual(lttng.record(theirs, log), 'evaluations 2\n')
          as_same_user = can_run_weft(lttng.user)
          run([WEFT, 'record', '--event', '*', '--exclude', 'lttng_ust_statedump:*',
               *(f'--context={name}' for name in OWN + SAME), '-o', home / 'weft', '--', ours],
              **lttng.user if as_same_user else {})
          own, peer = events(home / 'weft'), events(lttng.trace)
          self.assertGreater(len(peer), 80)
          self.assertEqual([event.payload for event in own], [event.payload for event in peer])
          self.compare_contexts(own, peer, as_same_user)
          declared = context_declarations(lttng.trace)
          self.assertEqual([name for name, *_ in declared], OWN + SAME)
          self.assertEqual(context_declarations(home / 'weft'), declared)

  def compare_contexts(self, own, peer, as_same_user):
    same = [name for name in SAME if as_same_user or name not in IDS]
    for event, other in zip(own, peer):
      self.assertEqual(list(event.contexts), OWN + SAME)
      self.assertEqual(list(other.contexts), OWN + SAME)
      self.assertEqual([event.contexts[name] for name in same], [other.contexts[name] for name in same])
    for trace in (own, peer):  # one process of one thread
      self.assertEqual(len({event.contexts['vpid'] for event in trace}), 1)
      self.assertEqual({event.contexts['vpid'] for event in trace},
                       {event.contexts['vtid'] for event in trace})


if __name__ == '__main__':
  if len(sys.argv) < 3:
    sys.exit(__doc__)
  SOURCE, WORK = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
  WORK.mkdir(parents=True, exist_ok=True)
  rest = sys.argv[3:]
  if rest and not rest[0].startswith('-') and '/' in rest[0]:
    WEFT = pathlib.Path(rest.pop(0)).resolve()
  unittest.main(argv=[sys.argv[0], *rest])
