#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recorded_test.py SOURCE_TREE WORK_FOLDER WEFT: programs with weft's headers under `weft record`,
however they are linked; log levels; nowrite fields in filters; a program's own probes and contexts. WEFT is
bin/weft of a build or install tree."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = WORK = WEFT = None
EVERY = ['every.c', *sorted(p.name for p in HERE.glob('every_*.c'))]
LEVELS = ('emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug_system', 'debug_program',
          'debug_process', 'debug_module', 'debug_unit', 'debug_function', 'debug_line', 'debug')
LIMIT = 120  # seconds for one program


def run(command, **more):
  done = subprocess.run([str(c) for c in command], cwd=HERE, text=True, capture_output=True,
                        timeout=LIMIT, **more)
  if done.returncode != 0:
    raise AssertionError(f'{" ".join(map(str, command))}: {done.returncode}\n{done.stdout[-1500:]}\n'
                         f'{done.stderr[-1500:]}')
  return done.stdout


def build(name, compiler, sources, extra=()):
  include = SOURCE / 'ust-injector/include'
  output = WORK / name
  run([*compiler.split(), '-w', '-I.', f'-I{include}/weft-lttng', f'-I{include}', *extra, '-o', output,
       *sources])
  return output


def record(name, command, *options, env=None):
  """Returns the program's output, and the trace's events as (name, contexts, payload)."""
  trace = WORK / f'{name}.trace'
  shutil.rmtree(trace, ignore_errors=True)
  output = run([WEFT, 'record', *options, '-o', trace, '--', *command], env=env)
  events = []
  for line in run([WEFT, 'view', trace]).splitlines():
    match = re.match(r'\[[^]]*\] \([^)]*\) (?:\S+ )?(\w+:\w+): (.*)$', line)
    if match:
      events.append(match.groups())
  return output, events


def expected_names():
  names = [line.split()[0] for line in (HERE / 'every.expected').read_text().splitlines()]
  return collections.Counter(
      names + [n.replace('every_long:', 'every_short:') for n in names if n.startswith('every_long:')])


def install_tree():
  """Returns WEFT's install tree, or one of its build tree's headers."""
  tree = WEFT.parent.parent
  if not (tree / 'ust-injector/include/cmake_install.cmake').exists():
    return tree
  run(['cmake', '--install', tree / 'ust-injector/include', '--prefix', WORK / 'installed'])
  return WORK / 'installed'


class BuildFiles(unittest.TestCase):
  """Builds that ask for LTTng-UST find weft's headers where they are told to, also beside LTTng's
  own."""

  def uses_weft(self, program):
    self.assertIn('weft_this_object', run(['nm', program]))
    self.assertNotIn('lttng-ust', run(['readelf', '-d', program]))

  @unittest.skipUnless(shutil.which('pkg-config'), 'no pkg-config')
  def test_pkg_config(self):
    tree = install_tree()
    version = re.search(r'LTTNG_UST_VERSION "(.*)"',
                        (tree / 'include/weft-lttng/lttng/ust-version.h').read_text()).group(1)
    for package in ('weft-lttng', 'lttng-ust'):
      with self.subTest(package):
        env = dict(os.environ,
                   PKG_CONFIG_PATH=f'{tree}/lib/pkgconfig:{tree}/lib/weft-lttng/pkgconfig')
        flags = run(['pkg-config', '--cflags', '--libs', package], env=env).split()
        program = WORK / package
        run(['gcc', '-I.', 'shapes.c', '-o', program, *flags])
        self.uses_weft(program)
    self.assertEqual(run(['pkg-config', '--modversion', 'lttng-ust'], env=env).strip(), version)

  @unittest.skipUnless(shutil.which('cmake'), 'no cmake')
  def test_find_package(self):
    tree = install_tree()
    folder = WORK / 'find_package'
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / 'CMakeLists.txt').write_text(f"""cmake_minimum_required(VERSION 3.18)
project(shapes C)
find_package(LTTngUST 2.13 REQUIRED)
add_executable(shapes {HERE}/shapes.c)
target_include_directories(shapes PRIVATE {HERE})
target_link_libraries(shapes LTTng::UST)
""")
    run(['cmake', '-S', folder, '-B', folder / 'build',
         f'-DCMAKE_INCLUDE_PATH={tree}/include/weft-lttng',
         f'-DCMAKE_LIBRARY_PATH={tree}/lib/weft-lttng'])
    run(['cmake', '--build', folder / 'build'])
    self.uses_weft(folder / 'build/shapes')


class Recorded(unittest.TestCase):
  maxDiff = 2000

  def check_every(self, name, command, env=None):
    output, events = record(name, command, '--event', '*', '--exclude', 'lttng_ust_statedump:*',
                            env=env)
    self.assertEqual(output, 'evaluations 2\n')
    self.assertEqual(collections.Counter(e[0] for e in events if not e[0].startswith('weft')),
                     expected_names())

  def test_kinds_of_linking(self):
    variants = {'pie': 'gcc -O2 -pie -fPIE', 'no-pie': 'gcc -O0 -no-pie -fno-pie',
                'lto': 'gcc -O2 -flto', 'cpp': 'g++ -x c++ -O2'}
    if shutil.which('mold'):
      variants |= {'mold': 'gcc -O2 -fuse-ld=mold', 'mold-no-pie': 'gcc -fuse-ld=mold -no-pie -fno-pie'}
    if shutil.which('clang-19'):
      variants['clang'] = 'clang-19 -O2'
    for name, compiler in variants.items():
      with self.subTest(name):
        self.check_every(name, [build(name, compiler, EVERY)])

  def test_shared_library(self):
    library = build('libevery.so', 'gcc -O2 -fPIC -shared', EVERY[1:])
    program = build('shared', 'gcc -O2', ['every.c', library], [f'-Wl,-rpath,{WORK}'])
    self.check_every('shared', [program])

  def test_preloaded_provider(self):
    sources = [s for s in EVERY if s not in ('every_short_tp.c', 'every_ip_tp.c')]
    program = build('later', 'gcc -O2', sources, ['-DEVERY_SHORT_IS_LOADED_LATER'])
    library = build('liblater.so', 'gcc -O2 -fPIC -shared', ['every_short_tp.c', 'every_ip_tp.c'])
    self.check_every('later', [program], env=dict(os.environ, LD_PRELOAD=str(library)))

  def test_provider_that_is_loaded_and_unloaded(self):
    library = build('libloaded.so', 'gcc -O2 -fPIC -shared', ['every_short_tp.c'])
    program = build('loader', 'gcc -O2', ['loader.c', 'every_short_define.c'],
                    ['-DEVERY_SHORT_IS_LOADED_LATER'])
    _, events = record('loader', [program, library], '--event', 'every_short:*')
    # libweft.so keeps a provider whose events were recorded: what comes after dlclose is there, too.
    loaded = [e for e in events if '"loaded"' in e[1]]
    self.assertEqual([e[0] for e in loaded], ['every_short:level_info'] * 3)
    self.assertEqual([re.search(r'number = (\d+)', e[1]).group(1) for e in loaded], ['0', '1', '2'])

  def test_wrapper_written_by_hand(self):
    """The one that ./dev bench functions builds with LTTng's headers."""
    bench = SOURCE / 'bench/functions'
    library = build('libbench_function.so', 'gcc -O2 -fPIC -shared', [bench / 'library.c'])
    main = WORK / 'wrapped.c'
    main.write_text('#include <stdint.h>\nint64_t bench_function(int32_t, uint64_t, double, void*);\n'
                    'int main(void) { int id; return bench_function(7, 40, 2.5, &id) != 42 || id != 7; }\n')
    program = build('wrapped', 'gcc -O2', [main, library], [f'-Wl,-rpath,{WORK}'])
    wrapper = build('libwrapper.so', 'gcc -O2 -fPIC -shared', [bench / 'wrapper.c'], [f'-I{bench}'])
    _, events = record('wrapped', [program], '--event', 'bench:*', env=dict(os.environ, LD_PRELOAD=str(wrapper)))
    self.assertEqual([e[0] for e in events], ['bench:function_entry', 'bench:function_exit'])
    self.assertIn('id = 7, bytes = 40, ratio = 2.5,', events[0][1])
    self.assertIn('ret = 42', events[1][1])

  def test_shapes_of_real_programs(self):
    program = build('shapes', 'gcc -O2', ['shapes.c'])
    _, events = record('shapes', [program], '--event', 'shape_*')
    wanted = collections.Counter(line.split()[0] for line in (HERE / 'shapes.expected').read_text().splitlines())
    self.assertEqual(collections.Counter(e[0] for e in events),
                     {name: n for name, n in wanted.items() if name.startswith('shape_')})
    text = '\n'.join(e[1] for e in events)
    for part in (r'( "PLUS\t127" : container = 127 )', 'first = 72340172838076673', 'context = 0,',
                 '( "UNSUPPORTED" : container = 2147483653 )'):
      self.assertIn(part, text)

  def test_constructors_and_destructors(self):
    """Each is recorded once, wherever it stands: LTTng-tools' tests ask for the same of LTTng."""
    units = {'first': [], 'define': ['-DEARLY_DEFINE'], 'between': [], 'provider': ['-DEARLY_PROBES'],
             'last': ['-DEARLY_MAIN']}
    whole = ['-DEARLY_DEFINE', '-DEARLY_PROBES', '-fPIC']
    for language, compiler in (('c', 'gcc -O2'), ('cpp', 'g++ -x c++ -O2')):
      with self.subTest(language):
        def unit(place, provider, *options):
          return build(f'{language}-{place}.o', compiler, ['early/unit.c'],
                       [f'-DPLACE="{place}"', f'-DEARLY={provider}', '-c', *options])
        link = compiler.split()[0]
        objects = [unit(place, 'early', *options) for place, options in units.items()]
        archive = WORK / f'libearly-{language}.a'
        archive.unlink(missing_ok=True)
        run(['ar', 'rcs', archive, unit('archive', 'early_a', '-DEARLY_ARCHIVE', *whole)])
        shared, loaded = (build(f'libearly-{language}-{place}.so', link + ' -shared',
                                [unit(place, f'early_{place}', *whole)]) for place in ('so', 'dl'))
        program = build(f'early-{language}', link, [*objects, archive, shared],
                        ['-Wl,--no-as-needed', f'-Wl,-rpath,{WORK}'])
        _, events = record(f'early-{language}', [program, loaded], '--event', 'early*')
        kinds = ['constructor', 'destructor'] + (['made', 'gone'] if language == 'cpp' else [])
        places = [(place, 'early') for place in units]
        places += [('archive', 'early_a'), ('so', 'early_so'), ('dl', 'early_dl')]
        wanted = [(f'{provider}:{kind}', f'{place} {side}') for place, provider in places
                  for kind in kinds for side in ('before', 'after')]
        if language == 'cpp':
          wanted += [('early:made', 'last local'), ('early:gone', 'last local')]
        got = [(name, re.search(r'place = "([^"]*)"', payload).group(1)) for name, payload in events]
        self.assertEqual(sorted(got), sorted(wanted))

  def test_log_levels(self):
    program = build('levels', 'gcc -O2', EVERY)
    # level_default has the level debug_line, as in LTTng.
    order = [*LEVELS[:14], 'default', 'debug']

    def span(first, last):
      return order[order.index(first):order.index(last) + 1]

    for rule, wanted in (('=warning', ['warning']), ('=emerg', ['emerg']), ('=debug', ['debug']),
                         ('=TRACE_DEBUG_LINE', ['debug_line', 'default']),
                         ('err..info', span('err', 'info')), ('info..err', span('err', 'info')),
                         ('crit..crit', ['crit']), ('debug_unit..debug', span('debug_unit', 'debug')),
                         ('emerg..debug', order), ('notice', span('emerg', 'notice'))):
      with self.subTest(rule):
        _, events = record('levels', [program], '--event', 'every_long:level_*', '--loglevel', rule)
        self.assertEqual(sorted(e[0] for e in events),
                         sorted('every_long:level_' + name for name in wanted))

  def test_log_levels_of_a_trace(self):
    """Each rule has its own; an event is recorded if any means it, once."""
    program = build('levels', 'gcc -O2', EVERY)
    file = WORK / 'levels.yaml'
    file.write_text("""apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: levels}
spec:
  user:
    events:
      - {name: "every_long:level_*", logLevel: {exactly: alert}}
      - {name: "*:level_*", exclude: ["every_short:*"], logLevel: {range: {from: notice, to: alert}}}
      - {name: "every_short:level_i*", logLevel: {atLeast: debug}}
""")
    _, events = record('levels-file', [program], '--file', file)
    wanted = [f'every_long:level_{name}' for name in LEVELS[1:6]] + ['every_short:level_info']
    self.assertEqual(sorted(e[0] for e in events), sorted(wanted))

  def test_nowrite_fields_are_for_filters(self):
    program = build('filtered', 'gcc -O2', EVERY)
    for name, condition, count in (('bases', 'hidden == -1', 2), ('bases', 'hidden == 5', 0),
                                   ('strings', 'hidden == "on*"', 2), ('enums', 'hidden == 7', 2),
                                   ('hidden_only', 'number == 4 && text == "hidden"', 2),
                                   ('arrays', 'hidden_ints[1] == -2', 2),
                                   ('sequences', 'hidden_text == "hel*"', 2)):
      with self.subTest(f'{name}: {condition}'):
        _, events = record('filtered', [program], '--event', f'every_*:{name}', '--filter', condition)
        self.assertEqual(len(events), count)
        self.assertFalse([e for e in events if 'hidden' in e[1]])

  def test_probes_and_contexts_of_the_program(self):
    program = build('app-probes', 'gcc -O2',
                    ['app_probes.c', 'every_short_tp.c', 'every_short_define.c', 'lone_define.c'],
                    ['-pthread'])
    self.assertEqual(run([program]), 'no library: 1 1 1\n')
    wanted = ['listed 27 1 0', 'attach 0', 'attach 0', 'unknown 1', 'context 0', 'again 1',
              'probe one: 1 first', 'probe two: 2 second', 'detach 0', 'detached 1', 'unregister 0',
              'inside: 1', 'rounds 300', 'dead calls 0', 'waited 1']
    output, events = record('app-probes', [program], '--event', 'every_short:level_*', '--context',
                            '$app.app:answer')
    self.assertEqual(output.splitlines(), wanted)
    values = [(e[0].split('_')[-1], re.findall(r'_answer = \{ ([^}]*) \}', e[1])) for e in events]
    self.assertEqual(values[:4], [('info', ['42']), ('err', ['43']), ('info', ['43']),
                                  values[3]])
    self.assertNotIn('4', ''.join(values[3][1]))

  def test_blobs(self):
    """As LTTng 2.16 has them: bytes in CTF 1.8, BLOBs with a media type in CTF 2."""
    pages = bytes((0xf0 + i) & 0xff for i in range(100))
    for compiler in ('gcc -O2', 'g++ -x c++ -O1'):
      for version in ('1.8', '2'):
        with self.subTest(compiler=compiler, version=version):
          program = build('blob', compiler, ['blob.c'])
          record('blob', [program], '--ctf', version, '--event', 'blob:*', '--filter',
                 'more[0] != 125 && hidden[1] == 0xf1')
          lines = run([WEFT, 'view', '--json', WORK / 'blob.trace']).splitlines()
          events = [json.loads(line)['payload'] for line in lines]
          self.assertEqual([bytes(e['key']) for e in events], [pages[:4]])
          self.assertEqual([bytes(e['page']) for e in events], [pages])
          self.assertEqual([bytes(e['body']) for e in events], [b'{}\0\xff'])
          self.assertEqual([(e['_body_length'], e['_again_length']) for e in events], [(4, 4)])
          metadata = next((WORK / 'blob.trace').rglob('metadata')).read_text()
          if version == '2':
            self.assertIn('"dynamic-length-blob","media-type":"application/json; charset=\\"utf-8\\""', metadata)
            self.assertIn('"media-type":"application/octet-stream"', metadata)
          else:
            self.assertRegex(metadata, r"media type 'application/octet-stream' \*/ integer .* base = 16; .*_key\[4\];")
    _, events = record('blob', [program], '--ctf', '2', '--event', 'blob:*')
    self.assertEqual([e[0] for e in events], ['blob:each'] * 3)
    self.assertIn('key = { f0 f1 f2 f3 }, page = { f0 ', events[0][1])
    self.assertIn('_body_length = 4, body = { 7b 7d 00 ff }, ', events[0][1])
    self.assertIn('_body_length = 0, body = { }, _again_length = 0, again = { }, ', events[2][1])
    listed = json.loads(run([WEFT, 'list', '--json', program]))
    types = {field['name']: (field['type'], field.get('mediaType')) for field in listed[0]['fields']}
    self.assertEqual(types['page'], ('blob[100]', ''))
    self.assertEqual(types['again'], ('blob[]', 'image/png'))


FIELDS = re.compile(r'(\w+) = (\[[^]]*\]|"[^"]*"|[^,\s]+)')


def payload(event):
  """Returns {field: value, as it is shown}, without the contexts before it and the lengths of
  sequences."""
  fields = dict(FIELDS.findall(re.sub(r'\[\d+\] = ', '', event[1].rsplit('{', 1)[1])))
  return {key: value for key, value in fields.items() if not key.endswith('_length')}


class Values(unittest.TestCase):
  """Each value is copied when its expression is evaluated (values_tp.h)."""
  maxDiff = 4000

  def check(self, name, compiler):
    events = collections.defaultdict(list)
    program = build(name, compiler, ['values.c'])
    _, all_events = record(name, [program], '--event', 'values:*')
    for event in all_events:
      events[event[0].removeprefix('values:')].append(payload(event))
    texts = {'from': '"1.2"', 'padded': '"1.3"', 'inside': '"1.4"', 'part': '"10"', 'to': '"10.11"'}
    self.assertEqual(events['texts'][0], texts)
    nested = {'from': '"0.1"', 'padded': '"0.2"', 'inside': '"0.3"', 'part': '"0."', 'to': '"0.2"'}
    self.assertEqual(events['texts'][1:], [nested] * 4)
    [lists] = events['lists']
    counted = {'one': range(1, 4), 'two': range(11 << 24, 14 << 24, 1 << 24), 'three': range(21, 41), 'four': range(31, 34),
               'none': range(0)}
    for field, values in counted.items():
      self.assertEqual(re.findall(r'\d+', lists[field]), [str(v) for v in values])

    def letters(*sizes):
      return {field: f'"{letter * size}"' for field, letter, size in zip(('one', 'two', 'three'), 'abc', sizes)}

    self.assertEqual(events['letters'],
                     [letters(10, 20, 30), letters(250, 300, 400), letters(5000, 3, 4000)] + [letters(700, 30, 2)] * 4)
    interrupted = [{'before': f'"{"x" * size}"', 'inside': str(size), 'after': f'"{"z" * size}"'}
                   for size in (40, 500, 600, 600)]
    self.assertEqual(events['interrupted'], interrupted)
    return events

  def test_c(self):
    for name, compiler in (('values-c', 'gcc -O2'), ('values-c-slow', 'gcc -O0'), ('values-clang', 'clang-19 -O2')):
      if not shutil.which(compiler.split()[0]):
        continue
      with self.subTest(compiler):
        [literals] = self.check(name, compiler)['literals']
        self.assertEqual({key: re.findall(r'-?\d+', value) for key, value in literals.items()},
                         {'one': ['7', '8'], 'two': ['-7', '-8'], 'three': ['7', '14'], 'four': ['7'],
                          'five': ['8']})

  def test_cpp(self):
    for name, compiler in (('values-cpp', 'g++ -x c++ -O2'), ('values-clang-cpp', 'clang++-19 -x c++ -O1')):
      if not shutil.which(compiler.split()[0]):
        continue
      with self.subTest(compiler):
        events = self.check(name, compiler)
        self.assertEqual(events['temporaries'], [
            {'one': '"the first name, which is longer than any small string: abcdefgh"',
             'two': '"another text that has no room in the object: abcdefgh"',
             'three': f'"{"l" * 1000}abcdefgh"'}])
        self.assertEqual(events['throws'], [{'one': f'"{"t" * 1000}"', 'number': '0'}])

  def test_filters_read_what_is_recorded(self):
    program = build('values-filtered', 'gcc -O2', ['values.c'])
    for event, condition, count in (('texts', 'from == "1.2" && to == "10.11" && hidden == "0.3"', 1),
                                    ('texts', 'hidden_list[2] == 7 && hidden == "0.4"', 0),
                                    ('letters', 'one == "a*" && hidden == "h*" && three == "c*"', 3),
                                    ('lists', '$app.values:one == "1" && $app.values:two == "2"', 1),
                                    ('lists', '$app.values:one == $app.values:two', 0)):
      with self.subTest(condition):
        _, events = record('values-filtered', [program], '--event', f'values:{event}', '--filter', condition)
        self.assertEqual(len(events), count)


  def test_values_that_no_ring_takes_are_counted(self):
    """One of 3 MB, which is copied, and one with a length of 16 GB, which is not read; filters cannot tell."""
    program = build('values-too-large', 'gcc -O2', ['values.c'])
    for condition, discarded in (([], 2), (['--filter', 'length == 4000000000 || list[1] == 1'], 1)):
      done = subprocess.run([WEFT, 'record', '--event', 'values:*', *condition, '-o', WORK / 'large.trace', '--', program],
                            text=True, capture_output=True, timeout=LIMIT, check=False)
      shutil.rmtree(WORK / 'large.trace', ignore_errors=True)
      self.assertIn(f'discarded {discarded} (too_large {discarded})', done.stderr)

  def test_probes_that_are_left_do_not_fill_the_program(self):
    """longjmp() out of an expression keeps the probe's memory: up to a limit, behind which events are counted."""
    program = build('values-left', 'gcc -O2', ['values.c'])
    done = subprocess.run([WEFT, 'record', '--event', 'values:*', '-o', WORK / 'left.trace', '--', program, 'leave'],
                          text=True, capture_output=True, timeout=LIMIT, check=True)
    shutil.rmtree(WORK / 'left.trace', ignore_errors=True)
    self.assertLess(int(done.stdout) * os.sysconf('SC_PAGE_SIZE'), 300 << 20)
    self.assertIn('discarded 10 (memory 10)', done.stderr)


class Twins(unittest.TestCase):
  """One provider's name in several objects (twin.c)."""

  def build(self, name, *defined, compiler='gcc -O2', sources=('twin.c',), extra=()):
    is_program = '-DIS_PROGRAM' in defined
    kind = [] if is_program else ['-shared', '-fPIC']
    return build(name, compiler, sources, [*kind, *defined, *extra])

  def plugin(self, name, *defined, **more):
    return self.build(name, '-DTRACEPOINT_DEFINE', '-DTRACEPOINT_CREATE_PROBES', '-DHAS_CALL', *defined, **more)

  def provider(self, name, *defined):
    return self.build(name, '-DTRACEPOINT_CREATE_PROBES', *defined)

  def loader(self):
    return self.build('twin-loader', '-DIS_PROGRAM', '-D_GNU_SOURCE', compiler='gcc -O2')

  def caller(self, *more):
    return self.build('twin-caller', '-DIS_PROGRAM', '-DHAS_CALL', '-DTRACEPOINT_DEFINE',
                      '-DTRACEPOINT_PROBE_DYNAMIC_LINKAGE', *more)

  def record(self, *command, env=None):
    output, events = record('twin', command, '--event', 'twin:*', env=env)
    return output.split(), [payload(event) for event in events]

  def test_each_plugin_records_through_its_own(self):
    for name, flags in (('', ()), ('-hidden', ('-DLTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION',
                                               '-DLTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION'))):
      with self.subTest(name):
        a = self.plugin(f'twin-a{name}.so', '-DFIELD=of_a', *flags)
        b = self.plugin(f'twin-b{name}.so', '-DFIELD=of_b', *flags, compiler='g++ -x c++ -O0')
        _, events = self.record(self.loader(), f'+{a}', f'@{a}', f'+{b}', f'@{b}', f'@{a}', f'-{b}', f'@{a}',
                                f'-{a}', f'+{b}', f'@{b}', f'+{a}', f'@{a}', f'@{b}')
        self.assertEqual([list(e) for e in events],
                         [['of_a'], ['of_b'], ['of_a'], ['of_a'], ['of_b'], ['of_a'], ['of_b']])
        self.assertEqual([int(v) for e in events for v in e.values()], list(range(1, 8)))

  def test_libraries_that_share_one_tracepoint(self):
    """The dynamic linker gives the second library the tracepoint of the first. Each call site still
    has its own provider."""
    a, b = self.plugin('twin-ga.so', '-DFIELD=of_a'), self.plugin('twin-gb.so', '-DFIELD=of_b')
    _, events = self.record(self.loader(), f'^{a}', f'@{a}', f'^{b}', f'@{b}', f'@{a}', f'@{b}')
    self.assertEqual([list(e) for e in events], [['of_a'], ['of_b'], ['of_a'], ['of_b']])

  def test_libraries_that_share_one_tracepoint_with_other_arguments(self):
    """The second library's call sites do not call the first one's provider with arguments that are not its."""
    a, b = self.plugin('twin-ia.so', '-DFIELD=of_a'), self.plugin('twin-lb.so', '-DFIELD=of_b', '-DNUMBER=long')
    for first, second in ((a, b), (b, a)):
      _, events = self.record(self.loader(), f'^{first}', f'@{first}', f'^{second}', f'@{second}', f'@{first}',
                              f'-{first}', f'@{second}')
      wanted = ['of_a', 'of_b', 'of_a', 'of_b'] if first == a else ['of_b', 'of_a', 'of_b', 'of_a']
      self.assertEqual([list(e) for e in events], [[name] for name in wanted])
      self.assertEqual([int(v) for e in events for v in e.values()], [1, 2, 3, 4])

  def test_call_site_without_a_provider_has_other_arguments_than_its_tracepoint(self):
    """It records through a library's provider with its arguments, never through one with others."""
    a = self.plugin('twin-ja.so', '-DFIELD=of_a')
    b = self.build('twin-jb.so', '-DTRACEPOINT_DEFINE', '-DTRACEPOINT_PROBE_DYNAMIC_LINKAGE', '-DHAS_CALL', '-DNUMBER=long')
    c = self.provider('twin-jc.so', '-DFIELD=of_c', '-DNUMBER=long')
    printed, events = self.record(self.loader(), f'^{a}', f'^{b}', '!', f'@{a}', f'@{b}', f'+{c}', f'@{b}', f'@{a}')
    self.assertEqual(printed, ['probe:1', 'probe:4'])
    self.assertEqual(events, [{'of_a': '1'}, {'of_c': '3'}, {'of_a': '4'}])
    _, events = self.record(self.loader(), f'^{b}', f'^{a}', f'@{a}', f'@{b}', f'+{c}', f'@{b}', f'@{a}')
    self.assertEqual(events, [{'of_a': '1'}, {'of_c': '3'}, {'of_a': '4'}])

  def test_one_static_library_in_two_objects(self):
    a, b = self.plugin('twin-sa.so'), self.plugin('twin-sb.so')
    for how in '+^':
      _, events = self.record(self.loader(), how + a.as_posix(), how + b.as_posix(), f'@{a}', f'@{b}')
      self.assertEqual(events, [{'number': '1'}, {'number': '2'}])

  def test_program_with_a_provider_of_its_own(self):
    other = self.provider('twin-other.so', '-DFIELD=other')
    program = self.caller('-DTRACEPOINT_CREATE_PROBES', '-DFIELD=own')
    _, events = self.record(program, '=1', f'+{other}', '=2', env=dict(os.environ, LD_PRELOAD=str(other)))
    self.assertEqual(events, [{'own': '1'}, {'own': '2'}])

  def test_program_without_a_provider_records_through_all_different_ones(self):
    a, b = self.provider('twin-pa.so', '-DFIELD=of_a'), self.provider('twin-pb.so', '-DFIELD=of_b')
    again = WORK / 'twin-pb-again.so'
    shutil.copy(b, again)
    plugin = self.plugin('twin-pc.so', '-DFIELD=of_c')
    printed, events = self.record(self.caller(), '?', '=0', f'+{a}', '?', '=1', f'+{b}', f'+{again}', '=2',
                                  f'-{a}', '=3', f'+{plugin}', '=4', f'@{plugin}')
    self.assertEqual(printed, ['0', '1'])
    self.assertEqual(events, [{'of_a': '1'}, {'of_a': '2'}, {'of_b': '2'}, {'of_a': '3'}, {'of_b': '3'},
                              {'of_a': '4'}, {'of_b': '4'}, {'of_c': '4'}, {'of_c': '1'}])

  def test_other_arguments_are_refused(self):
    """A provider whose TP_ARGS are others is never called."""
    wrong = self.provider('twin-wrong.so', '-DFIELD=wrong', '-DNUMBER=long')
    right = self.provider('twin-right.so', '-DFIELD=right')
    printed, events = self.record(self.caller(), f'+{wrong}', '?', '=1', f'+{right}', '?', '=2')
    self.assertEqual(printed, ['0', '1'])
    self.assertEqual(events, [{'right': '2'}])


if __name__ == '__main__':
  if len(sys.argv) < 4:
    sys.exit(__doc__)
  SOURCE, WORK, WEFT = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
  WORK.mkdir(parents=True, exist_ok=True)
  unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
