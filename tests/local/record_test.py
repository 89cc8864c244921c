# SPDX-License-Identifier: Apache-2.0
"""`weft record` on real programs: what they emit is what the trace holds."""

import collections
import json
import os
import shutil
import signal
import subprocess
import unittest

from tests.local.weft_local import BUILD, EMITTER, PATIENCE, WEFT, LocalTest


class Counts(LocalTest):
    def test_one_thread(self):
        self.record("-e", "emitter:*", program=self.emitter("--events", 5000, "--texts", 10))
        self.assert_complete(5010)

    def test_threads(self):
        self.record("-e", "emitter:*", "--subbuf-size", "4Mi",
                    program=self.emitter("--events", 20000, "--threads", 8))
        self.assert_complete(160000)

    def test_children_of_fork(self):
        self.record("-e", "emitter:*", program=self.emitter("--events", 500, "--children", 20))
        self.assert_complete(21 * 500)

    def test_exec_chain(self):
        self.record("-e", "emitter:*", program=self.emitter("--events", 50, "--exec", 30))
        self.assert_complete(31 * 50, times=31)

    def test_many_short_lived_programs(self):
        script = f"for i in $(seq 150); do {EMITTER} --events 3 --report {self.report}; done"
        self.record("-e", "emitter:*", program=["sh", "-c", script])
        self.assert_complete(450)

    def test_programs_side_by_side(self):
        script = f"for i in $(seq 40); do {EMITTER} --events 200 --report {self.report} & done; wait"
        self.record("-e", "emitter:*", program=["sh", "-c", script])
        self.assert_complete(8000)

    def test_killed_program_loses_nothing_that_it_recorded(self):
        hold, times = self.folder / "never", self.folder / "times"
        script = (f"{EMITTER} --events 1000 --times {times} --hold {hold} & pid=$!; "
                  f"until [ -e {times}.0 ]; do sleep 0.01; done; "  # it is made when all events are emitted
                  f"kill -9 $pid; wait $pid; true")
        self.record("-e", "emitter:*", program=["sh", "-c", script])
        self.assert_complete(1000)

    def test_small_buffers_count_what_they_discard(self):
        self.record("-e", "emitter:*", "--subbuf-size", "4Ki", "--subbufs", 2,
                    program=self.emitter("--events", 200000, "--threads", 2))
        counts = self.counts()
        self.assertEqual(counts["emitted"], 400000)
        self.assertEqual(counts["overwritten"], 0)
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), counts["delivered"])
        self.assertEqual(len(lines) + sum(counts["discarded"].values()), 400000)
        self.assert_all_missing_is_said()
        self.assert_each_once(lines)

    def test_overwrite_mode_counts_what_it_overwrites(self):
        self.record("-e", "emitter:*", "--mode", "overwrite", "--subbuf-size", "4Ki", "--subbufs", 2,
                    program=self.emitter("--events", 200000, "--threads", 2))
        counts = self.counts()
        self.assertEqual(counts["recorded"], 400000)
        self.assertEqual(counts["emitted"], 400000)
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), counts["delivered"])
        self.assert_all_missing_is_said()
        self.assert_each_once(lines)

    def test_snapshot_holds_what_the_buffers_held_at_the_end(self):
        self.record("-e", "emitter:*", "--snapshot", "--subbuf-size", "4Ki", "--subbufs", 2,
                    program=self.emitter("--events", 20000))
        counts = self.counts()
        self.assertEqual(counts["recorded"], 20000)
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), counts["delivered"])
        self.assertLess(len(lines), 2000)
        self.assert_all_missing_is_said()
        self.assertIn("number = 19999", lines[-1])

    def test_no_event(self):
        _, err = self.record("-e", "emitter:text", program=self.emitter("--events", 10))
        self.assertIn("0 events", err)
        self.assertEqual(self.counts()["emitted"], 0)

    def test_empty_environment_is_not_recorded_and_not_hurt(self):
        _, err = self.record("-e", "emitter:*", status=5,
                             program=["env", "-i", *self.emitter("--status", 5)])
        self.assertIn("0 events", err)

    def test_ctf_2(self):
        self.record("-e", "emitter:*", "--ctf", "2", program=self.emitter("--events", 100))
        self.assertEqual(self.counts()["delivered"], 100)
        self.assertEqual(len(self.run_view(self.folder / "trace")[0].splitlines()), 100)
        self.needs_babeltrace_for_ctf_2()
        self.assert_complete(100)


LARGE = BUILD / "tests" / "local" / "local_large"
MAX_RECORD = 1920 * 1024  # WEFT_RECORD_MAX_BYTES of lib/abi/ring.h
OVERHEAD = 16 + 4 + 4  # of large.c's events: the record's header, a number, a length
MOST_ELEMENTS = 140000  # of large.c
NO_RSEQ = os.environ | {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


class LargeRecords(LocalTest):
    """Records of up to a quarter of a sub-buffer, with the texts and the sequences of large.c."""

    def record(self, *options, **more):
        shutil.rmtree(self.folder / "trace", ignore_errors=True)
        return super().record(*options, **more)

    def shown(self, sizes):
        """Large texts are checked with weft view only. babeltrace2 2.0 takes seconds for each text
        of a megabyte, so it reads smaller ones."""
        if max(sizes) <= MOST_ELEMENTS:
            self.babeltrace()
        lines = map(json.loads, self.run_view("--json", self.folder / "trace")[0].splitlines())
        return [line for line in lines if "event" in line]

    def assert_large(self, sizes, threads=1, kept=lambda size: True):
        """Checks that the trace has those events of each thread that `kept` accepts, with all their bytes."""
        found = collections.Counter()
        for event in self.shown(sizes):
            fields, name = event["payload"], event["event"].removeprefix("large:")
            number = fields["number"]
            letter, size = chr(ord("a") + number % 26), sizes[number]
            if name == "text":
                self.assertTrue(fields["words"] == letter * size, f"text {number} of {size} bytes")
            elif name == "bytes":
                self.assertTrue(fields["data"] == [ord(letter)] * size, f"bytes {number} of {size} bytes")
            found[name, number] += 1
        wanted = {("text", n): threads for n, size in enumerate(sizes) if kept(size)}
        wanted |= {("bytes", n): threads for n, size in enumerate(sizes) if kept(size) and size <= MOST_ELEMENTS}
        wanted |= {("small", n): threads for n in range(len(sizes))}
        self.assertEqual(found, wanted)

    def check_limit(self, limit, *options, program=(), **popen):
        sizes = [limit - OVERHEAD - 1, 10, limit - OVERHEAD, limit - OVERHEAD + 1, 65536]
        self.record("-e", "large:*", *options, program=[LARGE, *program, *map(str, sizes)], **popen)
        self.assertEqual(self.counts()["discarded"], {"too_large": 1 + (sizes[-2] <= MOST_ELEMENTS)})
        self.assert_large(sizes, kept=lambda size: size <= limit - OVERHEAD)

    def test_up_to_a_quarter_of_a_sub_buffer(self):
        self.check_limit(128 * 1024)
        self.check_limit(1024 * 1024, "--subbuf-size", "4Mi")

    def test_up_to_the_limit_whatever_the_sub_buffer(self):
        self.check_limit(MAX_RECORD, "--subbuf-size", "16Mi")

    def test_in_the_ring_of_threads_without_rseq(self):
        self.check_limit(1024 * 1024, "--subbuf-size", "4Mi", program=["--own-rseq"], env=NO_RSEQ)

    def test_many_in_a_row_by_several_threads(self):
        sizes = [300000, 5, 70000, 900000, 65512, 65513, 1000000, 73728, 100, 400000]
        for program, env in ([], os.environ), (["--own-rseq"], NO_RSEQ):
            self.record("-e", "large:*", "--subbuf-size", "16Mi", "--subbufs", 8,
                        program=[LARGE, *program, "--threads", "3", *map(str, sizes)], env=env)
            self.assertEqual(self.counts()["discarded"], {})
            self.assert_large(sizes, threads=3)

    def test_overwrite_mode_and_snapshot(self):
        sizes = [100000 + n for n in range(60)]
        for mode in ("--mode", "overwrite"), ("--snapshot",):
            self.record("-e", "large:*", *mode, "--subbuf-size", "512Ki", "--subbufs", 4,
                        program=[LARGE, *map(str, sizes)])
            counts = self.counts()
            self.assertEqual(counts["recorded"], 180)
            events = self.shown(sizes)
            self.assertEqual(len(events), counts["delivered"])
            self.assertGreater(len(events), 10)
            for event in events:
                number = event["payload"]["number"]
                if event["event"] == "large:text":
                    self.assertEqual(event["payload"]["words"], chr(ord("a") + number % 26) * sizes[number])

    def test_filters(self):
        sizes = [70000, 80000, 90000]
        self.record("-e", "large:text", "--filter", 'words == "b*"', program=[LARGE, *map(str, sizes)])
        self.assertEqual([event["payload"]["words"] for event in self.shown(sizes)], ["b" * 80000])

class Rules(LocalTest):
    def test_filter_loglevel_exclusion_and_contexts(self):
        self.record("-e", "emitter:*", "--filter", "number >= 90 || number == 3",
                    "-c", "vpid", "-c", "procname", "-c", "vtid",
                    program=self.emitter("--events", 100, "--texts", 5))
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), 11)
        self.assertIn('procname = "local_emitter"', lines[0])
        self.record("-e", "emitter:*", "--loglevel", "info", output="levels",
                    program=self.emitter("--events", 7, "--texts", 5))
        self.assertEqual(len(self.babeltrace("levels")[0]), 7)
        self.record("-e", "emitter:*", "-x", "*:tick", output="without",
                    program=self.emitter("--events", 7, "--texts", 5))
        self.assertEqual(len(self.babeltrace("without")[0]), 5)

    def test_several_traces(self):
        (self.folder / "traces.yaml").write_text("""
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: ticks}
spec:
  user: {events: [{name: "emitter:tick", filter: "number < 10"}]}
  context: [vpid]
---
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: everything}
spec:
  user: {events: [{name: "*", exclude: ["lttng_ust_statedump:*"]}]}
  buffer: {size: 64Ki, mode: overwrite}
""")
        _, err = self.record("-f", self.folder / "traces.yaml",
                             program=self.emitter("--events", 100, "--texts", 20))
        self.assertIn("weft: ticks: 10 events", err)
        self.assertEqual(len(self.babeltrace("trace/ticks")[0]), 10)
        self.assertEqual(len(self.babeltrace("trace/everything")[0]), 120)
        self.assertEqual(self.counts(0)["delivered"], 10)
        self.assertEqual(self.counts(1)["delivered"], 120)

    def test_duration_ends_the_recording_and_not_the_program(self):
        self.record("-e", "emitter:*", "--duration", "200ms", status=3,
                    program=self.emitter("--events", 6000, "--pause-us", 500, "--status", 3))
        counts = self.counts()
        self.assertLess(counts["delivered"], 6000)
        self.assertEqual(len(self.babeltrace()[0]), counts["delivered"])

    def test_a_duration_that_is_over_before_all_is_ready(self):
        """The consumer takes its time; the program is started all the same."""
        tree = self.folder / "tree"
        (tree / "bin").mkdir(parents=True)
        (tree / "lib").symlink_to(BUILD / "lib")
        for name in ("weft-keeper", "weft-agent"):
            (tree / "bin" / name).symlink_to(BUILD / "bin" / name)
        shutil.copy2(WEFT, tree / "bin")
        consumer = tree / "bin/weft-consumer"
        consumer.write_text(f'#!/bin/sh\nsleep 1\nexec {BUILD}/bin/weft-consumer "$@"\n')
        consumer.chmod(0o755)
        command = self.command("-e", "emitter:*", "--duration", "10ms",
                               program=self.emitter("--status", 3))
        done = subprocess.run([tree / "bin/weft", *command[1:]], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.counts()["delivered"], 0)


class Behaviour(LocalTest):
    def test_status_and_signals_of_the_program(self):
        self.record("-e", "emitter:*", status=42, program=self.emitter("--status", 42))
        self.record("-e", "emitter:*", status=137, output="b", program=["sh", "-c", "kill -9 $$"])
        weft = self.start("-e", "emitter:*", output="c", program=["sleep", "600"])
        self.wait_for(lambda: "sleep" in names_below(weft.pid))
        weft.terminate()
        self.finish(weft, 128 + signal.SIGTERM)

    def test_streams_are_the_programs(self):
        done = subprocess.run(self.command("-q", "-e", "emitter:*", program=["cat"]), input="words\n",
                              capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.assertEqual(done.stdout, "words\n")

    def test_preloaded_libraries_are_kept(self):
        # weft itself may be built with a sanitizer, which refuses another library before its own.
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        env = dict(os.environ, LD_PRELOAD="libm.so.6", ASAN_OPTIONS=options)
        out, _ = self.record("-e", "emitter:*", program=["sh", "-c", "echo $LD_PRELOAD"], env=env)
        self.assertTrue(out.startswith("libm.so.6:"), out)
        self.assertTrue(out.strip().endswith("libweft.so"), out)

    def test_descriptors_of_weft_do_not_reach_the_program(self):
        out, _ = self.record("-e", "emitter:*", program=["ls", "/proc/self/fd"])
        self.assertEqual(out.split(), ["0", "1", "2", "3"])  # 3 is ls's own

    def test_nothing_is_left_behind(self):
        out, _ = self.record("-e", "emitter:*", program=["sh", "-c", "echo $WEFT_DIR"])
        self.assertFalse(os.path.exists(out.strip()), out)

    def test_status_shows_a_session(self):
        hold = self.folder / "hold"
        weft = self.start("-e", "emitter:*", program=self.emitter("--events", 9, "--hold", hold))
        self.wait_for(lambda: f"in {self.folder}/trace" in status() and ", 1 process, in" in status())
        self.wait_for(lambda: "9 events" in status())
        hold.touch()
        self.finish(weft)

    def test_moved_installation_with_blanks_in_its_name(self):
        moved = self.folder / "a b:c"
        shutil.copytree(BUILD / "bin", moved / "bin")
        (moved / "lib").mkdir()
        shutil.copy(BUILD / "lib" / "libweft.so", moved / "lib")
        command = self.command("-e", "emitter:*", program=self.emitter("--events", 20))
        command[0] = str(moved / "bin" / "weft")
        subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
        self.assert_complete(20)

    def test_unprivileged_user(self):
        if os.geteuid() != 0:
            self.skipTest("everything here runs unprivileged already")
        reachable = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", WEFT, "--version"],
                                   capture_output=True, check=False)
        if reachable.returncode != 0:
            self.skipTest("another user cannot reach the build folder")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        command += self.command("-e", "emitter:*", program=self.emitter("--events", 500,
                                                                        "--children", 5))
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_complete(3000)
        self.assertTrue((self.folder / "trace/ust/uid/65534/64-bit/metadata").exists())


def status():
    return subprocess.run([WEFT, "status"], capture_output=True, text=True, timeout=PATIENCE,
                          check=True).stdout


def names_below(pid):
    from tests.local.weft_local import children_of, name_of
    return [name_of(child) for child in children_of(pid)]


if __name__ == "__main__":
    unittest.main()
