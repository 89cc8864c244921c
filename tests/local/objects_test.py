# SPDX-License-Identifier: Apache-2.0
"""Tests what helps to read a trace: the state dump gives addresses their names, perf:thread
contexts have the values that the threads read themselves, and the environment says which processes
are in the trace."""

import os
import re
import subprocess
import unittest

from tests.local.weft_local import BUILD, PATIENCE, LocalTest, babeltrace_for

PROGRAMS = BUILD / "tests" / "local"
PLUGIN = PROGRAMS / "local_symbols_plugin.so"
DUMP = "lttng_ust_statedump:"
# The fields of LTTng-UST 2.13, as in its metadata.
FIELDS = {
    "start": "",
    "procname": r"integer \{ size = 8;.* encoding = UTF8;.*\} _procname\[17\];",
    "bin_info": (r"integer \{ size = 64;.* base = 16; \} _baddr; integer \{ size = 64;.*\} _memsz; "
                 r"string _path; integer \{ size = 8;.*\} _is_pic; integer \{ size = 8;.*\} "
                 r"_has_build_id; integer \{ size = 8;.*\} _has_debug_link;"),
    "build_id": (r"integer \{ size = 64;.* base = 16; \} _baddr; integer \{.*\} __build_id_length; "
                 r"integer \{ size = 8;.* base = 16; \} _build_id\[__build_id_length\];"),
    "end": "",
}


class Trace(LocalTest):
    def metadata(self, output="trace"):
        return next((self.folder / output).rglob("metadata")).read_text(errors="replace")


class Statedump(Trace):
    def symbols(self, *options, program="local_symbols", output="trace"):
        out, _ = self.record(*options, output=output, program=[PROGRAMS / program, PLUGIN])
        counts = self.counts()
        self.assertEqual(counts["emitted"], counts["delivered"], counts)
        return [line.split(" ", 1) for line in out.splitlines()]

    def names_of_functions(self, program, *options):
        self.symbols("-e", "symbols:*", "-e", "plugin:*", "-c", "vpid", "-c", "ip", *options,
                     program=program, output=program)
        trace = self.folder / program
        shown = subprocess.run([babeltrace_for(trace), "--debug-info", trace], capture_output=True,
                               text=True, timeout=PATIENCE, check=True)
        self.assertEqual(shown.stderr, "")
        lines = [line for line in shown.stdout.splitlines() if ":here:" in line]
        self.assertEqual(len(lines), 4)
        for line in lines:
            where = re.search(r'where = "(\w+)"', line).group(1)
            self.assertRegex(line, rf'func = "{where}\+', shown.stdout)

    def test_babeltrace_names_the_functions(self):
        for program in ("local_symbols", "local_symbols_nopie"):
            with self.subTest(program):
                self.names_of_functions(program)

    def test_babeltrace_names_the_functions_in_ctf_2(self):
        self.needs_babeltrace_for_ctf_2()
        self.names_of_functions("local_symbols", "--ctf", "2")

    def test_objects_are_those_of_the_dynamic_linker(self):
        loaded = self.symbols("-e", "*", "-c", "vpid")
        self.assertGreaterEqual(len(loaded), 4)
        events = self.view()
        first = next(e["context"]["vpid"] for e in events)
        # After the plugin was loaded, the second state dump of the first process:
        starts = [i for i, e in enumerate(events)
                  if e["event"] == DUMP + "start" and e["context"]["vpid"] == first]
        self.assertEqual(len(starts), 2)
        dump = [e for e in events[starts[1]:] if e["context"]["vpid"] == first]
        dump = dump[:[e["event"] for e in dump].index(DUMP + "end") + 1]
        self.assertEqual(dump[1]["event"], DUMP + "procname")
        self.assertEqual(dump[1]["payload"]["procname"], "local_symbols")
        info = {e["payload"]["baddr"]: e["payload"] for e in dump if e["event"] == DUMP + "bin_info"}
        for base, path in loaded:
            seen = info.pop(int(base, 16))
            self.assertEqual(os.path.realpath(seen["path"]), path)
            self.assertEqual(seen["is_pic"], 1)
            self.assertGreater(seen["memsz"], 4096)
        self.assertEqual([(i["path"], i["memsz"]) for i in info.values()], [("[linux-vdso.so.1]", 0)])
        ids = {e["payload"]["baddr"]: bytes(e["payload"]["build_id"]).hex()
               for e in dump if e["event"] == DUMP + "build_id"}
        for base, path in loaded:
            notes = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True,
                                   timeout=PATIENCE, check=True).stdout
            expected = re.search(r"Build ID: (\w+)", notes)
            self.assertEqual(ids.get(int(base, 16)), expected and expected.group(1), path)

    def test_every_process_has_its_own_before_its_first_event(self):
        self.symbols("-e", "*", "-c", "vpid")
        whole, dumps = set(), {}
        for event in self.view():
            vpid, name = event["context"]["vpid"], event["event"]
            if name == DUMP + "end":
                whole.add(vpid)
                dumps[vpid] = dumps.get(vpid, 0) + 1
            elif not name.startswith(DUMP):
                self.assertIn(vpid, whole)
        self.assertEqual(sorted(dumps.values()), [1, 2])  # the child, and the one that loads

    def test_no_statedump_unless_requested(self):
        self.symbols("-e", "symbols:*", "-e", "plugin:*", "-c", "vpid")
        self.assertEqual(self.counts()["delivered"], 4)
        self.symbols("-e", "*", "-x", DUMP + "*", "-c", "vpid", output="excluded")
        self.assertEqual(self.counts()["delivered"], 4)

    def test_a_filter_of_other_events_does_not_take_names_away(self):
        self.symbols("-e", "symbols:*", "--filter", 'where == "first*"', "-c", "ip")
        names = [event["event"] for event in self.view()]
        self.assertEqual(names.count("symbols:here"), 1)
        self.assertGreaterEqual(names.count(DUMP + "bin_info"), 4)

    def test_events_have_lttngs_names_and_fields(self):
        self.symbols("-e", DUMP + "*", "-e", "symbols:*")
        metadata = re.sub(r"\s+", " ", self.metadata())
        for name, fields in FIELDS.items():
            found = re.search(rf'event {{ name = "{DUMP}{name}"; id = \d+; stream_id = 0; '
                              rf'loglevel = 13; fields := struct {{ ?(.*?) ?}}; }};', metadata)
            self.assertIsNotNone(found, name)
            self.assertRegex(found.group(1), f"^{fields}$", name)

    def test_ctf_2(self):
        self.symbols("-e", "*", "--ctf", "2")
        names = [event["event"] for event in self.view()]
        self.assertEqual(names.count(DUMP + "start"), 3)
        self.assertIn(DUMP + "build_id", names)
        self.needs_babeltrace_for_ctf_2()
        lines, said = self.babeltrace()
        self.assertEqual(said, "")
        self.assertEqual(len(lines), len(names))


class Perf(Trace):
    def test_values_lie_between_what_the_thread_reads_itself(self):
        events = 300
        names = {"clock": "task-clock", "faults": "page-fault", "switches": "context-switches"}
        contexts = [w for name in names.values() for w in ("-c", "perf:thread:" + name)]
        self.record("-e", "counters:*", "-c", "vpid", *contexts, "-c", "perf:thread:cpu-cycles",
                    program=[PROGRAMS / "local_counters", events])
        threads = {}
        for event in self.view():
            key = event["context"]["vpid"], event["payload"]["thread"]
            threads.setdefault(key, []).append(event)
        self.assertEqual([len(t) for t in threads.values()], [events] * 5)
        for thread in threads.values():
            for own, name in names.items():
                field = "perf_thread_" + name.replace("-", "_")
                # Own reading, context, own reading, context ...: it never falls.
                values = [v for e in thread for v in (e["payload"][own], e["context"][field])]
                self.assertEqual(values, sorted(values), name)
                self.assertGreater(values[-1], values[0], name)
                self.assertGreater(values[1], 0 if name != "context-switches" else -1)
            # If the machine has no such counter, it is 0; otherwise it increases.
            cycles = [e["context"]["perf_thread_cpu_cycles"] for e in thread]
            self.assertEqual(cycles, sorted(cycles))

    def test_a_counter_that_cannot_be_read_is_reported(self):
        _, err = self.record("-e", "counters:*", "-c", "perf:thread:cpu-migrations",
                             program=[PROGRAMS / "local_counters", 10])
        self.assertIn("perf:thread:cpu-migrations", err)
        self.assertEqual({e["context"]["perf_thread_cpu_migrations"] for e in self.view()}, {0})


class Environment(Trace):
    def test_range_of_vpids(self):
        for version in ("1.8", "2"):
            output = "ctf" + version
            self.record("-e", "emitter:*", "-c", "vpid", "--ctf", version, output=output,
                        program=self.emitter("--events", 3, "--children", 5))
            vpids = {event["context"]["vpid"] for event in self.view(output)}
            self.assertEqual(len(vpids), 6)
            found = [int(re.search(rf'{name}"?\s*[=:]\s*(\d+)', self.metadata(output)).group(1))
                     for name in ("vpid_min", "vpid_max")]
            self.assertEqual(found, [min(vpids), max(vpids)])


if __name__ == "__main__":
    unittest.main()
