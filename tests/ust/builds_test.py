#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""builds_test.py SOURCE_TREE WORK_FOLDER: weft's tracepoint headers with every compiler, language,
kind of linking and processor that the machine has. Each program runs without any weft library and
says nothing; then with capture.c in libweft.so's place, and what it emits is every.expected."""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
WORK = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
HERE = pathlib.Path(__file__).resolve().parent
ALL = ['every.c', 'every_long_tp.c', 'every_short_tp.c', 'every_short_define.c', 'every_ip_tp.c',
       'every_ip_define.c']
WARNINGS = ['-Wall', '-Wextra', '-Werror', '-Wundef', '-Wshadow', '-Wwrite-strings']

OTHER_WARNINGS = ['-Wpedantic', '-Wconversion', '-Wsign-conversion', '-Wcast-align', '-Wcast-qual',
                  '-Wdouble-promotion', '-Wformat=2', '-Wmissing-declarations', '-Wredundant-decls',
                  '-Wswitch-default', '-Wfloat-equal', '-Wnull-dereference', '-Winline', '-Wvla']
C_WARNINGS = ['-Wstrict-prototypes', '-Wmissing-prototypes', '-Wnested-externs',
              '-Wbad-function-cast', '-Wdeclaration-after-statement', '-Wc++-compat']
CPP_WARNINGS = ['-Wold-style-cast', '-Wzero-as-null-pointer-constant', '-Wextra-semi',
                '-Woverloaded-virtual', '-Weffc++']
GCC_WARNINGS = ['-Wlogical-op', '-Wduplicated-cond', '-Wduplicated-branches']


def includes():
  include = SOURCE / 'ust-injector/include'
  return ['-I.', f'-I{include}', f'-I{include}/weft-lttng']


def run(command, **more):
  """Returns output and errors of a command that succeeds; everything runs in this folder."""
  done = subprocess.run([str(c) for c in command], cwd=HERE, text=True, capture_output=True, **more)
  if done.returncode != 0:
    errors = [line for line in done.stderr.splitlines() if re.search('error|warning|undefined', line)]
    raise AssertionError(f'{" ".join(map(str, command))}: {done.returncode}\n{done.stdout[-500:]}\n'
                         + '\n'.join(errors[:10] or done.stderr.splitlines()[-10:]))
  return done


def build(name, compiler, sources=None, extra=()):
  output = WORK / name
  run([*compiler.split(), *WARNINGS, *includes(), *extra, '-o', output, *(sources or ALL)])
  return output


def environment(**more):
  env = {k: v for k, v in os.environ.items() if not k.startswith(('WEFT_', 'LD_'))}
  env.update(more)
  return env


def expected():
  """Returns the lines of every.expected; those of every_short equal those of every_long."""
  lines = (HERE / 'every.expected').read_text().splitlines()
  return sorted(lines + [line.replace('every_long:', 'every_short:') for line in lines
                         if line.startswith('every_long:')])


def have(*programs):
  return all(shutil.which(p) for p in programs)


class Builds(unittest.TestCase):
  maxDiff = 2000

  @classmethod
  def setUpClass(cls):
    WORK.mkdir(parents=True, exist_ok=True)
    cls.capture = WORK / 'libcapture.so'
    run(['gcc', *WARNINGS, '-g', '-fPIC', '-shared', f'-I{SOURCE}', '-o', cls.capture, 'capture.c'])

  def silent_without_library(self, command):
    done = run(command, env=environment())
    self.assertEqual((done.stdout, done.stderr), ('evaluations 0\n', ''))

  def emits(self, command, **more):
    done = run(command, env=environment(WEFT_CAPTURE_NOWRITE='1', **more))
    self.same_lines(done.stderr.splitlines(), expected())
    self.assertEqual(done.stdout, 'evaluations 2\n')

  def same_lines(self, got, wanted):
    got, wanted = collections.Counter(got), collections.Counter(wanted)
    self.assertEqual((sorted(wanted - got), sorted(got - wanted)), ([], []), 'missing, unexpected')

  def check(self, name, compiler, extra=(), static=False):
    """Runs a program of all providers, alone and with events on."""
    program = build(name, compiler, extra=extra)
    self.silent_without_library([program])
    if not static:
      self.emits([program], LD_PRELOAD=str(self.capture))
      off = run([program], env=environment(LD_PRELOAD=str(self.capture), WEFT_CAPTURE_OFF='1'))
      self.assertEqual((off.stdout, off.stderr), ('evaluations 0\n', ''))

  def check_all(self, variants):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
      runs = {pool.submit(self.check, *v[:2], **v[2]): v[0] for v in variants}
      for done in concurrent.futures.as_completed(runs):
        with self.subTest(runs[done]):
          done.result()

  # --- compilers and languages --------------------------------------------------------------

  def test_c(self):
    self.check_all(
        [(f'c-gcc-{level}', f'gcc -{level}', {}) for level in ('O0', 'O1', 'O2', 'O3', 'Os')] +
        [(f'c-gcc-{std}', f'gcc -O2 -std={std}', {}) for std in ('c99', 'gnu99', 'c11', 'c17')] +
        [('c-gcc-intel', 'gcc -O2 -masm=intel', {})])

  @unittest.skipUnless(have('clang-19'), 'no clang')
  def test_c_clang(self):
    self.check_all([(f'c-clang-{level}-{std}', f'clang-19 -{level} -std={std}', {})
                    for level, std in (('O0', 'gnu11'), ('O2', 'c99'), ('O3', 'c17'))])

  def test_cpp(self):
    self.check_all([(f'cpp-gcc-{level}-{std}', f'g++ -x c++ -{level} -std={std}', {})
                    for level, std in (('O0', 'c++11'), ('O2', 'c++17'), ('O3', 'c++23'))] +
                   [('cpp-gcc-bare', 'g++ -x c++ -O2 -fno-exceptions -fno-rtti', {})])

  @unittest.skipUnless(have('clang++-19'), 'no clang')
  def test_cpp_clang(self):
    self.check_all([(f'cpp-clang-{level}-{std}', f'clang++-19 -x c++ -{level} -std={std}', {})
                    for level, std in (('O0', 'c++11'), ('O2', 'c++20'))])

  def test_providers_are_clean_of_pedantic_warnings(self):
    for compiler in ('gcc -std=c11', 'gcc -std=c99', 'g++ -x c++ -std=c++11', 'clang-19 -std=c11',
                     'clang++-19 -x c++ -std=c++17'):
      if have(compiler.split()[0]):
        for source in ALL[1:]:
          build('pedantic.o', compiler, [source], ['-pedantic', '-c'])

  def test_headers_themselves_are_clean(self):
    """They are system headers, of which compilers speak only if they are asked to."""
    options = [w for w in WARNINGS if w != '-Werror'] + ['-Wsystem-headers']
    for compiler in ('gcc -std=c11', 'g++ -x c++ -std=c++17', 'clang-19 -std=c11',
                     'clang++-19 -x c++ -std=c++11'):
      if have(compiler.split()[0]):
        with self.subTest(compiler):
          done = run([*compiler.split(), *options, *includes(), '-c', '-o', WORK / 'clean.o',
                      'every_long_tp.c'])
          own = [line for line in done.stderr.splitlines()
                 if 'warning:' in line and re.match(r'\./|every|.*ust-injector/include', line)]
          self.assertEqual(own, [])

  def test_shapes_of_real_programs_build_without_warnings(self):
    """The options apply to the program's own code only, as with LTTng's headers in /usr/include. In
    gnu99 the C library has no _Static_assert of its own, in c99 it has one."""
    def check(compiler, std):
      more = CPP_WARNINGS if 'c++' in compiler else C_WARNINGS
      if 'clang' not in compiler:
        more = more + GCC_WARNINGS
      if std in ('c99', 'c11'):
        more = more + ['-D_GNU_SOURCE']
      build(f'shapes-{compiler.split()[0]}-{std}.o', f'{compiler} -std={std}', ['shapes.c'],
            ['-c', *OTHER_WARNINGS, *more])

    c = ('c99', 'gnu99', 'c11', 'gnu11', 'gnu17')
    cpp = ('c++11', 'c++14', 'c++17', 'c++20')
    variants = [(compiler, std) for compilers, stds in (
        (('gcc -O2', 'clang-19'), c), (('g++ -x c++ -O2', 'clang++-19 -x c++'), cpp))
                for compiler in compilers if have(compiler.split()[0]) for std in stds]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
      runs = {pool.submit(check, *variant): variant for variant in variants}
      for done in concurrent.futures.as_completed(runs):
        with self.subTest(runs[done]):
          done.result()

  def test_a_folder_of_its_own_finds_all_headers(self):
    """CMake's FindLTTngUST names include/weft-lttng alone."""
    program = WORK / 'one-folder'
    run(['gcc', '-I.', f'-I{SOURCE}/ust-injector/include/weft-lttng', '-o', program, 'shapes.c'])
    self.assertEqual(run([program], env=environment()).stderr, '')

  def test_events_of_shapes(self):
    """The shapes' events must not differ in the other syntax of assembly, which clang and gcc treat
    differently."""
    wanted = (HERE / 'shapes.expected').read_text().splitlines()
    for name, compiler in (('gcc', 'gcc -O2'), ('clang', 'clang++-19 -x c++ -std=c++17 -masm=intel'),
                           ('gcc-intel', 'g++ -x c++ -masm=intel')):
      if have(compiler.split()[0]):
        with self.subTest(compiler):
          program = build(f'shapes-{name}', compiler, ['shapes.c'])
          done = run([program], env=environment(LD_PRELOAD=str(self.capture)))
          lines = re.sub(r'=0x[0-9A-F]{12}\b', '=ADDRESS', done.stderr).splitlines()
          self.assertEqual(lines, wanted)

  def test_undefined_behaviour_and_addresses(self):
    """Sanitizers want the library in the program itself."""
    for compiler in ('gcc', 'clang-19', 'g++ -x c++'):
      if have(compiler.split()[0]):
        with self.subTest(compiler):
          capture = WORK / 'capture.o'
          run(['gcc', '-c', f'-I{SOURCE}', '-o', capture, 'capture.c'])
          objects = []
          for source in ALL:
            objects.append(build(source + '.san.o', compiler, [source], ['-c', '-O1', '-g', *SANITIZE]))
          driver = 'clang-19' if 'clang' in compiler else 'g++'
          program = WORK / 'sanitized'
          run([driver, *SANITIZE, '-o', program, *objects, capture])
          self.emits([program])

  # --- kinds of linking ----------------------------------------------------------------------

  def test_linking(self):
    variants = [
        ('link-pie', 'gcc -O2 -fPIE -pie', {}),
        ('link-no-pie', 'gcc -O2 -fno-pie -no-pie', {}),
        ('link-static', 'gcc -O2 -static', {'static': True}),
        ('link-static-pie', 'gcc -O2 -static-pie', {'static': True}),
        ('link-gcc-lto', 'gcc -O2 -flto', {}),
        ('link-gcc-lto-split', 'gcc -O2 -flto -flto-partition=max', {}),
        ('link-gc', 'gcc -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections', {}),
        ('link-gc-no-pie', 'gcc -O2 -ffunction-sections -Wl,--gc-sections -no-pie -fno-pie', {}),
    ]
    if have('clang-19'):
      variants.append(('link-clang-lto', 'clang-19 -O2 -flto', {}))
    for linker in ('gold', 'mold'):
      if have(linker):
        variants += [(f'link-{linker}', f'gcc -O2 -fuse-ld={linker} -Wl,--gc-sections', {}),
                     (f'link-{linker}-no-pie', f'gcc -O2 -fno-pie -no-pie -fuse-ld={linker}', {}),
                     (f'link-{linker}-static', f'gcc -O2 -static -fuse-ld={linker}', {'static': True})]
    self.check_all(variants)

  @unittest.skipUnless(have('musl-gcc'), 'no musl')
  def test_musl(self):
    self.check('musl', 'musl-gcc -O2')
    self.check('musl-static', 'musl-gcc -O2 -static', static=True)

  def test_provider_in_a_static_library(self):
    objects = [build(s + '.o', 'gcc -O2', [s], ['-c']) for s in ALL]
    library = WORK / 'libproviders.a'
    library.unlink(missing_ok=True)
    run(['ar', 'rcs', library, *objects[1:]])
    program = build('with-static-library', 'gcc', [objects[0], library])
    # every_ip has no provider at link time, so nothing took it out of the library.
    done = run([program], env=environment(LD_PRELOAD=str(self.capture), WEFT_CAPTURE_NOWRITE='1'))
    self.same_lines(done.stderr.splitlines(),
                    [line for line in expected() if not line.startswith('every_ip:')])

  def test_provider_in_a_shared_library(self):
    library = build('libproviders.so', 'gcc -O2 -fPIC -shared', ALL[1:])
    program = build('with-shared-library', 'gcc -O2', ['every.c', library], [f'-Wl,-rpath,{WORK}'])
    self.silent_without_library([program])
    self.emits([program], LD_PRELOAD=str(self.capture))

  def test_hidden_tracepoints_in_a_shared_library(self):
    hidden = ['-DLTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION',
              '-DLTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION', '-Dmain=emit_all']
    library = build('libhidden.so', 'gcc -O2 -fPIC -shared', ALL, hidden)
    symbols = run(['nm', '-D', '--defined-only', library]).stdout
    self.assertNotIn('weft_', symbols)
    program = build('with-hidden', 'gcc', ['hidden_main.c', library], [f'-Wl,-rpath,{WORK}'])
    self.emits([program], LD_PRELOAD=str(self.capture))

  def test_provider_that_is_preloaded(self):
    program = build('provider-later', 'gcc -O2',
                    [s for s in ALL if s not in ('every_short_tp.c', 'every_ip_tp.c')],
                    ['-DEVERY_SHORT_IS_LOADED_LATER'])
    library = build('libshort.so', 'gcc -O2 -fPIC -shared', ['every_short_tp.c', 'every_ip_tp.c'],
                    ['-DEVERY_IP_SHORT'])
    self.silent_without_library([program])
    self.emits([program], LD_PRELOAD=f'{self.capture}:{library}')

  def test_provider_that_is_loaded_and_unloaded(self):
    library = build('libloaded.so', 'gcc -O2 -fPIC -shared', ['every_short_tp.c'])
    program = build('loader', 'gcc -O2', ['loader.c', 'every_short_define.c'],
                    ['-DEVERY_SHORT_IS_LOADED_LATER'])
    self.assertEqual(run([program, library], env=environment()).stderr, '')
    done = run([program, library], env=environment(LD_PRELOAD=str(self.capture)))
    self.assertEqual(done.stderr.splitlines(),
                     [f'every_short:level_info number={i} text="loaded"' for i in range(3)])

  # --- the other processor --------------------------------------------------------------------

  @unittest.skipUnless(have('aarch64-linux-gnu-gcc', 'qemu-aarch64'), 'no arm64 compiler or qemu-user')
  def test_arm64(self):
    arm = 'aarch64-linux-gnu-gcc -O2'
    alone = build('arm64', arm, extra=['-static'])
    self.silent_without_library(['qemu-aarch64', alone])
    for kind in ('-static', '-static-pie'):
      captured = build('arm64-captured', arm, [*ALL, 'capture.c'], [kind, f'-I{SOURCE}'])
      self.emits(['qemu-aarch64', captured])
    library = build('libcapture-arm64.so', arm, ['capture.c'], ['-fPIC', '-shared', f'-I{SOURCE}'])
    for kind in ('-pie', '-no-pie'):
      program = build('arm64-dynamic', arm, extra=[kind])
      root = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu']
      self.silent_without_library([*root, program])
      self.emits([*root, '-E', f'LD_PRELOAD={library}', '-E', 'WEFT_CAPTURE_NOWRITE=1', program])

  # --- what is in the files --------------------------------------------------------------------

  def test_descriptions_can_be_read_from_the_file(self):
    program = build('described', 'gcc -O2')
    levels = 'emerg alert crit err warning notice info debug_system debug_program debug_process ' \
             'debug_module debug_unit debug_function debug_line debug'.split()
    events = read_descriptions(program)
    names = [name for name, _, _ in events]
    self.assertEqual(len(names), len(set(names)))
    for name, level, uri in events:
      provider, event = name.split(':')
      if event.startswith('level_') and event != 'level_default':
        self.assertEqual(level, levels.index(event.removeprefix('level_')), name)
      elif provider == 'lttng_ust_tracelog':
        wanted = event.removeprefix('LTTNG_UST_TRACEPOINT_LOGLEVEL_').lower()
        self.assertEqual(level, levels.index(wanted), name)
      elif provider != 'lttng_ust_tracef':
        self.assertEqual(level, 13, name)
      self.assertEqual(uri, 'http://example.com/m?q=every%3Adebug' if event == 'level_debug' else '')
    self.assertEqual(sum(n.startswith('lttng_ust_tracelog:') for n in names), 15)
    emitted = {line.split()[0] for line in expected()}
    self.assertLessEqual(emitted, set(names))

  def test_address_is_the_call_site(self):
    program = build('addresses', 'gcc -O2 -g -fno-inline -no-pie -fno-pie')
    done = run([program], env=environment(LD_PRELOAD=str(self.capture), WEFT_CAPTURE_IP='1'))
    wanted = {'integers': 'emit_numbers', 'strings': 'emit_texts', 'level_info': 'emit_rest',
              'hidden_only': 'emit_rest'}
    checked = 0
    for line in done.stderr.splitlines():
      address, name, *_ = line.split()
      provider, event = name.split(':')
      if event in wanted or provider.startswith('lttng_'):
        place = run(['addr2line', '-fi', '-e', program, hex(int(address, 16) - 1)]).stdout.splitlines()[-2]
        function = wanted.get(event, 'emit_')
        self.assertTrue(place.startswith(function), f'{line}: {place}')
        checked += 1
      elif provider == 'every_ip':
        self.assertEqual(address, '0x1234')
    self.assertGreater(checked, 10)

  @unittest.skipUnless(os.uname().machine == 'x86_64', 'x86-64 machine code')
  def test_probe_is_a_few_stores(self):
    """There is one store for each field, and one that fills up the last word."""
    for compiler in ('gcc', 'clang-19'):
      if not have(compiler):
        continue
      code = build(f'four-{compiler}.o', f'{compiler} -O2', ['four.c'], ['-c'])
      listing = run(['objdump', '-d', '--no-show-raw-insn', '-M', 'intel', code]).stdout
      probe = function_of(listing, 'weft_probe_four___fields')
      stores = [i for i in probe if re.match(r'mov\w* +(QWORD|DWORD|WORD|BYTE) PTR \[[^\]]+\],', i) or
                re.match(r'mov\w* +XMMWORD PTR', i)]
      self.assertEqual(len(stores), 5, probe)
      self.assertFalse([i for i in probe if i.startswith('j')], probe)
      self.assertEqual(len([i for i in probe if i.startswith('call')]), 1, probe)
      self.assertLessEqual(len(probe), 18, probe)
      # An event that is off costs two loads and a branch.
      call_site = [i.split()[0] for i in function_of(listing, 'call_site')]
      self.assertLessEqual(call_site[:5].count('push'), 1, call_site)  # clang aligns its stack
      self.assertIn('jne', call_site[:5], call_site)


SANITIZE = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']


def function_of(listing, name):
  """Returns the instructions of a function in objdump's output, without alignment at its end."""
  body = re.search(rf'^[0-9a-f]+ <{name}>:\n(.*?)(?:\n\n|\Z)', listing, re.M | re.S).group(1)
  lines = [line.split('\t', 1)[1].split('#')[0].strip() for line in body.splitlines() if '\t' in line]
  return [line for line in lines if not re.match(r'nop|xchg +ax,ax|data16|cs nop', line)]


def read_descriptions(program):
  """Returns (name, log level, URI) of each event in the section weft_desc; see
  docs/formats/provider.md."""
  raw = WORK / 'weft_desc.bin'
  run(['objcopy', '-O', 'binary', '--only-section=weft_desc', program, raw])
  data = raw.read_bytes()
  events, at = [], 0
  while at < len(data):
    size, version, fields, level, name_size, uri_size, *zero = struct.unpack_from('<IHHiHHII', data, at)
    assert version == 1 and zero == [0, 0] and size >= 24
    text = data[at + 24:at + size]
    name, uri = text[:name_size], text[name_size:name_size + uri_size]
    assert name.endswith(b'\0') and (not uri or uri.endswith(b'\0'))
    field = at + 24 + name_size + uri_size
    for _ in range(fields):
      field += struct.unpack_from('<I', data, field)[0]
    assert field == at + size
    events.append((name[:-1].decode(), level, uri[:-1].decode()))
    at += size
  return events


if __name__ == '__main__':
  if SOURCE is None or WORK is None:
    sys.exit(__doc__)
  unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
