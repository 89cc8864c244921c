# SPDX-License-Identifier: Apache-2.0
"""Tests functions of unmodified programs: counts, values and results are those of the program without
weft, on threads, in children, with exceptions and jumps, and while the agent dies."""

import collections
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from tests.local.weft_local import BUILD, PATIENCE, WEFT, LocalTest, children_of, name_of

PROGRAM = BUILD / "tests" / "local" / "local_functions"
THROWS = BUILD / "tests" / "local" / "local_functions_throws"
COROUTINES = BUILD / "tests" / "local" / "local_functions_coroutines"
PYTHON = "/usr/bin/python3"
SWITCH = BUILD / "tests" / "local" / "local_functions_switch"
LONG = os.environ.get("WEFT_LONG") == "1"
BAD_INPUT = 121
MYLIB = BUILD / "examples" / "libmylib.so"
ARGUMENTS = [("a", "int8"), ("b", "uint16"), ("c", "int32"), ("d", "int64"), ("e", "uint64"), ("f", "pointer"),
             ("g", "int32"), ("x", "float"), ("y", "double"), ("h", "uint8")]
SANITIZED = """
#include <pthread.h>
#include <stdlib.h>
static void* work(void* argument) { free(malloc(64)); pthread_exit(argument); }
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
"""
# Function -> its calls in each call_all of the program, arguments, type of the result.
ALL = {
    "many_arguments": (1, ARGUMENTS, "int32"),
    "of_doubles": (1, [("a", "double"), ("b", "double")], "double"),
    "of_floats": (1, [("a", "float")], "float"),
    "of_pairs": (1, [("a", "int64")], "int64"),
    "of_long_doubles": (1, [], None),
    "recursive": (4, [("n", "uint64")], "uint64"),
    "tail_call": (1, [("n", "int32")], "int32"),
    "last_call": (1, [("n", "int32")], "int32"),
    "variable": (1, [("count", "int32"), ("first", "int64")], "int64"),
    "by_table": (1, [("n", "int32")], "int32"),
    "with_nops": (1, [("n", "int32")], "int32"),
}


def function_yaml(name, arguments=(), returns=None, target="local_functions", record=None, where=None):
    text = f"      - name: {name!r}\n        object: {target!r}\n"
    if arguments:
        text += "        args:\n" + "".join(f"          - {{name: \"{n}\", type: {t}}}\n" for n, t in arguments)
    if returns:
        text += f"        returns: {returns}\n"
    if record:
        text += f"        record: {record}\n"
    if where:
        text += f"        filter: {where!r}\n"
    return text


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class FunctionsTest(LocalTest):
    def trace(self, *functions, context="[]", more=""):
        path = self.folder / "functions.yaml"
        path.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec:\n"
                        f"  context: {context}\n{more}  user:\n    functions:\n" + "".join(functions))
        return "-f", path

    def all_functions(self, **more):
        return self.trace(*(function_yaml(name, arguments, returns)
                            for name, (_, arguments, returns) in ALL.items()), **more)

    def events(self, output="trace"):
        return collections.Counter(event["event"] for event in self.view(output) if "event" in event)

    def assert_all_counted(self, calls, events=None):
        events = events or self.events()
        for name, (times, _, _) in ALL.items():
            for moment in ("entry", "exit"):
                self.assertEqual(events[f"function:{name}_{moment}"], times * calls, (name, moment, events))

    def counted(self, out):
        return int(out.split("counted ")[1])


class Values(FunctionsTest):
    def test_arguments_and_results_are_those_of_the_calls(self):
        self.record(*self.all_functions(), program=[PROGRAM, "calls", "5"])
        events = self.view()
        entries = [e["payload"] for e in events if e["event"] == "function:many_arguments_entry"]
        self.assertEqual(len(entries), 5)
        for i, fields in enumerate(entries):
            self.assertNotEqual(fields.pop("f"), 0)
            self.assertEqual(fields.pop("depth"), 0)
            self.assertEqual(fields, {"a": -1, "b": 2, "c": 3, "d": i, "e": 5, "g": 7, "x": 8.5, "y": 9.25, "h": 10})
        def results(name):
            return [e["payload"]["ret"] for e in events if e["event"] == f"function:{name}_exit"]
        self.assertEqual(results("of_doubles"), [0, 0.5, 1, 1.5, 2])
        self.assertEqual(results("of_floats"), [0, 0.5, 1, 1.5, 2])
        self.assertEqual(results("tail_call"), [1, 3, 5, 7, 9])
        self.assertEqual(results("last_call"), [1, 3, 5, 7, 9])
        self.assertEqual(results("recursive"), [0, 1, 3, 6] * 5)
        self.assertEqual(results("variable"), [28, 29, 30, 31, 32])
        self.assert_all_counted(5)

    def payloads(self, name):
        return [e["payload"] for e in self.view() if e["event"] == f"function:{name}"]

    def test_call_has_arguments_of_the_entry_result_and_duration(self):
        self.record(*self.trace(*(function_yaml(name, arguments, returns, record="[call]")
                                  for name, (_, arguments, returns) in ALL.items())), program=[PROGRAM, "calls", 5])
        self.assertEqual(self.events(), {f"function:{name}_call": 5 * times for name, (times, _, _) in ALL.items()})
        for i, fields in enumerate(self.payloads("many_arguments_call")):
            self.assertGreater(fields.pop("f"), 0)
            self.assertGreater(fields.pop("duration"), 0)
            self.assertEqual(fields, {"a": -1, "b": 2, "c": 3, "d": i, "e": 5, "g": 7, "x": 8.5, "y": 9.25, "h": 10,
                                      "ret": -1 + 2 + 3 + i + 5 + 1 + 7 + 8 + 9 + 10, "depth": 0,
                                      "unwound": 0})
        # The innermost call ends first, and takes the least time.
        calls = self.payloads("recursive_call")
        self.assertEqual([(c["n"], c["ret"], c["depth"]) for c in calls],
                         [(0, 0, 3), (1, 1, 2), (2, 3, 1), (3, 6, 0)] * 5)
        for inner, outer in zip(calls, calls[1:]):
            if outer["depth"] < inner["depth"]:
                self.assertLess(inner["duration"], outer["duration"])
        # The return address of tail_call lies where last_call's does.
        self.assertEqual([c["depth"] for c in self.payloads("last_call_call")], [1] * 5)

    def test_depth_is_that_of_open_calls(self):
        self.record(*self.trace(function_yaml("recursive", [("n", "uint64")]), function_yaml("leaves"),
                                function_yaml("tail_call", record="[exit]"),
                                function_yaml("last_call", record="[entry]")), program=[PROGRAM, "jumps", 20])
        self.assertEqual([c["depth"] for c in self.payloads("recursive_entry")], [0, 1, 2, 3] * 20)
        self.assertEqual([c["depth"] for c in self.payloads("recursive_exit")], [3, 2, 1, 0] * 20)
        # A call that longjmp left is not open any more.
        self.assertEqual([c["depth"] for c in self.payloads("leaves_entry")], [0] * 20)
        self.assertEqual([c["depth"] for c in self.payloads("last_call_entry")], [1] * 20)
        self.assertEqual([c["depth"] for c in self.payloads("tail_call_exit")], [0] * 20)

    def test_depth_of_calls_that_exceptions_leave(self):
        self.record(*self.trace(function_yaml("shop::*", target="*throws")), program=[THROWS, "70"])
        depths = collections.Counter((e["event"], e["payload"]["depth"]) for e in self.view())
        self.assertEqual(depths["function:shop::Guarded(int, int&)_entry", 0], 70)
        self.assertEqual(depths["function:shop::Price(double)_exit", 0], 70)
        self.assertEqual(depths["function:shop::Deep(int)_entry", 7], 10)

    def test_calls_that_are_unwound_have_an_end_that_says_so(self):
        self.record(*self.trace(function_yaml("shop::*", target="*throws", record="[exit, call]")),
                    program=[THROWS, "70"])
        ends = collections.Counter((e["event"].removeprefix("function:shop::"), e["payload"]["unwound"])
                                   for e in self.view())
        self.assertEqual(ends, {(f"{name}_{moment}", unwound): count for moment in ("exit", "call")
                                for name, unwound, count in (
                                    ("Deep(int)", 1, 280), ("Guarded(int, int&)", 1, 70), ("Ended(void*)", 2, 10),
                                    ("Price(int)", 0, 70), ("Price(double)", 0, 70))})
        # Inner calls are left first. Depths are those of their entries.
        deep = [e["payload"]["depth"] for e in self.view() if e["event"] == "function:shop::Deep(int)_exit"]
        self.assertEqual(deep, [depth for i in range(70) for depth in range(i % 7 + 1, 0, -1)])

    def test_filter_of_a_function_chooses_calls(self):
        arguments = [("n", "uint64")]
        self.record(*self.trace(function_yaml("recursive", arguments, "uint64", where="n >= 2 && n != 3"),
                                function_yaml("tail_call", [("n", "int32")], "int32", record="[call]",
                                              where="ret > 10 && duration > 0"),
                                function_yaml("of_doubles", [("a", "double")], "double", record="[exit]",
                                              where="a > 7.5 && ret < 4.25")), program=[PROGRAM, "calls", 10])
        self.assertEqual(self.events(), {"function:recursive_entry": 10, "function:recursive_exit": 10,
                                         "function:tail_call_call": 5, "function:of_doubles_exit": 1})
        self.assertEqual({c["n"] for c in self.payloads("recursive_entry")}, {2})
        self.assertEqual({c["ret"] for c in self.payloads("recursive_exit")}, {3})
        self.assertEqual([c["n"] for c in self.payloads("tail_call_call")], [5, 6, 7, 8, 9])
        counts = self.counts()
        self.assertEqual(counts["emitted"], 26)

    def test_texts_are_read_and_bad_addresses_do_no_harm(self):
        arguments = [("text", "string"), ("other", "string"), ("n", "int32")]
        whole = [("name", "end"), ("", "x" * 512), ("(fault)", "(fault)"), ("(fault)", "(fault)")]
        self.record(*self.trace(function_yaml("of_texts", arguments, "int32", record="[entry, call]")),
                    program=[PROGRAM, "texts", 3])
        for event in ("of_texts_entry", "of_texts_call"):
            self.assertEqual([(c["text"], c["other"], c["n"]) for c in self.payloads(event)],
                             [(*texts, i) for i in range(3) for texts in whole])
        self.record(*self.trace(function_yaml("of_texts", arguments, "int32",
                                              where='text == "na*" && other == "end" && n > 0')),
                    program=[PROGRAM, "texts", 3], output="trace2")
        events = collections.Counter(event["event"] for event in self.view("trace2"))
        self.assertEqual(events, {"function:of_texts_entry": 2, "function:of_texts_exit": 2})

    def test_filter_with_an_unknown_argument_is_refused(self):
        path = self.trace(function_yaml("recursive", [("n", "uint64")], record="[call]", where="m > 2"))
        done = subprocess.run(self.command(*path, program=[PROGRAM, "calls", 1]), capture_output=True, text=True,
                              check=False, timeout=PATIENCE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('functions[0].filter: names "m", which call events of it do not have; '
                      'they have n, ret, duration, depth, unwound', done.stderr)

    def test_filter_of_the_trace_holds_for_functions(self):
        self.record(*self.trace(function_yaml("recursive", [("n", "uint64")]), more="  filter: n >= 2\n"),
                    program=[PROGRAM, "calls", "10"])
        self.assertEqual(self.events(), {"function:recursive_entry": 20})

    def test_pattern_and_record(self):
        self.record(*self.trace(function_yaml("of_*", record="[exit]")), program=[PROGRAM, "calls", "3"])
        self.assertEqual(self.events(), {f"function:{name}_exit": 3 for name in
                                         ("of_doubles", "of_floats", "of_pairs", "of_long_doubles")})

    def test_names_of_cpp(self):
        self.record(*self.trace(function_yaml("shop::Price(double)", [("n", "double")], target="*throws"),
                                function_yaml("shop::Deep", [("n", "int32")], target="*throws", record="[entry]"),
                                function_yaml("shop::Guarded( int,int & )", target="*throws", record="[entry]")),
                    program=[THROWS, "14"])
        events = self.events()
        self.assertEqual(events["function:shop::Guarded(int, int&)_entry"], 14)
        self.assertEqual(events["function:shop::Price(double)_entry"], 14)
        self.assertEqual(events["function:shop::Price(double)_exit"], 14)
        self.assertEqual(events["function:shop::Deep_entry"], 2 * sum(range(1, 8)))

    def test_overloads_are_counted(self):
        _, err = self.record(*self.trace(function_yaml("shop::Price", target="*throws")), program=[THROWS, "2"])
        self.assertIn("hooked 2 functions: shop::Price (local_functions_throws)", err)
        self.assertEqual(self.events()["function:shop::Price_entry"], 4)

    def test_overloads_are_told_apart_by_a_pattern(self):
        self.record(*self.trace(function_yaml("shop::Price(*", target="*throws")), program=[THROWS, "2"])
        self.assertEqual(self.events(), {f"function:shop::Price({of})_{moment}": 2 for of in ("int", "double")
                                         for moment in ("entry", "exit")})


class Results(FunctionsTest):
    def run_all(self, *mode, context):
        out, _ = self.record(*self.all_functions(context=context), program=[PROGRAM, *mode],
                             output=f"trace{context}")
        counts = self.counts()
        self.assertEqual(counts["emitted"], counts["recorded"] + sum(counts["discarded"].values()))
        self.assertEqual(counts["emitted"], self.counted(out) * 2 * sum(times for times, _, _ in ALL.values()))
        return self.counted(out)

    def test_threads(self):
        """Without a context, calls take the short way of the library (hook_fast.c)."""
        for context in ("[]", "[vtid]"):
            self.assertEqual(self.run_all("threads", 2000, context=context), 8000)

    def test_forks(self):
        for context in ("[]", "[vtid]"):
            self.assertEqual(self.run_all("forks", 500, context=context), 2000)

    def test_signal_handlers(self):
        for context in ("[]", "[vtid]"):
            self.assertGreater(self.run_all("signals", 200, context=context), 200)

    def test_jumps_out_of_functions(self):
        """More jumps than calls that can be open: lost ones are found again."""
        self.record(*self.trace(function_yaml("leaves"), function_yaml("recursive")),
                    program=[PROGRAM, "jumps", 10000])
        counts = self.counts()
        self.assertEqual(counts["emitted"], 10000 + 2 * 40000)
        self.assertNotIn("memory", counts["discarded"])
        self.assertEqual(self.events()["function:leaves_exit"], 0)

    def test_stacks_can_be_walked(self):
        self.record(*self.trace(*(function_yaml(name) for name in (*ALL, "depth_of_stack"))),
                    program=[PROGRAM, "stacks", 2])

    def test_exceptions_and_ends_of_threads_pass(self):
        out, _ = self.record(*self.trace(function_yaml("shop::*", target="*throws")), program=[THROWS, "20000"])
        self.assertIn("caught 20000", out)

    def test_registers_of_vectors_are_kept(self):
        for context in ("[]", "[vtid, procname]"):
            out, _ = self.record(*self.trace(function_yaml("of_vectors", [("text", "string")], record="[entry, exit, call]"),
                                             context=context),
                                 program=[PROGRAM, "vectors", 100], output=f"trace{context}")
            self.assertEqual(self.counts()["recorded"], 3 * self.counted(out))

    def test_coroutines(self):
        """They are left in one thread and gone on with in another one; those of C++20 jump to each other for ever."""
        program, all_of = [COROUTINES, "20", "20000"], ("descends", "yields", "resumes", "*Player*")
        for record in ("[entry, exit]", "[call]"):
            out, _ = self.record(*self.trace(*(function_yaml(name, target="*coroutines", record=record)
                                               for name in all_of)), program=program, output=f"trace{record}")
            counted = dict(re.findall(r"(\w+) (\d+)", out))
            events = self.events(f"trace{record}")
            for name in all_of[:3]:
                for moment in re.findall(r"\w+", record):
                    self.assertEqual(events[f"function:{name}_{moment}"], int(counted[name]), (name, moment))
            # A chain of jumps has at most as many ends as calls can be open; the others are counted.
            counts = self.counts()
            self.assertGreater(counts["discarded"]["memory"], 0)
            self.assertEqual(counts["emitted"], counts["recorded"] + sum(counts["discarded"].values()))

    def test_library_that_is_loaded_later(self):
        self.record(*self.trace(function_yaml("my_checksum", [("data", "pointer"), ("count", "uint64")], "int64",
                                              target="libmylib.so*")),
                    program=[PROGRAM, "library", 50, MYLIB])
        # The program unloads it, loads it again (at its old address, as a rule), and makes the calls again.
        self.assertEqual(self.events(), {"function:my_checksum_entry": 100, "function:my_checksum_exit": 100})


class Report(FunctionsTest):
    def reported(self, form, output="trace"):
        done = subprocess.run([WEFT, "report", "--to", form, self.folder / output], capture_output=True, text=True,
                              check=False, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_calls_of_threads_are_all_counted(self):
        for record in ("[call]", "[entry, exit]", "[entry, exit, call]"):
            output = "trace" + record
            self.record(*self.trace(*(function_yaml(name, record=record) for name in ALL), context="[vpid, vtid]"),
                        program=[PROGRAM, "threads", 100], output=output)
            report = json.loads(self.reported("json", output))
            calls = {function["name"]: function["calls"] for function in report["functions"]}
            self.assertEqual(calls, {name: 400 * times for name, (times, _, _) in ALL.items()}, record)
            # The tree has all calls. (A call that is recorded late may not be found in its outer call.)
            def calls_of(nodes):
                return sum(node["calls"] + calls_of(node.get("inner", [])) for node in nodes)
            self.assertEqual(calls_of(report["tree"]), sum(calls.values()))
            stacks = [line.rsplit(" ", 1)[0] for line in self.reported("folded", output).splitlines()]
            self.assertIn("tail_call;last_call", stacks)
            self.assertIn("recursive;recursive;recursive;recursive", stacks)

    def test_functions_that_flags_name_have_their_threads(self):
        self.record("--function", "recursive", program=[PROGRAM, "threads", 10])
        self.assertEqual([f["calls"] for f in json.loads(self.reported("json"))["functions"]], [160])

    def test_calls_that_exceptions_left_have_an_end(self):
        self.record(*self.trace(function_yaml("shop::*", target="*throws"), context="[vpid, vtid]"),
                    program=[THROWS, "70"])
        done = subprocess.run([WEFT, "report", self.folder / "trace"], capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0)
        # Those of Cancelled, the start of its thread, have none: pthread_exit jumps from before its frame.
        self.assertEqual(done.stderr, "weft report: 10 calls have an entry, but no exit: they count as calls, without "
                                      "a time\n")
        self.assertRegex(done.stdout, r"\n +280 .* shop::Deep\(int\)\n")


class NearNames(FunctionsTest):
    def test_unknown_function_is_told_with_the_nearest_names(self):
        _, err = self.record(*self.trace(function_yaml("many_argument")),
                             program=[PROGRAM, "calls", 1], status=BAD_INPUT)
        self.assertIn('function "many_argument" of "local_functions": hooked 0 functions; there is no such function, '
                      'did you mean "many_arguments" (local_functions)?', err)
        self.assertIn("weft: nothing was recorded, because no function was hooked", err)

    def test_nothing_hooked_is_no_failure_where_that_is_allowed_or_more_was_asked_for(self):
        for name, more in (("allowed", ("--allow-missing",)), ("more", ("--event", "shop:*"))):
            _, err = self.record("--function", "no_such_function", *more, program=[PROGRAM, "calls", 1], output=name)
            self.assertIn("hooked 0 functions", err)
            self.assertNotIn("nothing was recorded", err)
        # The program's own status is passed through.
        self.record("--function", "no_such_function", program=["false"], output="failed", status=1)

    def test_program_that_never_was_ready(self):
        """A static program does not load libweft.so."""
        source, program = self.folder / "static.c", self.folder / "static"
        source.write_text("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-static", "-o", program, source], check=True)
        _, err = self.record("--function", "main", program=[program], status=123)
        self.assertIn("weft: nothing was recorded, because no process was ready to be hooked", err)

    def test_function_that_is_refused_is_told_once(self):
        _, err = self.record(*self.trace(function_yaml("many_arguments", where="nothing > 1")),
                             program=[PROGRAM, "calls", 1], status=BAD_INPUT)
        self.assertIn('its filter names "nothing"', err)
        self.assertIn('function "many_arguments" of "local_functions": hooked 0 functions\n', err)
        self.assertNotIn("nm -C", err)

    def test_function_of_the_c_library_is_told(self):
        for options in (self.trace(function_yaml("printf", target="*")), ("--function", "printf")):
            _, err = self.record(*options, program=[PROGRAM, "calls", 1], status=BAD_INPUT,
                                 output="trace" + options[0])
            self.assertEqual(err.count('function "printf"'), 1)
            self.assertIn("libc.so.6 has it, but it is of the C library and in no set", err)

    def test_function_that_an_earlier_rule_records_is_told(self):
        _, err = self.record(*self.trace(function_yaml("many_arg*"), function_yaml("many_arguments")),
                             program=[PROGRAM, "calls", 1])
        self.assertIn('function "many_arguments" of "local_functions": hooked 0 functions; an earlier rule has this '
                      'function already, as many_arguments (local_functions)', err)

    def test_unknown_library_is_told_with_the_nearest_names(self):
        _, err = self.record(*self.trace(function_yaml("my_checksum", target="libwefd.so*")),
                             program=[PROGRAM, "calls", 1], status=BAD_INPUT)
        self.assertIn('no process has loaded a file "libwefd.so*", did you mean "libweft.so"?', err)


@unittest.skipUnless(os.access(PYTHON, os.X_OK), "needs Debian's python3")
class RealProgram(FunctionsTest):
    """Debian's Python, which is not position-independent, with all functions of its symbol table hooked."""

    def test_results_are_unchanged(self):
        code = ("import json, hashlib, threading, subprocess\n"
                "def f(n):\n"
                "    try:\n"
                "        return json.loads(json.dumps([n, str(n), 1 / n]))[2]\n"
                "    except ZeroDivisionError as e:\n"
                "        return str(e)\n"
                "out = []\n"
                "def g():\n    out.append([f(i % 7) for i in range(200)])\n"
                "threads = [threading.Thread(target=g) for _ in range(3)]\n"
                "[t.start() for t in threads]; [t.join() for t in threads]\n"
                "echo = subprocess.run(['echo', 'hi'], capture_output=True).stdout\n"
                "print(hashlib.sha256(repr(out).encode()).hexdigest(), echo)\n")
        plain = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
        out, err = self.record(*self.trace(function_yaml("*", target="python3*")), program=[PYTHON, "-c", code])
        self.assertEqual(out, plain.stdout)
        hooked = int(err.split("hooked ")[1].split()[0])
        self.assertGreater(hooked, 1000)
        self.assertGreater(self.counts()["emitted"], 100000)

    def test_counts_are_those_of_the_program(self):
        """Two runs differ by the calls that one makes more."""
        counted = []
        for calls in (100, 600):
            self.record(*self.trace(function_yaml("PyOS_string_to_double", target="python3*", returns="double")),
                        program=[PYTHON, "-c", f"for i in range({calls}): float('1.5')"], output=f"trace{calls}")
            values = [e["payload"]["ret"] for e in self.view(f"trace{calls}") if e["event"].endswith("_exit")]
            counted.append(values.count(1.5))
        self.assertEqual(counted[1] - counted[0], 500)


class Refused(FunctionsTest):
    def test_reasons_are_told(self):
        _, err = self.record(*self.trace(function_yaml("_start"), function_yaml("dup2", target="libc.so*"),
                                         function_yaml("_exit", target="libc.so*"),
                                         function_yaml("no_such_function")), program=[PROGRAM, "calls", 1],
                             status=BAD_INPUT)
        self.assertIn("_start of local_functions is not recorded: it is not called as functions are", err)
        self.assertIn('"t": libc.so.6 is not recorded: functions of the C library', err)
        self.assertIn('"no_such_function" of "local_functions"', err)
        self.assertEqual(self.counts()["emitted"], 0)

    def test_sanitizers_are_left_alone(self):
        """A leak is none for them if the dynamic loader is seen to have called malloc."""
        program, source = self.folder / "sanitized", self.folder / "sanitized.c"
        source.write_text(SANITIZED)
        for how in ([], ["-static-libasan"]):
            subprocess.run(["gcc", "-fsanitize=address", *how, source, "-o", program, "-pthread"], check=True,
                           timeout=PATIENCE)
            plain = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.record("--function", "*", program=[program], output=f"trace{''.join(how)}",
                        status=plain.returncode)
            self.assertGreater(self.counts()["emitted"], 0)


class HotFunctionsTest(FunctionsTest):
    """Tests with a program that calls its functions in several threads, and checks each result, until a file exists."""

    def start_hot(self):
        """Starts a recording of it. Returns the recording, the program's process id and the file."""
        over = self.folder / "over"
        weft = self.start(*self.all_functions(), program=[PROGRAM, "until", over])
        def found():
            return next((pid for pid in children_of(weft.pid) if name_of(pid) == "local_functions"), None)
        return weft, self.wait_for(found, "the program was not started"), over

    def wait_for_events(self):
        self.wait_for(lambda: any(path.stat().st_size > 0 for path in (self.folder / "trace").rglob("user_*")),
                      "no function was recorded")


@unittest.skipIf(shutil.which("gdb") is None, "needs gdb")
class Debugger(HotFunctionsTest):
    def test_stacks_are_complete(self):
        """gdb passes the stubs by the library's tables of unwinding, in each hooked call."""
        weft, pid, over = self.start_hot()
        # A process that a debugger holds is not hooked: first there are events.
        self.wait_for_events()
        # Behind the function's first instructions, gdb's breakpoint could lie inside the jump to the hook.
        commands = ("tbreak *last_call", "continue", "bt")
        done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), *(word for c in commands for word in ("-ex", c))],
                              capture_output=True, text=True, check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        over.touch()
        self.finish(weft)
        frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+)", done.stdout, re.MULTILINE)
        # Where the compiler made it a jump, tail_call has no frame any more.
        self.assertEqual(frames.count("weft_hook_stubs"), 1, done)  # of tail_call
        self.assertEqual([f for f in frames if f not in ("weft_hook_stubs", "tail_call")][:3],
                         ["last_call", "call_all", "call_until_end"], done)
        self.assertIn("start_thread", frames)


class Switching(HotFunctionsTest):
    def test_memory_is_as_before_when_the_recording_is_over(self):
        plain = subprocess.run([PROGRAM, "memory"], input="\n", capture_output=True, text=True, check=True,
                               timeout=PATIENCE).stdout.splitlines()[0]
        over = self.folder / "over"
        program = ["sh", "-c", f"{PROGRAM} memory <&3 >{self.folder}/memory 2>&1 & "
                               f"while ! [ -e {over} ]; do sleep 0.1; done"]
        reading, writing = os.pipe()
        os.set_inheritable(reading, True)
        os.dup2(reading, 3)
        weft = self.start(*self.all_functions(), program=program, pass_fds=(3,))
        self.addCleanup(os.close, writing)
        memory = self.folder / "memory"

        def answer():
            answers = memory.read_text().count("\n") if memory.exists() else 0
            os.write(writing, b"\n")
            self.wait_for(lambda: memory.exists() and memory.read_text().count("\n") > answers,
                          "the program did not answer")
            return memory.read_text().splitlines()[-1]
        self.wait_for(lambda: answer() != plain, "nothing was hooked")
        over.touch()
        self.finish(weft)
        self.wait_for(lambda: answer() == plain, "hooks were left")

    def test_switching_under_hot_threads_and_its_deaths(self):
        """The program checks the result of each call while its functions are switched 300 times, and
        while what switches them is killed at any point, 40 times; 1,000 and 100 times in the long form."""
        weft, pid, over = self.start_hot()
        self.wait_for_events()
        done = subprocess.run([SWITCH, str(pid), "1000" if LONG else "300"], capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        for _ in range(100 if LONG else 40):
            with subprocess.Popen([SWITCH, str(pid), "1000000"], stderr=subprocess.DEVNULL) as switch:
                time.sleep(0.01 + random.random() * 0.09)
                switch.kill()
        over.touch()
        out, _ = self.finish(weft)
        self.assertGreater(self.counted(out), 0)

    def test_program_survives_deaths_of_the_agent(self):
        weft, _, over = self.start_hot()  # a recording whose agent dies before it is ready ends with an error
        for _ in range(5):  # after 6 failures in a row it is not started for a while
            agent = self.wait_for(lambda: self.session_processes(weft).get("weft-agent"))
            time.sleep(random.random() * 0.1)
            os.kill(agent, signal.SIGKILL)
            self.wait_for(lambda a=agent: self.session_processes(weft).get("weft-agent") != a)
        self.wait_for_events()  # no agent may have lived long enough so far
        over.touch()
        out, _ = self.finish(weft)
        self.assertGreater(self.counted(out), 0)
        counts = self.counts()
        self.assertGreater(counts["emitted"], 0)


if __name__ == "__main__":
    unittest.main()
