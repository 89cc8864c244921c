# SPDX-License-Identifier: Apache-2.0
"""Wrong input gives one clear line that says what and where, and an exit status of its own."""

import contextlib
import os
import shlex
import shutil
import subprocess
import unittest

from tests.local.weft_local import PATIENCE, WEFT, LocalTest

USAGE, INPUT, OUTPUT, NOT_EXECUTABLE, NOT_FOUND = 120, 121, 122, 126, 127


class BadInput(LocalTest):
    def refuse(self, status, *words, options=("-e", "emitter:*"), program=None):
        """Expects `weft record` to fail with this status and a line that has these words; below
        that line it may only show the place. Nothing is run. Returns its message."""
        _, err = self.record(*options, program=program, status=status)
        lines = err.splitlines()
        self.assertTrue(any(all(word in line for word in words) for line in lines), err)
        self.assertTrue(all(line.startswith(("weft: ", "  ")) for line in lines), err)
        self.assertFalse(self.report.exists())
        return err

    def yaml(self, text):
        path = self.folder / "t.yaml"
        path.write_text(text)
        return "-f", str(path)

    def test_program_not_found(self):
        self.refuse(NOT_FOUND, "no-such-program", program=["no-such-program"])
        self.refuse(NOT_FOUND, "/no/such/program", program=["/no/such/program"])

    def test_program_is_not_executable(self):
        self.refuse(NOT_EXECUTABLE, "/etc/passwd", program=["/etc/passwd"])
        garbage = self.folder / "garbage"
        garbage.write_bytes(b"\x7fELF garbage")
        garbage.chmod(0o755)
        self.refuse(NOT_EXECUTABLE, str(garbage), program=[garbage])

    def test_misspelt_event(self):
        self.refuse(INPUT, '"emitter:tik"', 'did you mean "emitter:tick"?',
                    options=("-e", "emitter:tik"))

    def test_misspelt_field_of_a_filter(self):
        for event in ("emitter:tick", "emitter:*", "*"):
            self.refuse(INPUT, f'"{event}"', '"nmber"', 'did you mean "number"?',
                        options=("-e", event, "--filter", "number > 5 && nmber < 9"))
        self.refuse(INPUT, '"emitter:text"', '"number"', "--fields",
                    options=("-e", "emitter:text", "--filter", "number > 5"))
        rule = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  user: {events: [{name: "emitter:tick", filter: "nmber > 5"}, {name: "emitter:text"}]}
"""
        self.refuse(INPUT, '"emitter:tick"', 'did you mean "number"?', options=self.yaml(rule))

    def test_field_of_a_filter_of_another_type(self):
        for event, expression in (("emitter:tick", 'number == "7"'), ("emitter:*", "number && number[2] == 7"),
                                  ("emitter:tick", 'process > 1 && $ctx.procname == "e*" || number == "*"')):
            self.refuse(INPUT, f'"{event}"', "types", expression, "--fields",
                        options=("-e", event, "--filter", expression))
        self.record("-e", "emitter:tick", "--filter", 'number >= 0 && $ctx.vpid > 0 && $app.none:such != "a"',
                    program=self.emitter("--events", 4))

    def test_parts_of_functions_that_do_not_fit(self):
        for function, context, said in (
                ('args: [{name: b, type: int32}], filter: "a > 1"', "vpid", ("functions[0].filter", '"a"', "do not have", "b, depth")),
                ('filter: "ret > 1"', "vpid", ('"ret"', "the function's arguments, depth", "record: [exit] or [call]")),
                ("filter: '$app.a:b == 1'", "vpid", ('"$app.a:b"', "contexts of applications", "$ctx.procname")),
                ("record: [entry]", "$app.a:b", ("context: ", "of an application", "Trace of its own"))):
            rules = f"""apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {{name: t}}
spec:
  context: ["{context}"]
  user: {{events: [{{name: "emitter:tick"}}], functions: [{{name: main, {function}}}]}}
"""
            self.refuse(INPUT, "spec.", *said, options=self.yaml(rules))

    def test_sets_of_functions_that_do_not_fit(self):
        for rule, said in (("set: maloc", ('"maloc"', 'did you mean "malloc"?')),
                           ("set: io, name: main", ("exactly one of name, set",)),
                           ("set: io, returns: int32", ("without args and returns",)),
                           ('set: dl, filter: "size > 3"', ("names what no function of the set has",))):
            rules = f"""apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {{name: t}}
spec: {{user: {{functions: [{{{rule}}}]}}}}
"""
            self.refuse(INPUT, "spec.user.functions", *said, options=self.yaml(rules))
        self.refuse(INPUT, "--function-set", 'did you mean "malloc"?', options=("--function-set", "maloc"))

    def test_missing_field_may_be_allowed(self):
        _, err = self.record("-e", "emitter:*", "--filter", "nmber > 5", "--allow-missing",
                             program=self.emitter("--events", 4))
        self.assertIn('"nmber"', err)
        self.assertEqual(self.counts()["emitted"], 0)

    def test_field_that_some_events_of_a_pattern_have(self):
        """The others do not match, as in LTTng."""
        _, err = self.record("-e", "emitter:*", "--filter", "number >= 1",
                             program=self.emitter("--events", 4, "--texts", 2))
        self.assertNotIn("filter", err)
        self.assertEqual(len(self.babeltrace()[0]), 3)
        _, err = self.record("-e", "emitter:tick", "-e", "emitter:text", "--filter", "number >= 1",
                             program=self.emitter("--events", 4, "--texts", 2), output="two")
        self.assertIn('filter of event "emitter:text"', err)
        self.assertEqual(len(self.babeltrace("two")[0]), 3)

    def test_field_of_the_statedump(self):
        rules = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  user: {events: [{name: "*", filter: 'path == "*/libc.so*"'}, {name: "emitter:tick"}]}
"""
        _, err = self.record(*self.yaml(rules), program=self.emitter("--events", 4))
        self.assertNotIn("filter", err)
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), 5)
        self.assertIn("lttng_ust_statedump:bin_info", lines[0])

    def test_missing_event_may_be_allowed(self):
        self.record("-e", "emitter:tik", "-e", "emitter:tick", "--allow-missing",
                    program=self.emitter("--events", 4))
        self.assert_complete(4)

    def test_pattern_that_matches_nothing_is_reported(self):
        _, err = self.record("-e", "emiter:*", program=self.emitter("--events", 4))
        self.assertIn('event "emiter:*"', err)

    def test_filter_points_at_its_error(self):
        self.assertEqual(self.refuse(INPUT, options=("-e", "emitter:*", "--filter", "number >")),
                         "weft: --filter: column 9: expected an operand, not the end\n"
                         "  number >\n"
                         "          ^\n")
        rule = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  user: {events: [{name: "emitter:tick", filter: "words == 'größe' && $ctx.vpdi > 5"}]}
  filter: |
    number > 5 &&
    number * 2 == 4
"""
        err = self.refuse(INPUT, "t.yaml:5:73: spec.user.events[0].filter: ", 'did you mean "vpid"?',
                          options=self.yaml(rule))
        lines = err.splitlines()
        self.assertEqual(lines[1:3], ["  words == 'größe' && $ctx.vpdi > 5", " " * 22 + "^~~~~~~~~"])
        self.assertRegex(lines[3], r"t.yaml:6:\d+: spec.filter: line 2, column 8: arithmetic")
        self.assertEqual(lines[4:], ["  number * 2 == 4", " " * 9 + "^"])

    def test_missing_file(self):
        self.refuse(INPUT, "/no/such/trace.yaml", options=("-f", "/no/such/trace.yaml"))

    def test_unknown_field_with_its_place(self):
        text = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  user:
    events:
      - nmae: "emitter:*"
"""
        self.refuse(INPUT, "t.yaml:7:", "nmae", 'did you mean "name"?', options=self.yaml(text))

    def test_trace_that_records_nothing_here(self):
        text = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  kernel: {tracepoints: [{name: "sched_*"}]}
"""
        self.refuse(INPUT, "kernel module", options=self.yaml(text))

    def test_output_that_cannot_be(self):
        (self.folder / "trace").write_text("a file")
        self.refuse(OUTPUT, str(self.folder / "trace"))

    def test_output_that_holds_something(self):
        (self.folder / "trace").mkdir()
        (self.folder / "trace" / "x").touch()
        self.refuse(OUTPUT, "not empty")

    def test_usage(self):
        for words in ([], ["record"], ["record", "-e", "a:b"], ["record", "--", "true"],
                      ["record", "--nonsense", "--", "true"], ["nonsense"], ["view"], ["list"]):
            done = subprocess.run([WEFT, *words], capture_output=True, text=True, timeout=PATIENCE,
                                  check=False)
            self.assertEqual(done.returncode, USAGE, words)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_list(self):
        for target in ("/no/such", "4194304", "/etc/passwd"):
            done = subprocess.run([WEFT, "list", target], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, INPUT, done.stderr)
            self.assertIn(target, done.stderr)

    def test_full_disk(self):
        self.mount_small()
        _, err = self.record("-e", "emitter:*", output="small/trace", status=OUTPUT,
                             program=self.emitter("--events", 200000))
        counts = self.counts()
        self.assertEqual(counts["emitted"], 200000)
        self.assertGreater(sum(counts["lost"].values()), 0, err)
        self.assertIn("No space left on device", err)
        lines, _ = self.babeltrace("small/trace")
        self.assertEqual(len(lines), counts["delivered"])
        self.assertGreater(len(lines), 0)

    def test_disk_without_any_room(self):
        """Not even what is missing can be written: said, and an end all the same."""
        small = self.mount_small()
        begin = self.folder / "begin"
        wait = f"while ! test -e {begin}; do sleep 0.01; done; exec "
        weft = self.start("-e", "emitter:*", output="small/trace",
                          program=["sh", "-c", wait + shlex.join(map(str, self.emitter("--events", 1000)))])
        self.wait_for(lambda: any(file.stat().st_size > 0 for file in small.rglob("metadata")))
        fill(small / "rest")
        begin.touch()
        _, err = self.finish(weft, OUTPUT)
        self.assertIn("No space left on device", err)
        counts = self.counts()
        self.assertEqual(counts["emitted"], 1000)
        self.assertEqual(counts["delivered"] + sum(counts["lost"].values()), 1000)
        self.assertEqual(counts["delivered"], 0)

    def test_disk_without_room_for_a_file(self):
        """The trace's folders are there, or its metadata, too: no file for what comes then."""
        folders = len(["small", "trace", "ust", "uid", str(os.geteuid()), "64-bit"])
        self.mount_small(inodes=folders)
        _, err = self.record("-e", "emitter:*", output="small/trace", status=OUTPUT)
        self.assertIn("metadata: No space left on device", err)
        self.assertFalse(self.report.exists())
        self.assertFalse((self.folder / "summary.json").exists())
        shutil.rmtree(self.folder / "small" / "trace")
        subprocess.run(["mount", "-o", f"remount,nr_inodes={folders + 1}", self.folder / "small"], check=True)
        _, err = self.record("-e", "emitter:*", output="small/trace", status=OUTPUT,
                             program=self.emitter("--events", 20000))
        self.assertIn("No space left on device", err)
        counts = self.counts()
        self.assertEqual(counts["emitted"], 20000)
        self.assertEqual(counts["delivered"], 0)


def fill(path):
    with open(path, "wb", buffering=0) as rest, contextlib.suppress(OSError):
        while True:
            rest.write(bytes(4096))


class Offers(LocalTest):
    def test_program_and_process(self):
        from tests.local.weft_local import EMITTER
        hold = self.folder / "hold"
        with subprocess.Popen(self.emitter("--events", "0", "--hold", hold)) as process:
            for target in (str(EMITTER), str(process.pid)):
                done = subprocess.run([WEFT, "list", "--fields", target], capture_output=True,
                                      text=True, timeout=PATIENCE, check=True)
                self.assertIn("emitter:tick  loglevel info (6)", done.stdout)
                self.assertIn("    uint64 number", done.stdout)
                self.assertIn("    string words", done.stdout)
            hold.touch()


if __name__ == "__main__":
    unittest.main()
